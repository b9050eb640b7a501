"""Two sides at the same context: pair by pair, by lines over context, or not at all.

Each way gives the logarithms of three ratios. They are factors on throughput: after over before
for throughput and commit, before over after for the step, so that commit + step = throughput.
"""

from dataclasses import dataclass
from math import inf
from typing import Literal

import numpy as np

from analysis.model.log_ratio import (
    Floats,
    LogMean,
    LogRatio,
    log_ratio,
    mean_of_logs,
    over_cells,
    welch,
)
from analysis.model.observed import Observed
from analysis.model.regression import fit_polynomial
from analysis.model.step_line import StepLine, step_line

Adjustment = Literal[
    "same contexts", "common context", "before moved", "after moved", "none", "contexts not known"
]

FEWEST_FOR_TREND = 4


@dataclass(frozen=True)
class Aligned:
    """Three ratios and what they speak for.

    ``at_context`` is the mean context, in tokens, of both sides as compared; ``None`` where they
    were not brought to the same one. ``contexts`` are those that they were measured at, before and
    after. ``step_by_context`` holds context and step ratio of every cell, where there are several.
    """

    throughput: LogRatio
    commit: LogRatio
    step: LogRatio
    adjustment: Adjustment
    at_context: float | None
    contexts: tuple[float | None, float | None]
    n_before: int
    n_after: int
    step_by_context: tuple[tuple[float, float], ...] = ()

    @property
    def step_moves(self) -> bool:
        """Whether the step ratio is shown to change with context, so that its mean hides much.

        By the slope of its logarithm over context, at 5 %; never with fewer than four cells.
        """
        if len({context for context, _ in self.step_by_context}) < FEWEST_FOR_TREND:
            return False
        contexts, ratios = zip(*self.step_by_context, strict=True)
        slope = fit_polynomial(contexts, np.log(ratios).tolist()).coefficient_interval(1)
        return slope is not None and not slope[0] <= 0 <= slope[1]


@dataclass(frozen=True)
class _Means:
    """Mean logarithms of one side."""

    commit: LogMean
    step: LogMean
    throughput: LogMean


def align(before: Observed, after: Observed) -> Aligned:
    """Compare at the same context, in the first of these ways that the data allow.

    Cells that both sides have, pair by pair; two lines over context, at one context within both;
    one line, at the contexts of the other side; the sides as they are. Pairs come first only where
    they are half of the cells of a side. Lines take the commit not to depend on context. Windows
    are one cell or none: those of several would not be independent.
    """
    shared = [name for name in before.names if name in after.names]
    if len(shared) > 1 and (before.successive or after.successive):
        shared = []
    if shared and 2 * len(shared) >= min(len(before.names), len(after.names)):
        return _pairs(before, after, shared)
    lines = _line(before), _line(after)
    return (
        _two_lines(before, after, lines)
        or (_pairs(before, after, shared) if shared else None)
        or _one_line(before, after, lines)
        or _as_they_are(before, after)
    )


def _pairs(before: Observed, after: Observed, shared: list[str]) -> Aligned:
    before, after = before.of(shared), after.of(shared)
    exact = _exact(before.commit, after.commit)
    steps = _paired(before, after, np.log(before.step_ms), np.log(after.step_ms))
    commits = _paired(before, after, np.log(before.commit), np.log(after.commit), exact)
    rates = _paired(before, after, _log_rate(before), _log_rate(after))
    one, two = before.by_cell(), after.by_cell()
    contexts = one.mean_context, two.mean_context
    known = [context for context in contexts if context is not None]
    cells: list[tuple[float, float]] = []
    if len(known) == 2 and 1 < len(shared) == len(one) == len(two):
        ratios = (one.step_ms / two.step_ms).tolist()
        cells = sorted(zip(one.context_tokens.tolist(), ratios, strict=True))
    return Aligned(
        throughput=rates,
        commit=commits,
        step=_inverse(steps),
        adjustment="same contexts" if len(known) == 2 else "contexts not known",
        at_context=sum(known) / 2 if len(known) == 2 else None,
        contexts=contexts,
        n_before=len(before),
        n_after=len(after),
        step_by_context=tuple(cells),
    )


def _two_lines(
    before: Observed, after: Observed, lines: tuple[StepLine | None, StepLine | None]
) -> Aligned | None:
    """At the context nearest to the middle of both sides that both lines hold."""
    one, two = lines
    if one is None or two is None:
        return None
    for ranges in (one.fit.x_range, two.fit.x_range), (one.context_range, two.context_range):
        low, high = max(r[0] for r in ranges), min(r[1] for r in ranges)
        if low <= high:
            break
    else:
        return None
    middle = float(np.mean([before.context_tokens.mean(), after.context_tokens.mean()]))
    at = np.array([min(high, max(low, middle))])
    if not (one.holds(at) and two.holds(at)):
        return None
    exact = _exact(before.commit, after.commit)
    sides = _moved(before, one, at, exact[0]), _moved(after, two, at, exact[1])
    return _from_means(before, after, sides, "common context", float(at[0]))


def _one_line(
    before: Observed, after: Observed, lines: tuple[StepLine | None, StepLine | None]
) -> Aligned | None:
    """At the contexts of the side that has no line, if the other's line holds them."""
    exact = _exact(before.commit, after.commit)
    if lines[0] is not None and lines[0].holds(after.context_tokens):
        fixed = _fixed(after, lines[0], exact[1])
        at = after.by_cell().context_tokens
        sides = _moved(before, lines[0], at, exact[0]), fixed
        return _from_means(before, after, sides, "before moved", float(at.mean()))
    if lines[1] is not None and lines[1].holds(before.context_tokens):
        fixed = _fixed(before, lines[1], exact[0])
        at = before.by_cell().context_tokens
        sides = fixed, _moved(after, lines[1], at, exact[1])
        return _from_means(before, after, sides, "after moved", float(at.mean()))
    return None


def _as_they_are(before: Observed, after: Observed) -> Aligned:
    exact = _exact(before.commit, after.commit)
    known = before.mean_context is not None and after.mean_context is not None
    sides = _fixed(before, None, exact[0]), _fixed(after, None, exact[1])
    return _from_means(before, after, sides, "none" if known else "contexts not known", None)


def _from_means(
    before: Observed,
    after: Observed,
    sides: tuple[_Means, _Means],
    adjustment: Adjustment,
    at_context: float | None,
) -> Aligned:
    return Aligned(
        throughput=log_ratio(sides[0].throughput, sides[1].throughput),
        commit=log_ratio(sides[0].commit, sides[1].commit),
        step=log_ratio(sides[1].step, sides[0].step),
        adjustment=adjustment,
        at_context=at_context,
        contexts=(before.mean_context, after.mean_context),
        n_before=len(before),
        n_after=len(after),
    )


def _line(side: Observed) -> StepLine | None:
    means = side.by_cell()
    return step_line(means.context_tokens, means.step_ms, side.successive)


def _moved(side: Observed, line: StepLine, at: Floats, exact: bool) -> _Means:
    """A side on its line. Commit and step of one window err together, which the line keeps."""
    means = side.by_cell()
    commits = np.log(means.commit)
    commit = _mean([commits], side.successive, exact)
    step = line.log_step(at)
    value = commit.value - step.value
    if commit.variance is None or step.variance is None:
        return _Means(commit, step, LogMean(value))
    variance, dof = welch((commit.variance, commit.dof), (step.variance, step.dof))
    left = mean_of_logs([line.scatter], side.successive).variance
    if left is not None and commit.variance > 0:
        together = float(np.corrcoef(commits, line.scatter)[0, 1])
        covariance = together * float(np.sqrt(commit.variance * min(left, step.variance)))
        variance = max(variance - 2 * covariance, variance / 100)
    return _Means(commit, step, LogMean(value, variance, dof))


def _fixed(side: Observed, line: StepLine | None, exact: bool) -> _Means:
    """A side where it was measured; ``line`` takes its context out of its scatter."""
    at = side.by_cell().context_tokens
    grows = np.zeros(len(side))
    level = 0.0
    if line is not None:
        grows = np.log([line.fit.at(x) for x in side.context_tokens])
        level = line.log_step(at).value
    groups = [list(range(len(side)))] if side.successive else side.groups(side.names)
    steps = np.log(side.step_ms) - grows
    commits = np.log(side.commit)
    step = _mean([steps[group] for group in groups], side.successive)
    rate = _mean([(commits - steps)[group] for group in groups], side.successive)
    return _Means(
        commit=_mean([commits[group] for group in groups], side.successive, exact),
        step=LogMean(step.value + level, step.variance, step.dof),
        throughput=LogMean(rate.value - level, rate.variance, rate.dof),
    )


def _paired(
    before: Observed,
    after: Observed,
    one: Floats,
    two: Floats,
    exact: tuple[bool, bool] = (False, False),
) -> LogRatio:
    """By the scatter within cells; where there is none, by that of the differences over cells."""
    cells = [
        [column[group] for group in side.groups(side.names)]
        for side, column in ((before, one), (after, two))
    ]
    ratio = log_ratio(
        _mean(cells[0], before.successive, exact[0]), _mean(cells[1], after.successive, exact[1])
    )
    if ratio.variance is None:
        means = [np.array([float(cell.mean()) for cell in side]) for side in cells]
        return over_cells(means[0], means[1])
    return ratio


def _mean(cells: list[Floats], successive: bool, exact: bool = False) -> LogMean:
    found = mean_of_logs(cells, successive)
    return LogMean(found.value, 0.0, inf) if exact else found


def _exact(before: Floats, after: Floats) -> tuple[bool, bool]:
    """Whether the commit of each side is known without error.

    It is 1 wherever nothing was drafted; and where both sides only ever committed the same number
    of tokens, they do not differ.
    """
    both = len(set(before.tolist()) | set(after.tolist())) == 1
    return both or bool(np.all(before == 1)), both or bool(np.all(after == 1))


def _log_rate(side: Observed) -> Floats:
    return np.log(side.commit) - np.log(side.step_ms)


def _inverse(ratio: LogRatio) -> LogRatio:
    return LogRatio(-ratio.value, ratio.variance, ratio.dof)
