"""``analysis kv``."""

from dataclasses import replace
from math import isfinite

import click

from analysis.cli.kv_limits import Limits, Setting, limits_of
from analysis.cli.output import json_option, show
from analysis.errors import InputError
from analysis.model.context_limit import Engine
from analysis.model.draft_cache import NO_DRAFT, DraftCache, DraftRule, draft_bytes_per_token
from analysis.model.kv_cache import (
    GIB,
    LatentCache,
    Parallelism,
    bytes_per_token_per_gpu,
    refuse_uneven_heads,
)
from analysis.model.kv_pool import (
    sglang_allocation_line,
    sglang_pool_bytes,
    sglang_pool_tokens,
    vllm_pool_tokens,
)
from analysis.records.model_config import ModelConfig, load_model

ALIASES = {
    "auto": "",
    "bfloat16": "bf16",
    "float16": "fp16",
    "fp8_e4m3": "fp8",
    "fp8_e5m2": "fp8",
    "fp4_e2m1": "fp4",
    "fp4_mx_block16": "fp4",
    "nvfp4": "fp4",
}
DRAFTS: dict[str, DraftRule] = {
    "none": "none",
    "eagle": "eagle layer ratio",
    "dflash-ratio": "dflash layer ratio",
    "dflash-own": "dflash own cell",
}
ENGINES: dict[str, Engine] = {"sglang": "SGLang", "vllm": "vLLM", "llama.cpp": "llama.cpp"}
VLLM_BLOCK = 16
WHOLE = click.IntRange(min=1)
SIZE = click.FloatRange(min=0)
SGLANG_RULE = "--free-gib, --total-gib and --mem-fraction"


@click.command()
@click.option("--model", "name", required=True, help="a name in data/models, or a config.json")
@click.option("--tp", type=WHOLE, default=1, show_default=True)
@click.option("--dcp", type=WHOLE, default=1, show_default=True)
@click.option("--dp-attention", is_flag=True, help="each rank serves its own requests")
@click.option("--pp", type=WHOLE, default=1, show_default=True, help="pipeline stages")
@click.option("--kv-dtype", default="auto", show_default=True, help="bf16, fp8, fp8_ds_mla, fp4")
@click.option("--page-size", type=WHOLE, help="tokens of a page or block")
@click.option("--draft", type=click.Choice(list(DRAFTS)), default="none", help="draft cache rule")
@click.option("--draft-layers", type=WHOLE, help="layers of the drafter")
@click.option("--draft-model", help="its name or config.json")
@click.option("--draft-kv-dtype", default="auto", show_default=True, help="for dflash-own")
@click.option("--tokens", type=click.IntRange(min=0), help="context tokens to hold")
@click.option("--pool-gib", type=SIZE, help="pool per GPU, GiB (2**30 B)")
@click.option("--free-gib", type=SIZE, help="SGLang's rule: free after the weights")
@click.option("--total-gib", type=SIZE, help="free before the weights")
@click.option("--mem-fraction", type=click.FloatRange(0, 1, min_open=True), help="static share")
@click.option("--engine", type=click.Choice(list(ENGINES)), help="whose rules and limit")
@click.option("--limit", type=WHOLE, help="context limit, tokens: what it allows")
@json_option
def kv(
    name: str,
    tp: int,
    dcp: int,
    dp_attention: bool,
    pp: int,
    kv_dtype: str,
    page_size: int | None,
    draft: str,
    draft_layers: int | None,
    draft_model: str | None,
    draft_kv_dtype: str,
    tokens: int | None,
    pool_gib: float | None,
    free_gib: float | None,
    total_gib: float | None,
    mem_fraction: float | None,
    engine: str | None,
    limit: int | None,
    as_json: bool,
) -> None:
    """KV cache of a model: bytes per token on each GPU, and what TOKENS or a pool make of it.

    A pool is given by --pool-gib, or by SGLang's rule (--free-gib, --total-gib, --mem-fraction;
    SGLang's log prints GiB and calls them GB). With --engine and --limit it says what a context
    limit allows with that pool.
    """
    pool_gib = _pool_gib(pool_gib, free_gib, total_gib, mem_fraction)
    if tokens is not None and pool_gib is not None:
        raise InputError("--tokens and a pool", "both", "one of them")
    if limit is not None and (engine is None or (tokens is None and pool_gib is None)):
        expected = "--engine, and a pool (--pool-gib, or --tokens that it holds)"
        raise InputError("--limit", "it without these", expected)
    model = _as_served(load_model(name), engine)
    dtype = ALIASES.get(kv_dtype, kv_dtype) or model.dtype
    drafter = _drafter(DRAFTS[draft], draft_layers, draft_model, draft_kv_dtype, engine)
    try:
        ranks = Parallelism(tp, dcp, dp_attention, pp)
        cell = bytes_per_token_per_gpu(model.cache, dtype, ranks)
        refuse_uneven_heads(model.attention_heads, ranks)
        served = model
        if engine == "vllm":
            served, drafter = _merged(model, drafter), NO_DRAFT
        both = bytes_per_token_per_gpu(served.cache, dtype, ranks)
        both += draft_bytes_per_token(served.cache, drafter, dtype, ranks)
    except ValueError as error:
        raise InputError(
            "--tp, --dcp, --dp-attention, --pp, --kv-dtype, --draft",
            str(error),
            "a layout that the engines have",
        ) from None
    notes = list(model.notes)
    if dp_attention:
        notes.append("each rank holds only its own requests; tokens are per rank")
    if engine == "llama.cpp" and isinstance(model.cache, LatentCache):
        expected = "a model with KV heads: its layout of MLA differs between versions"
        raise InputError("--engine llama.cpp", f"MLA in {model.name}", expected)
    if pool_gib is not None and engine == "vllm":
        block = page_size or VLLM_BLOCK
        tokens = vllm_pool_tokens(pool_gib * GIB, served.cache, dtype, ranks, block)
    elif pool_gib is not None:
        page = (page_size or 1) * dcp
        tokens = sglang_pool_tokens(pool_gib * GIB, both, page)
    used = None if tokens is None else tokens * both
    limits: Limits = {"allowed": None, "ways": None}
    if limit is not None and engine is not None and tokens is not None:
        held = pool_gib * GIB if pool_gib is not None else tokens * both
        setting = Setting(served, dtype, ranks, drafter, page_size)
        limits = limits_of(ENGINES[engine], limit, tokens, held, setting, as_json)
    line = None
    if tokens and engine == "sglang":
        line = sglang_allocation_line(tokens // dcp, model.cache, dtype, ranks, page_size or 1)
    show(
        {
            "model": model.name,
            "layout": layout(model, ranks),
            "kv_dtype": dtype,
            "bytes_per_token_per_gpu": _whole(cell),
            "draft_bytes_per_token_per_gpu": _whole(both - cell),
            "pool_gib_per_gpu": pool_gib,
            "tokens": tokens,
            "bytes_per_gpu": None if used is None else _whole(used),
            "gib_per_gpu": None if used is None else used / GIB,
            "log_line": line,
            **limits,
            "notes": notes,
        },
        as_json,
    )


def layout(model: ModelConfig, ranks: Parallelism) -> str:
    """The layout in words."""
    stages = f"; layers divided over {ranks.pp} stages (PP)" if ranks.pp > 1 else ""
    if ranks.dp_attention:
        how = f"whole on each of {ranks.tp} ranks (DP attention)"
    elif ranks.dcp > 1:
        how = f"tokens divided over {ranks.dcp} of {ranks.tp} ranks (DCP)"
    elif isinstance(model.cache, LatentCache):
        how = f"replicated on each of {ranks.tp} ranks"
    else:
        how = f"KV heads shared out over {ranks.tp} ranks"
    return f"{model.attention}, {how}{stages}"


def _pool_gib(
    pool: float | None, free: float | None, total: float | None, fraction: float | None
) -> float | None:
    """The pool in GiB, given or by SGLang's rule."""
    for option, value in (("--pool-gib", pool), ("--free-gib", free), ("--total-gib", total)):
        if value is not None and not isfinite(value):
            raise InputError(option, str(value), "a finite number")
    if free is None and total is None and fraction is None:
        return pool
    if pool is not None:
        raise InputError(f"--pool-gib and {SGLANG_RULE}", "both", "one of them")
    if free is None or total is None or fraction is None:
        raise InputError(SGLANG_RULE, "not all of them", "all three, or none")
    if free > total:
        raise InputError("--free-gib", f"{free:g}, above --total-gib {total:g}", "at most it")
    found = sglang_pool_bytes(free * GIB, total * GIB, fraction) / GIB
    if not found:
        least = 1 - free / total if total else 1.0
        expected = f"more than {least:.3f}: nothing is left for the pool"
        raise InputError("--mem-fraction", f"{fraction:g}", expected)
    return found


def _drafter(
    rule: DraftRule, layers: int | None, name: str | None, dtype: str, engine: str | None
) -> DraftCache:
    """The draft cache by its rule. The rules are SGLang's; ``eagle`` holds for vLLM too."""
    if rule == "none":
        if layers is not None or name is not None:
            raise InputError("--draft-layers and --draft-model", "no rule", "--draft RULE too")
        return DraftCache()
    if engine == "llama.cpp" or (engine == "vllm" and rule != "eagle layer ratio"):
        found = f"a rule of SGLang's with --engine {engine}"
        raise InputError("--draft", found, "a rule that the engine has, or none")
    own = load_model(name) if name is not None else None
    if own is not None and isinstance(own.cache, LatentCache) and rule == "dflash own cell":
        raise InputError("--draft-model", f"MLA in {own.name}", "a drafter with KV heads")
    heads = None if own is None or isinstance(own.cache, LatentCache) else own.cache
    count = layers if layers is not None else own.cache.layers if own is not None else 0
    stored = ALIASES.get(dtype, dtype) or (own.dtype if own is not None else "bf16")
    try:
        return DraftCache(rule, count, heads, stored)
    except ValueError as error:
        expected = "--draft-model, or for a layer ratio --draft-layers"
        raise InputError("--draft", str(error), expected) from None


def _as_served(model: ModelConfig, engine: str | None) -> ModelConfig:
    """The model with its indexer as the engine keeps it: SGLang whole on each rank of DCP."""
    if engine != "sglang" or not isinstance(model.cache, LatentCache):
        return model
    return replace(model, cache=replace(model.cache, indexer_replicated=True))


def _merged(model: ModelConfig, drafter: DraftCache) -> ModelConfig:
    """The model with the drafter's layers among its own, as vLLM pools them."""
    layers = model.cache.layers + drafter.layers
    return replace(model, cache=replace(model.cache, layers=layers))


def _whole(value: float) -> float:
    return int(value) if value == int(value) else value
