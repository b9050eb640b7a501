"""The ways to make a context fit: all that a layout has, cheapest first.

The account: 101,134 tokens of Kimi K2.6 in bf16 at TP8, 200,000 wished. Its "10 GB free" is read
as left beside the pool; 6.47 GiB are missing, 0.068 of the 95 GiB of a GPU.
"""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from analysis.model.context_ways import cell_bytes, ways
from analysis.model.draft_cache import NO_DRAFT, DraftCache
from analysis.model.kv_cache import GB, GIB, HeadCache, LatentCache, Parallelism

KIMI = LatentCache(61, 512, 64)
GQA = HeadCache(36, 8, 128, 128)
TP8 = Parallelism(8)
OWN = DraftCache("dflash own cell", own=HeadCache(6, 8, 128, 128))
RATIO = DraftCache("dflash layer ratio", 6)


def account(draft: DraftCache, **memory: float):
    pool = 101_134 * cell_bytes(KIMI, "bf16", TP8, draft)
    found = ways(200_000, KIMI, "bf16", TP8, pool, draft, **memory)
    return {way.name: way for way in found}


def test_the_account_without_a_draft_cache() -> None:
    found = account(NO_DRAFT)
    assert (found["as configured"].tokens, found["as configured"].enough) == (101_134, False)
    assert (found["fp8 KV cache"].tokens, found["fp8 KV cache"].enough) == (202_268, True)
    assert [found[f"DCP {n}"].tokens for n in (2, 4, 8)] == [202_268, 404_536, 809_072]
    assert "no draft cache" not in found


@pytest.mark.parametrize(("draft", "fp8"), [(RATIO, 202_268), (OWN, 194_136)])
def test_the_account_with_one(draft: DraftCache, fp8: int) -> None:
    found = account(draft)
    assert found["fp8 KV cache"].tokens == fp8
    assert found["fp8 KV cache"].enough is (fp8 >= 200_000)
    assert ("fp8 KV cache, no draft cache" in found) is not (fp8 >= 200_000)
    assert 101_134 < found["no draft cache"].tokens < 200_000


def test_more_memory_is_conditional_on_what_is_free() -> None:
    """Undecided where it is not known; 6.47 GiB fit into 10 GB, 7 GB are too few for a draft."""
    memory = {"memory_bytes": 95 * GIB}
    assert account(NO_DRAFT)["memory fraction up"].enough is None
    found = account(NO_DRAFT, free_after_pool_bytes=10 * GB, **memory)[
        "memory fraction up by 0.068"
    ]
    assert (found.enough, found.tokens) == (True, 200_000)
    assert f"{(found.pool_bytes - 101_134 * 70_272) / GIB:.2f}" == "6.47"
    assert "6.47 GiB" in found.costs
    assert not account(OWN, free_after_pool_bytes=7 * GB)["memory fraction up"].enough


def test_a_pool_that_holds_the_wish_needs_no_more_memory() -> None:
    found = ways(1_000, KIMI, "bf16", TP8, 101_134 * 70_272)
    assert found[0].enough
    assert not [way for way in found if way.name.startswith("memory")]


def test_what_a_layout_does_not_have_is_left_out() -> None:
    """Heads have no DCP where each rank has its own; fp8 with scales is not made plain fp8."""
    assert [way.name for way in ways(10, GQA, "bf16", Parallelism(8), 100.0)] == [
        *("as configured", "memory fraction up", "fp8 KV cache", "fp4 KV cache"),
    ]
    assert "DCP 2" in [way.name for way in ways(10, GQA, "bf16", Parallelism(16), 100.0)]
    names = [way.name for way in ways(10, KIMI, "fp8_ds_mla", Parallelism(), 100.0)]
    assert "fp8 KV cache" not in names


@given(
    st.sampled_from([KIMI, GQA, LatentCache(78, 512, 64, 132)]),
    st.sampled_from(["bf16", "fp8"]),
    st.sampled_from([1, 2, 4, 8]),
    st.floats(1e8, 1e11),
    st.integers(1, 10**6),
    st.sampled_from([NO_DRAFT, RATIO, OWN]),
    st.sampled_from([1, 64]),
)
def test_every_way_is_in_order_and_none_holds_less(
    cache, dtype, tp, pool, wished, draft, page
) -> None:
    found = ways(wished, cache, dtype, Parallelism(tp), pool, draft, page)
    assert [way.order for way in found] == sorted(way.order for way in found)
    assert len({way.name for way in found}) == len(found)
    for way in found[1:]:
        assert way.bytes_per_token <= found[0].bytes_per_token
        assert way.tokens >= found[0].tokens - page * tp
        assert way.costs
    for way in found:
        if way.enough is not None:
            assert way.enough is (way.tokens >= wished)
            assert way.tokens * way.bytes_per_token <= way.pool_bytes * (1 + 1e-12)
