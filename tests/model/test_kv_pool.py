"""Pools by each engine's rule, against what servers printed."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from analysis.model.draft_cache import DraftCache, draft_bytes_per_token
from analysis.model.kv_cache import (
    GIB,
    HeadCache,
    LatentCache,
    Parallelism,
    bytes_per_token_per_gpu,
)
from analysis.model.kv_pool import (
    SGLANG_REQUESTS,
    gib_rounding,
    llama_cpp_buffer_bytes,
    llama_cpp_cells,
    sglang_allocated_bytes,
    sglang_allocation_line,
    sglang_pool_bytes,
    sglang_pool_tokens,
    sglang_request_table_bytes,
    vllm_pool_tokens,
)

KIMI = LatentCache(61, 512, 64)
GLM = LatentCache(78, 512, 64, indexer_bytes=132)
SMALL_MLA = LatentCache(layers=4, kv_lora_rank=512, qk_rope_head_dim=64)
SMALL_GQA = HeadCache(layers=4, kv_heads=4, key_dim=64, value_dim=64)
SMOLLM2 = HeadCache(layers=30, kv_heads=3, key_dim=64, value_dim=64)


# vLLM 0.32 on CPU with 1 GiB of KV and random weights printed these; blocks are of 16 tokens for
# MLA and of 128 otherwise there (vllm/platforms/cpu.py). 128 would make 232,960 of the first.
@pytest.mark.parametrize(
    ("cache", "tp", "block", "printed"),
    [
        (SMALL_MLA, 1, 16, 233_008),
        (SMALL_MLA, 2, 16, 233_008),
        (SMALL_GQA, 1, 128, 262_144),
        (SMALL_GQA, 2, 128, 524_288),
    ],
)
def test_vllm_on_cpu_printed_the_same_pool(cache, tp: int, block: int, printed: int) -> None:
    assert vllm_pool_tokens(GIB, cache, "bf16", Parallelism(tp), block) == printed
    limited = vllm_pool_tokens(GIB, cache, "bf16", Parallelism(tp), block, limit_tokens=4096)
    assert limited == printed


# local-inference-lab/rtx6kpro@e2c2b95, models/glm5.1 start-up logs of vLLM, blocks of 64 tokens;
# vllm-project/recipes, Kimi-K2-Think.md. GiB are printed with two decimals.
@pytest.mark.parametrize(
    ("cache", "dtype", "ranks", "block", "gib", "printed"),
    [
        (GLM, "fp8_ds_mla", Parallelism(8), 64, 19.55, 341_504),
        (GLM, "fp8_ds_mla", Parallelism(8, dcp=2), 64, 19.47, 680_192),
        (GLM, "fp8_ds_mla", Parallelism(8, dcp=8), 64, 19.47, 2_720_768),
        (KIMI, "bf16", Parallelism(8), 16, 46.80, 715_072),
        (KIMI, "bf16", Parallelism(8, dcp=8), 16, 46.80, 5_721_088),
    ],
)
def test_vllm_on_gpus_printed_the_same_pool(cache, dtype, ranks, block, gib, printed) -> None:
    """Within the rounding of the GiB and one block of every rank."""
    low, high = (
        vllm_pool_tokens(gib * GIB + sign * gib_rounding(2), cache, dtype, ranks, block)
        for sign in (-1, 1)
    )
    assert low - block * ranks.dcp <= printed <= high + block * ranks.dcp


# SGLang 0.5.23 on CPU: its gauge sglang:kv_cache_memory_usage_gb (in GiB) for 16,384 tokens.
@pytest.mark.parametrize(
    ("cache", "tp", "printed"),
    [
        (SMALL_MLA, 1, "0.070317"),
        (SMALL_MLA, 2, "0.070317"),
        (SMALL_GQA, 1, "0.062504"),
        (SMALL_GQA, 2, "0.031252"),
    ],
)
def test_sglang_on_cpu_showed_the_same_gauge(cache, tp: int, printed: str) -> None:
    cell = bytes_per_token_per_gpu(cache, "bf16", Parallelism(tp))
    assert f"{sglang_allocated_bytes(16_384, cell) / GIB:.6f}" == printed


# Lines that servers printed: SGLang 0.5.23 on CPU (the first two, without the dtype that it names
# too), a GLM-5 guide of local-inference-lab/rtx6kpro, and vllm-project/vllm issue 21348.
@pytest.mark.parametrize(
    ("cache", "dtype", "tp", "line"),
    [
        (SMALL_MLA, "bf16", 2, "#tokens: 16384, KV size: 0.07 GB"),
        (SMALL_GQA, "bf16", 2, "#tokens: 16384, K size: 0.02 GB, V size: 0.02 GB"),
        (GLM, "bf16", 8, "#tokens: 314304, KV size: 29.32 GB"),
        (
            HeadCache(94, 4, 128, 128),
            "bf16",
            4,
            "#tokens: 367404, K size: 8.23 GB, V size: 8.23 GB",
        ),
    ],
)
def test_the_line_that_sglang_printed(cache, dtype: str, tp: int, line: str) -> None:
    tokens = int(line.split(",")[0].removeprefix("#tokens: "))
    found = sglang_allocation_line(tokens, cache, dtype, Parallelism(tp))
    assert found == f"KV Cache is allocated. {line}"


def test_the_accounts_pool_replicated_and_sharded() -> None:
    """6.62 and 0.83 GiB: the two lines of which the server printed one."""
    replicated = sglang_allocation_line(101_134, KIMI, "bf16", Parallelism(8))
    assert replicated.endswith("#tokens: 101134, KV size: 6.62 GB")
    assert f"{101_134 * 8_784 / GIB:.2f}" == "0.83"


@pytest.mark.parametrize(
    ("draft", "tokens"),
    [
        (DraftCache(), 202_268),
        (DraftCache("dflash layer ratio", 6), 202_268),
        (DraftCache("dflash own cell", own=HeadCache(6, 8, 128, 128)), 194_136),
    ],
)
def test_the_accounts_pool_in_fp8(draft: DraftCache, tokens: int) -> None:
    """The bytes that 101,134 tokens with their draft take in bf16, filled in fp8."""

    def cell(dtype: str) -> float:
        target = bytes_per_token_per_gpu(KIMI, dtype, Parallelism(8))
        return target + draft_bytes_per_token(KIMI, draft, dtype, Parallelism(8))

    assert sglang_pool_tokens(101_134 * cell("bf16"), cell("fp8")) == tokens


def test_sglangs_rule_is_what_the_fraction_leaves() -> None:
    """By hand: 36.93 GiB free of 94 at 0.92 leaves 36.93 - 94 * 0.08."""
    found = sglang_pool_bytes(36.93 * GIB, 94 * GIB, 0.92)
    assert found / GIB == pytest.approx(36.93 - 7.52)
    assert sglang_pool_bytes(5 * GIB, 94 * GIB, 0.9) == 0


@given(st.floats(1e9, 1e11), st.floats(0.3, 0.99), st.floats(0.001, 0.01))
def test_a_share_of_memory_more_is_that_much_more_pool(total, fraction, more) -> None:
    """Where anything is left at all."""
    one, two = (sglang_pool_bytes(0.8 * total, total, f) for f in (fraction, fraction + more))
    assert two - one == pytest.approx(more * total, rel=1e-6)


@given(st.integers(0, 10**7), st.integers(100, 10**6), st.sampled_from([1, 16, 64]))
def test_pool_and_tokens_invert_each_other(tokens: int, cell: int, page: int) -> None:
    whole = tokens // page * page
    assert sglang_pool_tokens(tokens * cell, cell, page) == whole
    assert sglang_allocated_bytes(whole, cell, page) <= (tokens + page) * cell


@given(
    st.floats(0, 1e12),
    st.sampled_from([KIMI, GLM, SMALL_GQA]),
    st.sampled_from([Parallelism(), Parallelism(2), Parallelism(2, pp=3), Parallelism(4)]),
    st.sampled_from([16, 64, 128]),
)
def test_vllms_blocks_are_whole_and_none_more_would_fit(kv_bytes, cache, ranks, block) -> None:
    tokens = vllm_pool_tokens(kv_bytes, cache, "bf16", ranks, block)
    cell = bytes_per_token_per_gpu(cache, "bf16", ranks)
    assert tokens % block == 0
    assert tokens * cell <= kv_bytes < (tokens + block) * cell


def test_newer_vllm_prints_requests_of_the_limit_times_the_limit() -> None:
    """100 blocks of 16; a request of 24 tokens takes two: 50 requests of 24."""
    block_bytes = 16 * 4 * 576 * 2
    assert vllm_pool_tokens(100 * block_bytes, SMALL_MLA, "bf16", Parallelism()) == 1600
    found = vllm_pool_tokens(100 * block_bytes, SMALL_MLA, "bf16", Parallelism(), limit_tokens=24)
    assert found == 1200


@pytest.mark.parametrize(
    ("dtype", "mib"),
    [("f16", 22.5 * 4), ("f32", 45 * 4), ("q8_0", 22.5 * 4 * 34 / 64), ("q4_0", 22.5 * 18 / 16)],
)
def test_llama_cpps_buffer(dtype: str, mib: float) -> None:
    """SmolLM2: 30 layers, 3 heads of 64 + 64: 22.5 MiB for 1,024 cells in f16."""
    assert llama_cpp_buffer_bytes(4096, SMOLLM2, dtype) / 2**20 == pytest.approx(mib)


@pytest.mark.parametrize(
    ("context", "slots", "cells"),
    [(4096, 1, 4096), (4000, 1, 4096), (1, 1, 256), (4096, 4, 4096), (1000, 3, 3 * 512)],
)
def test_llama_cpp_pads_the_cells_of_each_slot(context: int, slots: int, cells: int) -> None:
    assert llama_cpp_cells(context, slots) == cells


@pytest.mark.parametrize(("decimals", "expected"), [(2, 0.005), (0, 0.5), (6, 5e-7)])
def test_a_printed_size_stands_for_half_a_digit_on_each_side(decimals, expected) -> None:
    assert gib_rounding(decimals) == pytest.approx(expected * GIB)


def test_what_is_not_known_is_refused() -> None:
    with pytest.raises(ValueError, match="layout of MLA differs between versions"):
        llama_cpp_buffer_bytes(1024, KIMI)
    with pytest.raises(ValueError, match="'int3' is not one of f32, f16"):
        llama_cpp_buffer_bytes(1024, SMOLLM2, "int3")
    with pytest.raises(ValueError, match=r"fraction 1\.2 is not above 0 and at most 1"):
        sglang_pool_bytes(1, 2, 1.2)
    with pytest.raises(ValueError, match="'int4' is not one of"):
        vllm_pool_tokens(GIB, KIMI, "int4", Parallelism())


@pytest.mark.parametrize("requests", [1, 48, SGLANG_REQUESTS])
def test_the_table_of_requests_is_the_tensor_that_sglang_allocates(requests: int) -> None:
    """``torch.zeros((size + 1, max_context_len), dtype=int32)`` of ``ReqToTokenPool``, 0.5.23."""
    tensor = np.broadcast_to(np.zeros((), np.int32), (requests + 1, 8192))
    assert sglang_request_table_bytes(8192, requests) == tensor.size * tensor.itemsize
