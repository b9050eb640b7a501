"""Millions of windows in at most ten thousand rows: bins of equally many consecutive windows."""

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from analysis.records.windows import COLUMNS, Floats, Integers, Windows

MOST_ROWS = 10_000
MEANS = (
    "context_tokens",
    "running",
    "tok_per_s",
    "commit",
    "acceptance_length",
    "step_ms",
)


def joined(parts: list[Windows]) -> Windows:
    """Windows of one file and engine, in the order of their lines."""
    last = parts[-1]
    columns: dict[str, Any] = {
        name: np.concatenate([getattr(p, name) for p in parts]) for name in COLUMNS
    }
    whole = Windows(last.engine, last.file, last.clock, last.sources, **columns)
    return whole.rows(np.argsort(whole.line, kind="stable").astype(np.int64))


def binned(windows: Windows, size: int) -> Windows:
    """Bins of ``size`` windows each; the last may be of fewer.

    Means are over the windows without a flag, over all where a bin has none. ``line`` and
    ``time_s`` are the first ones; flags and notes are those of any window. Rows that are bins
    already are put together whole.
    """
    if size <= 1 or len(windows) == 0:
        return windows
    number = (np.cumsum(windows.count) - windows.count) // size
    starts = np.flatnonzero(np.diff(number, prepend=-1) > 0)
    some_used = np.add.reduceat(windows.used, starts) > 0
    used = np.repeat(some_used, np.diff(starts, append=len(windows)))
    weight = np.where(used, windows.used, windows.count).astype(np.float64)
    means: dict[str, Any] = {name: _means(getattr(windows, name), weight, starts) for name in MEANS}
    whole: dict[str, Any] = {
        name: getattr(windows, name)[starts] for name in ("line", "source", "time_s")
    }
    return Windows(
        windows.engine,
        windows.file,
        windows.clock,
        windows.sources,
        **whole,
        **means,
        flags=np.bitwise_or.reduceat(windows.flags, starts),
        notes=np.bitwise_or.reduceat(windows.notes, starts),
        count=np.add.reduceat(windows.count, starts),
        used=np.add.reduceat(windows.used, starts),
    )


def _means(values: Floats, weight: Floats, starts: Integers) -> Floats:
    known = np.where(np.isfinite(values), weight, 0.0)
    total = np.add.reduceat(known, starts)
    weighted = np.add.reduceat(np.where(known > 0, values, 0.0) * known, starts)
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.where(total > 0, weighted / total, np.nan)


@dataclass
class Binner:
    """Takes windows in; gives at most ``most_rows`` rows of all files together."""

    most_rows: int = MOST_ROWS
    size: int = 1
    total: int = 0
    _parts: dict[tuple[str, str], list[Windows]] = field(default_factory=dict)
    _rest: dict[tuple[str, str], Windows] = field(default_factory=dict)

    def add(self, batch: Windows) -> None:
        """Take in the next windows of a file."""
        self.total += len(batch)
        key = (batch.file, batch.engine)
        if key in self._rest:
            batch = joined([self._rest.pop(key), batch])
        self._keep(key, batch)
        while self._rows() > 2 * self.most_rows:
            self._halve()

    def result(self) -> tuple[tuple[Windows, ...], bool]:
        """All rows, one batch a file and engine, and whether they are bins."""
        while self.total > self.most_rows and self._rows() > self.most_rows:
            self._halve()
        out = []
        for key in dict.fromkeys([*self._parts, *self._rest]):
            parts = list(self._parts.get(key, []))
            if key in self._rest:
                parts.append(binned(self._rest[key], self.size))
            out.append(joined(parts))
        return tuple(out), self.size > 1

    def _keep(self, key: tuple[str, str], rows: Windows) -> None:
        """Put rows into whole bins; what does not fill one waits for more."""
        made = binned(rows, self.size)
        whole = int((made.count == self.size).sum())
        if whole:
            self._parts.setdefault(key, []).append(made.rows(slice(0, whole)))
        if whole < len(made):
            self._rest[key] = made.rows(slice(whole, None))

    def _rows(self) -> int:
        return sum(len(part) for parts in self._parts.values() for part in parts)

    def _halve(self) -> None:
        """Make bins twice as large; an odd one waits, before what waits already."""
        self.size *= 2
        for key in list(self._parts):
            parts = self._parts.pop(key)
            if key in self._rest:
                parts.append(self._rest.pop(key))
            self._keep(key, joined(parts))
