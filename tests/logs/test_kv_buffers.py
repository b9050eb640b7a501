"""Sizes of KV buffers, read from lines that real servers printed."""

import pytest

from analysis.logs.kv_buffers import GIB, MIB, kv_buffers

UNIFIED = (
    "llama_kv_cache_unified: size = 1248.00 MiB (  4096 cells,  39 layers,  1 seqs), "
    "K (f16):  624.00 MiB, V (f16):  624.00 MiB"
)
STREAMS = (
    "0.00.540.318 I llama_kv_cache: size =   45.00 MiB (  1024 cells,  30 layers,  2/2 seqs), "
    "K (f16):   22.50 MiB, V (q8_0):   11.95 MiB"
)
"""The first is made up by the form of ``llama-kv-cache.cpp`` of the middle of 2025; the second
was printed by b11549, but for the type and size of V.
"""
SGLANG = (
    "[2026-11-30 22:58:26] KV Cache is allocated. dtype: torch.bfloat16, #tokens: 16384, "
    "K size: 0.18 GB, V size: 0.18 GB"
)
"""Printed twice by SGLang 0.5.23 on CPU, with SmolLM2-135M as target and as draft model."""
SMOLLM2_BYTES = 30 * 3 * (64 + 64) * 2
"""Of a token in bf16: 30 layers, 3 KV heads of 64 (its ``config.json``)."""


def test_llama_cpp_counts_the_cells_of_every_stream() -> None:
    (unified,) = kv_buffers([UNIFIED])
    (streams,) = kv_buffers([STREAMS])
    assert (unified.tokens, unified.layers, unified.dtype) == (4096, 39, "f16")
    assert unified.size_bytes == 1248 * MIB
    assert unified.rounding_bytes == pytest.approx(0.005 * MIB)
    assert (streams.tokens, streams.dtype) == (2048, "f16/q8_0")
    assert streams.sizes == {"K": 22.5 * MIB, "V": pytest.approx(11.95 * MIB)}


def test_llama_cpp_has_a_line_for_each_device() -> None:
    lines = [
        "llama_kv_cache:      CUDA0 KV buffer size =   144.00 MiB",
        "0.00.181.089 I llama_kv_cache:        CPU KV buffer size =     0.00 MiB",
    ]
    assert [(one.of, one.size_bytes / MIB) for one in kv_buffers(lines)] == [
        ("CUDA0", 144.0),
        ("CPU", 0.0),
    ]


def test_sglang_with_a_draft_model_has_a_line_for_each_of_the_two() -> None:
    target, draft = kv_buffers(["", SGLANG, SGLANG])
    assert (target.line, draft.line) == (2, 3)
    assert (target.engine, target.tokens, target.dtype, target.of) == (
        "SGLang",
        16384,
        "bfloat16",
        "",
    )
    assert target.sizes == {"K": pytest.approx(0.18 * GIB), "V": pytest.approx(0.18 * GIB)}
    assert target.holds((16384 + 1) * SMOLLM2_BYTES)
    assert not target.holds(0.95 * 16384 * SMOLLM2_BYTES)


@pytest.mark.parametrize(
    ("line", "of", "tokens", "gib"),
    [
        (
            "[2026-11-30 23:10:15 TP1] KV Cache is allocated. dtype: torch.bfloat16, "
            "#tokens: 16384, KV size: 0.07 GB",
            "TP1",
            16384,
            0.07,
        ),
        (
            "[2025-03-25 16:37:06 DP1 TP0] KV Cache is allocated. #tokens: 442750, "
            "K size: 27.02 GB, V size: 27.02 GB",
            "DP1 TP0",
            442750,
            54.04,
        ),
        (
            "(Worker_TP0 pid=1) INFO 11-30 22:00:00 [gpu_worker.py:760] "
            "Available KV cache memory: 6.62 GiB",
            "",
            None,
            6.62,
        ),
    ],
)
def test_a_line_of_a_rank(line: str, of: str, tokens: int | None, gib: float) -> None:
    (found,) = kv_buffers([line])
    assert (found.of, found.tokens) == (of, tokens)
    assert found.size_bytes == pytest.approx(gib * GIB)


@pytest.mark.parametrize(
    "line",
    [
        "",
        "KV Cache is allocated.",
        "KV Cache is allocated. #tokens: 16384, K size: 0.18 GB",
        "llama_kv_cache: size =   45.00 MiB (  1024 cells",
        "GPU KV cache size: 233,008 tokens",
        "llama_context:        CPU  output buffer size =     0.38 MiB",
    ],
)
def test_a_line_that_is_cut_or_another_tells_nothing(line: str) -> None:
    assert kv_buffers([line]) == []
