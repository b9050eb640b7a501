"""The memory model against pools that real servers printed; their logs are the judge."""

from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from analysis import paths
from analysis.errors import InputError
from analysis.findings import kv_validation
from analysis.findings.kv_validation import KvValidation
from analysis.findings.missing import Missing
from analysis.findings.pool_check import MIB, PoolCheck, check
from analysis.model.kv_cache import GIB
from analysis.records.case import load_case
from analysis.records.tables import PoolRow, read_table

ROWS = read_table(paths.VALIDATION / "kv_pool_observed.csv", PoolRow)
PRINTED = [row for row in ROWS if row.printed_gib or row.printed_k_gib]
OFF = ("vLLM", "Qwen/Qwen3-235B-A22B-FP8")
"""The one row that is outside: vllm-project/vllm#21348, for a reason that is not known."""
HEADER = "engine,model,config,tp,dcp,kv_dtype,page_tokens,tokens,printed_gib,source,memory\n"

Table = Callable[..., str]


@pytest.fixture(scope="module")
def found() -> KvValidation:
    made = kv_validation.find(load_case("kimi-k26-sglang"))
    assert isinstance(made, KvValidation)
    return made


@pytest.fixture
def table(tmp_path: Path) -> Table:
    """A reader's own table, its rows without the header; the path to it."""

    def written(*rows: str) -> str:
        path = tmp_path / "own.csv"
        path.write_text(HEADER + "".join(f"{row}\n" for row in rows))
        return str(path)

    return written


@pytest.mark.parametrize("row", PRINTED, ids=[f"{r.engine} {r.model} {r.tokens}" for r in PRINTED])
def test_a_printed_size_is_that_of_the_printed_tokens(row: PoolRow) -> None:
    made = check(row)
    assert made.outcome == ("outside" if (row.engine, row.model) == OFF else "inside")


def test_exactly_one_row_is_outside_and_named_with_its_size(found: KvValidation) -> None:
    (off,) = found.outside
    assert (off.row.engine, off.row.model) == OFF
    assert f"{off.error_pct:.1f}" == "1.1"
    assert found.verdict.startswith("12 of 13 printed pools agree")
    assert f"Outside: {off.name}, by 1.1 %." in found.verdict
    assert "Conjectures: (a)" in found.unsettled_say
    assert "(b) 95 layers in the cache instead of 94" in found.unsettled_say


def test_the_printed_lines_hold_the_figures_of_their_row() -> None:
    """Each row quotes what it was read from: tokens and sizes stand in it."""
    for row in ROWS:
        line = row.line.replace(",", "")
        assert str(row.tokens) in line
        for size in (row.printed_gib, row.printed_k_gib, row.printed_v_gib):
            assert size is None or f"{size:.2f} G" in line


def test_keys_and_values_are_rounded_apart() -> None:
    """SGLang Qwen3-235B: 8.23 + 8.23; summed and rounded once it would be outside."""
    row = next(r for r in ROWS if r.printed_k_gib)
    apart = check(row)
    summed = row.model_copy(
        update={"printed_gib": 16.46, "printed_k_gib": None, "printed_v_gib": None}
    )
    assert len(apart.parts) == 2
    assert (apart.outcome, check(summed).outcome) == ("inside", "outside")


def test_one_printed_part_outside_is_enough() -> None:
    row = next(r for r in ROWS if r.printed_k_gib)
    assert check(row.model_copy(update={"printed_v_gib": 8.26})).outcome == "outside"


@pytest.mark.parametrize(("engine", "times"), [("vLLM", 8), ("SGLang", 1)])
def test_under_dcp_vllm_prints_the_tokens_of_all_ranks_and_sglang_of_one(engine, times) -> None:
    """vLLM: 'Multiplying the GPU KV cache size by the dcp_world_size 8.' in the recipe's log."""
    row = next(r for r in ROWS if "Thinking" in r.model and r.dcp == 8)
    one = next(r for r in ROWS if "Thinking" in r.model and r.dcp == 1)
    made = check(row.model_copy(update={"engine": engine, "tokens": times * one.tokens}))
    assert made.outcome == "inside"


def test_the_table_would_see_a_latent_that_plain_tp_divided(found: KvValidation) -> None:
    """The same rows read as DCP over all ranks are all outside: nothing else could divide MLA."""
    latent = [c for c in found.sized if c.row.dcp == 1 and "indexer" in _kept(c)]
    latent += [c for c in found.sized if c.row.dcp == 1 and "Kimi" in c.row.model]
    assert len(latent) == 6
    for one in latent:
        divided = one.row.model_copy(update={"dcp": one.row.tp, "engine": "vLLM"})
        assert check(divided).outcome == "outside"
    assert found.power_says.startswith("Rows of MLA under plain tensor parallelism: 6.")


def _kept(one: PoolCheck) -> str:
    return "indexer" if getattr(one.cache, "indexer_bytes", 0) else ""


def test_ratios_are_of_servers_with_the_same_memory_only(found: KvValidation) -> None:
    """DCP 1 : 4 : 8 of rtx6kpro's kimi-k26-v2.md, bf16 : fp8 of soulmachine's REFERENCE.md."""
    seen = {(ratio.differs, ratio.one.row.tokens, ratio.other.row.tokens) for ratio in found.ratios}
    assert seen == {
        ("DCP 1 : 4", 491_200, 1_964_992),
        ("DCP 1 : 8", 491_200, 3_929_600),
        ("DCP 1 : 8", 715_072, 5_721_088),
        ("KV dtype bf16 : fp8", 116_153, 232_306),
    }
    assert all(ratio.inside for ratio in found.ratios)
    assert found.ratios_say.startswith("4 of 4")
    for tokens in ("437,520", "3,424,256", "1,507,120"):
        assert tokens in found.alone_says


def test_a_ratio_that_is_off_is_told(table: Table) -> None:
    row = "vLLM,own,nvidia/Kimi-K2.6-NVFP4,8,{dcp},fp8,16,{tokens},,here,same"
    made = kv_validation.find(
        load_case("kimi-k26-sglang"),
        table(row.format(dcp=1, tokens=100_000), row.format(dcp=8, tokens=100_000)),
    )
    (ratio,) = made.ratios
    assert (ratio.expected, ratio.printed, ratio.inside) == (8, 1, False)
    assert made.verdict == "None of the 2 rows has a printed size and a known layout."


def test_a_readers_table_is_judged_row_by_row(table: Table) -> None:
    """61 layers x 576 elements x 2 B x 100,000 tokens are 6.5446 GiB."""
    good = "SGLang,own,nvidia/Kimi-K2.6-NVFP4,8,1,bf16,1,100000,6.54,here,"
    rows = (
        good,
        good.replace("6.54", "6.56"),
        good.replace("nvidia/Kimi-K2.6-NVFP4", "some/Model-X"),
        good.replace("bf16", "fp8_ds_mla").replace("nvidia/Kimi-K2.6-NVFP4", "Qwen/Qwen3-8B"),
        good.replace(",8,1,", ",8,3,"),
        good.replace("nvidia/Kimi-K2.6-NVFP4", "Qwen/Qwen3.5-397B-A17B"),
    )
    made = kv_validation.find(load_case("kimi-k26-sglang"), table(*rows))
    assert [c.outcome for c in made.checks] == [
        "inside",
        "outside",
        "unknown model",
        "impossible layout",
        "impossible layout",
        "unknown model",
    ]
    assert made.verdict.startswith("1 of 2 printed pools agree")
    for words in ("no model 'some/Model-X'", "dcp 3 does not divide tp 8", "a hybrid layout"):
        assert words in made.unsettled_say


def test_keys_and_values_of_a_latent_are_refused_by_row() -> None:
    row = next(r for r in ROWS if r.printed_k_gib)
    made = check(row.model_copy(update={"config": "nvidia/Kimi-K2.6-NVFP4"}))
    assert (made.outcome, made.bytes_per_token) == ("impossible layout", None)


@pytest.mark.parametrize(
    ("cells", "message"),
    [
        ("SGLang,own,x,8,1,bf17,1,100,6.54,here,", "kv_dtype"),
        ("SGLang,own,x,8,1,bf16,1,,6.54,here,", "tokens"),
        ("SGLang,own,x,8,1,bf16,1,100,-1,here,", "printed_gib"),
    ],
)
def test_a_bad_cell_is_one_line(table: Table, cells: str, message: str) -> None:
    with pytest.raises(InputError, match=message):
        kv_validation.find(load_case("kimi-k26-sglang"), table(cells))


@pytest.mark.parametrize(
    ("sizes", "message"),
    [
        ({"printed_k_gib": 8.23}, "both or neither"),
        ({"printed_gib": 1.0, "printed_k_gib": 1.0, "printed_v_gib": 1.0}, "not all of them"),
    ],
)
def test_a_size_is_printed_as_one_or_as_keys_and_values(sizes: dict, message: str) -> None:
    given = {"engine": "SGLang", "model": "m", "config": "c", "kv_dtype": "bf16", "tokens": 1}
    with pytest.raises(ValueError, match=message):
        PoolRow(source="here", **given, **sizes)


def test_a_case_without_a_table_says_so() -> None:
    missing = kv_validation.find(load_case("smollm2-llamacpp"))
    assert isinstance(missing, Missing)
    assert "no table of pools" in missing.reason


@given(
    tokens=st.integers(1_000, 4_000_000),
    rest=st.floats(0, 1),
    page=st.sampled_from([1, 16, 64]),
    dtype=st.sampled_from(["bf16", "fp8", "fp4"]),
)
def test_what_a_server_of_that_layout_would_print_is_inside(tokens, rest, page, dtype) -> None:
    """Any rest below a page, printed with two decimals, is accepted; two pages more are not."""
    row = PoolRow(
        engine="vLLM",
        model="own",
        config="nvidia/Kimi-K2.6-NVFP4",
        tp=8,
        kv_dtype=dtype,
        page_tokens=page,
        tokens=tokens,
        printed_gib=1.0,
        source="here",
    )
    cell = check(row).bytes_per_token
    gib = (tokens + rest * page) * cell / GIB
    printed = row.model_copy(update={"printed_gib": round(gib, 2)})
    made = check(printed)
    assert made.outcome == "inside"
    low, high = made.allowed_mib
    assert low - 1e-6 <= made.gap_mib <= high + 1e-6
    more = (tokens + 2 * page) * cell / GIB + 2 * 0.005
    beyond = check(row.model_copy(update={"printed_gib": more}))
    assert beyond.outcome == "outside"
    assert beyond.gap_mib > high
    assert beyond.gap_mib * MIB == pytest.approx(2 * page * cell + 0.01 * GIB, rel=1e-3)
