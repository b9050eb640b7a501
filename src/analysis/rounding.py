"""Nine significant digits: the precision in which every committed number is written.

Linear algebra differs in the last bits between processors; nine digits are far more than any
measurement here carries, and few enough to be the same everywhere.
"""

import math
from typing import Any

SIGNIFICANT_DIGITS = 9


def significant(value: float, digits: int = SIGNIFICANT_DIGITS) -> float:
    """Round ``value`` to ``digits`` significant digits; zero and non-finite values pass."""
    if value == 0 or not math.isfinite(value):
        return value
    return float(f"{value:.{digits - 1}e}")


def rounded(value: Any) -> Any:
    """Round every float in nested dicts, lists and tuples; NaN becomes ``None``, undefined."""
    if isinstance(value, dict):
        return {key: rounded(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [rounded(item) for item in value]
    if isinstance(value, bool | int | str) or value is None:
        return value
    if isinstance(value, float):
        return None if math.isnan(value) else significant(value)
    if hasattr(value, "item"):  # a NumPy scalar
        return rounded(value.item())
    raise TypeError(f"cannot round a {type(value).__name__}")
