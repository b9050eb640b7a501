"""Does speculation pay against plain decoding of the same server, both measured?

Break-even is the speculating step over the plain step at the same context. The plain step between
two measured contexts is read off the line between them; outside them there is none.
"""

from dataclasses import dataclass

import numpy as np

from analysis.findings.missing import Missing
from analysis.model.speculation import break_even_commit
from analysis.records.case import Case
from analysis.records.tables import SweepRow

SAME_CONTEXT = 0.02
"""Share by which a context may lie outside the plain ones: texts differ by a few tokens."""


@dataclass(frozen=True)
class OwnBreakEven:
    """One speculating cell beside plain decoding at its context. Contexts are means, in tokens."""

    series: str
    plain_series: str
    context_tokens: float
    tok_per_s: float
    commit_length: float
    step_ms: float
    plain_step_ms: float

    @property
    def break_even(self) -> float:
        """Commit length that only matches plain decoding."""
        return break_even_commit(self.step_ms, self.plain_step_ms)

    @property
    def gain(self) -> float:
        """Throughput over that of plain decoding."""
        return self.commit_length / self.break_even


@dataclass(frozen=True)
class OwnPlain:
    """Every speculating cell that has a plain neighbour."""

    points: tuple[OwnBreakEven, ...]

    @property
    def main(self) -> tuple[OwnBreakEven, ...]:
        """The points of the first series, by context."""
        first = [p for p in self.points if p.series == self.points[0].series]
        return tuple(sorted(first, key=lambda p: p.context_tokens))

    @property
    def shortest(self) -> OwnBreakEven:
        """The first series at its shortest context."""
        return self.main[0]

    @property
    def longest(self) -> OwnBreakEven:
        """The first series at its longest context."""
        return self.main[-1]

    @property
    def break_even_range(self) -> tuple[float, float]:
        """Least and greatest break-even over all points."""
        values = [p.break_even for p in self.points]
        return min(values), max(values)

    @property
    def verdict(self) -> str:
        """Where speculation pays, and by how much, in a sentence for each series."""
        names = dict.fromkeys(p.series for p in self.points)
        return " ".join(_says(name, [p for p in self.points if p.series == name]) for name in names)


def _says(series: str, points: list[OwnBreakEven]) -> str:
    points = sorted(points, key=lambda p: p.context_tokens)
    ends = _distinct(points[0], points[-1])
    even = " and ".join(f"{p.break_even:.2f} at {p.context_tokens:,.0f}" for p in ends)
    commits = " and ".join(f"{p.commit_length:.2f}" for p in ends)
    gains = [p.gain for p in points]
    paying = sum(gain > 1 for gain in gains)
    where = {0: "at none", len(points): "at all"}.get(paying, f"at {paying}")
    return (
        f"Against this server's own plain decoding, {series} breaks even at a commit length of "
        f"{even} tokens of mean context; it commits {commits}, so speculation pays {where} of "
        f"{len(points)} contexts: {min(gains):.2f} to {max(gains):.2f} times the plain throughput."
    )


def _distinct(first: OwnBreakEven, last: OwnBreakEven) -> tuple[OwnBreakEven, ...]:
    return (first,) if first is last else (first, last)


def find(case: Case) -> OwnPlain | Missing:
    """Set the measured speculating cells of a case beside its measured plain ones.

    Silent for a case without runs, which has published plain decoding at most.
    """
    rows = [row for row in case.sweep if row.step_kind == "measured"]
    plain = [row for row in rows if row.commit_kind == "exact"]
    speculating = [r for r in rows if r.commit_kind != "exact" and r.commit_length is not None]
    found = [_beside(row, plain) for row in speculating]
    points = tuple(point for point in found if point is not None)
    if points:
        return OwnPlain(points)
    if not case.runs:
        return Missing("")
    if not speculating:
        return Missing("No sweep of this server with speculation and timed steps was measured.")
    return Missing(
        "No plain decoding of this server was measured at these contexts, so whether speculation "
        "pays here is not known."
    )


def _beside(row: SweepRow, plain: list[SweepRow]) -> OwnBreakEven | None:
    """The row beside plain decoding of the same text if there is any, else of the first text."""
    text = row.series.rpartition(", ")[2]
    same = [p for p in plain if p.series.rpartition(", ")[2] == text] or [
        p for p in plain if p.series == plain[0].series
    ]
    context = row.context_tokens
    known = sorted((p.context_tokens, p.step_ms) for p in same if p.context_tokens and p.step_ms)
    if context is None or not known or row.step_ms is None or row.commit_length is None:
        return None
    contexts, steps = zip(*known, strict=True)
    if not contexts[0] * (1 - SAME_CONTEXT) <= context <= contexts[-1] * (1 + SAME_CONTEXT):
        return None
    return OwnBreakEven(
        series=f"{row.series} {row.repeat}".strip(),
        plain_series=same[0].series,
        context_tokens=context,
        tok_per_s=row.tok_per_s,
        commit_length=row.commit_length,
        step_ms=row.step_ms,
        plain_step_ms=float(np.interp(context, contexts, steps)),
    )
