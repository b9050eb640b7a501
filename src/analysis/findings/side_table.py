"""One side of a comparison from a CSV table: whichever columns it has, and what follows from them.

Columns: ``tok_per_s`` (of all running requests together), ``commit_length``, ``step_ms`` or
``measured_step_ms``, ``context_tokens`` or ``prompt_tokens`` with ``output_tokens``, ``running``,
``block`` (the most tokens that a step can commit), ``series``, ``repeat``, ``text`` and
``speculation``. Others are passed over.
"""

from dataclasses import dataclass
from pathlib import Path

from pydantic import NonNegativeFloat, PositiveFloat, PositiveInt

from analysis import paths
from analysis.errors import InputError
from analysis.model.step_time import implied_step_ms, mean_context, throughput
from analysis.records.checked import Record, check
from analysis.records.tables import CommitLength, SweepRow, csv_lines, refuse_repeat

RATES = ("tok_per_s", "step_ms", "measured_step_ms")
PLAIN = "none"
"""What the column ``speculation`` holds where there is none."""


class SideRow(Record):
    """One observation; ``None`` where its cell is empty or the table lacks the column."""

    series: str = ""
    repeat: str = ""
    text: str = ""
    speculation: str | None = None
    running: PositiveFloat = 1.0
    context_tokens: NonNegativeFloat | None = None
    prompt_tokens: NonNegativeFloat | None = None
    output_tokens: PositiveFloat | None = None
    tok_per_s: PositiveFloat | None = None
    commit_length: CommitLength | None = None
    step_ms: PositiveFloat | None = None
    measured_step_ms: PositiveFloat | None = None
    block: PositiveInt | None = None


@dataclass(frozen=True)
class Values:
    """An observation with what follows from it. ``context_from`` says what the context is."""

    series: str
    text: str
    running: float
    context_tokens: float | None
    context_from: str
    commit: float | None
    step_ms: float | None
    tok_per_s: float | None
    block: int | None
    request: str = ""


def table_values(path: Path) -> list[Values]:
    """The rows of a table that have a throughput or a step.

    Raises ``InputError`` for a table without either, and for a cell that is none of its kind.
    """
    rows: list[SideRow] = []
    first_line: dict[tuple[str, ...], int] = {}
    known: list[str] = []
    for line, header, cells in csv_lines(path):
        if line == 1:
            known = [name for name in header if name in SideRow.model_fields]
            if not any(name in known for name in RATES):
                found = f"columns {', '.join(header)}"
                expected = "a column tok_per_s or step_ms, and commit_length for a split"
                raise InputError(f"{paths.relative(path)}:1", found, expected)
            continue
        refuse_repeat(path, line, cells, first_line)
        row = dict(zip(header, cells, strict=True))
        given = {name: row[name] for name in known if row[name]}
        rows.append(check(SideRow, given, path, f":{line}"))
    values = [_values(row) for row in rows]
    values = [row for row in values if row.tok_per_s is not None or row.step_ms is not None]
    if not values:
        raise InputError(paths.relative(path), "no rows", "rows with tok_per_s or step_ms")
    return values


def sweep_values(rows: list[SweepRow]) -> list[Values]:
    """The same of the rows of a case's sweep."""
    return [
        _values(
            SideRow(
                series=row.series,
                repeat=row.repeat,
                prompt_tokens=row.prompt_tokens,
                output_tokens=row.output_tokens,
                tok_per_s=row.tok_per_s,
                commit_length=row.commit_length,
                measured_step_ms=row.measured_step_ms,
                speculation=row.speculation,
            )
        )
        for row in rows
    ]


def _values(row: SideRow) -> Values:
    commit = row.commit_length
    if commit is None and row.speculation == PLAIN:
        commit = 1.0
    step = row.measured_step_ms or row.step_ms
    rate = row.tok_per_s
    if step is None and commit is not None and rate is not None:
        step = implied_step_ms(commit, rate / row.running)
    if rate is None and commit is not None and step is not None:
        rate = row.running * throughput(commit, step)
    context, origin = row.context_tokens, ""
    if context is None and row.prompt_tokens is not None:
        if row.output_tokens is None:
            context, origin = row.prompt_tokens, "the prompt length"
        else:
            context = mean_context(row.prompt_tokens, row.output_tokens)
    return Values(
        series=" ".join(part for part in (row.series, row.repeat) if part),
        text=row.text,
        running=row.running,
        context_tokens=context,
        context_from=origin,
        commit=commit,
        step_ms=step,
        tok_per_s=rate,
        block=row.block,
    )
