"""Tidy CSV tables: one row an observation, units in the column names, undefined is empty."""

import csv
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Literal, Self, TypeVar

from pydantic import (
    Field,
    NonNegativeFloat,
    NonNegativeInt,
    PositiveFloat,
    PositiveInt,
    ValidationInfo,
    field_validator,
    model_validator,
)

from analysis import paths
from analysis.errors import InputError
from analysis.model.kv_cache import KvDtype
from analysis.model.step_time import implied_step_ms, mean_context
from analysis.records.checked import Record, check
from analysis.records.inputs import read_text

CommitLength = Annotated[float, Field(ge=1)]
StepKind = Literal["measured", "derived"]
R = TypeVar("R", bound=Record)


class SweepRow(Record):
    """One throughput at one prompt length, of a named series and repeat of it."""

    series: str
    repeat: str = ""
    speculation: str = "none"
    dcp: PositiveInt = 1
    prompt_tokens: NonNegativeInt
    counted_prompt_tokens: NonNegativeInt | None = None
    output_tokens: PositiveInt | None = None
    tok_per_s: PositiveFloat
    commit_length: CommitLength | None = None
    commit_kind: Literal["measured", "exact", "derived"] | None = Field(
        default=None, validate_default=True
    )
    measured_step_ms: PositiveFloat | None = None
    source: str

    @field_validator("commit_kind")
    @classmethod
    def _kind_beside_commit(cls, kind: str | None, info: ValidationInfo) -> str | None:
        if "commit_length" in info.data and (info.data["commit_length"] is None) != (kind is None):
            raise ValueError("commit_length and commit_kind, both or neither")
        return kind

    @property
    def context_tokens(self) -> float | None:
        """Mean context while decoding; ``None`` where the output length is not known."""
        if self.output_tokens is None:
            return None
        return mean_context(self.prompt_tokens, self.output_tokens)

    @property
    def step_ms(self) -> float | None:
        """Step time as the engine timed it; else implied by throughput and commit length."""
        if self.measured_step_ms is not None:
            return self.measured_step_ms
        if self.commit_length is None:
            return None
        return implied_step_ms(self.commit_length, self.tok_per_s)

    @property
    def step_kind(self) -> StepKind | None:
        """Whether the step was timed or worked out; ``None`` where there is none."""
        if self.measured_step_ms is not None:
            return "measured"
        return None if self.commit_length is None else "derived"


class TwoPointRow(Record):
    """One decode throughput that was measured as a difference of two requests.

    ``commit_length`` is that of the same requests, ``standard_error_ms`` that of the time per
    token; ``series`` names the requests measured alike, as in the sweep.
    """

    series: str = ""
    context_tokens: NonNegativeFloat
    tok_per_s: PositiveFloat
    commit_length: CommitLength | None = None
    standard_error_ms: NonNegativeFloat | None = None
    source: str


class ClaimRow(Record):
    """One claim of an account, as it was made, and the check that judges it."""

    id: str
    topic: str
    claim: str
    value: str
    unit: str
    given_in_source: str
    note: str
    check: str


class PlainRow(Record):
    """A published throughput without speculation on the same hardware."""

    source: str
    system: str
    model: str
    hardware: str
    spec: str
    batch: PositiveInt
    prompt_tokens: NonNegativeInt
    output_tokens: PositiveInt
    tok_per_s: PositiveFloat
    tpot_ms: PositiveFloat | None = None
    ttft_ms: NonNegativeFloat | None = None
    note: str = ""


class AcceptRow(Record):
    """A published commit length of a drafter of the same family, on one task."""

    model: str
    drafter: str
    engine: str
    task: str
    commit_length: CommitLength
    source: str


class PoolRow(Record):
    """A KV pool that a real server printed, and the layout that it ran with.

    ``config`` names the config in ``data/models`` that gives the layout; ``layers`` and
    ``indexer_bytes`` stand in for the config's where the server kept others. ``tokens`` are as
    printed: under DCP SGLang prints those of one rank, vLLM those of all. Sizes are in GiB per
    GPU, one of both cases or none: ``printed_gib``, or keys and values apart.
    """

    engine: str
    version: str = ""
    model: str
    config: str
    layers: PositiveInt | None = None
    tp: PositiveInt = 1
    dcp: PositiveInt = 1
    pp: PositiveInt = 1
    dp_attention: bool = False
    kv_dtype: KvDtype
    indexer_bytes: NonNegativeInt | None = None
    page_tokens: PositiveInt = 1
    memory: str = ""
    tokens: PositiveInt
    printed_gib: PositiveFloat | None = None
    printed_k_gib: PositiveFloat | None = None
    printed_v_gib: PositiveFloat | None = None
    gpu: str = ""
    source: str
    line: str = ""
    note: str = ""

    @model_validator(mode="after")
    def _sizes_go_together(self) -> Self:
        if (self.printed_k_gib is None) != (self.printed_v_gib is None):
            raise ValueError("printed_k_gib and printed_v_gib, both or neither")
        if self.printed_gib is not None and self.printed_k_gib is not None:
            raise ValueError("printed_gib, or printed_k_gib and printed_v_gib, not all of them")
        return self


def read_table(path: Path, row: type[R]) -> list[R]:
    """Read a CSV file into records of ``row``; empty cells are undefined.

    Raises ``InputError`` for a missing or unknown column, a ragged line, a cell of the wrong
    type or range, the same line twice, or a table without rows.
    """
    fields = row.model_fields
    rows: list[R] = []
    first_line: dict[tuple[str, ...], int] = {}
    for line, header, cells in csv_lines(path):
        if line == 1:
            unknown = [name for name in header if name not in fields]
            if unknown:
                place = f"{paths.relative(path)}:1, column {unknown[0]}"
                raise InputError(place, "an unknown column", f"one of {', '.join(fields)}")
            required = [name for name, field in fields.items() if field.is_required()]
            require_columns(path, header, required)
            continue
        refuse_repeat(path, line, cells, first_line)
        given = dict(zip(header, cells, strict=True))
        text = {name for name in given if fields[name].annotation is str}
        values = {name: cell for name, cell in given.items() if cell or name in text}
        rows.append(check(row, values, path, f":{line}"))
    if not rows:
        raise InputError(paths.relative(path), "no rows", "at least one observation")
    return rows


def csv_lines(path: Path) -> Iterator[tuple[int, list[str], list[str]]]:
    """Line number, header and cells of every line, the header's own first; blank lines pass."""
    reader = csv.reader(read_text(path).splitlines())
    header: list[str] = []
    for cells in reader:
        cells = [cell.strip() for cell in cells]
        if not any(cells):
            continue
        if not header:
            header = cells
            if len(set(header)) < len(header):
                twice = next(name for name in header if header.count(name) > 1)
                raise InputError(f"{paths.relative(path)}:1", f"column {twice} twice", "it once")
            yield 1, header, header
            continue
        if len(cells) != len(header):
            place = f"{paths.relative(path)}:{reader.line_num}"
            raise InputError(place, f"{len(cells)} cells", f"{len(header)}, as in the header")
        yield reader.line_num, header, cells
    if not header:
        raise InputError(paths.relative(path), "an empty file", "a header and rows")


def require_columns(path: Path, header: list[str], required: list[str]) -> None:
    """Raise ``InputError`` for the first required column that the header lacks."""
    for name in required:
        if name not in header:
            found = f"columns {', '.join(header)}"
            raise InputError(f"{paths.relative(path)}:1", found, f"a column {name}")


def refuse_repeat(
    path: Path, line: int, cells: list[str], first_line: dict[tuple[str, ...], int]
) -> None:
    """Raise ``InputError`` if this very line stood before: the same observation twice."""
    earlier = first_line.setdefault(tuple(cells), line)
    if earlier != line:
        found = f"the observation of line {earlier} again"
        raise InputError(f"{paths.relative(path)}:{line}", found, "every observation once")
