"""The step-time model of both cases, against what a careful reader works out by hand."""

import math

import pytest

from analysis.findings.ledger import Findings
from analysis.findings.missing import Missing
from analysis.findings.step_time import StepTimes

# Worked out apart from this code, by ordinary least squares on the four points of the account,
# n = 4, t-intervals with 2 degrees of freedom; weighted means by 1/step**2.
OF_THE_ACCOUNT = [
    ("intercept", lambda s: s.prompt.intercept_ms, "32.36"),
    ("intercept, low end", lambda s: s.prompt.intercept_ci95[0], "22.7"),
    ("intercept, high end", lambda s: s.prompt.intercept_ci95[1], "42.0"),
    ("intercept, weighted", lambda s: s.prompt_weighted.intercept_ms, "33.24"),
    ("intercept, mean axis", lambda s: s.mean.intercept_ms, "26.3"),
    ("slope", lambda s: s.prompt.slope_us, "20.15"),
    ("slope, low end", lambda s: s.prompt.slope_ci95[0], "17.3"),
    ("slope, high end", lambda s: s.prompt.slope_ci95[1], "23.0"),
    ("slope, weighted", lambda s: s.prompt_weighted.slope_us, "19.65"),
    ("slope, mean axis", lambda s: s.mean.slope_us, "20.15"),
    ("slope, mean axis, low end", lambda s: s.mean.slope_ci95[0], "17.3"),
    ("slope, mean axis, high end", lambda s: s.mean.slope_ci95[1], "23.0"),
    ("tok/s at 3500", lambda s: s.prompt.tok_per_s(2.9, 3500), "28.2"),
    ("tok/s at 3500, mean axis", lambda s: s.mean.tok_per_s(2.9, 3500), "29.9"),
    ("crossover", lambda s: s.prompt.crossover(2), "1606"),
    ("crossover, weighted", lambda s: s.prompt_weighted.crossover(2), "1692"),
    ("crossover, mean axis", lambda s: s.mean.crossover(2), "1306"),
    ("crossover, mean axis, weighted", lambda s: s.mean_weighted.crossover(2), "1392"),
    ("no slope at 500", lambda s: s.prompt.gain_of_slope(0, 500), "1.31"),
    ("no slope at 3400", lambda s: s.prompt.gain_of_slope(0, 3400), "3.12"),
    ("no slope at 5553", lambda s: s.prompt.gain_of_slope(0, 5553), "4.46"),
    ("no slope at 500, mean axis", lambda s: s.mean.gain_of_slope(0, 500), "1.38"),
    ("no slope at 3400, mean axis", lambda s: s.mean.gain_of_slope(0, 3400), "3.60"),
    ("no slope at 5553, mean axis", lambda s: s.mean.gain_of_slope(0, 5553), "5.25"),
    ("bandwidth limit, us", lambda s: s.bandwidth_us, "0.0392"),
    ("slope over bandwidth limit", lambda s: s.over_bandwidth, "514"),
]


def test_published_lines_are_straight_to_within_ten_per_cent_where_the_test_rejects(
    vllm: Findings,
) -> None:
    """v4 at DCP 2, 4 and 8 rejects a line, by a bend of a few per cent: both are said."""
    rejected = [
        fit
        for fit in vllm.steps.series
        if fit.prompt.linearity and fit.prompt.linearity.p and fit.prompt.linearity.p < 0.05
    ]
    assert [(fit.repeat, fit.dcp) for fit in rejected] == [("v4", 2), ("v4", 4), ("v4", 8)]
    for fit in rejected:
        assert fit.prompt.straight == "straight"
        assert fit.prompt.linearity.bend_ci95[0] > 0
        assert f"p = {fit.prompt.linearity.p:.2g}" in fit.prompt.straightness


@pytest.mark.parametrize(
    ("value", "printed"), [row[1:] for row in OF_THE_ACCOUNT], ids=[r[0] for r in OF_THE_ACCOUNT]
)
def test_the_fit_of_the_account(sglang: Findings, like, value, printed: str) -> None:
    assert like(value(sglang.steps.main), printed) == printed


LIMITS = [
    ("thread blocks", lambda s: s.thread_blocks, "8"),
    ("occupancy ceiling", lambda s: s.occupancy_limit, "23.5"),
    ("left unexplained", lambda s: s.unexplained, "22"),
    ("line at 30k", lambda s: s.far[0], "637"),
    ("quadratic at 30k", lambda s: s.far[1], "726"),
    ("weighted quadratic at 30k", lambda s: s.far[2], "965"),
    ("seconds at 200k", lambda s: s.far_step_ms / 1000, "4.1"),
    ("tok/s at 200k", lambda s: s.main.prompt.tok_per_s(2.9, 200_000), "0.7"),
    ("speculative slope of the case beside", lambda s: s.neighbour_slope_us, "0.15"),
]


@pytest.mark.parametrize(
    ("value", "printed"), [row[1:] for row in LIMITS], ids=[row[0] for row in LIMITS]
)
def test_limits_and_extrapolations_of_the_account(sglang, like, value, printed: str) -> None:
    assert sglang.steps.far_tokens == 30_000
    assert sglang.steps.wished_tokens == 200_000
    assert like(value(sglang.steps), printed) == printed


def test_the_prompt_axis_intercept_holds_half_an_output(sglang: Findings) -> None:
    main = sglang.steps.main
    half = 300 * main.prompt.slope_us / 1000
    assert main.prompt.intercept_ms - main.mean.intercept_ms == pytest.approx(half)


def test_most_of_a_step_at_3500_tokens_grows_with_context(sglang: Findings, like) -> None:
    assert like(100 * sglang.steps.main.prompt.context_share(3500), "69") == "69"


# local-inference-lab/rtx6kpro, kimi-k26-v2 to v4: 1000 / (tok/s) without speculation, fitted.
@pytest.mark.parametrize(
    ("dcp", "repeats", "low", "high"),
    [
        (1, ("v2", "v3", "v4"), "0.080", "0.083"),
        (4, ("v2", "v3"), "0.037", "0.037"),
        (8, ("v2", "v3"), "0.022", "0.022"),
    ],
)
def test_less_cache_per_gpu_gives_less_slope(vllm, like, dcp, repeats, low, high) -> None:
    slopes = [
        fit.prompt.slope_us for fit in vllm.steps.series if fit.dcp == dcp and fit.repeat in repeats
    ]
    assert len(slopes) == len(repeats)
    assert like(min(slopes), low) == low
    assert like(max(slopes), high) == high


def test_the_cache_per_gpu_falls_with_dcp_and_so_does_its_bandwidth_limit(vllm: Findings) -> None:
    cells = {fit.dcp: fit.bytes_per_token for fit in vllm.steps.series}
    assert cells == {1: 35_136, 2: 17_568, 4: 8_784, 8: 4_392}
    for fit in vllm.steps.series:
        assert fit.bandwidth_us == pytest.approx(fit.bytes_per_token / 1.792e6)


def test_counted_prompts_are_shorter_than_nominal_and_give_a_steeper_line(vllm: Findings) -> None:
    fits = {fit.repeat: fit for fit in vllm.steps.series if fit.dcp == 1}
    for repeat in ("v2", "v3"):
        assert 1.01 < fits[repeat].counted_slope_us / fits[repeat].prompt.slope_us < 1.03
    assert fits["v4"].counted_slope_us is None


def test_a_speculative_slope_exists_only_with_a_pooled_commit(vllm: Findings, like) -> None:
    pooled = next(p for p in vllm.steps.pooled if p.series == "EAGLE-3 DCP1")
    assert like(pooled.slope_us, "0.15") == "0.15"
    assert like(pooled.commit_length, "2.2") == "2.2"
    assert pooled.commit_low == 1.951
    assert pooled.commit_high == 2.743
    assert pooled.n == 5
    assert all("EAGLE" not in fit.series for fit in vllm.steps.series)


def test_without_output_lengths_there_is_no_mean_axis(vllm: Findings, sglang: Findings) -> None:
    assert sglang.steps.main.has_mean_axis
    assert not vllm.steps.main.has_mean_axis
    assert vllm.steps.main.mean is vllm.steps.main.prompt


def rows(*values: tuple) -> str:
    header = "series,prompt_tokens,output_tokens,tok_per_s,commit_length,commit_kind,source"
    return "\n".join([header, *(",".join(map(str, row)) for row in values), ""])


def step_row(series: str, context: int, step_ms: float, kind: str = "measured") -> tuple:
    """A row whose commit of 4 and throughput imply ``step_ms``."""
    return series, context, 600, 4000 / step_ms, 4.0, kind, "made up"


def test_interleaved_rows_of_two_series_are_fitted_apart(alter) -> None:
    contexts = (4000, 0, 2000, 1000)
    mixed = []
    for context in contexts:
        mixed.append(step_row("a", context, 30 + 0.02 * context))
        mixed.append(step_row("b", context, 50 + 0.01 * context))
    steps = alter({"sweep.csv": rows(*mixed), "two_point.csv": None}).steps
    fits = {fit.series: fit.prompt for fit in steps.series}
    assert {name: fit.slope_us for name, fit in fits.items()} == pytest.approx({"a": 20, "b": 10})
    assert {name: fit.intercept_ms for name, fit in fits.items()} == pytest.approx(
        {"a": 30, "b": 50}
    )
    assert steps.main.series == "a"


def test_two_contexts_make_no_step_time_model(alter) -> None:
    found = alter({"sweep.csv": rows(step_row("a", 0, 30), step_row("a", 1000, 50))})
    assert isinstance(found.steps, Missing)
    assert "three or more contexts" in found.steps.reason
    assert isinstance(found.reconciliation, Missing)
    assert isinstance(found.two_points, Missing)


def test_derived_commits_are_not_fitted_but_pooled(alter) -> None:
    derived = [step_row("a", c, 30 + 0.02 * c, "derived") for c in (0, 1000, 2000)]
    exact = [step_row("b", c, 10 + 0.01 * c, "exact") for c in (0, 1000, 2000)]
    steps = alter({"sweep.csv": rows(*derived, *exact), "two_point.csv": None}).steps
    assert isinstance(steps, StepTimes)
    assert [fit.series for fit in steps.series] == ["b"]
    assert [p.series for p in steps.pooled] == ["a"]
    assert steps.pooled[0].slope_us == pytest.approx(20)


def test_a_gpu_without_a_multiprocessor_count_has_no_occupancy_ceiling(alter) -> None:
    gpu = ('gpu = "RTX PRO 6000 Blackwell Server"', 'gpu = "H100 SXM"')
    steps = alter({"case.toml": [gpu]}).steps
    assert steps.occupancy_limit is None
    assert steps.unexplained is None
    assert math.isfinite(steps.main.over_bandwidth)
