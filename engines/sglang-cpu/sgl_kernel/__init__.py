"""A stand-in for the CPU build of ``sgl_kernel``, which nobody publishes.

Own code, in plain PyTorch, for SGLang 0.5.23: the helpers that it imports on a CPU without AMX.
What plain serving calls works; what only speculation calls is there to be imported, and refuses to
be called. Nothing here has a part in how large the KV pool is.
"""

import ctypes
from collections.abc import Callable

import torch

__version__ = "0.4.10+stand.in"

Tensor = torch.Tensor


def assign_req_to_token_pool_cpu(
    requests: Tensor, table: Tensor, start: Tensor, end: Tensor, places: Tensor, pool_len: int
) -> None:
    """Write the places of new tokens into each request's row of the table."""
    taken = 0
    for row, first, last in zip(requests.tolist(), start.tolist(), end.tolist(), strict=True):
        count = last - first
        table[row, first:last] = places[taken : taken + count].to(table.dtype)
        taken += count


def assign_extend_cache_locs_cpu(
    requests: Tensor, table: Tensor, start: Tensor, end: Tensor, places: Tensor, pool_len: int
) -> None:
    """Read the places of new tokens back from each request's row of the table."""
    taken = 0
    for row, first, last in zip(requests.tolist(), start.tolist(), end.tolist(), strict=True):
        count = last - first
        places[taken : taken + count] = table[row, first:last].to(places.dtype)
        taken += count


def copy_all_layer_kv_cache_cpu(
    addresses: Tensor, row_bytes: Tensor, to: Tensor, source: Tensor
) -> None:
    """Copy rows of every layer's cache; all are read before the first is written."""
    for address, size in zip(addresses.tolist(), row_bytes.tolist(), strict=True):
        rows = [ctypes.string_at(address + row * size, size) for row in source.tolist()]
        for row, content in zip(to.tolist(), rows, strict=True):
            ctypes.memmove(address + row * size, content, size)


def _only_speculation(name: str) -> Callable[..., None]:
    def refuse(*arguments: object, **named: object) -> None:
        raise NotImplementedError(f"sgl_kernel.{name}: the stand-in does not speculate")

    return refuse


assign_draft_cache_locs_contiguous_cpu = _only_speculation("assign_draft_cache_locs_contiguous_cpu")
build_draft_decode_metadata_cpu = _only_speculation("build_draft_decode_metadata_cpu")
build_tree_kernel_efficient_cpu = _only_speculation("build_tree_kernel_efficient_cpu")
fill_accept_out_cache_loc_cpu = _only_speculation("fill_accept_out_cache_loc_cpu")
fill_bonus_tokens_cpu = _only_speculation("fill_bonus_tokens_cpu")
rotate_input_ids_cpu = _only_speculation("rotate_input_ids_cpu")
verify_tree_greedy_cpu = _only_speculation("verify_tree_greedy_cpu")
