"""Does commit over step give what was observed, and does speculation pay?"""

import pytest

from analysis.findings.ledger import Findings
from analysis.findings.missing import Missing
from analysis.model.speculation import break_even_commit

# Worked out apart from this code: commit 2.9, context 3500, 32 tok/s, n = 4, t-intervals.
OF_THE_ACCOUNT = [
    ("product", lambda r: r.account_tok_per_s, "29.0"),
    ("shortfall, %", lambda r: r.shortfall_pct, "-9"),
    ("tok/s", lambda r: r.prompt_axis.predicted_tok_per_s, "28.2"),
    ("tok/s, mean axis", lambda r: r.mean_axis.predicted_tok_per_s, "29.9"),
    ("one step, low end", lambda r: r.prompt_axis.step_interval95[0], "89.4"),
    ("one step, high end", lambda r: r.prompt_axis.step_interval95[1], "116.3"),
    ("one step, mean axis, low end", lambda r: r.mean_axis.step_interval95[0], "83.5"),
    ("one step, mean axis, high end", lambda r: r.mean_axis.step_interval95[1], "110.2"),
    ("context for 32", lambda r: r.prompt_axis.context_for_observed, "2892"),
    ("context for 32, mean axis", lambda r: r.mean_axis.context_for_observed, "3192"),
    ("commit for 32", lambda r: r.prompt_axis.commit_for_observed, "3.29"),
    ("commit for 32, mean axis", lambda r: r.mean_axis.commit_for_observed, "3.10"),
    ("1500 growing tokens after 3500", lambda r: r.growing.predicted_tok_per_s, "25.9"),
    ("least of the named contexts", lambda r: r.named_range[0], "18.9"),
    ("greatest of the named contexts", lambda r: r.named_range[1], "30.3"),
    ("plain ms per token, least", lambda r: r.plain.token_ms[0], "14.9"),
    ("plain tok/s, least", lambda r: r.plain.tok_per_s[0], "59.5"),
    ("step that pays, least", lambda r: r.plain.step_ms_that_pays[0], "43"),
    ("step that pays, greatest", lambda r: r.plain.step_ms_that_pays[1], "49"),
]


@pytest.mark.parametrize(
    ("value", "printed"), [row[1:] for row in OF_THE_ACCOUNT], ids=[r[0] for r in OF_THE_ACCOUNT]
)
def test_the_observation_of_the_account(sglang: Findings, like, value, printed: str) -> None:
    assert like(value(sglang.reconciliation), printed) == printed


def test_break_even_is_six_to_seven_on_the_axis_that_the_headline_names(
    sglang: Findings, like
) -> None:
    """6 to 7 by hand against a step of 102 ms; a step of 97 ms on the mean axis asks for less."""
    result = sglang.reconciliation
    fast, slow = result.plain.token_ms
    for prediction, found, printed in (
        (result.prompt_axis, result.plain.break_even, ["6.1", "6.9"]),
        (result.mean_axis, result.plain.break_even_mean, ["5.8", "6.5"]),
    ):
        step = prediction.step_ms
        by_hand = (break_even_commit(step, slow), break_even_commit(step, fast))
        assert found == pytest.approx(by_hand)
        assert [like(end, "5.8") for end in found] == printed


def test_the_account_s_context_gives_more_than_32_if_the_output_ends_there(
    sglang: Findings, like
) -> None:
    """2.9 tokens over 26.312 ms + 20.150 us x (3500 - 750): 35.5 tok/s, worked out by hand."""
    result = sglang.reconciliation
    assert like(result.ending.predicted_tok_per_s, "35.5") == "35.5"
    assert "35.5" in result.ending_says
    assert "25.9" in result.ending_says


def test_speculation_pays_where_the_mean_axis_step_is_short_enough(sglang: Findings) -> None:
    plain, line = sglang.reconciliation.plain, sglang.steps.main.mean
    for context, step in zip(plain.context_that_pays, plain.step_ms_that_pays, strict=True):
        assert line.step.step_ms(context) == pytest.approx(step)


# Label, axis, tok/s: the account's four contexts, on both axes and with 1500 growing tokens.
NAMED = [
    ("about 3500", "prompt", "28.2"),
    ("about 3500", "mean", "29.9"),
    ("about 4200, 1500 of them output", "prompt", "24.8"),
    ("about 4200, 1500 of them output", "mean", "26.1"),
    ("about 4200, 1500 of them output, starting there", "growing", "23.0"),
    ("about 4200, 1500 of them output, ending there", "growing", "30.3"),
    ("about 5000", "prompt", "21.8"),
    ("about 5000", "mean", "22.8"),
    ("5000-6000, upper end", "prompt", "18.9"),
    ("5000-6000, upper end", "mean", "19.7"),
]


def test_every_reading_of_the_named_contexts(sglang: Findings) -> None:
    found = [
        (p.label, p.axis, f"{p.predicted_tok_per_s:.1f}") for p in (sglang.reconciliation.contexts)
    ]
    assert found == NAMED


def test_no_named_context_reaches_32_and_three_could(sglang: Findings) -> None:
    result = sglang.reconciliation
    assert result.reached == ()
    assert [(p.label, p.axis) for p in result.within] == [NAMED[0][:2], NAMED[1][:2], NAMED[5][:2]]


def test_growth_that_ends_at_4200_starts_at_a_prompt_of_2700(sglang: Findings) -> None:
    growing = [p for p in sglang.reconciliation.contexts if p.axis == "growing"]
    assert [(p.label.split(", ")[-1], p.context_tokens) for p in growing] == [
        ("starting there", 4200),
        ("ending there", 2700),
    ]


def test_every_prediction_holds_at_its_own_inverses(sglang: Findings) -> None:
    result = sglang.reconciliation
    main = sglang.steps.main
    for line, p in ((main.prompt, result.prompt_axis), (main.mean, result.mean_axis)):
        at_context = 1000 * 2.9 / line.step.step_ms(p.context_for_observed)
        at_commit = 1000 * p.commit_for_observed / p.step_ms
        assert at_context == pytest.approx(32)
        assert at_commit == pytest.approx(32)
    prompt = result.growing.context_for_observed
    assert 1000 * 2.9 / main.mean.step.step_ms(prompt + 750) == pytest.approx(32)


def test_the_interval_in_tok_per_s_is_the_step_interval_at_a_fixed_commit(sglang) -> None:
    prediction = sglang.reconciliation.prompt_axis
    low, high = prediction.step_interval95
    assert prediction.prediction_interval95 == pytest.approx((2900 / high, 2900 / low))
    assert prediction.interval_includes_commit_uncertainty is False


def test_the_baseline_would_need_a_step_of_21_ms(sglang: Findings, like) -> None:
    assert like(sglang.reconciliation.baseline_step_ms, "21.0") == "21.0"


NOISY = """series,prompt_tokens,output_tokens,tok_per_s,commit_length,commit_kind,source
a,0,600,80,4,measured,made up
a,3000,600,30,4,measured,made up
a,6000,600,34,4,measured,made up
"""


def test_a_band_without_an_upper_end_in_tok_per_s_still_holds_the_observation(alter) -> None:
    """One degree of freedom: the band reaches below zero ms, and nothing is contradicted."""
    result = alter({"sweep.csv": NOISY, "two_point.csv": None}).reconciliation
    assert result.prompt_axis.step_interval95[0] < 0
    assert result.prompt_axis.prediction_interval95 is None
    assert len(result.within) == len(result.contexts)


FALLING = NOISY.replace("34,4", "120,4").replace("80,4", "50,4").replace(",30,4", ",80,4")


def test_a_step_that_falls_with_context_has_no_context_for_a_throughput(alter) -> None:
    result = alter({"sweep.csv": FALLING, "two_point.csv": None}).reconciliation
    assert result.prompt_axis.context_for_observed is None
    assert result.growing.context_for_observed is None
    assert result.plain.context_that_pays is None


def test_a_case_without_an_observation_says_so(vllm: Findings) -> None:
    assert isinstance(vllm.reconciliation, Missing)
    assert "no observation in case.toml" in vllm.reconciliation.reason


def test_without_published_plain_decoding_there_is_no_break_even(alter) -> None:
    line = ('plain = "../../validation/kimi_k26_sglang_plain.csv"\n', "")
    assert alter({"case.toml": [line]}).reconciliation.plain is None
