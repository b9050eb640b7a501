"""What a change is worth, as a factor on throughput, at a given context."""

from dataclasses import dataclass
from math import inf

import numpy as np
from numpy.typing import NDArray

from analysis.model.fieller import Estimates
from analysis.model.regression import PolynomialFit
from analysis.model.step_time import StepTime

Floats = NDArray[np.float64]


def gain_of_slope(step: StepTime, new_slope_ms_per_token: float, context_tokens: float) -> float:
    """Speed-up if only the slope changed: a better kernel, or less cache per GPU."""
    changed = StepTime(step.intercept_ms, new_slope_ms_per_token)
    return step.step_ms(context_tokens) / changed.step_ms(context_tokens)


def slope_for_gain(step: StepTime, gain: float, context_tokens: float) -> float:
    """The slope, ms per token, that alone would speed a step up by ``gain`` at a context.

    Inverse of ``gain_of_slope``; negative where even a vanished slope is worth less.
    """
    return (step.step_ms(context_tokens) / gain - step.intercept_ms) / context_tokens


def crossover_context(step: StepTime, drafter_gain: float) -> float:
    """Context at which a drafter worth ``drafter_gain`` and a vanished slope are worth the same.

    Solves (a + b c) / a = gain. Below it the drafter wins, above it the kernel does; it is
    infinite for a step that does not grow.
    """
    if step.slope_ms_per_token <= 0:
        return inf
    return step.context_for(drafter_gain * step.intercept_ms)


def context_share(step: StepTime, context_tokens: float) -> float:
    """Share of the step that grows with context, between 0 and 1."""
    return step.slope_ms_per_token * context_tokens / step.step_ms(context_tokens)


@dataclass(frozen=True)
class Change:
    """Factors on the commit length, the intercept and the slope of a step-time line."""

    commit: float = 1.0
    intercept: float = 1.0
    slope: float = 1.0

    def __mul__(self, other: "Change") -> "Change":
        """Both changes at once."""
        return Change(
            self.commit * other.commit,
            self.intercept * other.intercept,
            self.slope * other.slope,
        )

    def gain(self, line: PolynomialFit, context_tokens: float) -> Estimates:
        """Throughput after over before at a context, with what the line leaves uncertain.

        The same line stands above and below, so their errors largely cancel; the factors of the
        change carry none of their own. Raises ``ValueError`` where a step is not positive.
        """
        before = np.array([1.0, context_tokens])
        after = np.array([self.intercept, self.slope * context_tokens])
        coefficients = np.array(line.coefficients)
        if before @ coefficients <= 0 or after @ coefficients <= 0:
            raise ValueError(f"the line gives no positive step at {context_tokens:g} tokens")
        return _ratio(line, self.commit * before, after)


def crossover(line: PolynomialFit, one: Change, other: Change) -> Estimates | None:
    """The context at which two changes are worth the same; ``None`` where they never are.

    Solves commit_1 (i_2 a + s_2 b c) = commit_2 (i_1 a + s_1 b c) for c, where i and s are the
    factors on the intercept a and the slope b: a ratio of a to b.
    """
    constant = one.commit * other.intercept - other.commit * one.intercept
    growing = other.commit * one.slope - one.commit * other.slope
    if growing == 0 or constant == 0:
        return None
    found = _ratio(line, np.array([constant, 0.0]), np.array([0.0, growing]))
    return found if found.ratio > 0 else None


def crossover_with_step(
    line: PolynomialFit, change: Change, commit_length: float, step_ms: float
) -> Estimates | None:
    """The context at which a change is worth the same as plain steps of a known time.

    Plain decoding commits one token a step, so it is worth line / (commit_length step_ms).
    ``None`` where the changed step does not grow or is slower from the start.
    """
    if change.slope <= 0:
        return None
    longest = change.commit * commit_length * step_ms
    a, b = line.coefficients
    variance_a, variance_b = line.covariance[0, 0], line.covariance[1, 1]
    found = Estimates(
        longest - change.intercept * a,
        change.slope * b,
        change.intercept**2 * float(variance_a),
        change.slope**2 * float(variance_b),
        -change.intercept * change.slope * float(line.covariance[0, 1]),
        line.dof,
    )
    return found if found.bottom > 0 and found.ratio > 0 else None


def _ratio(line: PolynomialFit, top: Floats, bottom: Floats) -> Estimates:
    """A ratio of two combinations of intercept and slope."""
    coefficients, covariance = np.array(line.coefficients), line.covariance
    return Estimates(
        float(top @ coefficients),
        float(bottom @ coefficients),
        float(top @ covariance @ top),
        float(bottom @ covariance @ bottom),
        float(top @ covariance @ bottom),
        line.dof,
    )
