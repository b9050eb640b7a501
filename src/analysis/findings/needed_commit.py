"""One two-point decode beside the sweep: the commit it would need, or the step that it gives."""

from collections.abc import Sequence
from dataclasses import dataclass
from math import hypot
from statistics import NormalDist

from analysis.model.regression import Interval
from analysis.model.step_time import implied_step_ms


@dataclass(frozen=True)
class NeededCommit:
    """The commit length that a two-point throughput would need with the sweep's step times.

    ``commit_length`` is that of the two-point requests themselves, where it was counted;
    ``step_ms`` the step that follows from it, ``step_error_ms`` its standard error.
    ``sweep_step_ms`` and its prediction interval of ``level`` are the sweep's, on the mean context,
    which is the context of a two-point decode.
    """

    series: str
    context_tokens: float
    tok_per_s: float
    token_ms: float
    sweep_commit: float
    needed_on_prompt_axis: float
    needed_on_mean_axis: float
    commit_length: float | None
    step_error_ms: float | None
    sweep_step_ms: float
    sweep_step_interval: Interval | None
    level: float

    @property
    def step_ms(self) -> float | None:
        """Step time that the two-point decode gives with its own commit length."""
        if self.commit_length is None:
            return None
        return implied_step_ms(self.commit_length, self.tok_per_s)

    @property
    def agrees(self) -> bool | None:
        """Whether that step lies within the sweep's prediction interval and its own error.

        ``None`` where one of the two is not known.
        """
        if self.step_ms is None or self.sweep_step_interval is None:
            return None
        half = self.sweep_step_interval[1] - self.sweep_step_ms
        quantile = NormalDist().inv_cdf(0.5 + self.level / 2)
        allowed = hypot(half, quantile * (self.step_error_ms or 0.0))
        return abs(self.step_ms - self.sweep_step_ms) <= allowed

    @property
    def gap_pct(self) -> float | None:
        """The two-point step over the sweep's, minus one, per cent."""
        return None if self.step_ms is None else 100 * (self.step_ms / self.sweep_step_ms - 1)


def joint_level(points: int) -> float:
    """Level of each interval for which all of them together hold 95 % of the time (Bonferroni).

    At 95 % each, one of eight points would lie outside in a third of all runs by noise alone.
    """
    return 1 - 0.05 / points


def counted_verdict(points: Sequence[NeededCommit]) -> str:
    """Whether steps by the two-point decode lie in the sweep's prediction intervals, in words."""
    judged = [p for p in points if p.agrees is not None]
    if not judged:
        return (
            "Whether the two measurements agree is undecided: the sweep has too few contexts "
            "for a prediction interval of its step."
        )
    outside = [p for p in judged if not p.agrees]
    largest = max(judged, key=lambda p: abs(p.gap_pct or 0.0))
    size = (
        f"the largest difference is {largest.gap_pct:+.1f} % of the sweep's step "
        f"({largest.series}, {largest.context_tokens:,.0f} tokens)"
    )
    where = (
        "inside the sweep's prediction interval, widened by its own error (95 % for all together)"
    )
    if not outside:
        return (
            f"The two measurements agree: at all {len(judged)} points the step of the two-point "
            f"decode lies {where}; {size}."
        )
    return (
        f"The two measurements agree at {len(judged) - len(outside)} of {len(judged)} points; at "
        f"the others the step of the two-point decode does not lie {where}; {size}."
    )
