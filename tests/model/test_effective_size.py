"""How many independent values correlated ones are worth."""

from math import sqrt

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from analysis.model.effective_size import CORRELATION_SHOWS, effective_size, independent_values


def autoregression(rng: np.random.Generator, phi: float, n: int, rows: int) -> np.ndarray:
    """Rows of a stationary first-order autoregression of variance 1."""
    values = np.empty((rows, n))
    values[:, 0] = rng.standard_normal(rows)
    for i in range(1, n):
        values[:, i] = phi * values[:, i - 1] + sqrt(1 - phi**2) * rng.standard_normal(rows)
    return values


@pytest.mark.parametrize("phi", [0.3, 0.6, 0.9])
def test_long_rows_are_worth_what_theory_says(phi: float) -> None:
    row = autoregression(np.random.default_rng(1), phi, 200_000, 1)[0]
    assert effective_size(row) == pytest.approx(200_000 * (1 - phi) / (1 + phi), rel=0.03)


@pytest.mark.parametrize("phi", [0.0, 0.5, 0.8])
def test_it_predicts_the_scatter_of_the_mean(phi: float) -> None:
    rows = autoregression(np.random.default_rng(2), phi, 200, 2000)
    size = 1 / float(np.var(rows.mean(axis=1)))
    assert float(np.median([effective_size(row) for row in rows])) == pytest.approx(size, rel=0.15)


@given(st.lists(st.floats(-1e6, 1e6), min_size=1, max_size=50))
def test_it_lies_between_one_and_the_number_of_values(values: list[float]) -> None:
    assert 1 <= effective_size(values) <= len(values)


@given(st.lists(st.integers(-1000, 1000), min_size=3, max_size=40), st.floats(0.1, 10))
def test_units_and_a_level_do_not_matter(values: list[int], unit: float) -> None:
    given_values = np.array(values, dtype=float)
    assert effective_size(unit * given_values + 7) == pytest.approx(
        effective_size(given_values), rel=1e-6
    )


def test_values_that_alternate_count_as_themselves() -> None:
    assert effective_size([1.0, -1.0] * 20) == 40


def test_values_that_rise_steadily_count_as_few() -> None:
    assert effective_size(np.arange(100.0)) < 2


@pytest.mark.parametrize(("values", "size"), [([], 0), ([4.0], 1), ([4.0, 5.0], 2), ([3.0] * 9, 9)])
def test_what_has_no_correlation_to_speak_of_counts_as_it_is(values, size) -> None:
    assert effective_size(values) == size


def test_undefined_values_are_left_out() -> None:
    assert effective_size([1.0, np.nan, -1.0, 1.0, np.nan, -1.0]) == 4


def test_fewer_than_eight_values_are_taken_as_independent() -> None:
    rising = np.arange(8.0)
    assert CORRELATION_SHOWS == 8
    assert independent_values(rising) == effective_size(rising) < 2
    assert independent_values(rising[:7]) == 7
    assert independent_values([*rising[:7], np.nan]) == 7
    assert independent_values([]) == 0
