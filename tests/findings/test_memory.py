"""What the KV cache of a case costs, and what real servers printed."""

import re
from dataclasses import replace

import pytest

from analysis import paths
from analysis.errors import InputError
from analysis.findings.ledger import Findings
from analysis.model.kv_cache import GIB, LatentCache, Parallelism, bytes_per_token_per_gpu
from analysis.records.model_config import load_model
from analysis.records.tables import PoolRow, read_table

# Worked out by hand from the config: 61 layers, 512 + 64 elements, 2 bytes; 1 GB = 10**9 bytes,
# 1 GiB = 2**30; 200,000 tokens wished, a pool of 101,134; GQA 8 x 128, MHA 64 x (192 + 128).
OF_THE_ACCOUNT = [
    ("elements", lambda m: m.elements, "576"),
    ("replicated, B per token", lambda m: m.main.bytes_per_token, "70272"),
    ("sharded, B per token", lambda m: m.sharded.bytes_per_token, "8784"),
    ("fp8, B per token", lambda m: m.fp8.bytes_per_token, "35136"),
    ("sharded, KiB per token", lambda m: m.sharded.kib_per_token, "8.6"),
    ("200k replicated, GB", lambda m: m.main.wished_gb, "14.05"),
    ("200k replicated, GiB", lambda m: m.main.wished_gib, "13.09"),
    ("200k sharded, GB", lambda m: m.sharded.wished_gb, "1.757"),
    ("pool replicated, GiB", lambda m: m.main.pool_gib, "6.62"),
    ("pool sharded, GiB", lambda m: m.sharded.pool_gib, "0.83"),
    ("beyond the pool, GiB", lambda m: m.main.extra_gib, "6.47"),
    ("GQA, B per token", lambda m: m.gqa.bytes_per_token, "31232"),
    ("MHA, B per token", lambda m: m.mha.bytes_per_token, "312320"),
    ("largest request", lambda m: m.largest_request, "101133"),
]


@pytest.mark.parametrize(
    ("value", "printed"), [row[1:] for row in OF_THE_ACCOUNT], ids=[r[0] for r in OF_THE_ACCOUNT]
)
def test_the_memory_of_the_account(sglang: Findings, like, value, printed: str) -> None:
    assert like(value(sglang.memory), printed) == printed


def test_200k_fit_only_under_some_readings(sglang: Findings) -> None:
    memory = sglang.memory
    fits = {
        (cell.layout[:8], cell.kv_dtype): (
            memory.fits_free_before_pool(cell),
            memory.fits_free_after_pool(cell),
        )
        for cell in memory.cells
    }
    assert fits["replicat", "bf16"] == (False, True)
    assert fits["replicat", "fp8"] == (True, True)
    assert fits["divided ", "bf16"] == (True, True)


TP8 = "tp = 8\n"
DCP = "divided over all ranks (DCP)"


@pytest.mark.parametrize(
    ("layout", "name", "cost"),
    [
        (TP8, "replicated on every rank (plain TP)", 70_272),
        (TP8 + "dcp = 8\n", DCP, 8_784),
        (TP8 + "dcp = 4\n", "divided over 4 of 8 ranks (DCP)", 17_568),
        (TP8 + "dp_attention = true\n", "whole, own requests only (DP attention)", 70_272),
        ("tp = 1\n", "replicated on every rank (plain TP)", 70_272),
    ],
)
def test_the_main_layout_is_the_one_that_the_case_states(alter, layout, name, cost) -> None:
    memory = alter({"case.toml": [(TP8, layout)]}).memory
    assert (memory.main.layout, memory.main.bytes_per_token) == (name, cost)


def test_a_case_with_heads_shares_them_out_and_has_no_latent(alter) -> None:
    model = ('"nvidia/Kimi-K2.6-NVFP4"', '"Qwen/Qwen3-235B-A22B"')
    memory = alter({"case.toml": [model]}).memory
    assert memory.elements is None
    assert memory.sharded is memory.main
    assert memory.main.layout == "heads shared out (TP)"
    assert memory.main.bytes_per_token == 94 * 1 * 2 * 128 * 2  # one of 4 KV heads on each of 8


def test_the_counterfactual_of_an_fp8_ds_mla_cache_is_in_fp8(alter) -> None:
    dtype = ('kv_dtype = "bf16"', 'kv_dtype = "fp8_ds_mla"')
    memory = alter({"case.toml": [dtype]}).memory
    assert memory.main.bytes_per_token == 61 * 656
    assert memory.gqa.kv_dtype == "fp8"
    assert memory.gqa.bytes_per_token == 31_232 / 2


def test_a_case_without_pool_or_free_memory_leaves_both_undefined(vllm: Findings, alter) -> None:
    assert vllm.memory.free_gb is None
    assert vllm.memory.fits_free_before_pool(vllm.memory.main) is None
    lines = [("pool_tokens = 101134 ", "#"), ("free_gb_per_gpu = 10.0", "#")]
    memory = alter({"case.toml": lines}).memory
    assert (memory.main.pool_gib, memory.main.extra_gib, memory.largest_request) == (None,) * 3
    assert memory.fits_free_after_pool(memory.main) is None


ROWS = read_table(paths.VALIDATION / "kv_pool_observed.csv", PoolRow)
PRINTED = [row for row in ROWS if row.printed_gib is not None]
OFF = ("vLLM", "Qwen/Qwen3-235B-A22B-FP8", 4)
"""Printed tokens are 1.1 % below what the printed GiB hold; why is not known."""


def printed_cell(row: PoolRow) -> float:
    """Bytes per token of a row, with the reason for each choice.

    Kimi-K2-Thinking has the layout of Kimi-K2-Instruct (61 layers, 512 + 64). A GLM server that
    keeps its MTP layer caches 79 layers instead of 78, which the row's note counts. vLLM's fp8 of
    a sparse MLA is fp8_ds_mla; SGLang's tilelang path keeps 576 plain fp8 bytes.
    """
    names = {"Kimi-K2-Thinking": "Kimi-K2-Instruct", "GLM-5.1": "GLM-5.1-NVFP4"}
    names |= {"GLM-5 ": "GLM-5-NVFP4", "MiniMax-M2.5": "MiniMax-M2.5"}
    names |= {"Qwen3-235B-A22B-FP8": "Qwen3-235B-A22B-FP8"}
    cache = load_model(next(name for key, name in names.items() if key in row.model)).cache
    layers = re.match(r"\d+(?= layers)", row.note)
    if layers:
        cache = replace(cache, layers=int(layers[0]))
    sparse = isinstance(cache, LatentCache) and cache.indexer_bytes > 0
    dtype = "bf16" if row.kv_dtype.startswith("bf16") else "fp8"
    if sparse and dtype == "fp8" and row.engine == "vLLM":
        dtype = "fp8_ds_mla"
    return bytes_per_token_per_gpu(cache, dtype, Parallelism(row.tp, row.dcp))


def rounding_gib(row: PoolRow) -> float:
    """Half of the last digit, once; twice where SGLang printed K and V apart and we summed."""
    return 0.01 if row.engine == "SGLang" and row.attn.startswith("GQA") else 0.005


@pytest.mark.parametrize("row", PRINTED, ids=[f"{r.engine} {r.model} {r.tokens}" for r in PRINTED])
def test_printed_tokens_take_the_printed_gib(row: PoolRow) -> None:
    off_by = row.tokens * printed_cell(row) / GIB - row.printed_gib
    if (row.engine, row.model, row.tp) == OFF:
        assert 100 * off_by / row.printed_gib == pytest.approx(-1.1, abs=0.05)
    else:
        assert abs(off_by) <= rounding_gib(row)


def test_thirteen_rows_are_checked_and_one_is_off() -> None:
    assert len(PRINTED) == 13
    assert [(r.engine, r.model, r.tp) for r in PRINTED].count(OFF) == 1


def test_the_check_would_see_a_latent_that_was_sharded_by_plain_tp() -> None:
    """The same rows with the cell divided by tp are off by far more than any rounding."""
    for row in PRINTED:
        if row.attn.startswith("MLA") and row.dcp == 1:
            assert row.tokens * printed_cell(row) / row.tp / GIB < 0.2 * row.printed_gib


def pairs() -> list[tuple[PoolRow, PoolRow]]:
    """Rows of one server at DCP 1 and at DCP n, with memory alike."""
    found = []
    for row in ROWS:
        if row.dcp == 1:
            continue
        same = [
            one
            for one in ROWS
            if (one.dcp, one.model, one.version, one.tp) == (1, row.model, row.version, row.tp)
            and one.printed_gib == row.printed_gib
            and "kimi-k26-mtp-long-ctx" not in row.source  # 14.32 and 14.01 GiB, by its notes
        ]
        found += [(one, row) for one in same]
    return found


@pytest.mark.parametrize(
    ("one", "many"), pairs(), ids=[f"{many.model} DCP {many.dcp}" for _, many in pairs()]
)
def test_tokens_at_dcp_n_are_n_times_those_at_dcp_1(one: PoolRow, many: PoolRow) -> None:
    assert many.tokens / one.tokens == pytest.approx(many.dcp, rel=2e-4)


def test_kimi_k2_thinking_printed_exactly_eight_times_the_tokens_less_a_block() -> None:
    one, many = next(p for p in pairs() if "K2-Thinking" in p[1].model)
    assert f"{many.tokens / one.tokens:.1f}" == "8.0"
    assert len(pairs()) == 3


def test_glm_holds_n_times_the_tokens_per_gib_at_dcp_n() -> None:
    glm = [r for r in PRINTED if r.model == "lukealonso/GLM-5.1-NVFP4-MTP"]
    per_gib = {r.dcp: r.tokens / r.printed_gib for r in glm if "78 layers (78)" in r.note}
    for dcp in (2, 8):
        assert per_gib[dcp] / per_gib[1] == pytest.approx(dcp, rel=5e-4)
    one, four = (r.tokens / r.printed_gib for r in glm if "79 layers" in r.note)
    assert four / one == pytest.approx(4, rel=5e-4)


def test_twice_the_gpus_of_plain_tp_do_not_halve_the_cell() -> None:
    """SGLang GLM-5.1 by its note, and Kimi K2.6 at TP 16: the growth is from halved weights."""
    sixteen = next(r for r in ROWS if r.tp == 16)
    cell = bytes_per_token_per_gpu(load_model("Kimi-K2.6").cache, "fp8", Parallelism(16))
    assert f"{sixteen.tokens * cell / GIB:.2f} GiB" in sixteen.note


def test_the_chapter_checks_the_pools_of_plain_mla_models(sglang: Findings) -> None:
    checks = sglang.memory.pool_checks
    assert [c.row.dcp for c in checks] == [1, 8]
    assert all(abs(c.error_pct) < 0.05 for c in checks)
    assert {row.tp for row in sglang.memory.same_pools} == {8}
    assert 116_153 in {row.tokens for row in sglang.memory.same_pools}


def test_a_pool_of_an_unknown_model_is_named(alter) -> None:
    found = alter({})
    path = found.case.folder.parent.parent / "validation" / "kv_pool_observed.csv"
    path.write_text(path.read_text().replace("moonshotai/Kimi-K2-Thinking", "some/Model-X"))
    with pytest.raises(InputError, match="found no model 'some/Model-X'"):
        _ = found.memory
