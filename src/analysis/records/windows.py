"""What a server printed of its decoding, window by window: columns of equal length.

A window is what one line of a log covers: some decode forwards of SGLang, the ten seconds between
two lines of vLLM, one request of llama.cpp or of a recorded answer. A log of gigabytes has millions
of them, so they are columns of NumPy and not objects. Undefined is NaN.
"""

from collections.abc import Sequence
from dataclasses import dataclass, fields
from enum import IntFlag
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

Engine = Literal["sglang", "vllm", "llama.cpp"]
Clock = Literal["date", "month and day", "since start", "none"]
"""How a log tells the time: with the year, without it, from the server's start, or not at all."""
Floats = NDArray[np.float64]
Integers = NDArray[np.int64]


class Flag(IntFlag):
    """Why a window's rate is not that of decoding alone; any of them keeps it out of a summary."""

    IDLE = 1
    PREFILL = 2
    MIXED = 4
    RUNNING_CHANGED = 8
    SPECULATION_OFF = 16
    ABOVE_BLOCK = 32
    CLOCK_BACK = 64
    NO_RATE = 128


FLAG_NAMES: dict[Flag, str] = {
    Flag.IDLE: "after idle gap",
    Flag.PREFILL: "prefill inside",
    Flag.MIXED: "mixed batch",
    Flag.RUNNING_CHANGED: "running count changed",
    Flag.SPECULATION_OFF: "speculation off",
    Flag.ABOVE_BLOCK: "commit above block",
    Flag.CLOCK_BACK: "clock went back",
    Flag.NO_RATE: "no rate",
}


FLAG_MEANINGS: dict[Flag, str] = {
    Flag.IDLE: "the line covers more time than its prefills and steps account for",
    Flag.PREFILL: "a prompt was processed meanwhile",
    Flag.MIXED: "others decoded while a prompt was read, or several requests shared the time",
    Flag.RUNNING_CHANGED: "requests came or left within it",
    Flag.SPECULATION_OFF: "plain decoding in a log that speculates elsewhere",
    Flag.ABOVE_BLOCK: "it commits more tokens than one step can",
    Flag.CLOCK_BACK: "its time lies before that of the line before it",
    Flag.NO_RATE: "it tells no throughput, or no request ran",
}


class Note(IntFlag):
    """What is to be known of a window that counts all the same."""

    OLD_ACCEPT_RATE = 1
    STEPS_WITHOUT_DRAFT = 2
    LENGTH_ASSUMED = 4
    CONTEXT_FROM_USAGE = 8
    FEW_STEPS = 16


NOTE_NAMES: dict[Note, str] = {
    Note.OLD_ACCEPT_RATE: "accept rate of the older definition",
    Note.STEPS_WITHOUT_DRAFT: "steps that drafted nothing",
    Note.LENGTH_ASSUMED: "length of the window assumed",
    Note.CONTEXT_FROM_USAGE: "context from KV cache usage",
    Note.FEW_STEPS: "fewer than twenty steps",
}


@dataclass(frozen=True)
class Windows:
    """Windows of one file in its order, or bins of as many consecutive ones as ``count`` says.

    ``line`` counts from 1. ``source`` is an index into ``sources``: the rank, engine or slot that
    printed the line. ``time_s`` is the time as printed, in seconds (of the calendar as if it were
    UTC, or since the server's start: see ``clock``). ``context_tokens`` is per running request,
    ``tok_per_s`` of all of them together, and ``step_ms = 1000 * commit * running / tok_per_s``.
    ``commit`` is over all steps and ``acceptance_length`` over those that drafted, both with the
    bonus token. ``used`` counts the windows of the row without a flag: in a bin the figures are
    their means, and of all its windows where none is without.
    """

    engine: Engine
    file: str
    clock: Clock
    sources: tuple[str, ...]
    line: Integers
    source: Integers
    time_s: Floats
    context_tokens: Floats
    running: Floats
    tok_per_s: Floats
    commit: Floats
    acceptance_length: Floats
    step_ms: Floats
    flags: Integers
    notes: Integers
    count: Integers
    used: Integers

    def __post_init__(self) -> None:
        lengths = {name: len(getattr(self, name)) for name in COLUMNS}
        if len(set(lengths.values())) > 1:
            raise ValueError(f"columns of unequal length: {lengths}")

    def __len__(self) -> int:
        return len(self.line)

    @property
    def unflagged(self) -> NDArray[np.bool_]:
        """Which rows count in a summary."""
        return self.used > 0

    @property
    def speculating(self) -> NDArray[np.bool_]:
        """Rows that tell of drafts."""
        told: NDArray[np.bool_] = np.isfinite(self.acceptance_length)
        told |= np.isfinite(self.commit) & (self.commit != 1.0)
        return told

    @property
    def plain(self) -> NDArray[np.bool_]:
        """Rows of plain decoding: one token a step, and nothing of drafts. Others tell neither."""
        told: NDArray[np.bool_] = (self.commit == 1.0) & np.isnan(self.acceptance_length)
        return told

    def rows(self, keep: "NDArray[np.bool_] | NDArray[np.int64] | slice") -> "Windows":
        """The rows that ``keep`` selects."""
        if isinstance(keep, np.ndarray) and keep.dtype == bool and bool(keep.all()):
            return self
        chosen: dict[str, Any] = {name: getattr(self, name)[keep] for name in COLUMNS}
        return Windows(self.engine, self.file, self.clock, self.sources, **chosen)


COLUMNS = tuple(f.name for f in fields(Windows))[4:]


def windows(
    engine: Engine,
    file: str,
    clock: Clock,
    sources: Sequence[str],
    *,
    line: "Sequence[int] | Integers",
    source: "Sequence[int] | Integers | None" = None,
    flags: "Sequence[int] | Integers | None" = None,
    notes: "Sequence[int] | Integers | None" = None,
    **columns: "Sequence[float] | Floats",
) -> Windows:
    """Windows, one a row, from the columns that are known; the others are undefined."""
    n = len(line)
    given: dict[str, Any] = {
        name: np.asarray(columns.pop(name, np.full(n, np.nan)), dtype=np.float64)
        for name in (
            "time_s",
            "context_tokens",
            "running",
            "tok_per_s",
            "commit",
            "acceptance_length",
            "step_ms",
        )
    }
    if columns:
        raise TypeError(f"no such column: {', '.join(columns)}")
    whole: dict[str, Any] = {
        name: np.zeros(n, dtype=np.int64) if value is None else np.asarray(value, dtype=np.int64)
        for name, value in (("source", source), ("flags", flags), ("notes", notes))
    }
    return Windows(
        engine=engine,
        file=file,
        clock=clock,
        sources=tuple(sources),
        line=np.asarray(line, dtype=np.int64),
        count=np.ones(n, dtype=np.int64),
        used=(whole["flags"] == 0).astype(np.int64),
        **whole,
        **given,
    )


def marked(where: NDArray[np.bool_], mark: Flag | Note) -> Integers:
    """The mark, as a number, where it belongs, and 0 elsewhere; such columns are or-ed."""
    return where.astype(np.int64) * int(mark)


def flag_names(mask: int) -> list[str]:
    """The flags of one window in words."""
    return [name for flag, name in FLAG_NAMES.items() if mask & flag]


def note_names(mask: int) -> list[str]:
    """The notes on one window in words."""
    return [name for note, name in NOTE_NAMES.items() if mask & note]
