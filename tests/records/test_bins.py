"""Bins of windows keep the counts, and the means of the windows that count."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from analysis.records.bins import Binner, binned
from analysis.records.windows import Flag, Windows, windows


def some(n: int, first: int = 1, file: str = "a.log", flags: list[int] | None = None) -> Windows:
    steps = 10.0 + np.arange(first, first + n) % 7
    return windows(
        "sglang", file, "date", ["TP0"],
        line=list(range(first, first + n)), step_ms=steps, commit=np.full(n, 2.0),
        running=np.ones(n), tok_per_s=2000 / steps, flags=flags,
    )  # fmt: skip


def test_a_bin_is_the_mean_of_the_windows_without_a_flag() -> None:
    three = some(3, flags=[0, int(Flag.IDLE), 0])
    row = binned(three, 3)
    assert (list(row.count), list(row.used), list(row.flags)) == ([3], [2], [int(Flag.IDLE)])
    assert row.step_ms[0] == (three.step_ms[0] + three.step_ms[2]) / 2
    assert np.isnan(row.context_tokens[0])


def test_a_bin_without_one_is_the_mean_of_all() -> None:
    three = some(3, flags=[int(Flag.IDLE)] * 3)
    assert binned(three, 3).step_ms[0] == pytest.approx(three.step_ms.mean())
    assert not binned(three, 3).unflagged.any()


@given(st.lists(st.integers(1, 40), min_size=1, max_size=30), st.integers(4, 50))
def test_no_window_is_lost(sizes: list[int], most: int) -> None:
    binner = Binner(most)
    first = 1
    for size in sizes:
        binner.add(some(size, first))
        first += size
    (rows,), are_bins = binner.result()
    assert rows.count.sum() == rows.used.sum() == sum(sizes)
    assert len(rows) <= most + 1
    assert are_bins == (len(rows) < sum(sizes))
    assert np.average(rows.step_ms, weights=rows.count) == pytest.approx(
        np.mean(10.0 + np.arange(1, first) % 7)
    )


def test_few_windows_stay_themselves() -> None:
    binner = Binner(10)
    binner.add(some(4))
    binner.add(some(4, 5))
    (rows,), are_bins = binner.result()
    assert (list(rows.line), are_bins) == ([1, 2, 3, 4, 5, 6, 7, 8], False)


def test_files_are_kept_apart() -> None:
    binner = Binner(8)
    for first in range(1, 60, 6):
        binner.add(some(6, first))
        binner.add(some(6, first, "b.log"))
    rows, _ = binner.result()
    assert [part.file for part in rows] == ["a.log", "b.log"]
    assert [part.count.sum() for part in rows] == [60, 60]


def test_bins_are_of_equal_count() -> None:
    binner = Binner(16)
    for first in range(1, 1025, 8):
        binner.add(some(8, first))
    (rows,), _ = binner.result()
    assert set(rows.count.tolist()) == {1024 // len(rows)}
