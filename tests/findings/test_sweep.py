"""The context sweep, and which of its figures were measured."""

import pytest

from analysis.findings.ledger import Findings
from analysis.findings.missing import Missing
from analysis.findings.sweep import plain_token_ms


def test_step_times_of_the_account_are_derived(sglang: Findings, like) -> None:
    printed = ["34.03", "62.78", "101.41", "144.04"]
    assert [like(step, text) for step, text in zip(sglang.sweep.steps, printed, strict=True)] == (
        printed
    )
    assert sglang.sweep.commits == [4.75, 7.17, 7.90, 7.85]


def test_the_ends_of_the_sweep_are_the_shortest_and_the_longest_context(sglang: Findings) -> None:
    assert (sglang.sweep.first.prompt_tokens, sglang.sweep.last.prompt_tokens) == (13, 5553)


def test_the_vllm_tables_are_counted_by_what_is_known_of_commit(vllm: Findings) -> None:
    sweep = vllm.sweep
    assert sweep.n == 100
    assert sweep.without_commit_count == 30
    assert len(sweep.main) == 5
    assert sweep.commits == []


# soulmachine/skills, REFERENCE.md: 14.94 ms per output token, and 59.5 tok/s with TTFT inside.
def test_plain_decoding_is_that_of_the_same_engine_at_batch_1(sglang: Findings) -> None:
    assert plain_token_ms(sglang.case) == pytest.approx((14.94, 1000 / 59.5))


def test_plain_decoding_of_another_engine_is_not_taken(alter) -> None:
    engine = ('name = "SGLang"  ', 'name = "vLLM"  ')
    only = 1000 / 44.4
    assert plain_token_ms(alter({"case.toml": [engine]}).case) == pytest.approx((only, only))


def test_a_case_that_refers_to_no_plain_decoding_has_none(vllm: Findings) -> None:
    assert plain_token_ms(vllm.case) is None


def test_break_even_of_a_point_is_its_step_over_the_plain_token_time(sglang: Findings) -> None:
    last = sglang.sweep.last
    assert last.break_even_high == pytest.approx(last.step_ms / 14.94)
    assert last.break_even_low == pytest.approx(last.step_ms / (1000 / 59.5))
    assert last.break_even_low < last.break_even_high


def test_a_plain_row_is_not_compared_with_plain_decoding(vllm: Findings) -> None:
    assert {p.break_even_low for p in vllm.sweep.points} == {None}


def test_a_case_without_a_sweep_says_so(alter) -> None:
    found = alter({"sweep.csv": None})
    assert found.sweep == Missing("This case has no context sweep (no sweep.csv).")
    assert isinstance(found.steps, Missing)
