"""The result of a chapter that a case has no data for."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Missing:
    """Why there is no result: a sentence for the reader, or nothing where that goes without."""

    reason: str
