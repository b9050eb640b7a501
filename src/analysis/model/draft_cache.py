"""What a draft model's KV cache adds to each token of the pool, by the engine's rule.

SGLang sizes target and draft together: a token of the pool costs the target's cell and the
draft's. By which rule the draft's is reckoned depends on the algorithm and the version, so the
rule is an input (``model_executor/pool_configurator.py``, ``speculative/dflash_utils.py``):

* **eagle layer ratio**: the target's bytes of one layer for each draft layer. An EAGLE or MTP
  drafter has the target's attention.
* **dflash layer ratio** (0.5.13): the same rule for a DFlash drafter, whose attention is another.
  The draft's share scales with the target's KV dtype.
* **dflash own cell** (from 0.5.18): heads and dimensions of the drafter's own, in its own dtype.
  In 0.5.23 that is the target's KV dtype too, but the model's where the fa4 backend drafts, and
  what ``--speculative-draft-kv-cache-dtype`` says (``mem_cache/kv_cache_dtype.py``): an input.

A DFlash drafter's cache is not divided by DCP, as its pool spans the tokens of all ranks; nor,
in 0.5.23, an EAGLE drafter's of a target with a sparse-attention indexer. What is returned is per
token of context, as the target's bytes are.

vLLM has no such rules: the layers of an EAGLE or MTP drafter are layers of its pool, so count them
into the target's ``layers`` (``v1/core/kv_cache_utils.py`` merges what all layers ask for).
"""

from dataclasses import dataclass
from typing import Literal

from analysis.model.kv_cache import (
    HeadCache,
    LatentCache,
    Parallelism,
    layer_bytes,
    layers_per_stage,
)

DraftRule = Literal["none", "eagle layer ratio", "dflash layer ratio", "dflash own cell"]
DRAFT_RULES: tuple[DraftRule, ...] = (
    "none",
    "eagle layer ratio",
    "dflash layer ratio",
    "dflash own cell",
)


@dataclass(frozen=True)
class DraftCache:
    """A drafter's cache: the rule, the draft layers, and for its own cell heads and dtype.

    Raises ``ValueError`` where what the rule needs is missing.
    """

    rule: DraftRule = "none"
    layers: int = 0
    own: HeadCache | None = None
    own_dtype: str = "bf16"

    def __post_init__(self) -> None:
        if self.rule not in DRAFT_RULES:
            raise ValueError(f"draft rule {self.rule!r} is not one of {', '.join(DRAFT_RULES)}")
        if self.rule == "dflash own cell" and self.own is None:
            raise ValueError("the rule 'dflash own cell' needs the drafter's heads and dimensions")
        if self.rule.endswith("layer ratio") and self.layers < 1:
            raise ValueError(f"the rule {self.rule!r} needs the drafter's layers, at least 1")


NO_DRAFT = DraftCache()


def draft_bytes_per_token(
    target: LatentCache | HeadCache,
    draft: DraftCache,
    kv_dtype: str,
    parallelism: Parallelism,
) -> float:
    """Bytes that the draft cache adds on one GPU to each token of context.

    ``kv_dtype`` is the target's. Pipeline stages do not divide it: the stage with the drafter
    decides. Raises ``ValueError`` as ``bytes_per_token_per_gpu`` does.
    """
    layers_per_stage(target.layers, parallelism)
    if draft.rule == "none":
        return 0.0
    if draft.rule == "dflash own cell":
        assert draft.own is not None
        ranks = Parallelism(parallelism.tp, dp_attention=parallelism.dp_attention)
        return float(draft.own.layers * layer_bytes(draft.own, draft.own_dtype, ranks))
    each = layer_bytes(target, kv_dtype, parallelism)
    indexed = isinstance(target, LatentCache) and target.indexer_bytes > 0
    if draft.rule == "eagle layer ratio" and not indexed:
        return draft.layers * each / parallelism.dcp
    return float(draft.layers * each)
