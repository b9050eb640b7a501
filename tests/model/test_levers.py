"""What a change is worth at a context."""

from math import inf

import pytest
from hypothesis import given
from hypothesis import strategies as st

from analysis.model.levers import (
    context_share,
    crossover_context,
    gain_of_slope,
    slope_for_gain,
)
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
