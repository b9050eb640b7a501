"""The context that a slope over output lengths speaks for."""

import pytest

from analysis.model.regression import fit_polynomial
from analysis.model.two_point import context_of_slope, two_point


def test_two_lengths_speak_for_the_context_of_the_two_point_decode() -> None:
    expected = two_point(1000, (64, 256), (1.0, 2.0)).context_tokens
    assert context_of_slope(1000, [64, 64, 256]) == pytest.approx(expected)


@pytest.mark.parametrize("outputs", [[64, 128, 192], [64, 64, 128, 512], [10, 20, 40, 80, 1000]])
def test_on_a_step_that_is_linear_in_context_the_slope_is_the_step_there(outputs) -> None:
    prompt, commit, a, b = 900, 4, 20.0, 0.01
    times = [n / commit * (a + b * (prompt + n / 2)) for n in outputs]
    slope = fit_polynomial(outputs, times).coefficients[1]
    assert commit * slope == pytest.approx(a + b * context_of_slope(prompt, outputs))


def test_one_length_speaks_for_none() -> None:
    with pytest.raises(ValueError, match="1 distinct output lengths, not at least 2"):
        context_of_slope(100, [64, 64])
