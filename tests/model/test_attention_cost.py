"""Bytes and FLOP of attention per token of context, against published rules of MLA and GQA."""

import pytest

from analysis.model.attention_cost import AttentionCost, attention_cost
from analysis.model.kv_cache import HeadCache, LatentCache, Parallelism
from analysis.model.roofline import arithmetic_slope_us, bandwidth_slope_us, compute_bound_from

KIMI = LatentCache(layers=61, kv_lora_rank=512, qk_rope_head_dim=64)
KIMI_HEADS = 64
LLAMA_70B = HeadCache(layers=80, kv_heads=8, key_dim=128, value_dim=128)
RTX_PRO_6000 = {"bandwidth_tb_per_s": 1.792, "tflops": 467.8}


def kimi(tp: int = 8, dcp: int = 1, dtype: str = "bf16", dp: bool = False) -> AttentionCost:
    return attention_cost(KIMI, KIMI_HEADS, dtype, Parallelism(tp, dcp, dp))


def test_a_head_of_512_and_64_does_2176_flop_a_token() -> None:
    """FlashMLA's deep dive: 2 (512 + 64) + 2 * 512 for each head, query and token."""
    one = attention_cost(LatentCache(1, 512, 64), 1, "bf16", Parallelism())
    assert one.flop(1) == 2176
    assert one.bytes_per_token == 576 * 2


@pytest.mark.parametrize("heads", [16, 64, 128])
@pytest.mark.parametrize("queries", [1, 2, 8])
def test_intensity_is_nearly_two_flop_a_byte_for_each_head_and_query(
    heads: int, queries: int
) -> None:
    """FlashMLA's deep dive gives about 2 * heads * queries in bf16: exactly 17 / 18 of it."""
    cost = attention_cost(KIMI, heads, "bf16", Parallelism())
    assert cost.intensity(queries) == pytest.approx(2 * heads * queries * 2176 / (2 * 1152))


def test_the_account_is_bound_by_memory_below_18_tokens_a_step() -> None:
    cost = kimi()
    assert cost.bytes_per_token == 70_272
    assert f"{1000 * bandwidth_slope_us(cost.bytes_per_token, 1.792):.1f}" == "39.2"
    first = compute_bound_from(cost.intensity(), **RTX_PRO_6000)
    assert first == 18
    memory = bandwidth_slope_us(cost.bytes_per_token, 1.792)
    assert arithmetic_slope_us(cost.flop(first - 1), 467.8) <= memory
    assert arithmetic_slope_us(cost.flop(first), 467.8) > memory


@pytest.mark.parametrize("dcp", [2, 4, 8])
def test_decode_context_parallelism_divides_bytes_and_not_flop(dcp: int) -> None:
    assert kimi(dcp=dcp).bytes_per_token == kimi().bytes_per_token / dcp
    assert kimi(dcp=dcp).flop(4) == kimi().flop(4)
    assert kimi(dcp=dcp).heads == KIMI_HEADS // 8 * dcp


def test_dp_attention_keeps_all_heads_on_a_rank() -> None:
    assert kimi(dp=True).heads == KIMI_HEADS
    assert kimi(dp=True).flop(1) == 8 * kimi().flop(1)
    assert kimi(dp=True).bytes_per_token == kimi().bytes_per_token


def test_half_the_bytes_an_element_doubles_the_intensity() -> None:
    assert kimi(dtype="fp8").intensity() == 2 * kimi().intensity()


@pytest.mark.parametrize("tp", [1, 2, 4, 8])
def test_gqa_does_four_flop_for_each_element_of_a_query_head(tp: int) -> None:
    """Llama 3.1 70B: 64 query heads of 128 on 8 KV heads; 8 queries heads share each read."""
    cost = attention_cost(LLAMA_70B, 64, "bf16", Parallelism(tp))
    assert cost.flop(1) == 80 * 64 // tp * 4 * 128
    assert cost.bytes_per_token == 80 * 8 // tp * 256 * 2
    assert cost.intensity() == 8


def test_pipeline_stages_share_out_the_layers() -> None:
    whole = attention_cost(LLAMA_70B, 64, "bf16", Parallelism(8))
    half = attention_cost(LLAMA_70B, 64, "bf16", Parallelism(8, pp=2))
    assert half.flop(1) * 2 == whole.flop(1)
    assert half.intensity() == whole.intensity()


def test_sparse_attention_is_refused() -> None:
    with pytest.raises(ValueError, match="sparse attention"):
        attention_cost(LatentCache(61, 512, 64, 132), 128, "fp8", Parallelism(8))


def test_heads_that_cannot_be_shared_out_are_refused() -> None:
    with pytest.raises(ValueError, match="64 attention heads"):
        attention_cost(KIMI, 64, "bf16", Parallelism(6))


@pytest.mark.parametrize("queries", [0, -1, float("nan"), float("inf")])
def test_less_than_one_query_is_refused(queries: float) -> None:
    with pytest.raises(ValueError, match="one or more"):
        kimi().flop(queries)


@pytest.mark.parametrize("value", [0, -1, float("nan"), float("inf")])
def test_no_bandwidth_or_no_arithmetic_is_refused(value: float) -> None:
    with pytest.raises(ValueError, match="bandwidth"):
        bandwidth_slope_us(1000, value)
    with pytest.raises(ValueError, match="arithmetic"):
        arithmetic_slope_us(1000, value)
    with pytest.raises(ValueError, match="arithmetic"):
        compute_bound_from(8, 1.0, value)
