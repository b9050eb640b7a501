"""One side of a comparison: a log, a run, a case or a table, as columns of equal meaning."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from analysis import paths
from analysis.errors import InputError
from analysis.findings.side_table import Values, sweep_values, table_values
from analysis.records.case import committed_cases, load_case
from analysis.records.run import ExperimentName, Run, Sample, committed_runs, is_run, load_run
from analysis.records.run_rows import method_of
from analysis.records.tables import SweepRow, read_table
from analysis.records.windows import FLAG_NAMES, Windows

Floats = NDArray[np.float64]
Kind = Literal["log", "run", "case", "table"]

SWEEPS: tuple[ExperimentName, ...] = ("context-sweep", "acceptance")
"""Experiments whose requests are compared; those of the others only where a run has none."""
DISAGREES = 0.02
"""A printed throughput further than this from commit over step is told."""


@dataclass(frozen=True)
class Side:
    """Observations of one server, a row a value; undefined is NaN or an empty text.

    ``context_tokens`` is the mean context of a request, ``tok_per_s`` of all ``running`` requests
    together, ``commit`` in tokens per step and ``step_ms`` of one verify step. ``block`` is the
    most tokens that a step can commit. ``request`` is the same on two sides where the same prompt
    was sent for the same output. ``successive`` rows are windows in the order of time.
    """

    name: str
    kind: Kind
    context_tokens: Floats
    running: Floats
    commit: Floats
    step_ms: Floats
    tok_per_s: Floats
    block: Floats
    text: tuple[str, ...]
    series: tuple[str, ...]
    request: tuple[str, ...]
    successive: bool = False
    notes: tuple[str, ...] = ()

    def __len__(self) -> int:
        return len(self.text)

    @property
    def tok_per_s_per_stream(self) -> Floats:
        """Throughput of one of the running requests."""
        return self.tok_per_s / self.running

    @property
    def splits(self) -> NDArray[np.bool_]:
        """Which rows have both a commit and a step."""
        return np.isfinite(self.commit) & np.isfinite(self.step_ms)

    @property
    def series_names(self) -> list[str]:
        """The series that the rows belong to, each once."""
        return list(dict.fromkeys(self.series))

    def rows(self, keep: NDArray[np.bool_]) -> "Side":
        """The rows that ``keep`` selects."""
        chosen = {name: getattr(self, name)[keep] for name in NUMBERS}
        for name in LABELS:
            chosen[name] = tuple(v for v, k in zip(getattr(self, name), keep, strict=True) if k)
        return replace(self, **chosen)


NUMBERS = ("context_tokens", "running", "commit", "step_ms", "tok_per_s", "block")
LABELS = ("text", "series", "request")


def load_side(source: str, series: str | None = None) -> Side:
    """A side from a run, a case, a CSV table or else a log; of ``series`` alone if one is given.

    Commas join the logs of one server, in the order of time.
    Raises ``InputError`` where nothing usable is found.
    """
    path = Path(source)
    if is_run(path) or source in committed_runs():
        run = load_run(source)
        side = _side(f"run {run.name}", "run", _of_run(run))
    elif source in committed_cases() or (path / "case.toml").is_file():
        side = _of_case(source)
    elif path.suffix.lower() == ".csv" and len(_logs(source)) == 1:
        side = _side(paths.relative(path), "table", table_values(path))
    else:
        side = _of_log(source)
    return side if series is None else _one_series(side, series)


def of_windows(name: str, batches: Sequence[Windows], notes: tuple[str, ...] = ()) -> Side:
    """A side from the windows of a log that carry no flag and have a rate, source by source."""
    parts = []
    for batch in batches:
        used = batch.rows(batch.unflagged)
        used = used.rows(np.isfinite(used.tok_per_s) & (used.tok_per_s > 0))
        order = np.argsort(used.source, kind="stable")
        parts += [np.column_stack([getattr(used, column)[order] for column in NUMBERS[:-1]])]
    table = np.concatenate(parts) if parts else np.empty((0, len(NUMBERS) - 1))
    columns: dict[str, Any] = dict(zip(NUMBERS, table.T, strict=False))
    empty = ("",) * len(table)
    return Side(
        name=name,
        kind="log",
        **columns,
        block=np.full(len(table), np.nan),
        text=empty,
        series=empty,
        request=empty,
        successive=True,
        notes=notes,
    )


def _of_log(source: str) -> Side:
    from analysis.findings.diagnosis import diagnose  # reads all engines' logs: slow to import

    parts = _logs(source)
    several = len(parts) > 1
    for part in parts:
        if part.is_dir():
            expected = "a log file, a CSV table, a run folder or a case folder"
            raise InputError(paths.relative(part), "a folder", expected)
        if several and part.suffix.lower() == ".csv":
            expected = "logs alone between the commas"
            raise InputError(paths.relative(part), "a table", expected)
    found = diagnose(parts)
    name = paths.relative(parts[0]) + (f" and {len(parts) - 1} more" if several else "")
    notes = [f"{found.summary.windows_used:,} of {found.windows_total:,} windows carry no flag"]
    if found.binned:
        notes.append("windows are taken together in bins, and each bin counts as one value")
    side = of_windows(name, found.windows, tuple(notes))
    if not len(side):
        counts = sorted(found.flags.items(), key=lambda item: -item[1])
        reasons = ", ".join(f"{FLAG_NAMES[flag]} {n:,}" for flag, n in counts if n)
        total = f"no window of decoding alone among {found.windows_total:,}"
        total += f" ({reasons})" if reasons else ""
        raise InputError(name, total, "a log with undisturbed decoding")
    if found.seen.block is not None:
        side = replace(side, block=np.full(len(side), float(found.seen.block)))
    return side


def _logs(source: str) -> list[Path]:
    """One path, or those between commas where no file has such a name."""
    if Path(source).exists():
        return [Path(source)]
    return [Path(part.strip()) for part in source.split(",") if part.strip()] or [Path(source)]


def _of_run(run: Run) -> list[Values]:
    plain = run.manifest.server.speculates is False
    samples = [s for name in SWEEPS for s in run.of(name)]
    if not samples:
        samples = [s for s in run.samples if not s.warmup]
    used = [s for s in samples if not s.flags and s.tok_per_s is not None]
    if not used:
        found = f"none of {len(samples)} requests without a flag"
        raise InputError(f"run {run.name}", found, "requests that count")
    return [_of_sample(s, method_of(run), plain) for s in used]


def _of_sample(sample: Sample, method: str, plain: bool) -> Values:
    cold = ", cold" if sample.cold else ""
    return Values(
        series=method,
        text=sample.text,
        running=1.0,
        context_tokens=sample.context_tokens,
        context_from="",
        commit=1.0 if plain else sample.commit_length,
        step_ms=sample.step_ms,
        tok_per_s=sample.tok_per_s,
        block=None,
        request=f"{sample.text} {sample.excerpt}, {sample.asked_prompt_tokens} + "
        f"{sample.asked_output_tokens} tokens{cold}",
    )


def _of_case(source: str) -> Side:
    """The rows of the sweep's file, and the requests of the case's own runs."""
    case = load_case(source)
    path = case.folder / "sweep.csv"
    values = sweep_values(read_table(path, SweepRow)) if path.exists() else []
    for run in case.runs:
        values += _of_run(run)
    if not values:
        raise InputError(f"case {case.name}", "no sweep and no run", "a case with either")
    return _side(f"case {case.name}", "case", values)


def _side(name: str, kind: Kind, values: list[Values]) -> Side:
    notes = []
    if any(v.context_from for v in values):
        notes.append("the context is the prompt length: the output length is not given")
    if any(_disagrees(v) for v in values):
        notes.append(
            f"the throughput given is more than {100 * DISAGREES:.0f} % from commit over step in "
            "some rows: it is commit over step that is compared"
        )
    columns: dict[str, Any] = {
        column: np.array(
            [np.nan if (found := getattr(v, column)) is None else float(found) for v in values]
        )
        for column in NUMBERS
    }
    for label in LABELS:
        columns[label] = tuple(str(getattr(v, label)) for v in values)
    return Side(name=name, kind=kind, notes=tuple(notes), **columns)


def _disagrees(values: Values) -> bool:
    if values.commit is None or values.step_ms is None or values.tok_per_s is None:
        return False
    ratio = values.tok_per_s * values.step_ms / (1000 * values.running * values.commit)
    return abs(ratio - 1) > DISAGREES


def _one_series(side: Side, series: str) -> Side:
    if side.kind == "log":
        raise InputError(side.name, f"series {series!r} of a log", "no --series: a log has none")
    full = [f"{s}, {t}" if t else s for s, t in zip(side.series, side.text, strict=True)]
    keep = np.array([series in (s, f) for s, f in zip(side.series, full, strict=True)])
    if not keep.any():
        known = "; ".join(dict.fromkeys([*side.series_names, *full]))
        raise InputError(side.name, f"no rows of series {series!r}", f"one of: {known}")
    return replace(side.rows(keep), name=f"{side.name} ({series})")


def as_plain(side: Side) -> Side:
    """The side taken as plain decoding: one token a step, which is the time per token of a stream.

    Raises ``InputError`` where a row commits more.
    """
    speculates = np.isfinite(side.commit) & (side.commit != 1)
    if speculates.any():
        found = f"a commit length of {side.commit[speculates][0]:g}"
        raise InputError(side.name, found, "plain decoding, which commits 1 token a step")
    step = np.where(np.isfinite(side.step_ms), side.step_ms, 1000 / side.tok_per_s_per_stream)
    return replace(side, commit=np.ones(len(side)), step_ms=step)
