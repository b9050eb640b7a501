"""The roofline of the committed cases, against published figures and rates worked out by hand."""

import pytest

from analysis.findings import roofline, roofline_gap
from analysis.findings.missing import Missing
from analysis.findings.roofline import Roofline
from analysis.records.case import load_case


@pytest.fixture(scope="module")
def account() -> Roofline:
    found = roofline.find(load_case("kimi-k26-sglang"))
    assert isinstance(found, Roofline)
    return found


@pytest.fixture(scope="module")
def own() -> Roofline:
    found = roofline.find(load_case("smollm2-llamacpp"))
    assert isinstance(found, Roofline)
    return found


def test_the_account_lies_514_times_above_39_ns(account: Roofline, like) -> None:
    assert like(1000 * (account.main.limit.memory_us or 0), "39.2") == "39.2"
    assert like(account.slope_over_memory or 0, "514") == "514"
    assert "39.2 ns: the slope is 514 times that" in account.verdict
    assert "A step here computes 9 to 15, so memory sets it" in account.verdict


def test_occupancy_explains_at_most_23_5_of_it_and_22_stays(account: Roofline, like) -> None:
    gap = roofline_gap.find(account)
    assert isinstance(gap, roofline_gap.Gap)
    assert (gap.blocks, gap.multiprocessors) == (8, 188)
    assert like(gap.occupancy_limit, "23.5") == "23.5"
    assert like(gap.unexplained, "22") == "22"
    assert gap.full_from == 24  # 23 requests have 184 blocks for 188 multiprocessors


def test_ceilings_that_reach_the_gap_are_not_called_its_cause(account: Roofline) -> None:
    gap = roofline_gap.find(account)
    assert isinstance(gap, roofline_gap.Gap)
    assert gap.together == gap.occupancy_limit * 15 * 8 > gap.factor
    assert "one slope does not tell which" in gap.says


def test_the_rates_are_bytes_and_flop_over_the_slope(account: Roofline) -> None:
    main = account.main
    assert main.gb_per_s == pytest.approx(70_272 / main.slope_us / 1000)
    low, high = main.gflop_per_s or (0, 0)
    assert low == pytest.approx(9 * 61 * 8 * 2176 / main.slope_us / 1000)
    assert high / low == pytest.approx(15 / 9)


def test_plain_vllm_lies_within_eleven_times_of_its_limit_at_every_dcp(account: Roofline) -> None:
    """Its published tables: 0.08, 0.037 and 0.022 us per token at DCP 1, 4 and 8."""
    plain = {rate.fit.dcp: rate for rate in account.rates if rate.fit.case == "kimi-k26-vllm"}
    assert set(plain) == {1, 2, 4, 8}
    for dcp, rate in plain.items():
        assert rate.queries == (1, 1)
        assert rate.limit.memory_us == pytest.approx(35_136 / dcp / 1.792e6)
        assert 1 < (rate.over_limit or 0) < 11


def test_a_layout_with_fewer_bytes_becomes_a_matter_of_arithmetic_sooner(
    account: Roofline,
) -> None:
    first = {
        (limit.label, limit.kv_dtype): limit.compute_bound_from or 0 for limit in account.layouts
    }
    assert first["TP8", "bf16"] == 18
    assert first["TP8", "bf16"] > first["TP8", "fp8"] > first["TP8, DCP4", "fp8"]
    assert first["DP attention on 8 ranks", "bf16"] == 3


def test_the_roofline_rises_in_proportion_beyond_the_ridge(account: Roofline) -> None:
    limit = account.main.limit
    first = limit.compute_bound_from or 0
    assert limit.slope_us(first - 1) == limit.memory_us
    assert limit.slope_us(4 * first) == pytest.approx(2 * (limit.slope_us(2 * first) or 0))


def test_flop_a_byte_follow_the_heads_that_share_a_reading(account: Roofline) -> None:
    """In bf16: 17 / 18 of two for each head in MLA, one for each query head of a KV head in GQA."""
    kinds = {limit.label.split(":")[0] for limit in account.models}
    assert {"MLA", "GQA"} <= kinds
    for limit in account.models:
        share = 2 * 17 / 18 if limit.label.startswith("MLA") else 1
        assert limit.cost.intensity() == pytest.approx(share * limit.cost.sharing), limit.label
    assert any("DeepSeek-V3.2" in name for name in account.left_out)


def test_a_server_without_a_gpu_gets_rates_and_no_limit(own: Roofline) -> None:
    assert own.main.limit_us is None
    assert own.gpus == ()
    assert own.models == ()
    assert "no limit to hold it against" in own.verdict
    assert roofline_gap.find(own) == Missing("")
    # 30 layers of 3 KV heads, key and value of 64, 2 bytes: 23,040 B
    assert own.main.limit.cost.bytes_per_token == 30 * 3 * 128 * 2


def test_a_wide_step_on_a_cpu_does_as_many_flop_a_second_as_a_plain_one(own: Roofline) -> None:
    """Eight tokens a step read a sixth of the bytes a second: arithmetic, not memory, limits it."""
    wide = own.main
    plain = next(rate for rate in own.rates if rate.queries == (1, 1))
    assert wide.gb_per_s < plain.gb_per_s / 4
    assert (wide.gflop_per_s or (0, 0))[1] > (plain.gflop_per_s or (0, 0))[0]


@pytest.mark.parametrize(
    ("old", "new", "reason"),
    [
        ('model = "nvidia/Kimi-K2.6-NVFP4"', 'model = ""', "facts of the model"),
        ('"nvidia/Kimi-K2.6-NVFP4"', '"nvidia/GLM-5-NVFP4"', "sparse attention"),
        ('"nvidia/Kimi-K2.6-NVFP4"', '"Qwen/Qwen3-32B"', ""),
    ],
)
def test_what_has_no_roofline_says_why(alter, old: str, new: str, reason: str) -> None:
    case = alter({"case.toml": [(old, new)]}).case
    found = roofline.find(case)
    if reason:
        assert isinstance(found, Missing)
        assert reason in found.reason
    else:
        assert isinstance(found, Roofline)


def test_an_unknown_width_leaves_the_limit_open(alter) -> None:
    found = roofline.find(alter({"case.toml": [("verified_tokens = [9, 15]", "")]}).case)
    assert isinstance(found, Roofline)
    assert found.main.queries is None
    assert found.main.gflop_per_s is None
    assert "how many a step verifies is not known" in found.verdict
