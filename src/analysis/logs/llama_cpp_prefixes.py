"""Who printed a line of llama.cpp, with which drafter, and how long after the server's start."""

import re

import numpy as np
from numpy.typing import NDArray

from analysis.logs.prefixes import NAMED, prefixes
from analysis.logs.scan import Numbers, Places, Scan

_PREFIX = re.compile(NAMED + rb"(?:(?P<time>\d+\.\d\d\.\d{3}\.\d{3}) )?(?:[A-Z] )? *$")
_STATISTICS = re.compile(
    NAMED + rb"(?:(?P<time>\d+\.\d\d\.\d{3}\.\d{3}) )?(?:[A-Z] )?"
    rb"(?:statistics +(?P<drafter>[^\s:]+))?$"
)


def printed(
    scan: Scan, place: Places, statistics: NDArray[np.bool_]
) -> tuple[list[str], list[str], Places, Places, Numbers]:
    """The processes and drafters there are, which of them each line is of, and its time."""
    sources: list[str] = []
    drafters: list[str] = []
    source, drafter = np.zeros(len(place), dtype=np.int64), np.zeros(len(place), dtype=np.int64)
    time = np.full(len(place), -1, dtype=np.int64)
    for pattern, lines in (
        (_PREFIX, np.flatnonzero(~statistics)),
        (_STATISTICS, np.flatnonzero(statistics)),
    ):
        seen = prefixes(scan, place[lines], pattern)
        for code, shape in enumerate(seen.shapes):
            of = lines[seen.code == code]
            source[of] = _index(sources, shape["name"] or shape["tag"])
            drafter[of] = _index(drafters, shape.get("drafter", ""))
        time[lines] = seen.time
    return sources, drafters, source, drafter, _stamps(scan, time)


def _index(names: list[str], name: str) -> int:
    if name not in names:
        names.append(name)
    return names.index(name)


def _stamps(scan: Scan, places: Places) -> Numbers:
    """Seconds of ``0.06.895.980``, minutes first; NaN where a place is negative."""
    seconds = np.full(len(places), np.nan)
    at = places[places >= 0]
    minutes = scan.numbers(at, b".")
    wide = np.floor(np.log10(np.maximum(np.nan_to_num(minutes), 1))).astype(np.int64) + 1
    rest = [scan.numbers(at + wide + skip, end) for skip, end in ((1, b"."), (4, b"."), (8, b" "))]
    seconds[places >= 0] = minutes * 60 + rest[0] + rest[1] / 1e3 + rest[2] / 1e6
    return seconds
