"""The ways to make a wished context fit, ranked by what they cost."""

from dataclasses import dataclass, replace

from analysis.model.draft_cache import NO_DRAFT, DraftCache, draft_bytes_per_token
from analysis.model.kv_cache import (
    GIB,
    HeadCache,
    LatentCache,
    Parallelism,
    bytes_per_token_per_gpu,
)
from analysis.model.kv_pool import sglang_pool_tokens


@dataclass(frozen=True)
class Way:
    """One way: what a token then costs on each GPU, the pool, and the tokens that it holds.

    ``enough`` is ``None`` where it hangs on memory that is not known to be free. ``costs`` is what
    is paid for it, in words; ``order`` is its place, the cheapest first.
    """

    name: str
    bytes_per_token: float
    pool_bytes: float
    tokens: int
    enough: bool | None
    costs: str
    order: int


def ways(
    wished_tokens: int,
    cache: LatentCache | HeadCache,
    kv_dtype: str,
    parallelism: Parallelism,
    pool_bytes: float,
    draft: DraftCache = NO_DRAFT,
    page_tokens: int = 1,
    memory_bytes: float | None = None,
    free_after_pool_bytes: float | None = None,
) -> tuple[Way, ...]:
    """The server as it is, and every single change that might let ``wished_tokens`` fit.

    ``pool_bytes`` is the pool of each GPU, target and draft; ``memory_bytes`` the memory of each
    GPU that the memory fraction is of, ``free_after_pool_bytes`` what is free beside the pool
    (``None``: not known). A change that the layout does not have is left out.

    The order is a judgement, not a measurement: first what takes only idle memory, then what
    costs speed, last what changes the numbers that the model computes with. Raises
    ``ValueError`` as ``bytes_per_token_per_gpu`` does.
    """

    def way(
        name: str, dtype: str, ranks: Parallelism, drafts: DraftCache, costs: str, order: int
    ) -> Way:
        cell = cell_bytes(cache, dtype, ranks, drafts)
        tokens = tokens_of(pool_bytes, cell, ranks, page_tokens)
        return Way(name, cell, pool_bytes, tokens, tokens >= wished_tokens, costs, order)

    now = way("as configured", kv_dtype, parallelism, draft, "nothing", 0)
    found = [now]
    missing = wished_tokens * now.bytes_per_token - pool_bytes
    if missing > 0:
        found.append(_more_memory(now, wished_tokens, missing, memory_bytes, free_after_pool_bytes))
    drafting = draft.rule != "none"
    if drafting:
        found.append(way("no draft cache", kv_dtype, parallelism, NO_DRAFT, "speculation", 2))
    for dcp in _divisors(parallelism.tp, above=parallelism.dcp):
        try:
            ranks = replace(parallelism, dcp=dcp)
            found.append(
                way(
                    f"DCP {dcp}",
                    kv_dtype,
                    ranks,
                    draft,
                    "communication in every layer of every step, and a backend that has it",
                    3,
                )
            )
        except ValueError:
            continue
    for dtype, costs, order in (
        ("fp8", "rounding of every key and value, to be checked on own texts", 4),
        ("fp4", "coarse rounding of every key and value, and a backend that has it", 5),
    ):
        if dtype == "fp8" and kv_dtype.startswith("fp8"):
            continue  # which of the two fp8 layouts a server has, its backend decides
        try:
            smaller = way(f"{dtype} KV cache", dtype, parallelism, draft, costs, order)
            if smaller.bytes_per_token < now.bytes_per_token:
                found.append(smaller)
                if drafting and not smaller.enough:
                    both = f"{costs}; and speculation"
                    found.append(
                        way(
                            f"{dtype} KV cache, no draft cache",
                            dtype,
                            parallelism,
                            NO_DRAFT,
                            both,
                            order,
                        )
                    )
        except ValueError:
            continue
    return tuple(found)


def cell_bytes(
    cache: LatentCache | HeadCache, kv_dtype: str, parallelism: Parallelism, draft: DraftCache
) -> float:
    """Bytes of target and draft cache together, per token of context and GPU."""
    return bytes_per_token_per_gpu(cache, kv_dtype, parallelism) + draft_bytes_per_token(
        cache, draft, kv_dtype, parallelism
    )


def tokens_of(pool_bytes: float, cell: float, ranks: Parallelism, page_tokens: int) -> int:
    """Context tokens of a pool in whole pages; under DCP a page is one of every rank."""
    return sglang_pool_tokens(pool_bytes, cell, page_tokens * ranks.dcp)


def _more_memory(
    now: Way, wished: int, missing: float, memory: float | None, free: float | None
) -> Way:
    share = "" if memory is None else f" by {missing / memory:.3f}"
    return Way(
        name=f"memory fraction up{share}",
        bytes_per_token=now.bytes_per_token,
        pool_bytes=now.pool_bytes + missing,
        tokens=wished,
        enough=None if free is None else missing <= free,
        costs=f"{missing / GIB:.2f} GiB of each GPU, of the room for activations and graphs",
        order=1,
    )


def _divisors(of: int, above: int) -> list[int]:
    return [n for n in range(above + 1, of + 1) if of % n == 0]
