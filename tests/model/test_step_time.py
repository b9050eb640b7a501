"""``tok/s = commit / step`` and ``step = a + b * context``, and their inverses."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from analysis.model.step_time import (
    StepTime,
    commit_for,
    decode_seconds,
    implied_step_ms,
    mean_context,
    throughput,
)

commits = st.floats(1, 16)
rates = st.floats(0.1, 1000)
steps = st.floats(0.5, 5000)
laws = st.builds(StepTime, st.floats(0.5, 200), st.floats(1e-5, 0.1))


def test_the_accounts_own_rounding_is_29_tokens_per_second() -> None:
    assert throughput(2.9, 100.0) == pytest.approx(29.0)


# Commit length and tok/s of the first case's sweep; the steps that its claim S15 rounds.
@pytest.mark.parametrize(
    ("commit", "tok_per_s", "step"),
    [
        (4.75, 139.6, "34.03"),
        (7.17, 114.2, "62.78"),
        (7.90, 77.9, "101.41"),
        (7.85, 54.5, "144.04"),
    ],
)
def test_step_times_of_the_sweep_are_derived(commit, tok_per_s, step: str) -> None:
    assert f"{implied_step_ms(commit, tok_per_s):.2f}" == step


@given(commits, rates, steps)
def test_throughput_commit_and_implied_step_undo_one_another(commit, tok_per_s, step) -> None:
    assert throughput(commit, implied_step_ms(commit, tok_per_s)) == pytest.approx(tok_per_s)
    assert implied_step_ms(commit, throughput(commit, step)) == pytest.approx(step)
    assert throughput(commit_for(tok_per_s, step), step) == pytest.approx(tok_per_s)
    assert commit_for(throughput(commit, step), step) == pytest.approx(commit)


@given(laws, st.floats(0, 300_000))
def test_context_for_undoes_step_ms(law: StepTime, context: float) -> None:
    tolerance = 1e-9 * law.intercept_ms / law.slope_ms_per_token
    found = law.context_for(law.step_ms(context))
    assert found == pytest.approx(context, rel=1e-9, abs=tolerance)


def test_a_step_below_the_intercept_has_a_negative_context() -> None:
    assert StepTime(30.0, 0.02).context_for(20.0) == pytest.approx(-500)


@pytest.mark.parametrize("slope", [0.0, -0.001])
def test_a_step_that_does_not_grow_has_no_context_for_it(slope: float) -> None:
    with pytest.raises(ValueError, match="does not grow"):
        StepTime(30.0, slope).context_for(40.0)


def test_600_tokens_after_a_prompt_of_13_are_decoded_at_313() -> None:
    assert mean_context(13, 600) == 313


@given(laws, commits, st.integers(0, 100_000), st.integers(1, 4000))
def test_growing_context_is_the_sum_of_its_steps(law, commit, prompt, output) -> None:
    """Token i is decoded at context p + i + 1/2, at 1/commit steps each: summed one by one."""
    one_by_one = sum(law.step_ms(prompt + i + 0.5) for i in range(output)) / commit / 1000
    assert decode_seconds(law, commit, prompt, output) == pytest.approx(one_by_one, rel=1e-9)


@given(laws, commits, st.integers(0, 100_000), st.integers(1, 4000))
def test_growing_context_equals_a_fixed_one_at_its_mean(law, commit, prompt, output) -> None:
    fixed = throughput(commit, law.step_ms(mean_context(prompt, output)))
    growing = output / decode_seconds(law, commit, prompt, output)
    assert growing == pytest.approx(fixed)
