"""Two numeric columns from any CSV table or from a run, for ``analysis fit``."""

import math
from dataclasses import dataclass
from pathlib import Path

from analysis import paths
from analysis.errors import InputError
from analysis.model.step_time import implied_step_ms, mean_context
from analysis.records.run import Run
from analysis.records.run_rows import sweep_rows
from analysis.records.tables import csv_lines, refuse_repeat, require_columns

NEVER_NEGATIVE = ("tokens", "ms", "tok_per_s", "length")


@dataclass(frozen=True)
class Columns:
    """Paired values of two columns, and what had to be derived for them."""

    x: list[float]
    y: list[float]
    derived: list[str]


def read_columns(path: Path, x: str, y: str, series: str | None = None) -> Columns:
    """Columns ``x`` and ``y`` of a table; rows where either is empty are left out.

    ``step_ms`` is derived from ``commit_length`` and ``tok_per_s``, ``context_tokens`` from
    ``prompt_tokens`` and ``output_tokens``, where the table does not hold them. A table with
    several series needs ``series``: they are never pooled in silence.
    """
    xs: list[float] = []
    ys: list[float] = []
    derived: dict[str, str] = {}
    names: set[str] = set()
    first_line: dict[tuple[str, ...], int] = {}
    for line, header, cells in csv_lines(path):
        if line == 1:
            for wanted in (x, y):
                if wanted not in header and all(s in header for s in _SOURCES.get(wanted, ["?"])):
                    derived[wanted] = f"{wanted} is derived from {' and '.join(_SOURCES[wanted])}"
                else:
                    require_columns(path, header, [wanted])
            continue
        refuse_repeat(path, line, cells, first_line)
        row = dict(zip(header, cells, strict=True))
        label = " ".join(part for part in (row.get("series", ""), row.get("repeat", "")) if part)
        if series is not None and label != series:
            names.add(label)
            continue
        values = [_value(path, line, row, wanted) for wanted in (x, y)]
        if values[0] is None or values[1] is None:
            continue
        names.add(label)
        xs.append(values[0])
        ys.append(values[1])
    listed = "; ".join(sorted(names))
    if series is not None and not xs:
        raise InputError(paths.relative(path), f"no rows of series {series!r}", f"one of {listed}")
    if series is None and len(names) > 1:
        found = f"{len(names)} series"
        raise InputError(paths.relative(path), found, f"--series with one of: {listed}")
    if not xs:
        raise InputError(paths.relative(path), "no rows", f"rows with {x} and {y}")
    return Columns(xs, ys, list(derived.values()))


RUN_COLUMNS = (
    "context_tokens",
    "prompt_tokens",
    "output_tokens",
    "step_ms",
    "commit_length",
    "tok_per_s",
)


def run_columns(run: Run, x: str, y: str, series: str | None = None) -> Columns:
    """The same columns of a run's context sweep, one row a cell."""
    place = f"run {run.name}"
    for wanted in (x, y):
        if wanted not in RUN_COLUMNS:
            raise InputError(place, f"no column {wanted}", f"one of {', '.join(RUN_COLUMNS)}")
    rows = sweep_rows([run])
    if not rows:
        raise InputError(place, "no context sweep with a value", "a run of context-sweep")
    listed = "; ".join(dict.fromkeys(row.series for row in rows))
    if series is None and len({row.series for row in rows}) > 1:
        raise InputError(place, "several series", f"--series with one of: {listed}")
    wanted_rows = [row for row in rows if series in (None, row.series)]
    if not wanted_rows:
        raise InputError(place, f"no rows of series {series!r}", f"one of {listed}")
    pairs = [(getattr(row, x), getattr(row, y)) for row in wanted_rows]
    known = [(float(a), float(b)) for a, b in pairs if a is not None and b is not None]
    if not known:
        raise InputError(place, "no rows", f"rows with {x} and {y}")
    derived = []
    if "step_ms" in (x, y) and any(row.step_kind == "derived" for row in wanted_rows):
        derived.append("step_ms is derived from commit_length and tok_per_s")
    return Columns([a for a, _ in known], [b for _, b in known], derived)


_SOURCES = {
    "step_ms": ["commit_length", "tok_per_s"],
    "context_tokens": ["prompt_tokens", "output_tokens"],
}
_RULES = {"step_ms": implied_step_ms, "context_tokens": mean_context}


def _value(path: Path, line: int, row: dict[str, str], name: str) -> float | None:
    if name in row:
        return _number(path, line, row, name)
    parts = [_number(path, line, row, source) for source in _SOURCES[name]]
    if parts[0] is None or parts[1] is None:
        return None
    if name == "step_ms" and parts[1] == 0:
        place = f"{paths.relative(path)}:{line}, column tok_per_s"
        raise InputError(place, row["tok_per_s"], "a number above zero")
    return _RULES[name](parts[0], parts[1])


def _number(path: Path, line: int, row: dict[str, str], name: str) -> float | None:
    cell = row[name]
    if not cell:
        return None
    place = f"{paths.relative(path)}:{line}, column {name}"
    try:
        value = float(cell)
    except ValueError:
        raise InputError(place, repr(cell), "a number") from None
    if not math.isfinite(value):
        raise InputError(place, cell, "a finite number")
    if value < 0 and name.endswith(NEVER_NEGATIVE):
        raise InputError(place, cell, "a number that is not negative")
    return value
