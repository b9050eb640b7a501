"""The account's two-point decode against its own sweep."""

import pytest

from analysis.findings.ledger import Findings
from analysis.findings.missing import Missing


# Worked out apart from this code: two-point tok/s times the sweep's fitted step at that context.
@pytest.mark.parametrize(
    ("context", "needed"), [(64, "8.6"), (1024, "11.4"), (3072, "10.7"), (5120, "9.1")]
)
def test_with_the_sweeps_steps_the_two_point_numbers_need_more(
    sglang: Findings, like, context: int, needed: str
) -> None:
    point = next(p for p in sglang.two_points.points if p.context_tokens == context)
    assert like(point.needed_on_prompt_axis, needed) == needed
    assert point.needed_on_mean_axis < point.needed_on_prompt_axis
    assert point.needed_on_prompt_axis > point.sweep_commit


def test_the_range_needed_is_that_of_the_four_points(sglang: Findings, like) -> None:
    assert [like(end, "8.6") for end in sglang.two_points.needed] == ["8.6", "11.4"]
    assert [like(end, "7.0") for end in sglang.two_points.needed_mean] == ["7.0", "10.1"]


# The joint fit of sweep and two-point with a fee per sweep request: 1.4 to 2.2 s and 11 to 16 ms
# were found apart from this code with commits and axes chosen a little otherwise.
def test_a_fixed_overhead_of_one_to_two_seconds_would_halve_the_scatter(sglang: Findings) -> None:
    found = sglang.two_points
    low, high = found.overhead_s
    assert 1.2 < low < high < 2.3
    low, high = found.intercept_ms
    assert 11 < low < high < 17
    low, high = found.residual_ratio
    assert 0.35 < low < 0.5 < high < 0.65
    assert {(v.axis, v.weights) for v in found.variants} == {
        (axis, weights) for axis in ("prompt", "mean") for weights in ("none", "relative")
    }


def test_what_limits_the_other_explanation_is_given_with_it(sglang: Findings) -> None:
    found = sglang.two_points
    assert (found.sweep_commit_max, found.verified_max, found.published_max) == (7.90, 15, 5.5)


def test_the_accounts_time_to_first_token_is_a_few_per_cent_of_that_overhead(sglang) -> None:
    assert 100 * 0.06 / 2.3 < sglang.two_points.ttft_share_pct < 100 * 0.06 / 1.2


def test_the_sweeps_commit_between_two_points_is_read_off_the_line_between_them(sglang) -> None:
    between = {p.context_tokens: p.sweep_commit for p in sglang.two_points.points}
    assert between[1024] == pytest.approx(4.75 + (7.17 - 4.75) * (1024 - 13) / (1663 - 13))


SWEEP = [
    "account sweep (filler text),DFlash + DDTree,13,600,139.6,4.75,measured,S07 S11",
    "account sweep (filler text),DFlash + DDTree,1663,600,114.2,7.17,measured,S08 S12",
    "account sweep (filler text),DFlash + DDTree,3333,600,77.9,7.90,measured,S09 S13",
    "account sweep (filler text),DFlash + DDTree,5553,600,54.5,7.85,measured,S10 S14",
]
HEADER = "series,speculation,prompt_tokens,output_tokens,tok_per_s,commit_length,commit_kind,source"


def test_the_order_of_the_sweep_does_not_matter(alter, sglang: Findings) -> None:
    """A sweep measured in random order, as it should be, is not interpolated by file order."""
    lines = [HEADER, *(SWEEP[i] for i in (2, 0, 3, 1)), ""]
    found = alter({"sweep.csv": "\n".join(lines)}).two_points
    for shuffled, point in zip(found.points, sglang.two_points.points, strict=True):
        assert shuffled.sweep_commit == pytest.approx(point.sweep_commit)
        assert shuffled.needed_on_prompt_axis == pytest.approx(point.needed_on_prompt_axis)


def test_another_series_in_the_table_changes_nothing(alter, sglang: Findings) -> None:
    other = [f"other,none,{c},300,60,1.0,exact,made up" for c in (0, 1000, 2000)]
    found = alter({"sweep.csv": "\n".join([HEADER, *SWEEP, *other, ""])}).two_points
    assert found.sweep_commit_max == 7.90
    assert found.overhead_s == pytest.approx(sglang.two_points.overhead_s)
    assert found.points == sglang.two_points.points


def test_without_one_output_length_no_overhead_can_be_fitted(alter) -> None:
    sweep = [SWEEP[0].replace(",600,", ",300,"), *SWEEP[1:]]
    found = alter({"sweep.csv": "\n".join([HEADER, *sweep, ""])}).two_points
    assert found.variants == ()


def test_a_case_without_a_two_point_decode_says_so(vllm: Findings) -> None:
    assert vllm.two_points == Missing("This case has no two-point decode (no two_point.csv).")
