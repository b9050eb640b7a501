"""What stands before a message: who printed it and when, for many lines at once.

Few different prefixes stand before millions of lines, and but for the time in them they are alike.
So one line's prefix is read by a regular expression, all lines that have the same around their
times are found by comparing bytes, and the next line that is left is read.
"""

import re
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from analysis.logs.scan import Places, Scan

NAMED = rb"(?:(?P<name>[^\s|\"]+) +\| +|(?P<tag>[^\s\"]*\[[^\]\s:]*\]):? +)?"
"""Begins a pattern of prefixes: ``name-1  | `` of docker compose, ``unit[12]: `` of journald,
``[pod/name/container] `` of kubectl, ``[60713] `` of a llama.cpp router."""
LONGEST_PREFIX = 400
LONGEST_LABEL = 48
MOST_SHAPES = 256


@dataclass(frozen=True)
class Prefixes:
    """For each place the index of its ``shapes``, the pattern's groups, and where its time begins.

    ``time`` is -1 where the pattern's group ``time`` is not there.
    """

    code: Places
    shapes: list[dict[str, str]]
    time: Places


def prefixes(scan: Scan, places: Places, pattern: re.Pattern[bytes]) -> Prefixes:
    """Match what ends at each place, on its line, with a pattern that matches nothing too.

    The pattern begins with ``NAMED`` and ends with ``$``; of its groups only ``time`` may differ
    between lines of a shape.
    """
    code = np.full(len(places), -1, dtype=np.int64)
    time = np.full(len(places), -1, dtype=np.int64)
    shapes: list[dict[str, str]] = []
    left = np.arange(len(places))
    while len(left) and len(shapes) < MOST_SHAPES:
        stop = int(places[left[0]])
        begin, found = _read(scan, stop, pattern)
        first = begin + found.start()
        opened, closed = found.span("time")
        if opened < 0:
            opened = closed = found.end()
        edge = first - (2 if found.start() else 1)  # with what stands before, or the line's begin
        same = scan.starts_with(places[left] - (stop - edge), scan.text[edge : begin + opened])
        after = scan.text[begin + closed : stop]
        same &= scan.starts_with(places[left] - len(after), after)
        time_text = scan.text[begin + opened : begin + closed]
        same &= _alike(scan, places[left] - (stop - begin - opened), time_text)
        if found.start() and not (found["name"] or found["tag"]):  # other lines may have more there
            edge = max(first - LONGEST_LABEL, begin - 1)
            same &= _alike(scan, places[left] - (stop - edge), scan.text[edge:first])
        chosen = left[same]
        code[chosen] = len(shapes)
        if found.start("time") >= 0:
            time[chosen] = places[chosen] - (stop - begin - found.start("time"))
        shapes.append(_groups(found))
        left = left[~same]
    for index in left:
        begin, found = _read(scan, int(places[index]), pattern)
        groups = _groups(found)
        if groups not in shapes:
            shapes.append(groups)
        code[index] = shapes.index(groups)
        if found.start("time") >= 0:
            time[index] = begin + found.start("time")
    return Prefixes(code, shapes, time)


def _alike(scan: Scan, places: Places, text: bytes) -> NDArray[np.bool_]:
    """Whether ``text`` stands at each place, any digit for each of its digits."""
    eights = np.ndarray((len(scan.text) - 7,), "<u8", scan.text, strides=(1,))
    same = np.ones(len(places), dtype=bool)
    for offset in range(0, len(text), 8):
        part = text[offset : offset + 8]
        digit = [48 <= byte < 58 for byte in part]
        mask = bytes(0xF0 if one else 0xFF for one in digit)
        wanted = bytes(byte & keep for byte, keep in zip(part, mask, strict=True))
        six = bytes(6 if one else 0 for one in digit)  # takes 9 to 0x3F, and what follows it beyond
        word = eights[np.minimum(places + offset, len(eights) - 1)]
        for lifted in (word, word + _word(six)):
            same &= (lifted & _word(mask)) == _word(wanted)
    return same


def _word(eight: bytes) -> np.uint64:
    return np.uint64(int.from_bytes(eight, "little"))


def _read(scan: Scan, place: int, pattern: re.Pattern[bytes]) -> tuple[int, re.Match[bytes]]:
    """Where the text that was searched begins, and what was found there."""
    begin = max(scan.text.rfind(b"\n", 0, place) + 1, place - LONGEST_PREFIX)
    found = pattern.search(scan.text[begin:place])
    assert found is not None, "the pattern must match nothing"
    return begin, found


def _groups(found: re.Match[bytes]) -> dict[str, str]:
    return {
        name: (value or b"").decode(errors="replace")
        for name, value in found.groupdict().items()
        if name != "time"
    }
