"""A change in throughput as a product: commit ratio times step ratio.

Per stream ``tok/s = commit / step``, so ``throughput_ratio = commit_ratio * step_ratio``, where
every ratio is a factor on throughput: after over before for throughput and commit, *before over
after* for the step. Ratios are of geometric means, so the product is exact, and each factor has a
share ``ln(ratio) / ln(throughput_ratio)``.
"""

from dataclasses import dataclass
from math import log
from typing import Literal

from analysis.model.log_ratio import LogRatio, share_interval
from analysis.model.regression import Interval
from analysis.model.same_context import Adjustment, Aligned

Verdict = Literal["step", "commit", "both", "no difference shown"]

SIGNIFICANT = 0.05
CLOSE = 0.05
"""A ratio without an interval counts as different from 1 beyond this share."""


@dataclass(frozen=True)
class Split:
    """The three ratios of a change, and which of the two factors it is in."""

    aligned: Aligned

    @property
    def throughput(self) -> LogRatio:
        """Throughput per stream, after over before."""
        return self.aligned.throughput

    @property
    def commit(self) -> LogRatio:
        """Commit length, after over before."""
        return self.aligned.commit

    @property
    def step(self) -> LogRatio:
        """Step, before over after: above 1 is a faster step."""
        return self.aligned.step

    @property
    def adjustment(self) -> Adjustment:
        """How the sides were brought to the same context."""
        return self.aligned.adjustment

    @property
    def at_context(self) -> float | None:
        """The mean context that the ratios speak for, tokens."""
        return self.aligned.at_context

    @property
    def commit_share(self) -> float | None:
        """Share of the commit in the change, on the log scale.

        ``None`` where the throughput is not shown to differ, or where nothing bounds the share.
        """
        if not self.throughput_changed or self._share_is_unbounded:
            return None
        return self.commit.value / self.throughput.value

    @property
    def step_share(self) -> float | None:
        """The same of the step."""
        return None if self.commit_share is None else 1 - self.commit_share

    @property
    def commit_share_interval95(self) -> Interval | None:
        """Its 95 % confidence interval by Fieller; ``None`` where it is not known."""
        if self.commit_share is None:
            return None
        return share_interval(self.commit, self.step, self.throughput)

    @property
    def step_share_interval95(self) -> Interval | None:
        """The same of the step."""
        interval = self.commit_share_interval95
        return None if interval is None else (1 - interval[1], 1 - interval[0])

    @property
    def throughput_changed(self) -> bool:
        """Whether the throughput is shown to differ: it can where neither factor does."""
        return differs(self.throughput)

    @property
    def _share_is_unbounded(self) -> bool:
        ratios = self.commit, self.step, self.throughput
        known = all(ratio.variance is not None for ratio in ratios)
        return known and share_interval(*ratios) is None

    @property
    def smallest_detectable_pct(self) -> float | None:
        """The change in throughput that such data show with 80 % power at 5 %, per cent."""
        return self.throughput.detectable_pct

    @property
    def changed(self) -> tuple[bool, bool]:
        """Whether the commit and the step are shown to differ.

        A factor without an interval differs where it is more than 5 % from 1. Two intervals are
        two tests, so by Holm's rule (*Scand. J. Statist.* 6, 1979, 65) the clearer one must hold
        at 97.5 %: then sides that do not differ are called so 95 times in 100.
        """
        tests = [self.commit.p, self.step.p]
        known = sorted(p for p in tests if p is not None)
        passes = bool(known) and known[0] <= SIGNIFICANT / len(known)
        commit, step = (
            differs(ratio) if p is None else passes and p <= SIGNIFICANT
            for ratio, p in zip((self.commit, self.step), tests, strict=True)
        )
        return commit, step

    @property
    def verdict(self) -> Verdict:
        """Which factor the change is in: ``no difference shown`` is said of the factors alone."""
        words: dict[tuple[bool, bool], Verdict] = {
            (True, True): "both",
            (True, False): "commit",
            (False, True): "step",
            (False, False): "no difference shown",
        }
        return words[self.changed]


def differs(ratio: LogRatio) -> bool:
    """Whether a ratio differs from 1: by its interval, or by more than 5 % where it has none."""
    if ratio.interval95 is None:
        return abs(ratio.value) > log(1 + CLOSE)
    return not ratio.interval95[0] <= 1 <= ratio.interval95[1]
