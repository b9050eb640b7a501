"""Is the step time a straight line in context? A test, a size, and the power of the test.

"Not rejected" alone means nothing on four points, so the test is never given without the size
of the bend that the data allow and the chance that this design would have seen a bend that
matters.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from math import isnan

import numpy as np
from scipy import special

from analysis.model.regression import (
    Interval,
    PolynomialFit,
    Weights,
    fit_polynomial,
    t_quantile,
)

POWER_BEND_PCT = 10.0
"""The bend that a design should be able to see; the power is given against it."""
ROUNDING = 1e-12
"""A scatter below this share of y is that of floating-point numbers and tests nothing."""
CERTAIN = 1e6
"""A noncentrality beyond which the power is 1, whatever the degrees of freedom."""


@dataclass(frozen=True)
class Linearity:
    """Evidence on straightness; without a degree of freedom or any scatter, ``bend_pct`` alone.

    ``f`` and ``p`` belong to the nested F test of the line against a quadratic. ``bend_pct`` is
    the largest gap inside the data between the fitted quadratic and the straight line between
    its ends, in per cent of that line; above the line is positive. ``bend_ci95`` is its 95 %
    confidence interval by the delta method with t. ``power`` is that of the 5 % F test against
    a bend of 10 %, taking the scatter to be what the quadratic leaves.
    """

    f: float | None
    p: float | None
    bend_pct: float
    bend_ci95: Interval | None
    power: float | None


def linearity(
    x: Sequence[float], y: Sequence[float], weights: Weights = "none"
) -> Linearity | None:
    """Compare the line with a quadratic; ``None`` with fewer than three distinct x."""
    if len(set(x)) < 3:
        return None
    line = fit_polynomial(x, y, 1, weights)
    curve = fit_polynomial(x, y, 2, weights)
    bend = _Bend(curve)
    scale = 1.0 if weights == "relative" else float(np.max(np.abs(np.asarray(y, dtype=float))))
    if curve.dof < 1 or curve.residual_variance <= (ROUNDING * scale) ** 2:
        return Linearity(None, None, bend.pct, None, None)

    gained = max(0.0, line.residual_sum_of_squares - curve.residual_sum_of_squares)
    f = gained / curve.residual_variance
    half = t_quantile(curve.dof) * bend.standard_error
    critical = float(special.fdtri(1, curve.dof, 0.95))
    curvature_for_bend = bend.curvature_for(POWER_BEND_PCT)
    noncentrality = min(CERTAIN, curvature_for_bend**2 / float(curve.covariance[2, 2]))
    missed = float(special.ncfdtr(1, curve.dof, noncentrality, critical))
    return Linearity(
        f=f,
        p=float(special.fdtrc(1, curve.dof, f)),
        bend_pct=bend.pct,
        bend_ci95=(bend.pct - half, bend.pct + half),
        # SciPy 1.17.1 gives NaN at some noncentralities above 1000, where all is seen.
        power=1.0 if isnan(missed) else 1 - missed,
    )


class _Bend:
    """The relative gap g(x) = c2 (x - lo)(x - hi) / chord(x), and where it is largest."""

    def __init__(self, curve: PolynomialFit) -> None:
        self.curve = curve
        low, high = curve.x_range
        self.chord_slope = (curve.at(high) - curve.at(low)) / (high - low)
        self.chord_start = curve.at(low)
        # g'(x) = 0 is a quadratic in u = x - low: m u**2 + 2 s u - s L = 0, with m and s the
        # chord's slope and start and L the length.
        length = high - low
        roots = np.roots([self.chord_slope, 2 * self.chord_start, -self.chord_start * length])
        inside = [float(r.real) for r in roots if 0 < r.real < length and abs(r.imag) < 1e-9]
        self.u = inside[0] if inside else length / 2
        self.lever = self.u * (self.u - length)
        self.chord = self.chord_start + self.chord_slope * self.u

    @property
    def pct(self) -> float:
        return 100 * self.curve.coefficients[2] * self.lever / self.chord

    def curvature_for(self, bend_pct: float) -> float:
        """The coefficient of x**2 that would give this bend over the same chord."""
        return abs(bend_pct / 100 * self.chord / self.lever)

    @property
    def standard_error(self) -> float:
        """Delta method on (c0, c1, c2); the place of the largest gap adds nothing (envelope)."""
        low, high = self.curve.x_range
        share = self.u / (high - low)
        ends = np.array([[1, low, low**2], [1, high, high**2]], dtype=float)
        d_chord = (1 - share) * ends[0] + share * ends[1]
        d_gap = np.array([0.0, 0.0, self.lever])
        gradient = 100 * (d_gap - self.pct / 100 * d_chord) / self.chord
        return float(np.sqrt(gradient @ self.curve.covariance @ gradient))
