"""What ``analysis kv --limit`` prints: what the limit allows, and the ways to make it fit."""

from dataclasses import dataclass
from typing import Any

from analysis.errors import InputError
from analysis.model.context_limit import Engine, allowed
from analysis.model.context_ways import Way, ways
from analysis.model.draft_cache import DraftCache
from analysis.model.kv_cache import Parallelism
from analysis.records.model_config import ModelConfig

Limits = dict[str, Any]


@dataclass(frozen=True)
class Setting:
    """A model as it is served: dtype of the cache, ranks, drafter, page."""

    model: ModelConfig
    kv_dtype: str
    ranks: Parallelism
    drafter: DraftCache
    page_tokens: int | None


def limits_of(
    engine: Engine,
    limit: int,
    pool_tokens: int,
    pool_bytes: float,
    setting: Setting,
    as_json: bool,
) -> Limits:
    """``allowed``, and ``ways`` where the pool does not hold a request of the limit.

    Ways are objects in JSON, and a line each for people; none for llama.cpp, whose pool is what
    the limit makes it.
    """
    if pool_tokens < 1:
        raise InputError("--limit", "a pool of no token", "a pool that holds one or more")
    found = allowed(engine, limit, pool_tokens, setting.model.max_position_embeddings)
    result: Limits = {
        "allowed": {
            "engine": found.engine,
            "limit_tokens": limit,
            "starts": found.starts,
            "largest_request": found.largest_request,
            "largest_prompt": found.largest_prompt,
            "requests_at_limit": found.requests_at_limit,
            "behaviour": found.behaviour,
        },
        "ways": None,
    }
    if not found.held and engine != "llama.cpp":
        changes = ways(
            limit,
            setting.model.cache,
            setting.kv_dtype,
            setting.ranks,
            pool_bytes,
            setting.drafter,
            setting.page_tokens or 1,
        )[1:]
        result["ways"] = [_object(way) for way in changes] if as_json else _lines(changes)
    return result


def _object(way: Way) -> dict[str, Any]:
    return {
        "name": way.name,
        "bytes_per_token_per_gpu": way.bytes_per_token,
        "pool_bytes_per_gpu": way.pool_bytes,
        "tokens": way.tokens,
        "enough": way.enough,
        "costs": way.costs,
    }


def _lines(changes: tuple[Way, ...]) -> dict[str, str]:
    words = {True: "enough", False: "not enough", None: "if so much is free"}
    return {
        way.name: f"{way.tokens:,} tokens, {words[way.enough]}; costs {way.costs}"
        for way in changes
    }
