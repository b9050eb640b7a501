"""What vLLM's lines say, as columns: throughput lines, and lines on drafts."""

from dataclasses import dataclass, replace
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from analysis.logs.scan import Numbers, Places

Mask = NDArray[np.bool_]
WINDOW, TOTAL = 0, 1
"""What a line's counts are of: one window, or all the time since the start (V0)."""


@dataclass(frozen=True)
class Source:
    """Who printed a line: the process, its engine if it names one, and how many it stands for."""

    process: str
    engine: str = ""
    engines: int = 1

    @property
    def label(self) -> str:
        """As it is shown."""
        return " ".join(part for part in (self.process, self.engine) if part)


@dataclass(frozen=True)
class Speeds:
    """Throughput lines: tokens per second, requests that run, and the KV cache's use in percent.

    NaN on lines that are not whole.
    """

    line: Places
    source: Places
    time_s: Numbers
    prompt: Numbers
    generation: Numbers
    running: Numbers
    usage: Numbers


@dataclass(frozen=True)
class Drafts:
    """Lines on drafts. ``positions`` is the most drafts of a step, ``length`` the printed mean.

    ``kind`` is ``WINDOW`` or ``TOTAL``; ``emitted`` is known for the second only. NaN where a
    version does not print it, and on lines that are not whole.
    """

    line: Places
    source: Places
    time_s: Numbers
    kind: Places
    accepted: Numbers
    drafted: Numbers
    emitted: Numbers
    length: Numbers
    positions: Numbers


Table = TypeVar("Table", Speeds, Drafts)


def blanked(table: Table, bad: Mask) -> Table:
    """The table without the numbers of lines that are not whole: it is known that they stood there.

    Without them, what belongs to the one line would be taken for that of another.
    """
    if not bad.any():
        return table
    columns = dict(vars(table))
    for name, column in columns.items():
        if column.dtype.kind == "f":
            columns[name] = np.where(bad, np.nan, column)
    if "kind" in columns:
        columns["kind"] = np.where(bad, WINDOW, columns["kind"])
    return type(table)(**columns)


def placed(table: Table, codes: Places, first_line: int) -> Table:
    """The table with line numbers of the file and sources of all its blocks."""
    source = codes[table.source] if len(codes) else table.source
    return replace(table, line=table.line + first_line, source=source)


def joined(one: Table, other: Table) -> Table:
    """The rows of both."""
    both = {name: np.concatenate([column, vars(other)[name]]) for name, column in vars(one).items()}
    return type(one)(**both)


def kept(table: Table, keep: Mask) -> Table:
    """The rows that ``keep`` selects."""
    return type(table)(**{name: column[keep] for name, column in vars(table).items()})
