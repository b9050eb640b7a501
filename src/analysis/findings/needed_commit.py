"""One two-point decode beside the sweep: the commit it would need, or the step that it gives."""

from collections.abc import Sequence
from dataclasses import dataclass
from math import hypot

from analysis.model.regression import Interval
from analysis.model.step_time import implied_step_ms

NORMAL_975 = 1.959964


@dataclass(frozen=True)
class NeededCommit:
    """The commit length that a two-point throughput would need with the sweep's step times.

    ``commit_length`` is that of the two-point requests themselves, where it was counted;
    ``step_ms`` the step that follows from it, ``step_error_ms`` its standard error.
    ``sweep_step_ms`` and its 95 % prediction interval are the sweep's, on the mean context, which
    is the context of a two-point decode.
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
    sweep_step_interval95: Interval | None

    @property
    def step_ms(self) -> float | None:
        """Step time that the two-point decode gives with its own commit length."""
        if self.commit_length is None:
            return None
        return implied_step_ms(self.commit_length, self.tok_per_s)

    @property
    def agrees(self) -> bool | None:
        """Whether that step lies within the sweep's prediction interval and its own 95 % error.

        ``None`` where one of the two is not known.
        """
        if self.step_ms is None or self.sweep_step_interval95 is None:
            return None
        half = self.sweep_step_interval95[1] - self.sweep_step_ms
        allowed = hypot(half, NORMAL_975 * (self.step_error_ms or 0.0))
        return abs(self.step_ms - self.sweep_step_ms) <= allowed

    @property
    def gap_pct(self) -> float | None:
        """The two-point step over the sweep's, minus one, per cent."""
        return None if self.step_ms is None else 100 * (self.step_ms / self.sweep_step_ms - 1)


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
    if not outside:
        return (
            f"The two measurements agree: at all {len(judged)} points the step of the "
            f"two-point decode lies inside the sweep's 95 % prediction interval, widened by its "
            f"own error; {size}."
        )
    return (
        f"The two measurements agree at {len(judged) - len(outside)} of {len(judged)} points: "
        f"at the others the step of the two-point decode lies outside the sweep's 95 % "
        f"prediction interval, widened by its own error; {size}."
    )
