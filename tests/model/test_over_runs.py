"""A figure over runs: the geometric mean, and t with the run as the unit."""

from math import exp, log, sqrt

import pytest
from scipy import stats

from analysis.model.over_runs import over_runs


def test_the_interval_is_that_of_a_one_sample_t_on_the_logarithm() -> None:
    values = [0.44, 0.46, 0.47]
    found = over_runs(values)
    low, high = stats.ttest_1samp([log(v) for v in values], 0.0).confidence_interval(0.95)
    assert found.interval95 == pytest.approx((exp(low), exp(high)))


def test_a_ratio_and_its_inverse_are_equally_uncertain() -> None:
    found, turned = over_runs([2.0, 3.0]), over_runs([1 / 2.0, 1 / 3.0])
    assert found.value == pytest.approx(sqrt(6))
    assert turned.value == pytest.approx(1 / found.value)
    assert found.interval95 is not None
    assert turned.interval95 is not None
    assert turned.interval95[0] == pytest.approx(1 / found.interval95[1])


def test_one_run_has_no_interval() -> None:
    found = over_runs([0.5])
    assert (found.n, found.interval95) == (1, None)
    assert found.value == pytest.approx(0.5)


@pytest.mark.parametrize("values", [[], [0.5, 0.0], [-1.0]])
def test_no_run_or_a_figure_that_is_not_positive_is_refused(values) -> None:
    with pytest.raises(ValueError, match="above zero"):
        over_runs(values)
