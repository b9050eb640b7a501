"""Levers of the committed cases, against figures worked out by hand from their tables."""

import pytest

from analysis.errors import InputError
from analysis.findings import levers
from analysis.findings.dcp_ratios import dcp_ratios
from analysis.findings.lever_list import DRAFTER, KERNEL
from analysis.findings.levers import Levers
from analysis.findings.series import fit_series
from analysis.records.case import load_case


def ranked(case: str, context: float | None = None, axis=None, commit=None) -> Levers:
    found = levers.find(load_case(case), context, axis, commit)
    assert isinstance(found, Levers)
    return found


def gains(found: Levers) -> dict[str, float]:
    return {row.lever.name: row.worth.gain for row in found.ranked}


@pytest.mark.parametrize("axis", ["prompt", "mean"])
def test_the_accounts_ranking_holds_at_short_context_only(axis) -> None:
    short = gains(ranked("kimi-k26-sglang", 500, axis))
    long = gains(ranked("kimi-k26-sglang", 3400, axis))
    assert short[DRAFTER] == long[DRAFTER] == 2.0
    assert short[KERNEL] < 2.0 < long[KERNEL]


@pytest.mark.parametrize(("axis", "at"), [("prompt", "1606"), ("mean", "1306")])
def test_the_order_changes_at_the_ratio_of_intercept_to_slope(axis, at, like) -> None:
    found = ranked("kimi-k26-sglang", axis=axis)
    turn = found.main_turn
    assert turn is not None
    assert (turn.below, turn.above) == (DRAFTER, KERNEL)
    assert like(turn.context_tokens, at) == at
    line = found.series.line(axis)
    assert turn.context_tokens == pytest.approx(1000 * line.intercept_ms / line.slope_us)
    assert turn.interval95 is not None
    assert turn.interval95[0] < turn.context_tokens < turn.interval95[1]


def test_speculation_off_is_ranked_with_its_caveats() -> None:
    """Published plain decoding: 59.5 to 66.9 tok/s, so 14.94 to 16.8 ms a token."""
    for axis, even in (("prompt", (6.1, 6.9)), ("mean", (5.8, 6.5))):
        found = ranked("kimi-k26-sglang", 3500, axis)
        off = next(row for row in found.ranked if row.lever.name == "speculation off")
        step = found.series.line(axis).fit.at(3500)
        assert off.worth.bounds == pytest.approx(
            (step / 2.9 / (1000 / 59.5), step / 2.9 / 14.94), rel=1e-3
        )
        assert off.lever.basis == "published"
        says = " ".join(found.notes)
        assert f"({even[0]:.1f} to {even[1]:.1f})" in says
        assert "another install" in says
        assert "taken as flat over context" in says
    assert gains(ranked("kimi-k26-sglang", 500))["speculation off"] < 1


def test_pairs_of_steps_are_worth_more_than_their_product_and_a_commit_exactly_it() -> None:
    found = ranked("kimi-k26-sglang")
    pairs = {pair.names: pair for pair in found.together}
    commit = pairs[f"{KERNEL} + {DRAFTER}"]
    assert commit.gain == pytest.approx(commit.product)
    step = pairs[f"{KERNEL} + intercept halved"]
    assert step.gain > step.product


def test_dcp_ratios_are_paired_within_each_run() -> None:
    """By hand from the three published tables: v2 .0802/.0372/.0217 us per token, and so on."""
    found = {ratio.dcp: ratio for ratio in dcp_ratios(fit_series(load_case("kimi-k26-vllm")))}
    assert found[4].slope.value == pytest.approx(0.458, abs=0.001)
    assert found[4].slope.interval95 == pytest.approx((0.437, 0.479), abs=0.001)
    assert found[8].slope.value == pytest.approx(0.280, abs=0.001)
    assert found[8].slope.interval95 == pytest.approx((0.244, 0.321), abs=0.001)
    assert found[2].slope.interval95 is None  # one run has it
    assert all(ratio.intercept.value > 1 for ratio in found.values())  # it costs as well


def test_a_plain_server_is_offered_speculation_as_published_beside_it() -> None:
    """v3 at no context: 110.1 over 91.4; v2 117.1 over 86.9; v4 122.0 over 92.4."""
    found = ranked("kimi-k26-vllm", 0)
    on = next(row for row in found.ranked if row.lever.name == "speculation on")
    assert on.worth.bounds == pytest.approx((110.1 / 91.4, 117.1 / 86.9))
    assert on.worth.gain == pytest.approx(122.0 / 92.4)
    assert "speculation off" not in gains(found)


def test_on_our_own_server_speculation_off_is_measured_and_a_full_block_cannot_double() -> None:
    found = ranked("smollm2-llamacpp", 3000)
    off = next(row for row in found.ranked if row.lever.name == "speculation off")
    assert off.lever.basis == "measured"
    assert off.worth.bounds is not None
    assert off.worth.bounds[0] < off.worth.gain < off.worth.bounds[1] < 1
    assert DRAFTER not in gains(found)  # it commits nearly its whole block already


def test_a_batch_for_all_streams_never_ranks_before_a_lever_for_one() -> None:
    found = ranked("kimi-k26-sglang")
    alone = [row.lever.alone for row in found.ranked]
    assert alone == sorted(alone, reverse=True)
    assert not alone[-1]
    assert gains(found)["batch of 8, for all streams"] == pytest.approx(197.2 / 59.7)
    assert gains(found)["batch of 8, for one stream"] == pytest.approx(197.2 / 59.7 / 8)


def test_every_bound_holds_its_gain_and_says_what_it_is() -> None:
    for case in ("kimi-k26-sglang", "kimi-k26-vllm", "smollm2-llamacpp"):
        for row in ranked(case).ranked:
            assert row.lever.bounds_are
            if row.worth.bounds is not None:
                low, high = row.worth.bounds
                assert low <= row.worth.gain * (1 + 1e-9) <= high * (1 + 2e-9), row.lever.name


def test_a_context_beyond_the_sweep_is_said_to_be_one() -> None:
    assert "lie beyond the longest measured" in " ".join(ranked("kimi-k26-sglang", 20_000).notes)


def test_the_mean_axis_is_refused_where_no_output_is_known() -> None:
    with pytest.raises(InputError, match="axis prompt"):
        levers.find(load_case("kimi-k26-vllm"), axis="mean")
