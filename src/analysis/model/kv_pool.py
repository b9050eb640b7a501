"""How large an engine makes its KV pool, how many tokens it holds, and what it prints of it.

Units. Both engines reckon in bytes and GiB (2**30). vLLM prints GiB and says so; **SGLang prints
GiB and calls it GB** (``get_available_gpu_memory`` in ``utils/common.py`` and ``GB`` in
``mem_cache/memory_pool.py`` are of 2**30). Under DCP SGLang's allocation line has the tokens of
one rank, vLLM's line those of all ranks.

* SGLang (``_profile_available_bytes`` in ``mem_cache/kv_cache_configurator.py``; earlier
  ``profile_max_num_token`` in ``model_executor``): pool = free memory after the weights, least of
  all ranks, less the share of the memory before loading that ``mem_fraction_static`` leaves.
  Tokens are whole pages. One page of rows more is allocated, for what padded tokens write
  (``mem_cache/memory_pool.py``); the printed size includes it.
* vLLM (``v1/core/kv_cache_utils.py``): whole blocks of all layers in a given number of bytes.
* llama.cpp (``src/llama-kv-cache.cpp``): nothing is left over; the cells of the wished context
  are allocated, or the server does not start.
"""

from analysis.model.kv_cache import (
    GIB,
    HeadCache,
    LatentCache,
    Parallelism,
    bytes_per_token_per_gpu,
    layer_bytes,
    layers_per_stage,
)

SGLANG_REQUESTS = 2048
"""Requests that SGLang makes room for, at least, unless ``--max-running-requests`` says fewer: 512
pools of the limit's length, between 2,048 and 4,096 (``mem_cache/kv_cache_configurator.py``)."""
LLAMA_CPP_CELLS = 256
"""llama.cpp pads a context to a multiple of it (``src/llama-context.cpp``)."""
LLAMA_CPP_BYTES = {"f32": 4, "f16": 2, "bf16": 2, "q8_0": 34 / 32, "q4_0": 18 / 32}
"""Bytes of an element; q8_0 and q4_0 keep a scale of 2 bytes for each 32 (``ggml-common.h``)."""


def sglang_pool_bytes(
    free_after_weights_bytes: float, total_before_load_bytes: float, mem_fraction_static: float
) -> float:
    """Bytes that SGLang gives the KV pool of each GPU; zero where nothing is left.

    ``free_after_weights_bytes`` and ``total_before_load_bytes`` (free memory before the weights,
    not the size of the GPU) are minima over the ranks. Newer versions also take off a reserve for
    the images of multimodal models; subtract it from the first. Raises ``ValueError`` for a
    fraction outside 0 to 1.
    """
    if not 0 < mem_fraction_static <= 1:
        raise ValueError(f"memory fraction {mem_fraction_static} is not above 0 and at most 1")
    return max(0.0, free_after_weights_bytes - total_before_load_bytes * (1 - mem_fraction_static))


def sglang_pool_tokens(pool_bytes: float, cell_bytes: float, page_tokens: int = 1) -> int:
    """Tokens that SGLang makes of a pool: whole pages.

    ``cell_bytes`` is of target and draft together (``draft_cache``). Under DCP pass the bytes on a
    rank that holds the token for the tokens of one rank, or the average over the ranks, with
    pages ``dcp`` times as long, for those of all ranks.
    """
    return int(pool_bytes // cell_bytes) // page_tokens * page_tokens


def sglang_allocated_bytes(tokens: int, cell_bytes: float, page_tokens: int = 1) -> float:
    """Bytes of the buffers of ``tokens``, with one page of padding rows: what SGLang shows.

    The line ``KV Cache is allocated`` and the gauge ``sglang:kv_cache_memory_usage_gb``;
    ``cell_bytes`` is the target's alone, as a drafter has a line of its own.
    """
    return (tokens + page_tokens) * cell_bytes


def sglang_request_table_bytes(limit_tokens: int, requests: int = SGLANG_REQUESTS) -> int:
    """Bytes on each GPU of SGLang's table of requests, which lies beside the pool.

    Four bytes for each token of the context limit, a row for each request that it may run, and one
    row more (``ReqToTokenPool`` in ``mem_cache/memory_pool.py``, 0.5.23). It is allocated after the
    pool was sized, so a higher limit takes it from what the memory fraction leaves free.
    """
    return 4 * (requests + 1) * limit_tokens


def sglang_allocation_line(
    tokens: int,
    cache: LatentCache | HeadCache,
    kv_dtype: str,
    parallelism: Parallelism,
    page_tokens: int = 1,
) -> str:
    """What SGLang's log says of a target's pool of ``tokens``: the line that decides a layout.

    ``tokens`` are of one rank. The line of newer versions names the dtype too, after ``allocated``.
    For heads K and V are printed, and rounded, apart. Raises ``ValueError`` as
    ``bytes_per_token_per_gpu`` does.
    """
    rank = parallelism.dcp * bytes_per_token_per_gpu(cache, kv_dtype, parallelism)
    size = sglang_allocated_bytes(tokens, rank, page_tokens) / GIB
    if isinstance(cache, LatentCache):
        sizes = f"KV size: {size:.2f} GB"
    else:
        keys = size * cache.key_dim / (cache.key_dim + cache.value_dim)
        sizes = f"K size: {keys:.2f} GB, V size: {size - keys:.2f} GB"
    return f"KV Cache is allocated. #tokens: {tokens}, {sizes}"


def vllm_pool_tokens(
    kv_bytes: float,
    cache: LatentCache | HeadCache,
    kv_dtype: str,
    parallelism: Parallelism,
    block_tokens: int = 16,
    limit_tokens: int | None = None,
) -> int:
    """Tokens that vLLM prints as ``KV cache size`` for ``kv_bytes`` on each GPU.

    Blocks are whole over all layers, an indexer's included; the print multiplies by the ranks of
    decode context parallelism. Newer versions (0.32) print how many requests of
    ``--max-model-len`` fit, times that limit: pass ``limit_tokens`` for those. It is the same
    wherever blocks of all ranks divide the limit. On CPU a block has 16 tokens for MLA and 128
    otherwise (``platforms/cpu.py``). Raises ``ValueError`` as ``bytes_per_token_per_gpu`` does.
    """
    layers = layers_per_stage(cache.layers, parallelism)
    block_bytes = block_tokens * layers * layer_bytes(cache, kv_dtype, parallelism)
    blocks = int(kv_bytes // block_bytes)
    if limit_tokens is not None:
        per_request = -(-limit_tokens // (block_tokens * parallelism.dcp))
        return int(blocks / per_request * limit_tokens)
    return blocks * block_tokens * parallelism.dcp


def llama_cpp_cells(context_tokens: int, slots: int = 1) -> int:
    """Cells over all slots of a llama.cpp server started with ``-c context_tokens``.

    Each slot's share is padded (``src/llama-context.cpp``, newer versions); with a unified cache
    (``--kv-unified``) the slots share them all, so pass one slot.
    """
    per_slot = -(-context_tokens // slots)
    return slots * (-(-per_slot // LLAMA_CPP_CELLS) * LLAMA_CPP_CELLS)


def llama_cpp_buffer_bytes(cells: int, cache: LatentCache | HeadCache, dtype: str = "f16") -> float:
    """Bytes of llama.cpp's KV buffers, keys and values, over all layers and devices.

    ``cells`` are those of all streams: the log's ``(N cells, L layers, S/T seqs)`` is N for each
    of T streams (``src/llama-kv-cache.cpp``). ``dtype`` is llama.cpp's name. Raises ``ValueError``
    for another dtype, and for MLA, whose layout there changed between versions.
    """
    if isinstance(cache, LatentCache):
        raise ValueError("llama.cpp's layout of MLA differs between versions; it is not known here")
    if dtype not in LLAMA_CPP_BYTES:
        raise ValueError(f"KV type {dtype!r} is not one of {', '.join(LLAMA_CPP_BYTES)}")
    elements = cache.layers * cache.kv_heads * (cache.key_dim + cache.value_dim)
    return cells * elements * LLAMA_CPP_BYTES[dtype]


def gib_rounding(decimals: int = 2) -> float:
    """Half of the last digit of a size that is printed in GiB with ``decimals``, in bytes."""
    return 0.5 * 10.0**-decimals * GIB
