"""What speculation must commit to pay, and what it can commit."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from analysis.model.speculation import block_limit, break_even_commit, expected_commit
from analysis.model.step_time import throughput

drafts = st.integers(1, 15)


@given(st.floats(1, 500), st.floats(1, 500))
def test_at_break_even_both_ways_give_the_same_throughput(speculative_ms, plain_ms) -> None:
    commit = break_even_commit(speculative_ms, plain_ms)
    assert throughput(commit, speculative_ms) == pytest.approx(throughput(1, plain_ms))


@given(drafts)
def test_no_accepted_draft_leaves_the_bonus_token_and_all_leave_the_block(k: int) -> None:
    assert expected_commit(0, k) == 1
    assert expected_commit(1, k) == k + 1 == block_limit(k)


@given(drafts, st.floats(0, 1), st.floats(0, 1))
def test_a_higher_acceptance_rate_commits_no_less(k: int, one: float, other: float) -> None:
    low, high = sorted((one, other))
    assert expected_commit(low, k) <= expected_commit(high, k) + 1e-9


@given(drafts, st.floats(0, 1))
def test_the_formula_is_the_sum_of_the_chances_of_each_draft(k: int, alpha: float) -> None:
    one_by_one = sum(alpha**i for i in range(k + 1))
    assert expected_commit(alpha, k) == pytest.approx(one_by_one, rel=1e-6)


@given(drafts, st.floats(0, 1))
def test_one_more_draft_never_costs_commit_length(k: int, alpha: float) -> None:
    assert expected_commit(alpha, k + 1) >= expected_commit(alpha, k) - 1e-9


@pytest.mark.parametrize("alpha", [0.3, 0.72, 0.95])
def test_simulated_drafts_commit_what_is_expected(alpha: float) -> None:
    rng = np.random.default_rng(11)
    accepted = np.cumprod(rng.random((200_000, 7)) < alpha, axis=1).sum(axis=1)
    assert float(accepted.mean()) + 1 == pytest.approx(expected_commit(alpha, 7), rel=0.01)


@pytest.mark.parametrize("alpha", [-0.1, 1.0001, float("nan")])
def test_a_rate_outside_0_to_1_is_refused(alpha: float) -> None:
    with pytest.raises(ValueError, match="not between 0 and 1"):
        expected_commit(alpha, 7)
