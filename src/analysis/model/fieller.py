"""The interval of a ratio of two estimates that depend on each other.

Fieller, *Journal of the Royal Statistical Society* B 16, 1954, 175. The delta method stands beside
it: symmetric, always bounded, and too narrow where the denominator is uncertain.
"""

from dataclasses import dataclass
from math import sqrt

from analysis.model.log_ratio import quantile
from analysis.model.regression import Interval


@dataclass(frozen=True)
class Estimates:
    """Numerator and denominator with their variances, covariance and degrees of freedom."""

    top: float
    bottom: float
    top_variance: float
    bottom_variance: float
    covariance: float = 0.0
    dof: float = float("inf")

    @property
    def ratio(self) -> float:
        """Numerator over denominator."""
        return self.top / self.bottom

    @property
    def interval95(self) -> Interval | None:
        """95 % confidence interval by Fieller with t; ``None`` where it has no bounds.

        It has none where the denominator may be 0, and without a degree of freedom.
        """
        if not self.dof >= 1:
            return None
        t_squared = quantile(self.dof, 0.975) ** 2
        # The ratios r for which (top - r bottom)^2 <= t^2 Var(top - r bottom): a quadratic in r.
        a = self.bottom**2 - t_squared * self.bottom_variance
        b = self.top * self.bottom - t_squared * self.covariance
        c = self.top**2 - t_squared * self.top_variance
        if a <= 0:
            return None
        half = sqrt(max(0.0, b**2 - a * c))
        return (b - half) / a, (b + half) / a

    @property
    def delta_interval95(self) -> Interval | None:
        """95 % confidence interval by the delta method with t."""
        if not self.dof >= 1:
            return None
        ratio = self.ratio
        variance = self.top_variance - 2 * ratio * self.covariance
        variance += ratio**2 * self.bottom_variance
        half = quantile(self.dof, 0.975) * sqrt(max(0.0, variance)) / abs(self.bottom)
        return ratio - half, ratio + half
