"""The scanner reads the numbers that Python would read, and no others."""

import math
from datetime import UTC, datetime

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from analysis.logs.scan import Scan

KEY = b"gen throughput (token/s): "


def numbers(*texts: str) -> list[float]:
    block = b"".join(KEY + text.encode() + b"\n" for text in texts)
    return list(Scan(block).field(KEY).value)


@given(st.decimals(min_value=0, max_value=10**9, places=3, allow_nan=False))
def test_a_decimal_is_read_to_the_last_bit(value: object) -> None:
    text = str(value)
    assert numbers(f"{text},") == [float(text)]


@given(st.integers(min_value=0, max_value=10**15))
def test_an_integer_of_any_length_is_read(value: int) -> None:
    assert numbers(f"{value},", f"{value} ") == [float(value)] * 2


@pytest.mark.parametrize(
    "text",
    [
        "",
        ".5,",
        "5.,",
        "x",
        "-1,",
        "1.2.3,",
        "12x,",
        "1e5,",
        ".",
        "..",
        "nan,",
        "1_000,",
        "0x1f,",
        "1/2,",
    ],
)
def test_what_is_no_plain_number_is_undefined(text: str) -> None:
    assert math.isnan(numbers(text)[0])


def test_a_number_that_nothing_ends_is_undefined() -> None:
    """A last line that was cut within its number has no newline of its own."""
    block = KEY + b"178.8\0\n"
    assert math.isnan(Scan(block).field(KEY).value[0])


def test_only_the_delimiters_asked_for_end_a_number() -> None:
    block = KEY + b"17.5 tok\n" + KEY + b"17.5, \n"
    assert np.array_equal(Scan(block).field(KEY, b",").value, [np.nan, 17.5], equal_nan=True)


def test_spaces_before_a_number_are_passed_over() -> None:
    scan = Scan(b"       eval time =    2296.72 ms /   256 tokens\n")
    assert scan.field(b"eval time = ").value[0] == 2296.72


def test_a_key_is_matched_whole() -> None:
    scan = Scan(b"x, block accept len: 7.00, accept len: 2.50, y\n")
    assert list(scan.field(b", accept len: ").value) == [2.5]


def test_a_field_that_stands_twice_on_a_line_is_undefined() -> None:
    scan = Scan(KEY + b"1.5, " + KEY + b"2.5,\n" + KEY + b"3.5,\n")
    on = scan.field(KEY).on(np.array([0, 1]))
    assert np.array_equal(on, [np.nan, 3.5], equal_nan=True)


def test_lines_are_told_apart_and_counted() -> None:
    scan = Scan(b"first\n\n" + KEY + b"1.5,\nlast\r\n")
    assert len(scan) == 4
    assert [scan.line(i) for i in range(4)] == ["first", "", KEY.decode() + "1.5,", "last"]
    assert list(scan.field(KEY).line) == [2]


@given(st.datetimes(min_value=datetime(1971, 1, 1), max_value=datetime(2100, 1, 1)))
def test_a_date_is_that_of_the_calendar(moment: datetime) -> None:
    text = moment.strftime("%Y-%m-%d %H:%M:%S")
    scan = Scan(f"[{text} TP0] Decode\n".encode())
    start = scan.find(b"[") + 1
    expected = moment.replace(tzinfo=UTC, microsecond=0).timestamp()
    assert list(scan.dates(start)) == [expected]


@pytest.mark.parametrize(
    "text",
    ["2025-02-30 10:00:00", "2025-13-01 10:00:00", "2025-10-22 25:00:00", "2025/10/22 1:0:0"],
)
def test_a_day_that_does_not_exist_is_undefined(text: str) -> None:
    scan = Scan(f"[{text} TP0] Decode batch. and more\n".encode())
    assert math.isnan(scan.dates(scan.find(b"[") + 1)[0])


def test_labels_are_codes_for_texts() -> None:
    scan = Scan(b"[TP0]\n[DP10 TP10 EP10 PP10]\n[]\n[TP0]\n")
    starts, stops = scan.find(b"[") + 1, scan.find(b"]")
    codes, texts = scan.labels(starts, stops)
    assert [texts[code] for code in codes] == ["TP0", "DP10 TP10 EP10 PP10", "", "TP0"]


@given(st.binary(max_size=400))
def test_any_bytes_can_be_scanned(block: bytes) -> None:
    scan = Scan(block + b"\n")
    assert len(scan) == (block + b"\n").count(b"\n")
    found = scan.field(KEY)
    assert len(found.line) == len(found.value)
