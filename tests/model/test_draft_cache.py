"""What a drafter's cache adds to a token, by each of SGLang's rules.

Kimi K2.6 with a DFlash drafter of 6 layers and 8 KV heads: 77,184 B by layer ratio (SGLang
0.5.13, ``scale_kv_cell_size_per_token_for_dflash``: ceil(70,272 * 67 / 61)), and 3,072 B more by
the drafter's own cell (0.5.18, ``dflash_draft_cell_size_per_token``: 1 head of 128 + 128 on each
of 8 ranks, 6 layers, bf16).
"""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from analysis.model.draft_cache import (
    DRAFT_RULES,
    NO_DRAFT,
    DraftCache,
    DraftRule,
    draft_bytes_per_token,
)
from analysis.model.kv_cache import (
    HeadCache,
    LatentCache,
    Parallelism,
    bytes_per_token_per_gpu,
)

KIMI = LatentCache(layers=61, kv_lora_rank=512, qk_rope_head_dim=64)
DFLASH = HeadCache(layers=6, kv_heads=8, key_dim=128, value_dim=128)
TP8, DCP8 = Parallelism(8), Parallelism(8, dcp=8)
RATIO = DraftCache("dflash layer ratio", 6)
OWN = DraftCache("dflash own cell", own=DFLASH)
EAGLE = DraftCache("eagle layer ratio", 1)


@pytest.mark.parametrize(
    ("draft", "dtype", "ranks", "total"),
    [
        (NO_DRAFT, "bf16", TP8, 70_272),
        (RATIO, "bf16", TP8, 77_184),
        (RATIO, "fp8", TP8, 77_184 / 2),
        (OWN, "bf16", TP8, 70_272 + 3_072),
        (OWN, "fp8", TP8, 35_136 + 3_072),
        (replace(OWN, own_dtype="fp8"), "fp8", TP8, 35_136 + 3_072 / 2),
        (EAGLE, "bf16", TP8, 70_272 * 62 / 61),
        (EAGLE, "bf16", DCP8, 70_272 * 62 / 61 / 8),
        (OWN, "bf16", DCP8, 8_784 + 3_072),
        (RATIO, "bf16", DCP8, 8_784 + 6 * 1_152),
        (OWN, "bf16", Parallelism(8, dp_attention=True), 70_272 + 8 * 3_072),
        (OWN, "bf16", Parallelism(8, pp=2), 31 * 1_152 + 3_072),
    ],
)
def test_target_and_draft_take(draft: DraftCache, dtype: str, ranks, total: float) -> None:
    target = bytes_per_token_per_gpu(KIMI, dtype, ranks)
    found = target + draft_bytes_per_token(KIMI, draft, dtype, ranks)
    assert found == pytest.approx(total, rel=1e-12)


def test_an_eagle_drafter_of_an_indexed_target_is_not_divided() -> None:
    """SGLang 0.5.23, ``pool_configurator.py``: ``draft_kv_size *= dcp_size``."""
    glm = LatentCache(78, 512, 64, indexer_bytes=132)
    one = draft_bytes_per_token(glm, EAGLE, "fp8_ds_mla", TP8)
    assert one == 656 + 132
    assert draft_bytes_per_token(glm, EAGLE, "fp8_ds_mla", DCP8) == one


@given(
    st.sampled_from(DRAFT_RULES),
    st.integers(1, 12),
    st.sampled_from(["bf16", "fp8", "fp4"]),
    st.sampled_from([TP8, DCP8, Parallelism(), Parallelism(4, pp=3)]),
)
def test_draft_layers_add_up(rule: DraftRule, layers: int, dtype: str, ranks) -> None:
    def cost(count: int) -> float:
        draft = DraftCache(rule, count, replace(DFLASH, layers=count))
        return draft_bytes_per_token(KIMI, draft, dtype, ranks)

    assert cost(layers) == pytest.approx(layers * cost(1))
    assert (cost(layers) == 0) == (rule == "none")


@pytest.mark.parametrize(
    ("values", "says"),
    [
        ({"rule": "medusa"}, "'medusa' is not one of none, eagle"),
        ({"rule": "dflash own cell", "layers": 6}, "needs the drafter's heads"),
        ({"rule": "dflash layer ratio"}, "needs the drafter's layers"),
        ({"rule": "eagle layer ratio", "layers": 0}, "needs the drafter's layers"),
    ],
)
def test_a_rule_without_what_it_needs_is_refused(values: dict, says: str) -> None:
    with pytest.raises(ValueError, match=says):
        DraftCache(**values)


def test_a_layout_that_no_engine_has_is_refused_for_the_drafter_too() -> None:
    with pytest.raises(ValueError, match="8 KV heads cannot be shared out over 3"):
        draft_bytes_per_token(KIMI, OWN, "bf16", Parallelism(3))
    with pytest.raises(ValueError, match="pp 62 is more"):
        draft_bytes_per_token(KIMI, NO_DRAFT, "bf16", Parallelism(pp=62))
