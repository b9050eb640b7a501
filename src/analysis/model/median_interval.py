"""The median of a stream of values and its confidence interval, in memory that does not grow."""

from collections.abc import Sequence
from dataclasses import dataclass
from math import sqrt

import numpy as np
from numpy.typing import NDArray
from scipy import special

from analysis.model.effective_size import independent_values
from analysis.model.regression import t_quantile

FEWEST_FOR_T = 4
"""Independent values below which Student's t says nothing of use."""
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
    """Positive values that arrive in batches, in the order of time; undefined ones are left out.

    Values of different ``sources`` (ranks that log side by side) are each correlated in time, and
    taken to be independent of one another.
    """

    def __init__(self) -> None:
        self.n = 0
        self._kept: list[NDArray[np.float64]] = []
        self._sources: list[NDArray[np.int64]] = []
        self._first = 0
        self._counts = np.zeros(0, dtype=np.int64)
        self._share = 1.0

    def add(
        self,
        values: Sequence[float] | NDArray[np.float64],
        sources: NDArray[np.int64] | None = None,
    ) -> None:
        """Take in a batch."""
        given = np.asarray(values, dtype=np.float64)
        known = np.isfinite(given)
        self._kept.append(given[known])
        of = np.zeros(len(given), dtype=np.int64) if sources is None else sources
        self._sources.append(of[known])
        self.n += len(self._kept[-1])
        self._fold_if_many()

    def join(self, other: "MedianStream") -> None:
        """Take in all that another stream holds."""
        self.n += other.n
        self._kept += other._kept
        self._sources += other._sources
        self._fold_if_many()
        if len(other._counts):
            self._fold()
            self._count(other._first, other._counts)

    def median(self) -> float:
        """The middle value, or the mean of the middle two; NaN for none."""
        return self._quantile(0.5) if self.n else float("nan")

    def interval(self) -> MedianInterval | None:
        """95 % confidence interval of the median, for as many independent values as there are.

        Their number is that of the values less what their correlation in time takes
        (``effective_size``; of a long stream it is learned from the first 200,000). ``None`` where
        fewer than four are left: the values are few, or move together, as with a growing context.
        """
        if not self.n:
            return None
        share = self._share if len(self._counts) else self._independent() / self.n
        independent = share * self.n + 1e-9
        ranks = median_ranks(int(independent))
        if ranks is not None:
            low, high = ((rank - 0.5) / int(independent) for rank in ranks)
            return MedianInterval(self._quantile(low), self._quantile(high), BY_RANKS)
        if independent < FEWEST_FOR_T or len(self._counts):
            return None
        logs = np.log(np.concatenate(self._kept))
        half = t_quantile(int(independent) - 1) * float(np.std(logs, ddof=1)) / sqrt(independent)
        centre = float(np.mean(logs))
        median = self.median()
        low, high = float(np.exp(centre - half)), float(np.exp(centre + half))
        return MedianInterval(min(low, median), max(high, median), BY_T)

    def _independent(self) -> float:
        return independent_of(np.concatenate(self._kept), np.concatenate(self._sources))

    def _fold_if_many(self) -> None:
        if sum(map(len, self._kept)) > EXACT:
            if not len(self._counts):
                self._share = self._independent() / sum(map(len, self._kept))
            self._fold()

    def _fold(self) -> None:
        """Count what was kept in bins of the logarithm; what lies beyond them in the outermost."""
        values = np.concatenate([*self._kept, np.zeros(0)])
        values = values[values > 0]
        self._kept, self._sources = [], []
        if len(values):
            places = np.floor(np.log(values) / RESOLUTION).astype(np.int64)
            places = np.clip(places, LEAST_PLACE, -LEAST_PLACE)
            low = int(places.min())
            self._count(low, np.bincount(places - low))

    def _count(self, first: int, counts: NDArray[np.int64]) -> None:
        """Add counts of bins, of which the first is ``first``."""
        if not len(self._counts):
            self._first, self._counts = first, counts
            return
        low = min(first, self._first)
        high = max(first + len(counts), self._first + len(self._counts))
        total = np.zeros(high - low, dtype=np.int64)
        for at, some in ((first - low, counts), (self._first - low, self._counts)):
            total[at : at + len(some)] += some
        self._first, self._counts = low, total

    def _quantile(self, share: float) -> float:
        if not len(self._counts):
            return float(np.quantile(np.concatenate(self._kept), share, method="hazen"))
        if self._kept:
            self._fold()
        total = np.cumsum(self._counts)
        at = int(np.searchsorted(total, share * total[-1]))
        return float(np.exp((self._first + min(at, len(total) - 1) + 0.5) * RESOLUTION))


def independent_of(values: NDArray[np.float64], sources: NDArray[np.int64]) -> float:
    """Independent values of all sources together.

    Fewer than eight of one source cannot show a correlation and are taken as independent.
    """
    total = 0.0
    for source in np.unique(sources):
        own = values[sources == source]
        total += independent_values(own)
    return total
