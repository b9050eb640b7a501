"""``analysis kv``."""

from math import isfinite

import click

from analysis.cli.output import json_option, show
from analysis.errors import InputError
from analysis.model.kv_cache import (
    GIB,
    LatentCache,
    Parallelism,
    bytes_per_token_per_gpu,
    pool_tokens,
)
from analysis.records.model_config import ModelConfig, load_model

ALIASES = {"auto": "", "bfloat16": "bf16", "float16": "fp16", "fp8_e4m3": "fp8", "fp8_e5m2": "fp8"}


@click.command()
@click.option("--model", "name", required=True, help="a name in data/models, or a config.json")
@click.option("--tp", type=click.IntRange(min=1), default=1, show_default=True)
@click.option("--dcp", type=click.IntRange(min=1), default=1, show_default=True)
@click.option("--dp-attention", is_flag=True, help="each rank serves its own requests")
@click.option("--kv-dtype", default="auto", show_default=True, help="bf16, fp16, fp8, fp8_ds_mla")
@click.option("--tokens", type=click.IntRange(min=0), help="context tokens to hold")
@click.option("--pool-gib", type=click.FloatRange(min=0), help="pool per GPU, GiB (2**30 B)")
@json_option
def kv(
    name: str,
    tp: int,
    dcp: int,
    dp_attention: bool,
    kv_dtype: str,
    tokens: int | None,
    pool_gib: float | None,
    as_json: bool,
) -> None:
    """KV cache of a model: bytes per token on each GPU, and what TOKENS or a pool make of it."""
    if tokens is not None and pool_gib is not None:
        raise InputError("--tokens and --pool-gib", "both", "one of them")
    if pool_gib is not None and not isfinite(pool_gib):
        raise InputError("--pool-gib", str(pool_gib), "a finite number")
    model = load_model(name)
    dtype = ALIASES.get(kv_dtype, kv_dtype) or model.dtype
    try:
        ranks = Parallelism(tp, dcp, dp_attention)
        cell = bytes_per_token_per_gpu(model.cache, dtype, ranks)
    except ValueError as error:
        raise InputError(
            "--tp, --dcp, --dp-attention, --kv-dtype", str(error), "a layout that the engines have"
        ) from None
    notes = list(model.notes)
    if pool_gib is not None:
        tokens = pool_tokens(pool_gib * GIB, cell)
    if dp_attention:
        notes.append("each rank holds only its own requests; tokens are per rank")
    used = None if tokens is None else tokens * cell
    show(
        {
            "model": model.name,
            "layout": layout(model, ranks),
            "kv_dtype": dtype,
            "bytes_per_token_per_gpu": int(cell) if cell == int(cell) else cell,
            "tokens": tokens,
            "bytes_per_gpu": None if used is None else int(used) if used == int(used) else used,
            "gib_per_gpu": None if used is None else used / GIB,
            "notes": notes,
        },
        as_json,
    )


def layout(model: ModelConfig, ranks: Parallelism) -> str:
    """The layout in words."""
    if ranks.dp_attention:
        return f"{model.attention}, whole on each of {ranks.tp} ranks (DP attention)"
    if ranks.dcp > 1:
        return f"{model.attention}, tokens divided over {ranks.dcp} of {ranks.tp} ranks (DCP)"
    if isinstance(model.cache, LatentCache):
        return f"{model.attention}, replicated on each of {ranks.tp} ranks"
    return f"{model.attention}, KV heads shared out over {ranks.tp} ranks"
