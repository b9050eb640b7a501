"""Fields of many log lines at once: numbers after ``key: `` or ``key = ``, by NumPy over bytes.

A log of gigabytes is read at memory speed only if no Python object is made for a line. A block of
whole lines is an array of bytes; keys are compared eight bytes at a time, and digits are added up
for all lines together. Against Polars, DuckDB and Arrow: see ``docs/decisions.md``.

A number counts only if a delimiter ends it: a line that was cut within a number has none.
"""

import re
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from analysis.logs.digits import ENDS, TOO_LONG, clock, decimals, lengths, midnight

Bytes = NDArray[np.uint8]
Places = NDArray[np.int64]
Numbers = NDArray[np.float64]

PADDING = b"\n" * 64
MOST_SPACES = 16
LONGEST_LABEL = 24
_LONG = re.compile(rb"\d+(?:\.\d+)?")
_FIVE_BYTES = np.uint64(0xFFFFFFFFFF)


@dataclass(frozen=True)
class _Places:
    """Where numbers may begin: after each pair, with its line and the eight bytes before it."""

    after: Places
    line: Places
    last_eight: NDArray[np.uint64]


@dataclass(frozen=True)
class Field:
    """The numbers after one key: the index of each one's line, and its value.

    NaN where no number follows, or where no delimiter ends it. ``place`` is where the key begins.
    """

    line: Places
    value: Numbers
    place: Places

    def on(self, lines: Places) -> Numbers:
        """The value on each of these lines, in rising order; NaN for none, or for more than one."""
        if np.array_equal(lines, self.line) and bool((np.diff(lines) > 0).all()):
            return self.value
        most = 1 + max((int(some.max()) for some in (lines, self.line) if len(some)), default=0)
        value = np.full(most, np.nan)
        value[self.line] = self.value
        value[np.bincount(self.line, minlength=most) > 1] = np.nan
        return value[lines]


class Scan:
    """A block of whole lines. Lines are counted from 0 within it."""

    def __init__(self, block: bytes | memoryview) -> None:
        """``block`` ends with a newline, or is empty."""
        self.text = b"".join((PADDING, block, PADDING))
        self.size = len(block)
        self._bytes: Bytes = np.frombuffer(self.text, dtype=np.uint8)
        self._pairs: dict[bytes, Places] = {}
        self._eights: NDArray[np.uint64] = np.ndarray(
            (len(self.text) - 7,), "<u8", self.text, strides=(1,)
        )

    @property
    def block(self) -> memoryview:
        """The bytes that it was made of."""
        return memoryview(self.text)[len(PADDING) : len(PADDING) + self.size]

    @cached_property
    def ends(self) -> Places:
        """Where each line's newline is."""
        inside = self._bytes[len(PADDING) : len(PADDING) + self.size]
        return np.flatnonzero(inside == 10) + len(PADDING)

    def __len__(self) -> int:
        return len(self.ends)

    def mask(self, *lines: Places) -> NDArray[np.bool_]:
        """Which lines of the block are among these."""
        chosen = np.zeros(len(self), dtype=bool)
        for some in lines:
            chosen[some] = True
        return chosen

    def lines(self, chosen: NDArray[np.bool_]) -> list[tuple[int, bytes]]:
        """The lines of a mask that are few: the index and the bytes of each."""
        index = np.flatnonzero(chosen)
        stops = self.ends[index].tolist()
        starts = (self.ends[np.maximum(index - 1, 0)] + 1).tolist()
        if len(index) and index[0] == 0:
            starts[0] = len(PADDING)
        text = self.text
        return [
            (i, text[start:stop])
            for i, start, stop in zip(index.tolist(), starts, stops, strict=True)
        ]

    def line(self, index: int) -> str:
        """One line, without its newline; bytes that are not UTF-8 are replaced."""
        start = len(PADDING) if index == 0 else int(self.ends[index - 1]) + 1
        return self.text[start : int(self.ends[index])].decode(errors="replace").rstrip("\r")

    def lines_of(self, places: Places) -> Places:
        """The line of each place."""
        return np.searchsorted(self.ends, places)

    def find(self, text: bytes) -> Places:
        """Where ``text`` stands, everywhere in the block; quick where it is rare."""
        found, at = [], self.text.find(text, len(PADDING))
        while at >= 0:
            found.append(at)
            at = self.text.find(text, at + len(text))
        return np.array(found, dtype=np.int64)

    def pairs(self, pair: bytes) -> Places:
        """Where two bytes stand side by side; quick where they are frequent."""
        if pair not in self._pairs:
            two = np.ndarray((len(self.text) - 1,), "<u2", self.text, strides=(1,))
            self._pairs[pair] = np.flatnonzero(two == int.from_bytes(pair, "little"))
        return self._pairs[pair]

    def find_one(self, byte: bytes) -> Places:
        """Where one byte stands, everywhere."""
        return np.flatnonzero(self._bytes == byte[0])

    def starts_with(self, places: Places, text: bytes) -> NDArray[np.bool_]:
        """Whether ``text`` stands at each of these places."""
        hit = np.ones(len(places), dtype=bool)
        for offset in range(0, len(text), 8):
            part = text[offset : offset + 8]
            mask = np.uint64((1 << (8 * len(part))) - 1)
            wanted = np.uint64(int.from_bytes(part, "little"))
            at = np.minimum(places + offset, len(self._eights) - 1)
            hit &= (self._eights[at] & mask) == wanted
        return hit

    @cached_property
    def _colons(self) -> "_Places":
        return self._places_after(b": ")

    @cached_property
    def _equals(self) -> "_Places":
        return self._places_after(b"= ")

    def _places_after(self, pair: bytes) -> "_Places":
        after = self.pairs(pair) + 2
        per_line = np.diff(np.searchsorted(after, self.ends, "right"), prepend=0)
        line = np.repeat(np.arange(len(self.ends)), per_line)
        return _Places(after[: len(line)], line, self._eights[after[: len(line)] - 8])

    def keys(self, key: bytes) -> tuple[Places, Places]:
        """The line of each ``key`` and where it stands.

        It ends with ``: `` or ``= `` and has eight bytes or more.
        """
        places = self._equals if key.endswith(b"= ") else self._colons
        hit = np.flatnonzero(places.last_eight == int.from_bytes(key[-8:], "little"))
        start = places.after[hit] - len(key)
        if len(key) > 8:
            whole = self.starts_with(start, key[:-8])
            hit, start = hit[whole], start[whole]
        return places.line[hit], start

    def field(self, key: bytes, ends: bytes = ENDS, most: int | None = None) -> Field:
        """The numbers after ``key`` (see ``keys``), of the first ``most`` only if that is given.

        A number is ended by one of ``ends``.
        """
        line, start = self.keys(key)
        line, start = line[:most], start[:most]
        return Field(line, self.numbers(start + len(key), ends), start)

    def numbers(self, places: Places, ends: bytes = ENDS) -> Numbers:
        """The number at each place, after any spaces: digits, with one dot between them at most.

        Seven characters and their delimiter are eight bytes, which are looked up together; longer
        numbers are rare and read one by one.
        """
        at = self._behind_spaces(places)
        value, length = decimals(self._eights[at], ends)
        for long in np.flatnonzero(length == TOO_LONG):
            value[long] = self._long_number(int(at[long]), ends)
        return value

    def behind(self, places: Places) -> Places:
        """Where the number at each place ends, after any spaces before it."""
        at = self._behind_spaces(places)
        length = lengths(self._eights[at])
        for long in np.flatnonzero(length == TOO_LONG):
            found = _LONG.match(self.text, int(at[long]))
            length[long] = 0 if found is None else len(found[0])
        ends: Places = at + length
        return ends

    def _long_number(self, at: int, ends: bytes) -> float:
        found = _LONG.match(self.text, at)
        if found is None or self.text[found.end()] not in ends:
            return float("nan")
        return float(found[0])

    def _behind_spaces(self, places: Places) -> Places:
        at = places
        for _ in range(MOST_SPACES):
            blank = self._bytes[at] == 32
            if not blank.any():
                break
            at = at + blank
        return at

    def labels(self, starts: Places, stops: Places) -> tuple[Places, list[str]]:
        """The texts between places, as codes and the texts that they stand for; cut at 24 bytes."""
        length = np.clip(stops - starts, 0, LONGEST_LABEL)
        parts = []
        for offset in range(0, LONGEST_LABEL, 8):
            eight = self._eights[np.minimum(starts + offset, len(self._eights) - 1)]
            keep = np.clip(length - offset, 0, 8)
            mask = np.where(
                keep == 8,
                np.uint64(0xFFFFFFFFFFFFFFFF),
                (np.uint64(1) << (8 * np.minimum(keep, 7)).astype(np.uint64)) - np.uint64(1),
            )
            parts.append(eight & mask)
        if not len(starts):
            return np.zeros(0, dtype=np.int64), []
        if all(bool((part == part[0]).all()) for part in parts):
            codes = np.zeros(len(starts), dtype=np.int64)
            unique = np.array([[part[0] for part in parts]], dtype="<u8")
        else:
            unique, codes = np.unique(np.column_stack(parts), axis=0, return_inverse=True)
        texts = [
            row.astype("<u8").tobytes().rstrip(b"\0").decode(errors="replace") for row in unique
        ]
        return codes.reshape(-1).astype(np.int64), texts

    def dates(self, places: Places) -> Numbers:
        """Seconds of ``YYYY-MM-DD hh:mm:ss`` at each place, as if it were UTC; NaN for another."""
        return self._days(places, 10) + self._seconds(places + 11)

    def months_and_days(self, places: Places, year: int) -> Numbers:
        """Seconds of ``MM-DD hh:mm:ss`` at each place, in the given year."""
        return self._days(places, 5, f"{year:04d}-") + self._seconds(places + 6)

    def _days(self, places: Places, length: int, year: str = "") -> Numbers:
        """Seconds of each day's beginning. Lines of one day stand together: it is read once."""
        if not len(places):
            return np.zeros(0)
        first, last = self._eights[places], self._eights[np.maximum(places + length - 8, 0)]
        if length < 8:
            first, last = first & _FIVE_BYTES, first & _FIVE_BYTES
        changes = (first[1:] != first[:-1]) | (last[1:] != last[:-1])
        begins = np.flatnonzero(np.concatenate([[True], changes]))
        seconds = [
            midnight(year + self.text[at : at + length].decode("ascii", "replace"))
            for at in places[begins].tolist()
        ]
        return np.repeat(seconds, np.diff(begins, append=len(places)))

    def _seconds(self, places: Places) -> Numbers:
        """Seconds of ``hh:mm:ss``, from its eight bytes."""
        return clock(self._eights[np.minimum(places, len(self._eights) - 1)])


def whole(values: Numbers) -> Numbers:
    """Counts: NaN for what is no whole number."""
    return np.where(values == np.floor(values), values, np.nan)
