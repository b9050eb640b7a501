"""Order of sending and drift."""

import random

import pytest
from scipy import stats

from analysis.model.order import drift, rank_correlation


def test_rank_correlation_is_that_of_scipy_ties_included() -> None:
    x = [3, 1, 4, 1, 5, 9, 2, 6, 5, 3]
    y = [2, 7, 1, 8, 2, 8, 1, 8, 2, 8]
    expected = stats.spearmanr(x, y)
    found = rank_correlation(x, y)
    assert found is not None
    assert found.rho == pytest.approx(expected.statistic)
    assert found.p == pytest.approx(expected.pvalue)
    assert found.n == 10


def test_a_rising_order_is_told_for_certain() -> None:
    found = rank_correlation(range(6), [100, 200, 300, 400, 500, 600])
    assert found is not None
    assert (found.rho, found.p) == (pytest.approx(1), pytest.approx(0, abs=1e-6))


@pytest.mark.parametrize(("x", "y"), [([1, 2, 3], [1, 2, 3]), ([1, 2, 3, 4], [5, 5, 5, 5])])
def test_too_few_pairs_and_a_constant_have_no_rank_correlation(x, y) -> None:
    assert rank_correlation(x, y) is None


def test_a_drift_is_found_and_taken_out_of_the_slope() -> None:
    draw = random.Random(3)
    contexts = [500.0, 1000.0, 2000.0, 4000.0] * 6
    draw.shuffle(contexts)
    last = len(contexts) - 1
    steps = [20 + 0.01 * c + 3 * i / last + draw.gauss(0, 0.05) for i, c in enumerate(contexts)]
    found = drift(contexts, steps)
    mean = sum(steps) / len(steps)
    assert found is not None
    assert found.ci95 is not None
    assert found.ci95[0] < 100 * 3 / mean < found.ci95[1]
    assert found.ci95[1] - found.ci95[0] < 1
    assert found.slope == pytest.approx(0.01, rel=0.01)


def test_a_sorted_sweep_cannot_be_told_from_drift() -> None:
    contexts = [100.0 * i for i in range(1, 9)]
    assert drift(contexts, [20 + 0.01 * c for c in contexts]) is None


def test_an_exact_line_has_no_drift_and_no_interval() -> None:
    contexts = [100.0, 400.0, 200.0, 300.0, 100.0, 250.0]
    found = drift(contexts, [20 + 0.01 * c for c in contexts])
    assert found is not None
    assert found.pct == pytest.approx(0, abs=1e-9)
    assert found.ci95 is None
