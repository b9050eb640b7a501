"""Fields of a server's JSON, of the kind that they must be."""

import math
from collections.abc import Mapping
from typing import Any

from analysis.engines.http import RequestError


def count(content: Mapping[str, Any], name: str) -> int | None:
    """A whole number that is not negative; ``None`` where the server does not tell it."""
    value = amount(content, name)
    if value is not None and not value.is_integer():
        raise RequestError(f"a reply whose {name} is {value:g}, not a whole number")
    return None if value is None else int(value)


def amount(content: Mapping[str, Any], name: str) -> float | None:
    """A finite number that is not negative; ``None`` where the server does not tell it."""
    value = content.get(name)
    if value is None:
        return None
    known = isinstance(value, int | float) and not isinstance(value, bool)
    if not known or not math.isfinite(value) or value < 0:
        raise RequestError(f"a reply whose {name} is {str(value)[:20]!r}, not a count or a time")
    return float(value)


def counted(content: Mapping[str, Any], name: str) -> int:
    """A count that a reply must have."""
    value = count(content, name)
    if value is None:
        raise RequestError(f"a reply without {name}")
    return value


def group(content: Mapping[str, Any], name: str) -> dict[str, Any]:
    """A JSON object within another; empty where there is none."""
    value = content.get(name)
    return value if isinstance(value, dict) else {}


def items(content: Mapping[str, Any], name: str) -> list[Any]:
    """A JSON list; empty where there is none."""
    value = content.get(name)
    return value if isinstance(value, list) else []


def objects(content: Mapping[str, Any], name: str) -> list[dict[str, Any]]:
    """The JSON objects of a list; empty where there is none."""
    return [item for item in items(content, name) if isinstance(item, dict)]
