"""JSON documents: their values with lines, numbers that are checked, and what is passed over.

Text that was asked or answered is never kept: of an unknown object only the names of its keys, of
a malformed one only the name of the field.
"""

import json
import math
import re
from collections.abc import Iterator
from typing import Any

from analysis.errors import InputError
from analysis.records.seen import EXAMPLES, Seen
from analysis.records.windows import Engine

NAMES: dict[Engine, str] = {"sglang": "SGLang", "vllm": "vLLM", "llama.cpp": "llama.cpp"}
"""Engines as ``Seen.engines`` calls them."""
SHOWN_KEYS = 8
NAN = math.nan
_NAME = re.compile(r"[\w.-]{1,40}", re.ASCII)

_BLANK = re.compile(r"(?:[\s\ufeff]+|(?:#|:|event:|id:|retry:)[^\n]*|data:[^\S\n]*(?:\[DONE\])?)*")


class MalformedError(ValueError):
    """An object that should tell of decoding and cannot be read; the message has no values."""


def opens_with_object(head: bytes) -> bool:
    """Whether a file begins with a JSON object, or with an array of them."""
    text = head.decode("utf-8", "ignore")
    blank = _BLANK.match(text)
    return text[blank.end() if blank else 0 :].lstrip("[ \t\r\n").startswith("{")


def values(text: str, file: str) -> Iterator[tuple[int, Any]]:
    """The JSON values of a file with their lines, those of an array one by one.

    One value, an array, JSON Lines, or the events of a recorded stream; ``#`` begins a comment.
    Raises ``InputError`` with the line for what is no JSON, or ends within.
    """
    decoder = json.JSONDecoder()
    at, line, counted, depth = 0, 1, 0, 0
    while True:
        blank = _BLANK.match(text, at)
        at = blank.end() if blank else at
        line, counted = line + text.count("\n", counted, at), at
        if at >= len(text):
            break
        if text[at] == "[" or (depth and text[at] in ",]"):
            depth += {"[": 1, "]": -1}.get(text[at], 0)
            at += 1
            continue
        try:
            value, end = decoder.raw_decode(text, at)
        except json.JSONDecodeError as error:
            what = f"{error.msg.lower()} at column {error.colno}"
            raise InputError(f"{file}:{error.lineno}", what, "JSON") from None
        except (RecursionError, ValueError):
            raise InputError(f"{file}:{line}", "what no server writes", "JSON") from None
        yield line, value
        at = end
    if depth:
        raise InputError(f"{file}:{line}", "the end of the file within an array", "a closing ]")


def number(data: dict[str, Any], key: str) -> float:
    """A number that is not negative, ``NaN`` where there is none; ``MalformedError`` for others."""
    value = data.get(key)
    if value is None:
        return NAN
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise MalformedError(f"{key} is no number")
    if not (0 <= value <= 1e300):
        raise MalformedError(f"{key} is negative or not finite")
    return float(value)


def group(data: dict[str, Any], key: str) -> dict[str, Any]:
    """An object within an object; empty where there is none."""
    value = data.get(key)
    return value if isinstance(value, dict) else {}


def ratio(above: float, below: float) -> float:
    """A quotient of two positive numbers, ``NaN`` where one is not."""
    return above / below if above > 0 and below > 0 else NAN


def add(to: list[str], text: str) -> None:
    """Add what is not there yet."""
    if text and text not in to:
        to.append(text)


def unknown(seen: Seen, line: int, value: Any) -> None:
    """Count a value that tells nothing of decoding, by the names of its keys."""
    seen.unparsed += 1
    names = list(value) if isinstance(value, dict) else [type(value).__name__]
    names = [name if _NAME.fullmatch(name) else "(text)" for name in names]
    more = f" and {len(names) - SHOWN_KEYS} more" if len(names) > SHOWN_KEYS else ""
    shape = f"JSON with {', '.join(names[:SHOWN_KEYS])}{more}"
    if len(seen.examples) < EXAMPLES and not any(shape in other for other in seen.examples):
        seen.examples.append(f"line {line}: {shape}")


def malformed(seen: Seen, line: int, what: str) -> None:
    """Count what should tell of decoding and cannot be read."""
    seen.unparsed += 1
    seen.malformed += 1
    if len(seen.malformed_examples) < EXAMPLES:
        seen.malformed_examples.append(f"line {line}: {what}")


def lines_of(text: str) -> int:
    """How many lines a text has, with one that nothing ends."""
    return text.count("\n") + (text != "" and not text.endswith("\n"))
