"""The step of one side at contexts where it was not measured, with the uncertainty of its line."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from analysis.model.effective_size import independent_values
from analysis.model.log_ratio import NO_SCATTER, LogMean
from analysis.model.regression import Interval, PolynomialFit, fit_polynomial

Floats = NDArray[np.float64]

FEWEST_CONTEXTS = 3
SAME_CONTEXT = 0.02
"""Share by which a context may lie outside those of a line: texts differ by a few tokens."""


@dataclass(frozen=True)
class StepLine:
    """A straight line of the step over context, ms and tokens.

    ``widened`` is the factor by which correlation in time widens the covariance of the fit, and
    ``dof`` counts the values that it leaves. ``scatter`` is what the line leaves, as a share of
    the step, one a value.
    """

    fit: PolynomialFit
    widened: float
    dof: float
    scatter: Floats

    @property
    def context_range(self) -> Interval:
        """Least and greatest context that the line may speak for."""
        low, high = self.fit.x_range
        return low * (1 - SAME_CONTEXT), high * (1 + SAME_CONTEXT)

    def holds(self, contexts: Floats) -> bool:
        """Whether every context lies within the range and the line is above zero there."""
        low, high = self.context_range
        inside = bool(np.all((contexts >= low) & (contexts <= high)))
        return inside and all(self.fit.at(x) > 0 for x in contexts)

    def log_step(self, contexts: Floats) -> LogMean:
        """Mean logarithm of the step over ``contexts``, its variance by the delta method."""
        at = np.array([self.fit.at(x) for x in contexts])
        rows = np.vander(contexts, len(self.fit.coefficients), increasing=True)
        gradient = (rows / at[:, None]).mean(axis=0)
        variance = float(gradient @ self.fit.covariance @ gradient) * self.widened
        value = float(np.log(at).mean())
        if not variance > NO_SCATTER:
            return LogMean(value)
        return LogMean(value, variance, self.dof)


def step_line(
    contexts: Sequence[float] | Floats, steps_ms: Sequence[float] | Floats, successive: bool = False
) -> StepLine | None:
    """The line of one side; ``None`` with fewer than three distinct contexts.

    ``successive`` values, windows in the order of time, count as many as the correlation of what
    the line leaves of them says: see ``independent_values``.
    """
    x, y = np.asarray(contexts, dtype=np.float64), np.asarray(steps_ms, dtype=np.float64)
    if not np.all(np.isfinite(x)) or len(np.unique(x)) < FEWEST_CONTEXTS:
        return None
    fit = fit_polynomial(x.tolist(), y.tolist())
    at = np.array([fit.at(value) for value in x])
    dof = float(fit.dof)
    if successive:
        dof = max(1.0, independent_values(y - at) - 2)
    return StepLine(fit, fit.dof / dof, dof, (y - at) / at)
