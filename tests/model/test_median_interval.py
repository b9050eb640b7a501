"""The median of a stream, and an interval that covers it as often as it says."""

import numpy as np
import pytest
from scipy import stats

from analysis.model import median_interval
from analysis.model.median_interval import BY_RANKS, BY_T, MedianStream, median_ranks


@pytest.mark.parametrize("n", [6, 7, 10, 23, 100, 1001, 250_000])
def test_ranks_cover_as_the_binomial_says(n: int) -> None:
    """The median lies between the two with at least 95 %; one rank further in it does not."""
    ranks = median_ranks(n)
    assert ranks is not None
    low, high = ranks
    assert high == n + 1 - low
    binomial = stats.binom(n, 0.5)
    assert 1 - 2 * binomial.cdf(low - 1) >= 0.95
    assert 1 - 2 * binomial.cdf(low) < 0.95


@pytest.mark.parametrize(
    ("n", "ranks"), [(6, (1, 6)), (10, (2, 9)), (20, (6, 15)), (100, (40, 61))]
)
def test_ranks_are_those_of_the_tables(n: int, ranks: tuple[int, int]) -> None:
    """Conover, *Practical Nonparametric Statistics* (3rd ed., 1999), Table A3."""
    assert median_ranks(n) == ranks


def test_fewer_than_six_have_no_ranks() -> None:
    assert [median_ranks(n) for n in range(6)] == [None] * 6


def test_batches_are_one_stream() -> None:
    values = np.random.default_rng(1).lognormal(3, 0.4, 999)
    whole, parts = MedianStream(), MedianStream()
    whole.add(values)
    for part in np.array_split(values, 13):
        parts.add(part)
    assert parts.median() == whole.median() == pytest.approx(np.median(values))
    assert parts.interval() == whole.interval()


def test_a_long_stream_keeps_its_median_to_a_ten_thousandth(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(median_interval, "EXACT", 1000)
    values = np.random.default_rng(2).lognormal(3, 0.4, 20_000)
    stream = MedianStream()
    for part in np.array_split(values, 40):
        stream.add(part)
    assert stream.median() == pytest.approx(np.median(values), rel=1.5e-4)
    interval = stream.interval()
    assert interval is not None
    low, high = median_ranks(20_000) or (0, 0)
    ordered = np.sort(values)
    assert interval.low == pytest.approx(ordered[low - 1], rel=0.01)
    assert interval.high == pytest.approx(ordered[high - 1], rel=0.01)


@pytest.mark.parametrize(("n", "lag"), [(5, 0.0), (10, 0.0), (40, 0.0), (200, 0.5)])
def test_the_interval_covers_the_median(n: int, lag: float) -> None:
    """Log-normal values whose logarithms are a first-order autoregression."""
    rng = np.random.default_rng(3)
    covered = missing = 0
    for _ in range(600):
        noise = rng.normal(size=n) * np.sqrt(1 - lag**2)
        logs = np.zeros(n)
        logs[0] = rng.normal()
        for i in range(1, n):
            logs[i] = lag * logs[i - 1] + noise[i]
        stream = MedianStream()
        stream.add(np.exp(3 + 0.2 * logs))
        interval = stream.interval()
        missing += interval is None
        covered += interval is not None and interval.low <= np.exp(3) <= interval.high
    assert missing <= 600 / 8  # ten values can look correlated by chance
    assert 0.92 <= covered / (600 - missing) <= 1.0


def test_the_interval_says_of_which_kind_it_is() -> None:
    few, many = MedianStream(), MedianStream()
    few.add([10.86, 10.87, 10.88, 10.90])
    many.add(np.random.default_rng(4).normal(10, 1, 50))
    kinds = [stream.interval() for stream in (few, many)]
    assert [kind.kind for kind in kinds if kind] == [BY_T, BY_RANKS]


@pytest.mark.parametrize("values", [[], [5.0], [float("nan")]])
def test_what_has_no_spread_has_no_interval(values: list[float]) -> None:
    stream = MedianStream()
    stream.add(values)
    assert stream.interval() is None


def test_undefined_values_are_left_out() -> None:
    stream = MedianStream()
    stream.add([1.0, float("nan"), 3.0, 2.0])
    assert (stream.n, stream.median()) == (3, 2.0)
