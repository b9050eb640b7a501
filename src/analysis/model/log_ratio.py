"""A ratio of two geometric means, on the log scale, with its standard error.

On the log scale a product of ratios is a sum, so that the parts of a change add up to it exactly,
and a ratio and its inverse are equally uncertain. Intervals are Welch's: each side has a variance
of its own (Welch, *Biometrika* 34, 1947, 28; degrees of freedom by Satterthwaite, *Biometrics
Bulletin* 2, 1946, 110).
"""

from collections.abc import Sequence
from dataclasses import dataclass
from math import exp, inf, isinf, sqrt

import numpy as np
from numpy.typing import NDArray
from scipy import special

from analysis.model.effective_size import independent_values
from analysis.model.regression import Interval

Floats = NDArray[np.float64]

NO_SCATTER = 1e-18
"""A variance of logarithms below this is that of floating-point numbers."""
POWER = 0.80


@dataclass(frozen=True)
class LogMean:
    """A mean of logarithms. ``variance`` is its own, ``None`` where nothing tells the scatter."""

    value: float
    variance: float | None = None
    dof: float = inf


@dataclass(frozen=True)
class LogRatio:
    """Logarithm of a ratio; no ``variance`` where nothing tells it, 0 where the ratio is exact."""

    value: float
    variance: float | None = None
    dof: float = inf

    @property
    def ratio(self) -> float:
        """The ratio itself."""
        return exp(self.value)

    @property
    def interval95(self) -> Interval | None:
        """Its 95 % confidence interval by Student's t on the logarithm."""
        if self.variance is None:
            return None
        half = quantile(self.dof, 0.975) * sqrt(self.variance)
        return exp(self.value - half), exp(self.value + half)

    @property
    def p(self) -> float | None:
        """Two-sided p of "the ratio is 1"; ``None`` without a standard error, or where exact."""
        if not self.variance:
            return None
        z = -abs(self.value) / sqrt(self.variance)
        return 2 * float(special.ndtr(z) if isinf(self.dof) else special.stdtr(self.dof, z))

    @property
    def detectable_pct(self) -> float | None:
        """The change, per cent, that such data show with 80 % power in a 5 % test.

        exp((t_0.975 + t_0.80) SE) - 1: the usual sample-size formula, on the log scale.
        """
        if not self.variance:
            return None
        quantiles = quantile(self.dof, 0.975) + quantile(self.dof, POWER)
        return 100 * (exp(min(quantiles * sqrt(self.variance), 700.0)) - 1)


def quantile(dof: float, probability: float) -> float:
    """Student's t, or the normal quantile at infinite degrees of freedom."""
    if isinf(dof):
        return float(special.ndtri(probability))
    return float(special.stdtrit(dof, probability))


def mean_of_logs(cells: Sequence[Floats], successive: bool = False) -> LogMean:
    """Mean over cells of the mean logarithm in each.

    The scatter is that within cells, pooled over them. ``successive`` values, one cell of windows
    in the order of time, count as many as their correlation leaves: see ``independent_values``.
    ``None`` for the variance
    where no cell has two values, or where repeats do not differ: the same request that commits
    the same tokens again is no second observation.
    """
    value = float(np.mean([cell.mean() for cell in cells]))
    squares = sum(float(np.sum((cell - cell.mean()) ** 2)) for cell in cells)
    if successive and len(cells) == 1:
        n = len(cells[0])
        if n < 2 or squares / n <= NO_SCATTER:
            return LogMean(value)
        size = max(2.0, independent_values(cells[0]))
        # squares / n falls short of the variance by 1 - 1/size, as it does by 1 - 1/n without
        # correlation.
        return LogMean(value, squares / n / (size - 1), size - 1)
    dof = sum(len(cell) - 1 for cell in cells)
    if dof < 1 or squares / dof <= NO_SCATTER:
        return LogMean(value)
    share = sum(1 / len(cell) for cell in cells) / len(cells) ** 2
    return LogMean(value, squares / dof * share, dof)


def log_ratio(before: LogMean, after: LogMean) -> LogRatio:
    """After over before, of sides that do not depend on each other."""
    value = after.value - before.value
    if before.variance is None or after.variance is None:
        return LogRatio(value)
    return LogRatio(value, *welch((before.variance, before.dof), (after.variance, after.dof)))


def welch(*parts: tuple[float, float]) -> tuple[float, float]:
    """Variance of a sum of independent parts, each a variance with its degrees of freedom."""
    variance = sum(part for part, _ in parts)
    below = sum(part**2 / dof for part, dof in parts)
    return variance, (variance**2 / below if below else inf)


def over_cells(before: Floats, after: Floats) -> LogRatio:
    """After over before from one logarithm a cell on each side, paired: t with k - 1 degrees."""
    differences = after - before
    value, k = float(differences.mean()), len(differences)
    if k < 2:
        return LogRatio(value)
    variance = float(differences.var(ddof=1)) / k
    return LogRatio(value) if variance <= NO_SCATTER else LogRatio(value, variance, k - 1)


def share_interval(part: LogRatio, rest: LogRatio, whole: LogRatio) -> Interval | None:
    """95 % confidence interval of ``part / whole``, where ``part + rest = whole`` as logarithms.

    Fieller, *J. R. Stat. Soc.* B 16, 1954, 175, with the covariance that the three variances
    imply. ``None`` where a variance is not known, and where there is no bound: where the whole
    may be 0.
    """
    if part.variance is None or rest.variance is None or not whole.variance or not whole.value:
        return None
    limit = sqrt(part.variance * whole.variance)
    covariance = (part.variance + whole.variance - rest.variance) / 2
    covariance = min(limit, max(-limit, covariance))
    t = quantile(min(part.dof, rest.dof, whole.dof), 0.975)
    g = t**2 * whole.variance / whole.value**2
    if g >= 1:
        return None
    share = part.value / whole.value
    middle = share - g * covariance / whole.variance
    inside = part.variance - 2 * share * covariance + share**2 * whole.variance
    inside -= g * (part.variance - covariance**2 / whole.variance)
    half = t / abs(whole.value) * sqrt(max(0.0, inside))
    return (middle - half) / (1 - g), (middle + half) / (1 - g)
