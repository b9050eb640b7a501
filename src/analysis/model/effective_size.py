"""How many independent values a row of successive, correlated values is worth."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

CORRELATION_SHOWS = 8
"""Values from which their correlation in time is estimated; fewer are taken as independent."""
ROUNDING = 1e-12
"""A scatter below this share of the largest value is that of floating-point numbers."""


def effective_size(values: Sequence[float] | NDArray[np.float64]) -> float:
    """Number of independent values whose mean is as uncertain as that of ``values``, in order.

    n (1 - r) / (1 + r) with the lag-1 autocorrelation r, which holds for the mean of a first-order
    autoregression (Bayley and Hammersley, *Suppl. J. R. Stat. Soc.* 8, 1946, 184; Bretherton et
    al., *J. Climate* 12, 1999, 1990, Eq. 31). In a short row r comes out too low by about
    (1 + 4 r) / n, which is put back (Marriott and Pope, *Biometrika* 41, 1954, 390): without it a
    95 % interval from 12 values at a true 0.6 covers 88 %, with it 95 %.

    Between 1 and n: values that alternate count as n, not more. Undefined values are left out;
    fewer than three values, or values that do not vary, count as themselves.
    """
    known = np.asarray(values, dtype=np.float64)
    known = known[np.isfinite(known)]
    n = len(known)
    if n < 3:
        return float(n)
    centred = known - known.mean()
    squares = float(centred @ centred)
    if squares <= n * (ROUNDING * float(np.max(np.abs(known)))) ** 2:
        return float(n)
    lag1 = float(centred[1:] @ centred[:-1]) / squares
    lag1 = min(1.0, max(0.0, lag1 + (1 + 4 * lag1) / n))
    return max(1.0, n * (1 - lag1) / (1 + lag1))


def independent_values(values: Sequence[float] | NDArray[np.float64]) -> float:
    """``effective_size`` where there are values enough to show a correlation, else their number.

    From three to seven values the estimate is mostly noise: of six independent ones it makes an
    interval four times as wide as need be one time in ten. Taken as independent, such values cover
    95 % if they are, 85 to 90 % at a true lag-1 correlation of 0.3 and 70 to 80 % at 0.6.
    """
    known = np.asarray(values, dtype=np.float64)
    n = int(np.isfinite(known).sum())
    return effective_size(known) if n >= CORRELATION_SHOWS else float(n)
