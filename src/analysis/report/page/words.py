"""Numbers, intervals and names as the pages and their paragraphs to paste write them."""

from collections.abc import Sequence
from dataclasses import replace
from importlib.metadata import PackageNotFoundError, version
from math import floor, isfinite, log10
from pathlib import PurePath

from analysis.findings.diagnosis_types import Diagnosis, Middle
from analysis.findings.sides import Side
from analysis.model.regression import Interval
from analysis.rounding import significant

UNDEFINED = "–"
PACKAGE = "speculative-decoding-report"


def number(value: float | None, like: float | None = None) -> str:
    """Three significant digits, whole from 100 on; as many decimals as ``like`` would get."""
    if value is None or not isfinite(value):
        return UNDEFINED
    value = significant(value)
    like = None if like is None else significant(like)
    if like is None and value == int(value) and abs(value) >= 1:
        return f"{value:,.0f}".replace("-", "−")
    if like is not None and like == int(like) and value == int(value):
        return f"{value:,.0f}".replace("-", "−")
    size = abs(value if like is None else like)
    decimals = 2 - floor(log10(size)) if size > 0 else 2
    return f"{value:,.{min(max(decimals, 0), 9)}f}".replace("-", "−")


def span(ends: Interval | tuple[float | None, float | None] | None, like: float) -> str:
    """``low to high``, in the decimals of the value that it belongs to."""
    if ends is None or ends[0] is None or ends[1] is None:
        return UNDEFINED
    return f"{number(ends[0], like)} to {number(ends[1], like)}"


def middle_span(middle: Middle) -> str:
    """The interval of a median; a dash where there are too few windows for one."""
    return span((middle.low, middle.high), middle.median)


def middle_kind(middles: Sequence[Middle]) -> str:
    """By which way the intervals of medians were made; nothing where there are none."""
    kinds = dict.fromkeys(m.kind for m in middles if m.low is not None and m.kind)
    return f"by {' or '.join(kinds)}" if kinds else ""


def count(number_of: int, noun: str) -> str:
    """``1 window``, ``2,000 windows``."""
    return f"{number_of:,} {noun}{'' if number_of == 1 else 's'}"


def files(diagnosis: Diagnosis) -> list[str]:
    """Names of the files read, without their folders, each once."""
    return list(dict.fromkeys(PurePath(batch.file).name for batch in diagnosis.windows))


def listed(names: list[str], most: int = 4) -> str:
    """Names in a row, and how many more there are."""
    more = f" and {len(names) - most} more" if len(names) > most else ""
    return ", ".join(names[:most]) + more


def engine(diagnosis: Diagnosis) -> str:
    """The engine, and what the log hints of its version."""
    hint, name = diagnosis.version_hint, engine_name(diagnosis.engine)
    if name.lower() in hint.lower():
        return hint
    return f"{name} ({hint})" if hint else name


def engine_name(name: str) -> str:
    """An engine's name as its project writes it."""
    for known in ("SGLang", "vLLM"):
        name = name.replace(known.lower(), known)
    return name


def made_by(command: str) -> str:
    """The command and the version of this package."""
    try:
        return f"analysis {command} ({PACKAGE} {version(PACKAGE)})"
    except PackageNotFoundError:
        return f"analysis {command} ({PACKAGE})"


def with_span(value: float, ends: Interval | None) -> str:
    """A value, and its interval in brackets where there is one."""
    return number(value) if ends is None else f"{number(value)} ({span(ends, value)})"


def side_name(side: Side) -> str:
    """A side as the page names it: a file without its folder."""
    if side.kind not in ("log", "table"):
        return side.name
    path, bracket, series = side.name.partition(" (")
    return PurePath(path).name + bracket + series


def with_short_name(side: Side) -> Side:
    """The same side, under its short name."""
    return replace(side, name=side_name(side))


def short_names(notes: Sequence[str], sides: Sequence[Side | None]) -> tuple[str, ...]:
    """Notes in which sides go by their short names."""
    for side in filter(None, sides):
        notes = [note.replace(side.name, side_name(side)) for note in notes]
    return tuple(notes)


def sentence(note: str) -> str:
    """A note as a sentence; a file that it begins with keeps its name."""
    first = note.split(" ", 1)[0]
    named = "." in first or "/" in first
    return f"{note if named else note[:1].upper() + note[1:]}{'' if note.endswith('.') else '.'}"
