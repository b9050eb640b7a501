"""How many bytes of KV cache one token of context costs on each GPU.

Two families. MLA keeps one latent vector per token and layer, without heads; GQA (with MQA and
MHA as its ends) keeps keys and values per KV head. They differ in what tensor parallelism does:

* Heads are shared out: ``max(1, kv_heads / tp)`` per rank.
* The latent has no heads, so **plain tensor parallelism replicates it on every rank** (SGLang
  ``model_executor/pool_configurator.py``: no division by tp in the MLA cell; vLLM
  ``docs/serving/context_parallel_deployment.md``). Only decode context parallelism (DCP) divides
  it. Under DP attention a rank holds the whole latent, but only of its own requests.
"""

from dataclasses import dataclass
from typing import Literal

GIB = 2**30
GB = 10**9
KIB = 2**10

KvDtype = Literal["bf16", "fp16", "fp8", "fp8_ds_mla"]
ELEMENT_BYTES: dict[str, int] = {"bf16": 2, "fp16": 2, "fp8": 1}
DS_MLA_BYTES_PER_LAYER = 656
"""vLLM's fp8_ds_mla: 512 fp8 latents, their 16 bytes of scales, 64 rotary elements in bf16."""


@dataclass(frozen=True)
class LatentCache:
    """MLA: ``kv_lora_rank + qk_rope_head_dim`` elements per token and layer, in one copy.

    ``indexer_bytes`` is what a sparse-attention indexer adds per token and layer.
    """

    layers: int
    kv_lora_rank: int
    qk_rope_head_dim: int
    indexer_bytes: int = 0

    @property
    def elements(self) -> int:
        """Elements per token and layer."""
        return self.kv_lora_rank + self.qk_rope_head_dim


@dataclass(frozen=True)
class HeadCache:
    """GQA, MQA or MHA: one key and one value vector per KV head, token and layer."""

    layers: int
    kv_heads: int
    key_dim: int
    value_dim: int


@dataclass(frozen=True)
class Parallelism:
    """Ranks of tensor parallelism, of decode context parallelism, and whether attention is DP."""

    tp: int = 1
    dcp: int = 1
    dp_attention: bool = False

    def __post_init__(self) -> None:
        if self.tp < 1 or self.dcp < 1:
            raise ValueError(f"tp {self.tp} and dcp {self.dcp} are not both at least 1")
        if self.tp % self.dcp:
            raise ValueError(f"dcp {self.dcp} does not divide tp {self.tp}")
        if self.dp_attention and self.dcp > 1:
            raise ValueError("DP attention and decode context parallelism exclude one another")


def bytes_per_token_per_gpu(
    cache: LatentCache | HeadCache, kv_dtype: str, parallelism: Parallelism
) -> float:
    """Bytes that one token of context takes on one GPU, all layers, an average under DCP.

    Raises ``ValueError`` for a dtype that the layout does not have or heads that cannot be
    shared out evenly.
    """
    if isinstance(cache, LatentCache):
        if kv_dtype == "fp8_ds_mla":
            per_layer: float = DS_MLA_BYTES_PER_LAYER
        else:
            per_layer = cache.elements * _element_bytes(kv_dtype)
        return cache.layers * (per_layer + cache.indexer_bytes) / parallelism.dcp
    heads = heads_per_rank(cache.kv_heads, parallelism)
    elements = cache.layers * heads * (cache.key_dim + cache.value_dim)
    return elements * _element_bytes(kv_dtype) / parallelism.dcp


def heads_per_rank(kv_heads: int, parallelism: Parallelism) -> int:
    """KV heads on one rank: shared out under TP, whole under DP attention."""
    if parallelism.dp_attention:
        return kv_heads
    tp, dcp = parallelism.tp, parallelism.dcp
    if kv_heads % tp and tp % kv_heads:
        raise ValueError(f"{kv_heads} KV heads cannot be shared out over {tp} ranks")
    if dcp > max(1, tp // kv_heads):
        raise ValueError(
            f"dcp {dcp} is more than the {max(1, tp // kv_heads)} copies of each KV head"
        )
    return max(1, kv_heads // tp)


def pool_tokens(pool_bytes: float, bytes_per_token: float) -> int:
    """Whole tokens that a pool holds."""
    return int(pool_bytes // bytes_per_token)


def largest_request(context_limit: int, pool: int) -> int:
    """Longest request that SGLang serves: min(context_len - 1, max_total_num_tokens - 1).

    From SGLang's scheduler set-up (``max_req_len``). A longer wish is accepted and then clipped
    in silence; vLLM refuses to start instead.
    """
    return min(context_limit - 1, pool - 1)


def _element_bytes(kv_dtype: str) -> int:
    try:
        return ELEMENT_BYTES[kv_dtype]
    except KeyError:
        raise ValueError(
            f"KV dtype {kv_dtype!r} is not one of {', '.join(ELEMENT_BYTES)} for this layout"
        ) from None
