"""Numbers and times in eight bytes at once, for as many places of a text as there are.

Eight bytes are one integer. Where its digits are is looked up in tables over bit masks, and the
digits are added up in pairs, three times, for all places together.
"""

import datetime
import re

import numpy as np
from numpy.typing import NDArray

Eights = NDArray[np.uint64]
Numbers = NDArray[np.float64]

TOO_LONG = 8
"""The length of a number that does not end within eight bytes."""
ENDS = b", \t\r\n\"\\)}]%|;'"
_NUMERAL, _DOT, _END, _OTHER = range(4)


def _kinds(ends: bytes) -> NDArray[np.uint8]:
    """What each byte is to a number: a numeral, its dot, one that may end it, or another."""
    kind = np.full(256, _OTHER, dtype=np.uint8)
    kind[48:58] = _NUMERAL
    kind[46] = _DOT
    kind[list(ends)] = _END
    return kind


def _shapes() -> tuple[NDArray[np.intp], NDArray[np.uint64], Numbers]:
    """The shape of a number by its length and a bit mask of dots.

    It is -1 for two dots, for no digit, and for a dot at an end. For each shape: masks of its
    digits before and behind the dot and how far, in bits, each of the two moves to stand against
    the end of eight bytes without the dot; and what to divide by.
    """
    shape = np.full((9, 256), -1, dtype=np.intp)
    moves: list[tuple[int, int, int, int]] = []
    scale: list[float] = []
    for size in range(1, 8):
        for dot in (None, *range(size)):
            if dot in (0, size - 1):
                continue
            inside = sum(1 << (7 - i) for i in range(size))
            bit = 0 if dot is None else 1 << (7 - dot)
            shape[size, [mask for mask in range(256) if mask & inside == bit]] = len(moves)
            split = size if dot is None else dot
            before = sum(255 << (8 * i) for i in range(split))
            behind = sum(255 << (8 * i) for i in range(split + 1, size))
            step = 8 * (8 - size)
            moves.append((before, step if dot is None else step + 8, behind, step))
            scale.append(1.0 if dot is None else 10.0 ** (size - 1 - dot))
    return shape, np.array(moves, dtype=np.uint64).T.copy(), np.array(scale)


_KIND = _kinds(ENDS)
_LENGTH = np.array([next((i for i in range(8) if not m >> (7 - i) & 1), 8) for m in range(256)])
_LAST = np.array([7 - min(size, 7) for size in range(9)], dtype=np.uint8)
_SHAPE, _MOVES, _SCALE = _shapes()
_LOW_NIBBLES = np.uint64(0x0F0F0F0F0F0F0F0F)
_CLOCK = np.uint64(int.from_bytes(b"\x30\x30:\x30\x30:\x30\x30", "little"))
_CLOCK_MASK = np.uint64(int.from_bytes(b"\xf0\xf0\xff\xf0\xf0\xff\xf0\xf0", "little"))
_SIXES = np.uint64(0x0606060606060606)
_TENTH_BIT = np.uint64(0x1010101010101010)
_COLONS = np.uint64(int.from_bytes(b"\0\0\xff\0\0\xff\0\0", "little"))
_DAY = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}")
_SUMS = (
    (np.uint64(10), np.uint64(8), np.uint64(0x00FF00FF00FF00FF)),
    (np.uint64(100), np.uint64(16), np.uint64(0x0000FFFF0000FFFF)),
    (np.uint64(10000), np.uint64(32), np.uint64(0xFFFFFFFF)),
)


def _eight_digits(eight: NDArray[np.uint64], shape: NDArray[np.intp]) -> NDArray[np.uint64]:
    """The number in eight bytes without its dot: neighbours are added up in pairs, three times."""
    digits: NDArray[np.uint64] = eight & _LOW_NIBBLES
    before, far, behind, near = _MOVES
    lined_up: NDArray[np.uint64] = ((digits & before[shape]) << far[shape]) | (
        (digits & behind[shape]) << near[shape]
    )
    for factor, shift, lanes in _SUMS:
        lined_up = (lined_up * factor + (lined_up >> shift)) & lanes
    return lined_up


def lengths(eight: Eights) -> NDArray[np.intp]:
    """How many characters a number at each place has: digits and dots."""
    return _LENGTH[np.packbits(_KIND[eight.view(np.uint8)] <= _DOT)]


def decimals(eight: Eights, ends: bytes = ENDS) -> tuple[Numbers, NDArray[np.intp]]:
    """The number at each place, and its length; NaN where it is none, or nothing ends it.

    Digits, with one dot between them at most, and one of ``ends`` behind. Of one that is
    ``TOO_LONG`` the value is not known.
    """
    kinds = (_KIND if ends == ENDS else _kinds(ends))[eight.view(np.uint8)]
    length = _LENGTH[np.packbits(kinds <= _DOT)]
    shape = _SHAPE[length, np.packbits(kinds == _DOT)]
    ended = (np.packbits(kinds == _END) >> _LAST[length]) & 1
    good = (shape >= 0) & (ended == 1)
    total = _eight_digits(eight, np.where(good, shape, 0))
    return np.where(good, total / _SCALE[shape], np.nan), length


def clock(eight: Eights) -> Numbers:
    """Seconds of ``hh:mm:ss``; NaN for anything else."""
    proper = (eight & _CLOCK_MASK) == _CLOCK
    low = eight & _LOW_NIBBLES
    proper &= ((low + _SIXES) & _TENTH_BIT & ~_COLONS) == 0
    ten_times = low * np.uint64(10) + (low >> np.uint64(8))
    hour, minute, second = (
        (ten_times >> np.uint64(shift) & np.uint64(0xFF)).astype(np.float64)
        for shift in (0, 24, 48)
    )
    proper &= (hour < 24) & (minute < 60) & (second < 61)
    return np.where(proper, hour * 3600 + minute * 60 + second, np.nan)


def midnight(day: str) -> float:
    """Seconds since 1970 of the day ``YYYY-MM-DD``; NaN for one that does not exist."""
    if not _DAY.fullmatch(day):
        return float("nan")
    try:
        return (datetime.date.fromisoformat(day) - datetime.date(1970, 1, 1)).days * 86400.0
    except ValueError:
        return float("nan")
