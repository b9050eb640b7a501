"""Bytes of KV cache per token and GPU, against configs, engines and printed pools."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from analysis.model.kv_cache import (
    KIB,
    HeadCache,
    LatentCache,
    Parallelism,
    bytes_per_token_per_gpu,
    heads_per_rank,
    largest_request,
    pool_tokens,
    refuse_uneven_heads,
)

KIMI = LatentCache(layers=61, kv_lora_rank=512, qk_rope_head_dim=64)
GLM = LatentCache(layers=78, kv_lora_rank=512, qk_rope_head_dim=64, indexer_bytes=132)
GQA = HeadCache(layers=61, kv_heads=8, key_dim=128, value_dim=128)
MHA = HeadCache(layers=61, kv_heads=64, key_dim=192, value_dim=128)
PLAIN_TP8, DCP8 = Parallelism(8), Parallelism(8, dcp=8)

# By hand: layers x (kv_lora_rank + qk_rope_head_dim) x bytes of the dtype, and so on. 656 bytes
# per layer is vLLM's fp8_ds_mla: 512 fp8 latents, 4 scales of 4 bytes, 64 bf16 rotary elements.
# fp4 is of SGLang's MLATokenToKVPoolFP4 and MHATokenToKVPoolFP4 (mem_cache/memory_pool.py): two
# elements a byte and a scale byte for 16, so (576/2 + 576/16) a layer of MLA.
BYTES = [
    ("MLA replicated by plain TP", KIMI, "bf16", PLAIN_TP8, 70_272),
    ("MLA on one GPU", KIMI, "bf16", Parallelism(), 70_272),
    ("MLA in fp16", KIMI, "fp16", PLAIN_TP8, 70_272),
    ("MLA in fp8", KIMI, "fp8", PLAIN_TP8, 35_136),
    ("MLA divided by DCP 8", KIMI, "bf16", DCP8, 8_784),
    ("MLA divided by DCP 4", KIMI, "bf16", Parallelism(8, dcp=4), 17_568),
    ("MLA whole under DP attention", KIMI, "bf16", Parallelism(8, dp_attention=True), 70_272),
    ("fp8_ds_mla, 656 bytes a layer", KIMI, "fp8_ds_mla", PLAIN_TP8, 61 * 656),
    ("fp8_ds_mla and indexer", GLM, "fp8_ds_mla", PLAIN_TP8, 61_464),
    ("fp8_ds_mla and indexer at DCP 2", GLM, "fp8_ds_mla", Parallelism(8, dcp=2), 30_732),
    ("bf16 and indexer", GLM, "bf16", PLAIN_TP8, 100_152),
    ("GQA, one head each", GQA, "bf16", PLAIN_TP8, 31_232),
    ("GQA, heads copied beyond their number", GQA, "bf16", Parallelism(16), 31_232),
    ("GQA, copies divided by DCP", GQA, "bf16", Parallelism(16, dcp=2), 15_616),
    ("GQA whole under DP attention", GQA, "bf16", Parallelism(8, dp_attention=True), 249_856),
    ("MHA, eight heads each", MHA, "bf16", PLAIN_TP8, 312_320),
    ("MLA in fp4", KIMI, "fp4", PLAIN_TP8, 61 * (288 + 36)),
    ("GQA in fp4", GQA, "fp4", PLAIN_TP8, 61 * 2 * (64 + 8)),
    ("MLA over two stages, 31 layers on one", KIMI, "bf16", Parallelism(4, pp=2), 31 * 1152),
    ("MLA over 61 stages", KIMI, "bf16", Parallelism(pp=61), 1152),
    ("GQA over four stages", GQA, "bf16", Parallelism(2, pp=4), 16 * 4 * 256 * 2),
    (
        "an indexer that DCP does not divide",
        replace(GLM, indexer_replicated=True),
        "fp8_ds_mla",
        Parallelism(8, dcp=2),
        78 * (656 // 2 + 132),
    ),
]


@pytest.mark.parametrize(
    ("cache", "dtype", "ranks", "expected"), [b[1:] for b in BYTES], ids=[b[0] for b in BYTES]
)
def test_bytes_per_token_and_gpu(cache, dtype: str, ranks: Parallelism, expected: int) -> None:
    assert bytes_per_token_per_gpu(cache, dtype, ranks) == expected


def test_the_accounts_8_6_kb_are_kib() -> None:
    cell = bytes_per_token_per_gpu(KIMI, "bf16", DCP8)
    assert f"{cell / KIB:.1f}" == "8.6"
    assert f"{cell / 1000:.1f}" == "8.8"


# soulmachine/skills, deploy-kimi-k26-on-rtx-pro-6000/REFERENCE.md: one server, two dtypes.
def test_fp8_doubles_the_pool_as_a_public_server_printed() -> None:
    pool_bytes = 116_153 * bytes_per_token_per_gpu(KIMI, "bf16", PLAIN_TP8)
    assert pool_tokens(pool_bytes, bytes_per_token_per_gpu(KIMI, "fp8", PLAIN_TP8)) == 232_306


def test_the_accounts_pool_in_fp8_would_hold_202268_tokens() -> None:
    assert pool_tokens(101_134 * 70_272, 35_136) == 202_268


@pytest.mark.parametrize(("pool_bytes", "expected"), [(999, 9), (1000, 10), (99, 0), (0, 0)])
def test_a_pool_holds_whole_tokens(pool_bytes: int, expected: int) -> None:
    assert pool_tokens(pool_bytes, 100) == expected


@pytest.mark.parametrize(
    ("context", "pool", "served"), [(200_000, 101_134, 101_133), (32_768, 101_134, 32_767)]
)
def test_sglang_clips_a_request_at_the_smaller_of_context_and_pool(context, pool, served) -> None:
    assert largest_request(context, pool) == served


@pytest.mark.parametrize(
    ("heads", "tp", "expected"), [(8, 1, 8), (8, 2, 4), (8, 8, 1), (8, 16, 1), (1, 8, 1), (4, 8, 1)]
)
def test_heads_are_shared_out_and_then_copied(heads: int, tp: int, expected: int) -> None:
    assert heads_per_rank(heads, Parallelism(tp)) == expected


LATENTS = st.builds(
    LatentCache,
    st.integers(1, 100),
    st.integers(1, 8).map(lambda blocks: 128 * blocks),
    st.integers(1, 8).map(lambda blocks: 16 * blocks),
    st.sampled_from([0, 132]),
)
HEADS = st.builds(
    HeadCache,
    st.integers(1, 100),
    st.sampled_from([1, 2, 4, 8, 64]),
    st.sampled_from([64, 128, 192]),
    st.sampled_from([64, 128]),
)


@given(
    LATENTS,
    st.sampled_from([1, 2, 4, 8, 16]),
    st.sampled_from(["bf16", "fp8", "fp8_ds_mla", "fp4"]),
)
def test_only_dcp_divides_a_latent(cache: LatentCache, n: int, dtype: str) -> None:
    one = bytes_per_token_per_gpu(cache, dtype, Parallelism())
    assert bytes_per_token_per_gpu(cache, dtype, Parallelism(n)) == one
    assert bytes_per_token_per_gpu(cache, dtype, Parallelism(n, dcp=n)) * n == pytest.approx(one)


@given(st.integers(1, 8), st.integers(0, 3), st.integers(0, 3))
def test_tensor_parallelism_divides_heads_until_each_rank_has_one(layers, log_heads, log_tp):
    cache = HeadCache(layers, 2**log_heads, 64, 64)
    one = bytes_per_token_per_gpu(cache, "bf16", Parallelism())
    found = bytes_per_token_per_gpu(cache, "bf16", Parallelism(2**log_tp))
    assert found * min(2**log_tp, 2**log_heads) == one


@given(LATENTS | HEADS, st.sampled_from([1, 2, 4]), st.sampled_from(["bf16", "fp8", "fp4"]))
def test_bytes_scale_with_layers(cache, tp: int, dtype: str) -> None:
    one = bytes_per_token_per_gpu(replace(cache, layers=1), dtype, Parallelism(tp))
    found = bytes_per_token_per_gpu(cache, dtype, Parallelism(tp))
    assert found == cache.layers * one


@given(LATENTS | HEADS, st.sampled_from([1, 2, 4]))
def test_bytes_scale_with_the_dtype(cache, tp: int) -> None:
    """An indexer has a dtype of its own."""
    if isinstance(cache, LatentCache):
        cache = replace(cache, indexer_bytes=0)

    def cost(dtype: str) -> float:
        return bytes_per_token_per_gpu(cache, dtype, Parallelism(tp))

    assert cost("bf16") == cost("fp16") == 2 * cost("fp8")
    assert cost("fp4") == pytest.approx(cost("fp8") * (1 / 2 + 1 / 16))
    if isinstance(cache, LatentCache):
        assert cost("fp8") < cost("fp8_ds_mla") < cost("bf16")


@given(LATENTS | HEADS, st.integers(1, 8))
def test_stages_never_raise_the_bytes_and_hold_all_layers(cache, pp: int) -> None:
    pp = min(pp, cache.layers)
    one = bytes_per_token_per_gpu(cache, "bf16", Parallelism())
    found = bytes_per_token_per_gpu(cache, "bf16", Parallelism(pp=pp))
    assert one / pp <= found <= one
    assert found < one / pp + one / cache.layers


@given(LATENTS, st.sampled_from([2, 4, 8]))
def test_dcp_divides_all_but_a_replicated_indexer(cache: LatentCache, dcp: int) -> None:
    whole = replace(cache, indexer_replicated=True)
    indexers = cache.layers * cache.indexer_bytes
    divided = bytes_per_token_per_gpu(cache, "bf16", Parallelism(dcp, dcp=dcp))
    found = bytes_per_token_per_gpu(whole, "bf16", Parallelism(dcp, dcp=dcp))
    assert found == pytest.approx(divided + indexers * (1 - 1 / dcp))


@pytest.mark.parametrize(
    ("values", "says"),
    [
        ({"tp": 0}, "not both at least 1"),
        ({"tp": 8, "dcp": 0}, "not both at least 1"),
        ({"tp": 8, "pp": 0}, "pp 0 is not at least 1"),
        ({"tp": 8, "dcp": 3}, "dcp 3 does not divide tp 8"),
        ({"tp": 4, "dcp": 8}, "dcp 8 does not divide tp 4"),
        ({"tp": 8, "dcp": 2, "dp_attention": True}, "exclude one another"),
    ],
)
def test_ranks_that_no_engine_has_are_refused(values: dict, says: str) -> None:
    with pytest.raises(ValueError, match=says):
        Parallelism(**values)


@pytest.mark.parametrize(
    ("cache", "dtype", "ranks", "says"),
    [
        (KIMI, "int4", PLAIN_TP8, "'int4' is not one of bf16"),
        (GQA, "fp8_ds_mla", PLAIN_TP8, "'fp8_ds_mla' is not one of bf16"),
        (LatentCache(2, 500, 64), "fp8_ds_mla", PLAIN_TP8, "500 are not a multiple"),
        (LatentCache(2, 500, 64), "fp4", PLAIN_TP8, "564 are not a multiple"),
        (HeadCache(2, 1, 72, 72), "fp4", PLAIN_TP8, "72 are not a multiple"),
        (KIMI, "bf16", Parallelism(pp=62), "pp 62 is more than the 61 layers"),
        (GQA, "bf16", Parallelism(3), "8 KV heads cannot be shared out over 3"),
        (GQA, "bf16", DCP8, "dcp 8 is more than the 1 copies"),
        (GQA, "bf16", Parallelism(16, dcp=4), "dcp 4 is more than the 2 copies"),
    ],
)
def test_layouts_that_no_engine_has_are_refused(cache, dtype, ranks, says: str) -> None:
    with pytest.raises(ValueError, match=says):
        bytes_per_token_per_gpu(cache, dtype, ranks)


def test_attention_heads_are_shared_out_evenly_or_refused() -> None:
    with pytest.raises(ValueError, match="64 attention heads cannot be shared out over 7 ranks"):
        refuse_uneven_heads(64, Parallelism(7))
    refuse_uneven_heads(64, Parallelism(8))
    refuse_uneven_heads(64, Parallelism(7, dp_attention=True))
