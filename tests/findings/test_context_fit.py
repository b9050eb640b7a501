"""A wished context under every reading of a case.

The account's numbers were worked out by hand: 61 layers of 576 elements, 2 bytes in bf16; a DFlash
drafter of 6 layers is 67/61 of that by layer ratio, and 6 x (128 + 128) x 2 B = 3,072 B in a cell
of its own, one of its 8 heads on each rank. 200,000 tokens wished, a pool of 101,134, 10 GB free.
"""

import pytest

from analysis.findings import context_fit
from analysis.findings.context_fit import ContextFit, Reading
from analysis.findings.ledger import Findings
from analysis.findings.missing import Missing
from analysis.model.kv_cache import GB, GIB
from analysis.records.case import load_case

PLAIN, DIVIDED = "replicated on every rank (plain TP)", "divided over all ranks (DCP)"
RATIO, OWN = "dflash layer ratio", "dflash own cell"


@pytest.fixture(scope="module")
def account() -> ContextFit:
    found = context_fit.find(load_case("kimi-k26-sglang"))
    assert isinstance(found, ContextFit)
    return found


def reading(found: ContextFit, layout: str, dtype: str, rule: str) -> Reading:
    (one,) = [
        r for r in found.readings if (r.layout, r.kv_dtype, r.draft_rule) == (layout, dtype, rule)
    ]
    return one


# Layout, dtype and draft rule: bytes a token, tokens of the pool, GiB missing, fits if the free
# memory was read before, and after the pool.
READINGS = [
    (PLAIN, "bf16", "none", 70_272, 101_134, "6.47", False, True),
    (PLAIN, "bf16", RATIO, 77_184, 101_134, "7.11", False, True),
    (PLAIN, "bf16", OWN, 73_344, 101_134, "6.75", False, True),
    (PLAIN, "fp8", "none", 35_136, 202_268, "0.00", True, True),
    (PLAIN, "fp8", RATIO, 38_592, 202_268, "0.00", True, True),
    (PLAIN, "fp8", OWN, 38_208, 194_136, "0.21", True, True),
    (DIVIDED, "bf16", "none", 8_784, 101_134, "0.81", True, True),
    (DIVIDED, "fp8", "none", 4_392, 202_268, "0.00", True, True),
]


@pytest.mark.parametrize(
    ("layout", "dtype", "rule", "cell", "tokens", "missing", "before", "after"),
    READINGS,
    ids=[f"{r[0][:7]} {r[1]} {r[2]}" for r in READINGS],
)
def test_the_account_by_every_reading(
    account, like, layout, dtype, rule, cell, tokens, missing, before, after
) -> None:
    one = reading(account, layout, dtype, rule)
    assert (one.bytes_per_token, one.pool_tokens) == (cell, tokens)
    assert like(one.missing_gib, missing) == missing
    assert (one.fits_before, one.fits_after) == (before, after)


def test_two_layouts_two_dtypes_and_three_rules_are_read(account: ContextFit) -> None:
    assert len(account.readings) == 2 * 2 * 3
    assert account.main == reading(account, PLAIN, "bf16", "none")
    assert f"{account.main.pool_gib:.2f}" == "6.62"
    assert f"{account.main.wished_gib:.2f}" == "13.09"
    assert f"{reading(account, DIVIDED, 'bf16', 'none').pool_gib:.2f}" == "0.83"
    assert f"{reading(account, PLAIN, 'bf16', OWN).pool_gib:.2f}" == "6.91"


def test_the_verdict_names_its_conditions(account: ContextFit) -> None:
    for words in (
        "200,000 tokens do not fit in the pool of 101,134 as it is",
        "101,133 tokens",
        "6.47 GiB more",
        "10 GB free are enough if read after the pool was allocated, and not enough if read before",
        "202,268 without a draft cache",
        "194,136 with DFlash's draft cache in its own cell",
    ):
        assert words in account.fits_says


@pytest.mark.parametrize(
    ("free", "words"),
    [
        ("20.0", "enough if read after the pool was allocated, and enough if read before"),
        ("5.0", "not enough if read after the pool was allocated, and not enough if read before"),
    ],
)
def test_the_verdict_follows_the_free_memory(alter, free: str, words: str) -> None:
    found = alter({"case.toml": [("free_gb_per_gpu = 10.0", f"free_gb_per_gpu = {free}")]})
    assert f"{float(free):g} GB free are {words}" in context_fit.find(found.case).fits_says


def test_without_a_free_figure_the_readings_stay_open(alter) -> None:
    found = context_fit.find(alter({"case.toml": [("free_gb_per_gpu = 10.0", "#")]}).case)
    assert {(r.fits_before, r.fits_after) for r in found.readings} == {(None, None)}
    (fraction,) = [way for way in found.ways if way.name.startswith("memory fraction")]
    assert fraction.enough == "not known: free memory is not given"


def test_the_ways_are_ranked_and_say_when_they_are_enough(account: ContextFit) -> None:
    assert [way.order for way in account.ways] == sorted(way.order for way in account.ways)
    enough = {way.name: way.enough for way in account.ways}
    assert enough["as configured"] == "no"
    assert enough["no draft cache"] == "no"
    assert enough["DCP 8"] == "yes"
    assert enough["DCP 2"] == "only without a draft cache"
    assert enough["fp8 KV cache, no draft cache"] == "yes"
    assert enough["fp8 KV cache"] == (
        "only without a draft cache or with DFlash's draft cache by layer ratio"
    )
    (fraction,) = [name for name in enough if name.startswith("memory fraction")]
    assert enough[fraction] == "only if the free memory was read after the pool"
    gpu = 97_887 * 2**20  # bytes of the GPU, hardware/gpus.csv
    missing = [r.missing_gib * GIB / gpu for r in account.readings[:3]]
    assert fraction == f"memory fraction up by {min(missing):.3f} to {max(missing):.3f}"
    assert fraction.startswith("memory fraction up by 0.068")


def test_a_wish_that_the_pool_holds_needs_no_ways() -> None:
    """rtx6kpro's kimi-k26-v2.md prints a maximum concurrency of 1.87x at 262,144 tokens."""
    found = context_fit.find(load_case("kimi-k26-vllm"))
    assert found.held
    assert f"{found.then.requests_at_limit:.2f}" == "1.87"
    assert isinstance(context_fit.to_reach(found), Missing)
    assert "1.87 requests of that length" in found.fits_says


def test_vllm_would_refuse_what_sglang_clips(account: ContextFit, alter) -> None:
    others = {other.engine: other.starts for other in account.elsewhere}
    assert others == {"vLLM": False, "llama.cpp": False}
    found = context_fit.find(alter({"case.toml": [('name = "SGLang"', 'name = "vLLM"')]}).case)
    assert (found.then.starts, found.then.largest_request) == (False, 0)
    assert "refuses to start" in found.fits_says


def test_llama_cpp_allocates_what_is_wished() -> None:
    """22.5 KiB a token: 30 layers x 3 heads x (64 + 64) x 2 B, model card of SmolLM2-135M."""
    found = context_fit.find(load_case("smollm2-llamacpp"), 4096)
    assert found.main.bytes_per_token == 23_040
    assert found.then.pool_tokens == 4096
    assert found.fits_says.startswith("llama.cpp allocates the cells of its limit")
    assert (found.ways, found.elsewhere) == ((), ())


def test_an_unknown_engine_leaves_the_answer_open(alter) -> None:
    found = context_fit.find(alter({"case.toml": [('name = "SGLang"', 'name = "Other"')]}).case)
    assert (found.now, found.then) == (None, None)
    assert isinstance(context_fit.with_pool(found), Missing)
    assert "do not fit in the pool of 101,134" in found.fits_says
    assert "How Other meets such a limit is not known here." in found.fits_says


def test_the_memory_chapter_and_this_finding_agree(sglang: Findings, account: ContextFit) -> None:
    main = sglang.memory.main
    assert main.bytes_per_token == account.main.bytes_per_token
    assert main.extra_gib == pytest.approx(account.main.missing_gib)
    assert sglang.memory.fits_free_before_pool(main) == account.main.fits_before
    assert account.main.free_bytes == 10 * GB


def test_without_a_pool_only_the_need_is_said(alter) -> None:
    found = context_fit.find(alter({"case.toml": [("pool_tokens = 101134 ", "#")]}).case)
    assert found.fits_says == (
        "200,000 tokens take 13.1 GiB in bf16. Whether they fit is not known: the case gives no "
        "pool."
    )
    assert {(r.pool_gib, r.missing_gib, r.fits_after) for r in found.readings} == {(None,) * 3}


def test_the_table_of_requests_grows_with_the_limit_beside_the_pool(account: ContextFit) -> None:
    """2,049 rows of 4 B a token: what `ReqToTokenPool` of SGLang 0.5.23 allocates."""
    assert account.limit_tokens == 32_768
    assert account.table_gib == pytest.approx((200_000 - 32_768) * 2_049 * 4 / GIB)
    assert f"by {account.table_gib:.2f} GiB on each GPU" in account.fits_says
    lower = context_fit.find(load_case("kimi-k26-sglang"), wished_tokens=16_384)
    assert isinstance(lower, ContextFit)
    assert (lower.table_gib, lower.table_says) == (None, "")
