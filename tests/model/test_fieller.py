"""Fieller's interval: against its own definition, published arithmetic, and its limits."""

from math import inf, sqrt

import pytest
from hypothesis import given
from hypothesis import strategies as st

from analysis.model.fieller import Estimates

estimates = st.builds(
    lambda top, bottom, s, t, correlation: Estimates(
        top, bottom, (top * s) ** 2, (bottom * t) ** 2, correlation * top * s * bottom * t, 8.0
    ),
    st.floats(0.1, 1e3),
    st.floats(0.1, 1e3),
    st.floats(0.001, 0.2),
    st.floats(0.001, 0.2),
    st.floats(-0.9, 0.9),
)
T_8 = 2.3060041350333704  # Student's t, 8 degrees of freedom, 97.5 %: any printed table


@given(estimates)
def test_at_each_end_the_difference_is_t_standard_errors_from_zero(found: Estimates) -> None:
    assert found.interval95 is not None
    for end in found.interval95:
        variance = found.top_variance - 2 * end * found.covariance + end**2 * found.bottom_variance
        z = abs(found.top - end * found.bottom) / sqrt(variance)
        assert z == pytest.approx(T_8, rel=1e-6)


@given(estimates)
def test_the_interval_of_the_inverse_is_the_inverse_interval(found: Estimates) -> None:
    turned = Estimates(
        found.bottom,
        found.top,
        found.bottom_variance,
        found.top_variance,
        found.covariance,
        found.dof,
    )
    assert found.interval95 is not None
    assert turned.interval95 is not None
    low, high = found.interval95
    if low > 0:
        assert turned.interval95 == pytest.approx((1 / high, 1 / low), rel=1e-6)


def test_the_step_of_the_account_in_tok_per_s() -> None:
    """2.9 +- 0.15 tokens over 100 +- 4 ms, by hand: Fieller 25.4 to 32.9, delta 25.3 to 32.7."""
    found = Estimates(2.9, 0.1, 0.15**2, 0.004**2)
    assert found.ratio == pytest.approx(29.0)
    assert found.interval95 == pytest.approx((25.45, 32.91), abs=0.01)
    assert found.delta_interval95 == pytest.approx((25.28, 32.72), abs=0.01)


def test_with_an_exact_denominator_both_are_the_interval_of_the_numerator() -> None:
    found = Estimates(10.0, 2.0, 4.0, 0.0, 0.0, 8.0)
    around = (5 - T_8, 5 + T_8)
    assert found.interval95 == pytest.approx(around)
    assert found.delta_interval95 == pytest.approx(around)


def test_no_interval_where_the_denominator_may_be_zero() -> None:
    found = Estimates(10.0, 2.0, 0.1, 1.0, 0.0, 8.0)  # 2 / 1 lies within t = 2.3 of zero
    assert found.interval95 is None
    assert found.delta_interval95 is not None  # the trap: it looks as good as any


@pytest.mark.parametrize("dof", [0.0, float("nan")])
def test_no_interval_without_a_degree_of_freedom(dof: float) -> None:
    found = Estimates(10.0, 2.0, 1.0, 0.01, 0.0, dof)
    assert found.interval95 is None
    assert found.delta_interval95 is None


def test_at_many_degrees_of_freedom_t_is_normal() -> None:
    exact = Estimates(1.0, 1.0, 1.0, 0.0, 0.0, inf)
    assert exact.interval95 == pytest.approx((1 - 1.959964, 1 + 1.959964), abs=1e-6)
