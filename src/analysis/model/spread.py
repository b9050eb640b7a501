"""How far repeats of one cell lie apart."""

from collections.abc import Sequence
from statistics import median


def spread_pct(values: Sequence[float]) -> float | None:
    """Greatest less least value, per cent of the median; ``None`` for fewer than two values.

    One repeat is not a spread.
    """
    if len(values) < 2:
        return None
    return 100 * (max(values) - min(values)) / median(values)
