"""The median of a stream of values and its confidence interval, in memory that does not grow."""

from collections.abc import Sequence
from dataclasses import dataclass
from math import sqrt

import numpy as np
from numpy.typing import NDArray
from scipy import special

from analysis.model.effective_size import effective_size
from analysis.model.regression import t_quantile

FEWEST = 6
"""Independent values below which no pair of them covers the median with 95 %."""
CORRELATION_SHOWS = 8
"""Values from which their correlation in time is estimated."""
EXACT = 200_000
"""Values that are kept as they are; of a longer stream the logarithms are counted in bins."""
RESOLUTION = 1e-4
"""Relative width of those bins: a quantile is off by half of it at most."""
LEAST_PLACE = -300_000
"""Values from 1e-13 to 1e13 are told apart."""


def median_ranks(n: int, level: float = 0.95) -> tuple[int, int] | None:
    """Ranks, from 1, of the two order statistics that hold the median with at least ``level``.

    Distribution-free, by the binomial: David and Nagaraja, *Order Statistics* (3rd ed., 2003),
    section 7.1. ``None`` for fewer than six values at 95 %.
    """
    tail = (1 - level) / 2
    low = int(max(0.0, np.floor(n / 2 - special.ndtri(1 - tail) * sqrt(n) / 2 - 1)))
    while special.bdtr(low, n, 0.5) <= tail:
        low += 1
    while low > 0 and special.bdtr(low - 1, n, 0.5) > tail:
        low -= 1
    return None if low < 1 else (low, n + 1 - low)


BY_RANKS = "order statistics"
BY_T = "Student's t on logarithms"
"""Fewer than six values bound the median only if they are taken to be log-normal."""


@dataclass(frozen=True)
class MedianInterval:
    """Where the median lies with 95 % confidence, and by which of the two ways."""

    low: float
    high: float
    kind: str


class MedianStream:
    """Positive values that arrive in batches, in the order of time; undefined ones are left out."""

    def __init__(self) -> None:
        self.n = 0
        self._kept: list[NDArray[np.float64]] = []
        self._first = 0
        self._counts = np.zeros(0, dtype=np.int64)
        self._share = 1.0

    def add(self, values: Sequence[float] | NDArray[np.float64]) -> None:
        """Take in a batch."""
        known = np.asarray(values, dtype=np.float64)
        known = known[np.isfinite(known)]
        self.n += len(known)
        self._kept.append(known)
        if sum(map(len, self._kept)) > EXACT:
            if not len(self._counts):
                first = np.concatenate(self._kept)
                self._share = effective_size(first) / len(first)
            self._fold()

    def median(self) -> float:
        """The middle value, or the mean of the middle two; NaN for none."""
        return self._quantile(0.5) if self.n else float("nan")

    def interval(self) -> MedianInterval | None:
        """95 % confidence interval of the median, for as many independent values as there are.

        Their number is that of the values less what their correlation in time takes
        (``effective_size``; of a long stream it is learned from the first 200,000). Fewer than
        eight values cannot show a correlation and are taken as independent. ``None`` where fewer
        than two are left: the values move together, with a context that grows for one.
        """
        if not self.n:
            return None
        share = self._share
        if not len(self._counts):
            kept = np.concatenate(self._kept)
            share = effective_size(kept) / self.n if self.n >= CORRELATION_SHOWS else 1.0
        independent = share * self.n + 1e-9
        ranks = median_ranks(int(independent))
        if ranks is not None:
            low, high = ((rank - 0.5) / int(independent) for rank in ranks)
            return MedianInterval(self._quantile(low), self._quantile(high), BY_RANKS)
        if independent < 2 or len(self._counts):
            return None
        logs = np.log(np.concatenate(self._kept))
        half = t_quantile(int(independent) - 1) * float(np.std(logs, ddof=1)) / sqrt(independent)
        centre = float(np.mean(logs))
        median = self.median()
        low, high = float(np.exp(centre - half)), float(np.exp(centre + half))
        return MedianInterval(min(low, median), max(high, median), BY_T)

    def _fold(self) -> None:
        """Count what was kept in bins of the logarithm; what lies beyond them in the outermost."""
        values = np.concatenate(self._kept)
        self._kept = []
        places = np.floor(np.log(values[values > 0]) / RESOLUTION).astype(np.int64)
        places = np.clip(places, LEAST_PLACE, -LEAST_PLACE)
        low, high = int(places.min()), int(places.max())
        if len(self._counts):
            low = min(low, self._first)
            high = max(high, self._first + len(self._counts) - 1)
        counts = np.bincount(places - low, minlength=high - low + 1)
        if len(self._counts):
            at = self._first - low
            counts[at : at + len(self._counts)] += self._counts
        self._first, self._counts = low, counts

    def _quantile(self, share: float) -> float:
        if not len(self._counts):
            return float(np.quantile(np.concatenate(self._kept), share, method="hazen"))
        if self._kept:
            self._fold()
        total = np.cumsum(self._counts)
        at = int(np.searchsorted(total, share * total[-1]))
        return float(np.exp((self._first + min(at, len(total) - 1) + 0.5) * RESOLUTION))
