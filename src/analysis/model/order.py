"""Can drift pose as a slope? The order in which requests were sent, and what drifted meanwhile.

In a sweep that is sent in rising order, whatever changes with time (heat, another user) changes
with context too. Random order keeps the two apart; then the drift can be estimated and taken out.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from math import sqrt

import numpy as np
from numpy.typing import NDArray
from scipy import special

from analysis.model.regression import Interval, least_squares, t_quantile

INSEPARABLE = 0.99
"""Context and order that correlate more than this leave nothing to tell them apart by."""
ROUNDING = 1e-12
"""A scatter below this share of y is that of floating-point numbers."""


@dataclass(frozen=True)
class RankCorrelation:
    """Spearman's rank correlation and its two-sided p by Student's t with n - 2 degrees.

    Kendall and Stuart, *The Advanced Theory of Statistics* 2 (4th ed., 1979), section 31.19.
    """

    rho: float
    p: float
    n: int


@dataclass(frozen=True)
class Drift:
    """Change of the step from the first to the last request at a fixed context.

    In per cent of the mean step, with its 95 % confidence interval; ``slope`` is the slope in
    context with the drift taken out, ms per token.
    """

    pct: float
    ci95: Interval | None
    slope: float


def rank_correlation(x: Sequence[float], y: Sequence[float]) -> RankCorrelation | None:
    """Spearman's rho of paired values, ties sharing their mean rank.

    ``None`` for fewer than four pairs or where one of the two does not vary.
    """
    if len(x) < 4 or len(set(x)) < 2 or len(set(y)) < 2:
        return None
    rho = float(np.corrcoef(_ranks(x), _ranks(y))[0, 1])
    dof = len(x) - 2
    left = max(0.0, 1 - rho**2)
    p = 2 * float(special.stdtr(dof, -abs(rho) * sqrt(dof / left))) if left else 0.0
    return RankCorrelation(rho, p, len(x))


def drift(contexts: Sequence[float], steps_ms: Sequence[float]) -> Drift | None:
    """Fit ``step = a + b * context + d * position``, values given in the order of sending.

    ``None`` for fewer than four steps, for one context, or where the contexts rise or fall with
    the order so that no fit could tell them apart.
    """
    n = len(contexts)
    if n < 4 or len(set(contexts)) < 2:
        return None
    x, y = np.asarray(contexts, dtype=float), np.asarray(steps_ms, dtype=float)
    position = np.arange(n) / (n - 1)
    if abs(float(np.corrcoef(x, position)[0, 1])) > INSEPARABLE:
        return None
    design = np.column_stack([np.ones(n), x, position])
    solution, unscaled, rss = least_squares(design, y)
    share = 100 / float(y.mean())
    ci95 = None
    if n > 3 and rss > (ROUNDING * float(y.max())) ** 2:
        half = t_quantile(n - 3) * sqrt(rss / (n - 3) * float(unscaled[2, 2]))
        ci95 = (share * (solution[2] - half), share * (solution[2] + half))
    return Drift(float(share * solution[2]), ci95, float(solution[1]))


def _ranks(values: Sequence[float]) -> NDArray[np.float64]:
    given = np.asarray(values, dtype=float)
    _, inverse, counts = np.unique(given, return_inverse=True, return_counts=True)
    last = np.cumsum(counts)
    return np.asarray((last - (counts - 1) / 2)[inverse], dtype=float)
