"""Two-point decode: what the difference of two requests keeps, and what it drops."""

from math import sqrt

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from analysis.model.step_time import StepTime, decode_seconds
from analysis.model.two_point import many_point, standard_error_s, two_point

lengths = st.tuples(st.integers(1, 2000), st.integers(1, 2000)).filter(lambda n: n[0] < n[1])


@given(lengths, st.floats(0, 20), st.floats(0, 5), st.floats(0.1, 200), st.integers(0, 10_000))
def test_prefill_queue_and_network_cancel(outputs, prefill, network, token_ms, prompt) -> None:
    once = prefill + network
    seconds = tuple(once + n * token_ms / 1000 for n in outputs)
    assume(seconds[1] - seconds[0] > 1e-3)
    found = two_point(prompt, outputs, seconds)
    assert found.token_ms == pytest.approx(token_ms, rel=1e-6)
    assert found.tok_per_s == pytest.approx(1000 / token_ms, rel=1e-6)


@given(lengths, st.floats(1, 100), st.floats(1e-3, 0.1), st.floats(1, 10), st.integers(0, 10_000))
def test_the_estimate_speaks_for_the_middle_of_the_two_lengths(
    outputs, intercept, slope, commit, prompt
) -> None:
    law = StepTime(intercept, slope)
    seconds = tuple(decode_seconds(law, commit, prompt, n) for n in outputs)
    found = two_point(prompt, outputs, seconds)
    assert found.context_tokens == prompt + sum(outputs) / 2
    per_token = law.step_ms(found.context_tokens) / commit
    assert found.token_ms == pytest.approx(per_token, rel=1e-6)


def test_the_standard_error_is_the_scatter_of_simulated_pairs() -> None:
    rng = np.random.default_rng(3)
    outputs, sd, repeats = (64, 320), 0.05, 4
    totals = np.array([2 + 0.01 * n for n in outputs])
    means = totals + sd * rng.standard_normal((4000, repeats, 2)).mean(axis=1)
    found = [two_point(500, outputs, tuple(pair)).token_ms for pair in means]
    error = two_point(500, outputs, tuple(totals), sd, repeats).standard_error_ms
    assert error == pytest.approx(1000 * sd * sqrt(2 / repeats) / 256)
    assert float(np.std(found)) == pytest.approx(error, rel=0.05)


def test_four_repeats_halve_the_standard_error_and_a_longer_second_output_divides_it() -> None:
    assert standard_error_s(0.1, 400, 4) == pytest.approx(standard_error_s(0.1, 400) / 2)
    assert standard_error_s(0.1, 800) == pytest.approx(standard_error_s(0.1, 400) / 2)


def test_without_a_known_scatter_there_is_no_standard_error() -> None:
    assert two_point(0, (10, 20), (1.0, 2.0)).standard_error_ms is None


@pytest.mark.parametrize(
    ("outputs", "seconds", "says"),
    [
        ((20, 10), (1.0, 2.0), "not rising"),
        ((10, 10), (1.0, 2.0), "not rising"),
        ((0, 10), (1.0, 2.0), "not rising"),
        ((10, 20), (2.0, 2.0), "noise hides"),
        ((10, 20), (2.0, 1.0), "noise hides"),
    ],
)
def test_what_cannot_be_a_two_point_decode_is_refused(outputs, seconds, says: str) -> None:
    with pytest.raises(ValueError, match=says):
        two_point(100, outputs, seconds)


def test_of_two_lengths_the_slope_is_the_two_point_estimate_of_the_means() -> None:
    outputs = (64, 64, 192, 192)
    seconds = (0.9, 1.1, 2.95, 3.05)
    two = two_point(100, (64, 192), (1.0, 3.0))
    line = many_point(100, outputs, seconds)
    assert (line.token_ms, line.context_tokens) == pytest.approx((two.token_ms, 228))
    # Pooled variance of one request's time: (0.02 + 0.005) / 2 of its two pairs.
    assert line.standard_error_ms == pytest.approx(
        1000 * standard_error_s(sqrt((0.02 + 0.005) / 2), 128, repeats=2)
    )


def test_the_standard_error_of_many_is_the_scatter_of_simulated_slopes() -> None:
    rng = np.random.default_rng(5)
    outputs = np.repeat((64, 64, 128, 192, 192), 3)
    found = [
        many_point(500, outputs, 2 + 0.01 * outputs + 0.05 * rng.standard_normal(len(outputs)))
        for _ in range(3000)
    ]
    errors = [f.standard_error_ms for f in found]
    assert float(np.std([f.token_ms for f in found])) == pytest.approx(np.mean(errors), rel=0.05)


def test_requests_without_a_spread_of_their_own_have_no_standard_error() -> None:
    assert many_point(100, (64, 192), (1.0, 3.0)).standard_error_ms is None


def test_longer_requests_that_did_not_take_longer_are_no_estimate() -> None:
    with pytest.raises(ValueError, match="noise hides the decode"):
        many_point(100, (64, 128, 192), (3.0, 2.0, 1.0))
    with pytest.raises(ValueError, match="1 distinct output length"):
        many_point(100, (64, 64), (3.0, 2.0))
