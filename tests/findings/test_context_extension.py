"""A change of the context limit: served, fitting, usable; numbers of the account by hand.

Least squares on the account's four prompt lengths: step = 32.36 ms + 20.15 us a token. At 200,000
tokens that is 4.06 s a step, and 0.71 tok/s at the observed commit of 2.9.
"""

import numpy as np
import pytest

from analysis.findings import context_extension
from analysis.findings.context_extension import Extension, usable, with_neighbour
from analysis.findings.missing import Missing
from analysis.records.case import load_case
from analysis.report.tables import context_extension as tables


@pytest.fixture(scope="module")
def account() -> Extension:
    found = context_extension.find(load_case("kimi-k26-sglang"))
    assert isinstance(found, Extension)
    return found


def test_the_edit_raises_the_limit_to_the_pool_and_no_further(account: Extension) -> None:
    assert account.served == "capped at 101,133"
    assert f"{account.fit.change_factor:.2f}" == "3.09"  # 101,133 over 32,767
    assert "to 101,133 tokens, and not to 200,000" in account.change_says
    assert "within the model's own limit of 262,144" in account.capability_says


@pytest.mark.parametrize("axis", ["prompt", "mean"])
def test_the_line_says_four_seconds_a_step(account: Extension, axis: str) -> None:
    (at,) = [f for f in account.far if (f.axis, f.context_tokens) == (axis, 200_000)]
    assert f"{at.line_ms / 1000:.1f}" == "4.1"
    assert f"{at.line_tok_per_s:.1f}" == "0.7"
    assert at.line_ms < at.curve_ms < at.weighted_ms


@pytest.mark.parametrize("tokens", [30_000, 200_000])
def test_the_three_models_are_those_that_numpy_fits(tokens: int) -> None:
    """Steps are commit over throughput, claims S07 to S14; a weight of 1/step squared."""
    prompts = np.array([13, 1663, 3333, 5553])
    steps = 1000 * np.array([4.75, 7.17, 7.90, 7.85]) / np.array([139.6, 114.2, 77.9, 54.5])
    at = context_extension.find(load_case("kimi-k26-sglang"), tokens).at_wish
    for value, degree, weights in (
        (at.line_ms, 1, None),
        (at.curve_ms, 2, None),
        (at.weighted_ms, 2, 1 / steps),
    ):
        fit = np.polyfit(prompts, steps, degree, w=weights)
        assert value == pytest.approx(np.polyval(fit, tokens), rel=1e-6)


def test_a_wish_below_the_limit_is_served() -> None:
    found = context_extension.find(load_case("kimi-k26-sglang"), 30_000)
    assert found.fit.wished_tokens == 30_000
    assert found.served == "served, up to 29,999 tokens"


def test_the_verdict_keeps_fitting_and_usable_apart(account: Extension) -> None:
    assert "do not fit in the pool as it is, and SGLang serves at most 101,133" in account.verdict
    assert "extrapolated to 36 times its longest measured context" in account.verdict
    assert "4.1 s a step and 0.71 tok/s" in account.verdict


def test_every_context_beyond_the_data_is_marked(account: Extension) -> None:
    table = tables.extrapolated(account)
    low, high = account.measured
    assert (low, high) == (13, 5553)
    own = table[table.kind.isin(["line", "quadratic", "weighted quadratic"])]
    assert (own.measured == own.context_tokens.between(low, high)).all()
    assert set(table[table.kind == "point"].context_tokens) == {1663, 3333, 5553}
    assert {far.beyond > 1 for far in account.far if far.context_tokens > 6000} == {True}


def test_a_wish_within_the_data_is_not_called_an_extrapolation() -> None:
    found = context_extension.find(load_case("kimi-k26-sglang"), 4_000)
    assert found.at_wish.beyond < 1
    assert found.far_is == "Within the measured contexts"
    assert "xtrapolat" not in found.verdict + found.usable_says


def test_a_neighbour_that_was_measured_further_stands_beside(account: Extension) -> None:
    """rtx6kpro's plain table ends at 128k; its line at 200k is a factor of 1.5 beyond."""
    rows = tables.beside(account)
    assert set(rows.measured_to) == {131_072}
    assert rows.beyond.max() == pytest.approx(200_000 / 131_072)
    assert list(rows.line_ms) == sorted(rows.line_ms, reverse=True)  # less cache a GPU, less slope
    assert isinstance(with_neighbour(account), Extension)


def test_a_case_that_wishes_for_nothing_says_so() -> None:
    missing = context_extension.find(load_case("kimi-k26-vllm"))
    assert isinstance(missing, Missing)
    assert "no other context limit than its own of 262,144 tokens" in missing.reason


def test_a_wish_can_be_given(alter) -> None:
    found = context_extension.find(load_case("kimi-k26-vllm"), 131_072)
    assert found.fit.held
    assert found.served == "served, up to 131,072 tokens"
    assert isinstance(with_neighbour(found), Missing)


def test_above_the_models_limit_the_server_does_not_come_up() -> None:
    found = context_extension.find(load_case("kimi-k26-sglang"), 300_000)
    assert found.served == "not up"
    assert "beyond the model's own limit" in found.capability_says
    assert "SGLANG_ALLOW_OVERWRITE_LONGER_CONTEXT_LEN" in found.change_says
    assert "SGLang does not start" in found.verdict


def test_without_step_times_only_the_memory_is_answered(alter) -> None:
    found = context_extension.find(alter({"sweep.csv": None}).case)
    assert isinstance(usable(found), Missing)
    assert "Usable" not in found.verdict
    assert found.served == "capped at 101,133"


def test_llama_cpp_answers_a_wish_within_its_model_by_allocating_it() -> None:
    found = context_extension.find(load_case("smollm2-llamacpp"), 6_144)
    assert found.served.startswith("served")
    assert "Whether that memory is there is not known" in found.verdict
