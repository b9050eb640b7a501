"""What speculation must commit to pay, whether its block can, and whether it does.

Break-even is the speculating step over the plain step at the same context and batch. "Does not pay
at this commit" and "cannot be reached with this block" are two findings.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from math import isfinite, log

import numpy as np

from analysis.errors import InputError
from analysis.findings.break_even_rows import Row, at_commit, conditions, row, speculating
from analysis.findings.matching import without_context
from analysis.findings.sides import Side, as_plain
from analysis.model.log_ratio import LogRatio
from analysis.model.regression import Interval
from analysis.model.speculation import break_even_commit

__all__ = ["BreakEven", "Row", "of_numbers", "of_sides"]

SHOWN = 3
"""Reasons that are told for what is left out."""


@dataclass(frozen=True)
class BreakEven:
    """Every condition that has both, by series and context; ``notes`` tell what was left out."""

    rows: tuple[Row, ...]
    base: Side | None = None
    spec: Side | None = None
    notes: tuple[str, ...] = ()
    given: bool = False
    """Whether the commit is given and not that seen on the speculating side."""

    @property
    def main(self) -> Row:
        """The row at the median context of the label that has most rows."""
        labels = [row.label for row in self.rows]
        longest = max(dict.fromkeys(labels), key=labels.count)
        rows = [row for row in self.rows if row.label == longest]
        return rows[(len(rows) - 1) // 2]

    @property
    def sentence(self) -> str:
        """The answer: what must be committed, whether it can be, and whether it is."""
        return " ".join(filter(None, [self.needs_says, self.reach_says, self.pays_says]))

    @property
    def needs_says(self) -> str:
        """What speculation must commit."""
        values = [row.break_even_commit for row in self.rows]
        if len(values) == 1:
            where = f"{values[0]:.2f}{_between(self.main.break_even_interval95)}"
            return f"Speculation breaks even at a commit length of {where} tokens per step."
        return (
            f"Speculation breaks even at a commit length of {min(values):.2f} to {max(values):.2f} "
            f"tokens per step, over {len(values)} rows."
        )

    @property
    def reach_says(self) -> str:
        """Whether the block is large enough; nothing where no block is known."""
        judged = [row for row in self.rows if row.block is not None]
        if not judged:
            return ""
        short = [row for row in judged if not row.reachable]
        if len(self.rows) == 1:
            verb = "cannot be reached" if short else "can be reached"
            return f"That {verb} with a block of {judged[0].block}."
        if not short:
            return f"It can be reached with the block in all {len(judged)} rows that tell one."
        return f"It cannot be reached with the block in {len(short)} of {len(judged)} rows."

    @property
    def pays_says(self) -> str:
        """Whether it pays at the commit lengths seen."""
        known = [row for row in self.rows if row.speedup is not None]
        if not known:
            return "No commit length is known here, so whether it pays is not."
        if len(self.rows) == 1:
            return _one_says(known[0])
        pays = sum(row.pays is True for row in known)
        loses = sum(row.pays is False for row in known)
        gains = [row.speedup for row in known if row.speedup is not None]
        at = f"a commit of {known[0].commit:.2f}" if self.given else "the commits seen"
        text = f"At {at} it pays in {pays} of {len(known)} rows"
        if loses:
            text += f", does not in {loses}"
        if pays + loses < len(known):
            text += f", undecided in {len(known) - pays - loses}"
        return f"{text}: {min(gains):.2f} to {max(gains):.2f} times the plain throughput."


def of_numbers(
    base_step_ms: float, spec_step_ms: float, commit: float | None = None, block: int | None = None
) -> BreakEven:
    """Break-even of figures as given, without an interval.

    Raises ``InputError`` for a figure that is not finite, and where commit exceeds the block.
    """
    given = {"--base-step-ms": base_step_ms, "--spec-step-ms": spec_step_ms}
    for name, value in given.items():
        _refuse_infinite(name, value)
    _refuse_commit(commit, block)
    ratio = LogRatio(log(break_even_commit(spec_step_ms, base_step_ms)))
    gain = None if commit is None else LogRatio(log(commit) - ratio.value)
    row = Row(
        label="",
        text="",
        context_tokens=None,
        running=1.0,
        base_step_ms=base_step_ms,
        spec_step_ms=spec_step_ms,
        break_even=ratio,
        gain=gain,
        commit=commit,
        block=block,
    )
    return BreakEven((row,), notes=("of the figures as given: no interval",))


def of_sides(
    base: Side, spec: Side, block: int | None = None, commit: float | None = None
) -> BreakEven:
    """Break-even wherever the plain side has the context and batch of the speculating one.

    The plain step is that measured within 2 % of the context, or that of the line over at least
    three plain contexts within their range: never beyond. A ``commit`` takes the place of the one
    seen in every row. Raises ``InputError`` where nothing can be set beside each other, for a
    ``base`` that commits more than one token a step, and for a ``spec`` that never does.
    """
    _refuse_commit(commit, block)
    if len(base.series_names) > 1:
        expected = f"--series-base with one of: {'; '.join(base.series_names)}"
        raise InputError(base.name, f"{len(base.series_names)} series", expected)
    base = as_plain(base)
    timed = spec.rows(np.isfinite(spec.step_ms))
    if not len(timed):
        raise InputError(spec.name, "no step", "step_ms, or commit_length and tok_per_s")
    if np.all(timed.commit == 1) and not np.any(timed.block > 1):
        one = "a commit length of 1 throughout"
        raise InputError(spec.name, one, "speculative decoding on this side")
    notes = [f"plain: {note}" for note in base.notes]
    notes += [f"speculating: {note}" for note in spec.notes]
    placed = np.isfinite(timed.context_tokens)
    if placed.all() or (timed.successive and placed.any()):
        notes += [f"plain: {note}" for note in without_context(base)]
    if timed.successive:
        notes += [f"speculating: {note}" for note in without_context(timed)]
    rows: list[Row] = []
    left: list[str] = []
    for group in conditions(speculating(timed, notes)):
        found = row(base, group, block)
        rows += [found] if isinstance(found, Row) else []
        left += [found] if isinstance(found, str) else []
    if not rows:
        raise InputError(spec.name, left[0], f"a context and batch that {base.name} has too")
    if commit is not None:
        rows = [at_commit(each, commit) for each in rows]
        notes.append(f"the commit is {commit:g} as given, without an error, in every row")
    rows.sort(key=lambda row: (row.label, row.running, row.context_tokens or 0.0))
    notes += _left_out(left)
    if any(row.adjustment in ("before moved", "common context") for row in rows):
        notes.append("a plain step between measured contexts is that of the plain line there")
    if any(row.adjustment == "contexts not known" for row in rows):
        notes.append("the contexts are not given: both sides are taken to be at the same one")
    if any(row.commit and row.block and row.commit > row.block for row in rows):
        what = "the block is another one there" if commit is None else "the commit is as given"
        notes.append(f"some rows commit more than the block can: {what}")
    return BreakEven(tuple(rows), base, spec, tuple(notes), commit is not None)


def _refuse_infinite(option: str, value: float | None) -> None:
    if value is not None and not isfinite(value):
        raise InputError(option, str(value), "a finite number")


def _refuse_commit(commit: float | None, block: int | None) -> None:
    _refuse_infinite("--commit", commit)
    if commit is not None and block is not None and commit > block:
        found = f"{commit:g}, more than the block of {block}"
        raise InputError("--commit", found, "at most what one step can commit")


def _one_says(row: Row) -> str:
    gain = f"{row.speedup:.2f}{_between(row.speedup_interval95)} times the plain throughput"
    if row.pays is None:
        why = "its interval holds 1" if row.speedup_interval95 else "too close to 1 to call"
        return f"Whether it pays at {row.commit:.2f} is undecided: {gain}, {why}."
    return f"At {row.commit:.2f} it {'pays' if row.pays else 'does not pay'}: {gain}."


def _left_out(reasons: Sequence[str]) -> list[str]:
    """What was left out, with the first few reasons."""
    if not reasons:
        return []
    shown = list(dict.fromkeys(reasons))
    more = f"; and {len(shown) - SHOWN} more" if len(shown) > SHOWN else ""
    return [f"left out, since there is {'; '.join(shown[:SHOWN])}{more}"]


def _between(interval: Interval | None) -> str:
    return "" if interval is None else f" ({interval[0]:.2f} to {interval[1]:.2f})"
