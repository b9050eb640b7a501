"""The joint fit of a sweep and a two-point decode finds the fee that the sweep paid."""

import numpy as np
import pytest
import statsmodels.api as sm
from hypothesis import given
from hypothesis import strategies as st

from analysis.model.overhead import Decodes, fit_overhead
from analysis.model.regression import fit_polynomial
from analysis.model.step_time import StepTime, decode_seconds, throughput

PROMPTS, POINTS = (13, 1663, 3333, 5553), (64.0, 1024.0, 3072.0, 5120.0)
COMMITS = (4.75, 7.17, 7.90, 7.85)
OUTPUT = 600


def measured(law: StepTime, overhead_s: float) -> tuple[Decodes, Decodes]:
    """What such a server would have shown, on the mean-context axis."""
    rates = [
        OUTPUT / (overhead_s + decode_seconds(law, commit, prompt, OUTPUT))
        for prompt, commit in zip(PROMPTS, COMMITS, strict=True)
    ]
    points = [throughput(c, law.step_ms(at)) for at, c in zip(POINTS, COMMITS, strict=True)]
    sweep = Decodes([p + OUTPUT / 2 for p in PROMPTS], COMMITS, rates)
    return sweep, Decodes(POINTS, COMMITS, points)


@given(
    st.floats(1, 100), st.floats(1e-3, 0.1), st.floats(0, 5), st.sampled_from(["none", "relative"])
)
def test_a_known_line_and_overhead_are_recovered(a, b, overhead_s, weights) -> None:
    sweep, points = measured(StepTime(a, b), overhead_s)
    found = fit_overhead(sweep, OUTPUT, points, weights)
    assert found.intercept_ms == pytest.approx(a, rel=1e-6, abs=1e-6)
    assert found.slope_ms_per_token == pytest.approx(b, rel=1e-6)
    assert found.overhead_s == pytest.approx(overhead_s, rel=1e-6, abs=1e-6)
    assert found.rms == pytest.approx(0, abs=1e-6)


def test_an_overhead_that_is_there_shows_as_scatter_if_it_is_left_out() -> None:
    found = fit_overhead(*_with_output(*measured(StepTime(14, 0.019), 1.7)))
    assert found.rms < 1e-6
    assert found.rms_without_overhead > 3


def _with_output(sweep: Decodes, points: Decodes) -> tuple[Decodes, int, Decodes]:
    return sweep, OUTPUT, points


def test_without_overhead_the_scatter_is_that_of_one_line_through_all_points() -> None:
    sweep, points = measured(StepTime(14, 0.019), 1.7)
    contexts = [*sweep.context_tokens, *points.context_tokens]
    rates = [*sweep.tok_per_s, *points.tok_per_s]
    steps = [1000 * c / t for c, t in zip(2 * COMMITS, rates, strict=True)]
    line = fit_polynomial(contexts, steps)
    found = fit_overhead(sweep, OUTPUT, points)
    assert found.rms_without_overhead == pytest.approx(line.residual_variance**0.5)


@pytest.mark.parametrize("weights", ["none", "relative"])
def test_noisy_data_give_the_coefficients_and_scatter_of_statsmodels(weights) -> None:
    sweep = Decodes(PROMPTS, COMMITS, (139.6, 114.2, 77.9, 54.5))
    points = Decodes(POINTS, (4.8, 6.2, 7.8, 7.9), (255, 216, 113, 67))
    commit = np.array([*sweep.commit_length, *points.commit_length])
    step = 1000 * commit / np.array([*sweep.tok_per_s, *points.tok_per_s])
    fee = np.where(np.arange(8) < 4, 1000 * commit / OUTPUT, 0)
    design = np.column_stack([np.ones(8), [*PROMPTS, *POINTS], fee])
    each = 1 / step**2 if weights == "relative" else 1.0
    other = sm.WLS(step, design, weights=each).fit()
    found = fit_overhead(sweep, OUTPUT, points, weights)
    estimates = (found.intercept_ms, found.slope_ms_per_token, found.overhead_s)
    assert estimates == pytest.approx(other.params, rel=1e-8)
    assert found.rms == pytest.approx(other.scale**0.5, rel=1e-8)
