"""A positive figure measured in several runs: its geometric mean, with the run as the unit.

Runs differ by more than the scatter within one of them, so an interval over runs is the honest
one; with few runs it is wide, and with one there is none.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from math import exp

import numpy as np

from analysis.model.log_ratio import LogMean, LogRatio, mean_of_logs
from analysis.model.regression import Interval


@dataclass(frozen=True)
class OverRuns:
    """Geometric mean of ``n`` runs, and the mean of their logarithms with its variance."""

    n: int
    log: LogMean

    @property
    def value(self) -> float:
        """The geometric mean."""
        return exp(self.log.value)

    @property
    def interval95(self) -> Interval | None:
        """95 % confidence interval by t on the logarithm; ``None`` with a single run."""
        return LogRatio(self.log.value, self.log.variance, self.log.dof).interval95


def over_runs(values: Sequence[float]) -> OverRuns:
    """Combine one figure a run. Raises ``ValueError`` for none, or one that is not positive."""
    if not values or min(values) <= 0:
        raise ValueError("runs need a figure above zero each")
    return OverRuns(len(values), mean_of_logs([np.log(np.asarray(values, dtype=float))]))
