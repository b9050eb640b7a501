"""What a change is worth at a context."""

from math import inf

import pytest
from hypothesis import given
from hypothesis import strategies as st

from analysis.model.levers import (
    Change,
    context_share,
    crossover,
    crossover_context,
    crossover_with_step,
    gain_of_slope,
    slope_for_gain,
)
from analysis.model.regression import fit_polynomial
from analysis.model.step_time import StepTime, throughput

laws = st.builds(StepTime, st.floats(1, 200), st.floats(1e-4, 0.1))
contexts = st.floats(0, 200_000)


@given(laws, contexts, st.floats(0, 0.1))
def test_a_gain_is_a_ratio_of_throughputs(law, context, slope) -> None:
    changed = StepTime(law.intercept_ms, slope)
    ratio = throughput(3, changed.step_ms(context)) / throughput(3, law.step_ms(context))
    assert gain_of_slope(law, slope, context) == pytest.approx(ratio)


@given(laws, st.floats(1.01, 10))
def test_at_the_crossover_drafter_and_vanished_slope_are_worth_the_same(law, gain) -> None:
    at = crossover_context(law, gain)
    assert gain_of_slope(law, 0.0, at) == pytest.approx(gain)
    assert gain_of_slope(law, 0.0, at / 2) < gain < gain_of_slope(law, 0.0, at * 2)


@pytest.mark.parametrize("slope", [0.0, -0.01])
def test_a_step_that_does_not_grow_never_makes_the_kernel_worth_the_drafter(slope) -> None:
    assert crossover_context(StepTime(30.0, slope), 2.0) == inf


@given(laws, contexts)
def test_the_share_of_context_is_what_a_vanished_slope_would_save(law, context) -> None:
    share = context_share(law, context)
    assert 0 <= share < 1
    assert 1 / (1 - share) == pytest.approx(gain_of_slope(law, 0.0, context), rel=1e-6)


def test_half_of_the_step_grows_with_context_where_a_2x_drafter_equals_the_kernel() -> None:
    law = StepTime(32.0, 0.02)
    assert context_share(law, crossover_context(law, 2.0)) == pytest.approx(0.5)


@given(laws, st.floats(100, 200_000), st.floats(0, 0.1))
def test_the_slope_for_a_gain_undoes_the_gain_of_a_slope(law, context, slope) -> None:
    gain = gain_of_slope(law, slope, context)
    assert slope_for_gain(law, gain, context) == pytest.approx(slope, rel=1e-6, abs=1e-9)


factors = st.builds(Change, st.floats(0.5, 3), st.floats(0.2, 2), st.floats(0, 2))
X = (300.0, 2000.0, 3600.0, 5900.0)


def line_of(intercept: float, slope: float, noise: tuple[float, ...] = (1, -1, -1, 1)):
    return fit_polynomial(X, [intercept + slope * x + e for x, e in zip(X, noise, strict=True)])


@given(factors, st.floats(0, 20_000))
def test_a_change_is_worth_its_throughput_over_that_before(change, context) -> None:
    line = line_of(30, 0.02)
    law = StepTime(*line.coefficients)
    after = StepTime(change.intercept * law.intercept_ms, change.slope * law.slope_ms_per_token)
    ratio = throughput(3 * change.commit, after.step_ms(context)) / throughput(
        3, law.step_ms(context)
    )
    assert change.gain(line, context).ratio == pytest.approx(ratio)


@given(factors, factors)
def test_where_two_changes_cross_they_are_worth_the_same(one, other) -> None:
    line = line_of(30, 0.02)
    found = crossover(line, one, other)
    if found is not None and found.ratio < 1e6:
        at = found.ratio
        assert one.gain(line, at).ratio == pytest.approx(other.gain(line, at).ratio, rel=1e-6)
    if found is None:  # then one is ahead at every context
        ahead = [one.gain(line, c).ratio >= other.gain(line, c).ratio - 1e-9 for c in (0, 10, 1e7)]
        behind = [one.gain(line, c).ratio <= other.gain(line, c).ratio + 1e-9 for c in (0, 10, 1e7)]
        assert all(ahead) or all(behind)


@given(factors)
def test_where_a_change_meets_a_plain_step_both_give_the_same_throughput(change) -> None:
    line = line_of(30, 0.02)
    found = crossover_with_step(line, change, 3.0, 15.0)
    if found is not None:
        changed = change.gain(line, found.ratio).ratio * 3 / line.at(found.ratio)
        assert changed == pytest.approx(1 / 15.0, rel=1e-6)


def test_a_line_that_cancels_leaves_no_uncertainty() -> None:
    """Everything twice as fast: the same line above and below."""
    low, high = Change(intercept=0.5, slope=0.5).gain(line_of(30, 0.02), 3000).interval95 or (0, 0)
    assert (low, high) == pytest.approx((2.0, 2.0), rel=1e-6)


def test_a_step_that_would_not_be_positive_is_refused() -> None:
    line = line_of(30, -0.02)
    with pytest.raises(ValueError, match="no positive step at 3000 tokens"):
        Change(2.0).gain(line, 3000)
