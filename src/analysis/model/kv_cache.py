"""How many bytes of KV cache one token of context costs on each GPU.

Two families. MLA keeps one latent vector per token and layer, without heads; GQA (with MQA and
MHA as its ends) keeps keys and values per KV head. They differ in what tensor parallelism does:

* Heads are shared out: ``max(1, kv_heads / tp)`` per rank.
* The latent has no heads, so **plain tensor parallelism replicates it on every rank** (SGLang
  ``model_executor/pool_configurator.py``: no division by tp in the MLA cell; vLLM
  ``docs/serving/context_parallel_deployment.md``). Only decode context parallelism (DCP) divides
  it. Under DP attention a rank holds the whole latent, but only of its own requests.

Pipeline parallelism divides the layers. Where they do not divide evenly, the stage with most
layers decides: both engines take the smallest pool of all ranks.
"""

from dataclasses import dataclass
from typing import Literal

GIB = 2**30
GB = 10**9
KIB = 2**10

KvDtype = Literal["bf16", "fp16", "fp8", "fp8_ds_mla", "fp4"]
KV_DTYPES: tuple[KvDtype, ...] = ("bf16", "fp16", "fp8", "fp8_ds_mla", "fp4")
ELEMENT_BYTES: dict[str, int] = {"bf16": 2, "fp16": 2, "fp8": 1}
DS_MLA_BLOCK = 128
"""Latents that share one scale of 4 bytes in ``fp8_ds_mla``."""
FP4_SCALE_ELEMENTS = 16
"""Elements that share one scale byte in SGLang's fp4_e2m1."""


@dataclass(frozen=True)
class LatentCache:
    """MLA: ``kv_lora_rank + qk_rope_head_dim`` elements per token and layer, in one copy.

    ``indexer_bytes`` is what a sparse-attention indexer adds per token and layer. Under DCP vLLM
    divides it as it does the latent (its indexer's cache is an ``MLAAttentionSpec``, and printed
    pools agree); SGLang 0.5.23 keeps it whole on each rank (``pool_configurator.py``):
    ``indexer_replicated``.
    """

    layers: int
    kv_lora_rank: int
    qk_rope_head_dim: int
    indexer_bytes: int = 0
    indexer_replicated: bool = False

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
    """Ranks of tensor parallelism, of decode context parallelism among them, pipeline stages.

    ``dp_attention``: each of the ``tp`` ranks attends its own requests. All GPUs are ``tp * pp``.
    """

    tp: int = 1
    dcp: int = 1
    dp_attention: bool = False
    pp: int = 1

    def __post_init__(self) -> None:
        if self.tp < 1 or self.dcp < 1:
            raise ValueError(f"tp {self.tp} and dcp {self.dcp} are not both at least 1")
        if self.pp < 1:
            raise ValueError(f"pp {self.pp} is not at least 1")
        if self.tp % self.dcp:
            raise ValueError(f"dcp {self.dcp} does not divide tp {self.tp}")
        if self.dp_attention and self.dcp > 1:
            raise ValueError("DP attention and decode context parallelism exclude one another")


def bytes_per_token_per_gpu(
    cache: LatentCache | HeadCache, kv_dtype: str, parallelism: Parallelism
) -> float:
    """Bytes that one token of context takes on one GPU, all its layers, an average under DCP.

    Raises ``ValueError`` for a dtype that the layout does not have, heads that cannot be shared
    out evenly, or more pipeline stages than layers.
    """
    layers = layers_per_stage(cache.layers, parallelism)
    each = layer_bytes(cache, kv_dtype, parallelism)
    if isinstance(cache, LatentCache) and cache.indexer_replicated:
        divided = each - cache.indexer_bytes
        return layers * (divided / parallelism.dcp + cache.indexer_bytes)
    return layers * each / parallelism.dcp


def layers_per_stage(layers: int, parallelism: Parallelism) -> int:
    """Layers of the largest pipeline stage.

    ``ceil(layers / pp)``: ``get_pp_indices`` of vLLM (``distributed/utils.py``) and of SGLang
    (``distributed/utils.py``) both give a remainder to single stages, one layer each.
    """
    if parallelism.pp > layers:
        raise ValueError(f"pp {parallelism.pp} is more than the {layers} layers")
    return -(-layers // parallelism.pp)


def layer_bytes(cache: LatentCache | HeadCache, kv_dtype: str, parallelism: Parallelism) -> int:
    """Bytes of one token in one layer on a rank that holds it; DCP does not enter.

    Raises ``ValueError`` as ``bytes_per_token_per_gpu`` does.
    """
    if isinstance(cache, LatentCache):
        return _latent_bytes(cache, kv_dtype) + cache.indexer_bytes
    heads = heads_per_rank(cache.kv_heads, parallelism)
    if kv_dtype == "fp4":
        return _fp4_bytes(heads * cache.key_dim) + _fp4_bytes(heads * cache.value_dim)
    return heads * (cache.key_dim + cache.value_dim) * _element_bytes(kv_dtype)


def refuse_uneven_heads(attention_heads: int, parallelism: Parallelism) -> None:
    """Raise ``ValueError`` where attention heads cannot be shared out evenly over the ranks.

    MLA's cache does not depend on it, but neither engine starts: vLLM checks it in
    ``config/model.py``, SGLang where the layers are made. Under DP attention heads stay whole.
    """
    if not parallelism.dp_attention and attention_heads % parallelism.tp:
        raise ValueError(
            f"{attention_heads} attention heads cannot be shared out over {parallelism.tp} ranks"
        )


def heads_per_rank(kv_heads: int, parallelism: Parallelism) -> int:
    """KV heads on one rank: shared out under TP, whole under DP attention.

    DCP divides only what TP would copy: ``tp / kv_heads`` ranks at most, as vLLM checks
    (``config/parallel.py``). SGLang takes more and gains nothing by it: its ranks then hold more
    heads of fewer tokens (``configs/model_config.py``, ``get_num_kv_heads``).
    """
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
    """Whole tokens that a pool holds, whatever the engine."""
    return int(pool_bytes // bytes_per_token)


def largest_request(context_limit: int, pool: int) -> int:
    """Longest request that SGLang serves: min(context_len - 1, max_total_num_tokens - 1).

    ``managers/tp_worker.py`` (``max_req_len``). A longer wish is accepted and then clipped in
    silence; vLLM refuses to start instead.
    """
    return min(context_limit - 1, pool - 1)


def _latent_bytes(cache: LatentCache, kv_dtype: str) -> int:
    if kv_dtype == "fp8_ds_mla":
        return _ds_mla_bytes(cache)
    if kv_dtype == "fp4":
        return _fp4_bytes(cache.elements)
    return cache.elements * _element_bytes(kv_dtype)


def _ds_mla_bytes(cache: LatentCache) -> int:
    """Latents in fp8, a scale of 4 bytes for each 128 of them, the rotary part in bf16.

    656 for DeepSeek's 512 + 64. vLLM has it for those alone, by this name
    (``model_executor/layers/attention/mla_attention.py``). SGLang stores fp8 so in models with a
    sparse-attention indexer, unless TensorRT-LLM's or TileLang's backend runs them
    (``mem_cache/kv_cache_configurator.py``, ``calculate_mla_kv_cache_dim``).
    """
    if cache.kv_lora_rank % DS_MLA_BLOCK:
        raise ValueError(
            f"fp8_ds_mla takes {DS_MLA_BLOCK} latents a scale; {cache.kv_lora_rank} are not "
            "a multiple of it"
        )
    scales = cache.kv_lora_rank // DS_MLA_BLOCK * 4
    return cache.kv_lora_rank + scales + 2 * cache.qk_rope_head_dim


def _fp4_bytes(elements: int) -> int:
    """Two elements a byte, and a scale byte for each 16.

    SGLang ``mem_cache/memory_pool.py``: ``MLATokenToKVPoolFP4`` and ``MHATokenToKVPoolFP4``, so
    both layouts have it (``fp4_e2m1``; since 0.5.23 ``nvfp4`` and ``fp4_mx_block16``). For heads
    newer versions may also reserve a workspace of one layer in fp8, and a second set of scales,
    by attention backend (``layers/quantization/fp4_kv_cache_quant_method.py``): not counted here.
    """
    if elements % FP4_SCALE_ELEMENTS:
        raise ValueError(
            f"fp4 takes {FP4_SCALE_ELEMENTS} elements a scale; {elements} are not a multiple of it"
        )
    return elements // 2 + elements // FP4_SCALE_ELEMENTS


def _element_bytes(kv_dtype: str) -> int:
    try:
        return ELEMENT_BYTES[kv_dtype]
    except KeyError:
        known = ", ".join([*ELEMENT_BYTES, "fp4"])
        raise ValueError(f"KV dtype {kv_dtype!r} is not one of {known} for this layout") from None
