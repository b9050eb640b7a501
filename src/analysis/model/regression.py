"""Least squares on few points: coefficients with t intervals, and two kinds of band.

A *confidence* interval says where the line lies; a *prediction* interval says where one new
run may fall. They are never interchangeable, so each method carries its kind in its name.

The formulas are those of Draper and Smith, *Applied Regression Analysis* (3rd ed., 1998),
sections 5.1 (matrix form), 9.2 (weights) and 3.1 (prediction of a new observation).
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray
from scipy import special

Weights = Literal["none", "relative"]
Interval = tuple[float, float]


@dataclass(frozen=True)
class PolynomialFit:
    """A polynomial fitted by weighted least squares.

    ``coefficients`` run from the constant upwards, in units of y per x**power; ``covariance``
    is theirs. ``dof`` is n minus the number of coefficients; with no degree of freedom left the
    variance is unknown and every interval is ``None``.
    """

    coefficients: tuple[float, ...]
    covariance: NDArray[np.float64]
    residual_variance: float
    residual_sum_of_squares: float
    n: int
    dof: int
    weights: Weights
    x_range: Interval

    def at(self, x: float) -> float:
        """Value of the fitted polynomial at ``x``."""
        return float(np.dot(self._row(x), self.coefficients))

    def coefficient_interval(self, power: int, level: float = 0.95) -> Interval | None:
        """Confidence interval of the coefficient of x**``power``."""
        return self._around(self.coefficients[power], float(self.covariance[power, power]), level)

    def confidence_interval(self, x: float, level: float = 0.95) -> Interval | None:
        """Confidence interval of the fitted polynomial at ``x``."""
        return self._around(self.at(x), self._variance_of_line(x), level)

    def prediction_interval(self, x: float, level: float = 0.95) -> Interval | None:
        """Prediction interval of one new observation at ``x``.

        With relative weights the scatter grows with y, so the new observation carries the
        weight 1/y(x)**2. Leaving that out is a known trap: the interval then covers far too
        little.
        """
        scale = self.at(x) ** 2 if self.weights == "relative" else 1.0
        variance = self._variance_of_line(x) + scale * self.residual_variance
        return self._around(self.at(x), variance, level)

    def _row(self, x: float) -> NDArray[np.float64]:
        return np.power(float(x), np.arange(len(self.coefficients)))

    def _variance_of_line(self, x: float) -> float:
        row = self._row(x)
        return float(row @ self.covariance @ row)

    def _around(self, value: float, variance: float, level: float) -> Interval | None:
        if self.dof < 1:
            return None
        half = t_quantile(self.dof, level) * float(np.sqrt(variance))
        return value - half, value + half


def t_quantile(dof: int, level: float = 0.95) -> float:
    """Two-sided Student t quantile: 4.303 at 2 degrees of freedom and 95 %."""
    return float(special.stdtrit(dof, 0.5 + level / 2))


def fit_polynomial(
    x: Sequence[float], y: Sequence[float], degree: int = 1, weights: Weights = "none"
) -> PolynomialFit:
    """Fit ``y`` on powers of ``x`` up to ``degree``.

    ``weights="relative"`` weighs each point by 1/y**2, which suits a scatter that is a constant
    share of y. Raises ``ValueError`` with fewer distinct x than coefficients, or for a y that is
    not positive under relative weights.
    """
    xs = np.asarray(x, dtype=float)
    ys = np.asarray(y, dtype=float)
    if xs.shape != ys.shape or xs.ndim != 1:
        raise ValueError(f"x and y are {xs.shape} and {ys.shape}, not two equal lists")
    parameters = degree + 1
    if len(np.unique(xs)) < parameters:
        raise ValueError(
            f"{len(np.unique(xs))} distinct x cannot determine {parameters} coefficients"
        )
    if weights == "relative" and np.any(ys <= 0):
        raise ValueError("relative weights need every y above zero")
    root_weight = 1 / ys if weights == "relative" else np.ones_like(ys)

    design = np.vander(xs, parameters, increasing=True) * root_weight[:, None]
    solution, unscaled, rss = least_squares(design, ys * root_weight)
    dof = len(xs) - parameters
    variance = rss / dof if dof else float("nan")
    return PolynomialFit(
        coefficients=tuple(float(c) for c in solution),
        covariance=variance * unscaled,
        residual_variance=variance,
        residual_sum_of_squares=rss,
        n=len(xs),
        dof=dof,
        weights=weights,
        x_range=(float(xs.min()), float(xs.max())),
    )


def least_squares(
    design: NDArray[np.float64], y: NDArray[np.float64]
) -> tuple[NDArray[np.float64], NDArray[np.float64], float]:
    """Solve ``design @ c = y``; gives c, the inverse of X'X, and the residual sum of squares.

    Columns are scaled to about one first: squares of 100,000-token contexts beside a column of
    ones would cost half the digits.
    """
    units = np.max(np.abs(design), axis=0)
    units[units == 0] = 1.0
    q, r = np.linalg.qr(design / units)
    inverse = np.linalg.inv(r)
    scaled = inverse @ (q.T @ y)
    residuals = y - (design / units) @ scaled
    unscaled = (inverse @ inverse.T) / np.outer(units, units)
    return scaled / units, unscaled, float(residuals @ residuals)
