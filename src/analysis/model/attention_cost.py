"""What one token of context costs a step of attention on one GPU: bytes read and FLOP done.

*Queries* are the tokens that a step computes for one request: 1 in plain decoding, all verified
ones in speculation. The bytes are those of a kernel that reads the cache once for all of them;
one that reads it anew for each query, or each head, reads so many times more.

Two FLOP are counted for a multiply and an add. Absorbed MLA compares each query head with the
whole latent and sums latents: ``2 (r + p) + 2 r`` a layer, head, query and token, r latents and p
rotary elements. GQA does ``2 k + 2 v``, for keys and values of so many elements. That gives 2,176
for DeepSeek's 512 + 64, and an intensity in bf16 of nearly ``2 * heads * queries`` FLOP/byte:
FlashMLA's deep dive of 2025-04-22 (deepseek-ai/FlashMLA, docs/20250422-new-kernel-deep-dive.md).
"""

from dataclasses import dataclass

from analysis.model.kv_cache import (
    HeadCache,
    LatentCache,
    Parallelism,
    bytes_per_token_per_gpu,
    heads_per_rank,
    layers_per_stage,
    refuse_uneven_heads,
)


@dataclass(frozen=True)
class AttentionCost:
    """Bytes and FLOP per context token on one GPU; FLOP are of one query, all its layers.

    ``heads`` are the query heads that meet each token which the GPU holds, ``sharing`` those
    among them that use the same bytes: all in MLA, those of one KV head in GQA.
    """

    heads: int
    sharing: int
    bytes_per_token: float
    flop_per_query: float

    def flop(self, queries: float) -> float:
        """FLOP per context token of a step with so many queries."""
        return self.flop_per_query * _at_least_one(queries)

    def intensity(self, queries: float = 1) -> float:
        """FLOP per byte read, where all queries share one reading."""
        return self.flop(queries) / self.bytes_per_token


def attention_cost(
    cache: LatentCache | HeadCache, attention_heads: int, kv_dtype: str, parallelism: Parallelism
) -> AttentionCost:
    """The cost on one GPU under a layout.

    Tensor parallelism shares the query heads out. Decode context parallelism divides the tokens
    but gathers the heads of its group (SGLang and vLLM alike), so that each of fewer tokens meets
    more heads: it divides bytes, not FLOP. Under DP attention a rank has all heads of its requests.

    Raises ``ValueError`` as ``bytes_per_token_per_gpu`` does, for query heads that cannot be
    shared out, and for sparse attention, whose step does not read every token.
    """
    if isinstance(cache, LatentCache) and cache.indexer_bytes:
        raise ValueError("sparse attention reads chosen tokens, not each token of the context")
    refuse_uneven_heads(attention_heads, parallelism)
    cell = bytes_per_token_per_gpu(cache, kv_dtype, parallelism)
    own = attention_heads if parallelism.dp_attention else attention_heads // parallelism.tp
    flop = own * layers_per_stage(cache.layers, parallelism) * _flop_of_a_head(cache)
    heads = own * parallelism.dcp
    copies = 1 if isinstance(cache, LatentCache) else heads_per_rank(cache.kv_heads, parallelism)
    return AttentionCost(heads, heads // copies, cell, flop)


def _flop_of_a_head(cache: LatentCache | HeadCache) -> int:
    if isinstance(cache, LatentCache):
        return 2 * cache.elements + 2 * cache.kv_lora_rank
    return 2 * cache.key_dim + 2 * cache.value_dim


def _at_least_one(queries: float) -> float:
    if not 1 <= queries < float("inf"):
        raise ValueError(f"{queries} queries are not one or more")
    return queries
