"""Checks on claims of KV memory and context limits."""

from analysis.findings.judge_throughput import numbers
from analysis.findings.ledger import Findings, Judgement, UnavailableError, Word, needed
from analysis.findings.memory import Memory
from analysis.records.tables import ClaimRow

ROUNDING = 0.025
"""Two figures of a memory claim agree within this share: the account rounds to two digits."""


def context_from_config(claim: ClaimRow, found: Findings) -> Judgement:
    """The model's limit, and YaRN's factor times the original positions, give the stated one."""
    stated = numbers(claim)[0]
    model = needed(found.memory).model
    product = (model.yarn_factor or 0) * (model.yarn_original_positions or 0)
    same = stated == model.max_position_embeddings and product in (0, stated)
    return Judgement(
        "reproduced" if same else "contradicted",
        f"config: max_position_embeddings {model.max_position_embeddings:,}; YaRN "
        f"{model.yarn_factor or 0:g} x {model.yarn_original_positions or 0:,} = {product:,.0f}",
        "05-mla-memory#config",
    )


def latent_elements(claim: ClaimRow, found: Findings) -> Judgement:
    """kv_lora_rank + qk_rope_head_dim."""
    stated = numbers(claim)[0]
    memory = needed(found.memory)
    return Judgement(
        "reproduced" if stated == memory.elements else "contradicted",
        f"kv_lora_rank + qk_rope_head_dim = {memory.elements}, in "
        f"{memory.model.cache.layers} layers"
        if memory.elements
        else f"{memory.model.attention} keeps heads and no latent",
        "05-mla-memory#config",
    )


def kv_bytes_per_token(claim: ClaimRow, found: Findings) -> Judgement:
    """The stated KB per token and GPU, under the layout that the account names."""
    stated = numbers(claim)[0]
    memory = needed(found.memory)
    return _layouts(
        claim,
        memory,
        stated,
        (memory.main.kib_per_token, memory.sharded.kib_per_token),
        f"{memory.model.attention} {memory.main.layout} takes "
        f"{memory.main.bytes_per_token:,.0f} B per token and GPU (= "
        f"{memory.main.kib_per_token:.2f} KiB); {memory.sharded.layout} it would take "
        f"{memory.sharded.bytes_per_token:,.0f} B (= {memory.sharded.kib_per_token:.2f} KiB); "
        f"the account says {stated:g} {claim.unit}",
        "05-mla-memory#layouts",
    )


def kv_bytes_at_wish(claim: ClaimRow, found: Findings) -> Judgement:
    """The stated GB per GPU at the wished context."""
    stated = numbers(claim)[0]
    memory = needed(found.memory)
    return _layouts(
        claim,
        memory,
        stated,
        (memory.main.wished_gb, memory.sharded.wished_gb),
        f"{memory.wished_tokens:,} tokens take {memory.main.wished_gb:.2f} GB "
        f"({memory.main.wished_gib:.2f} GiB) per GPU {memory.main.layout}; "
        f"{memory.sharded.layout} they would take {memory.sharded.wished_gb:.3f} GB",
        "05-mla-memory#layouts",
    )


def _layouts(
    claim: ClaimRow,
    memory: Memory,
    stated: float,
    sizes: tuple[float, float],
    evidence: str,
    cell: str,
) -> Judgement:
    main, sharded = sizes
    if abs(stated / main - 1) <= ROUNDING:
        return Judgement("reproduced", evidence, cell)
    condition = ""
    if abs(stated / sharded - 1) <= ROUNDING:
        condition = "reproduced if the server ran with DCP over all ranks; its KV size line decides"
    return Judgement("contradicted", evidence, cell, condition=condition)


def wish_fits(claim: ClaimRow, found: Findings) -> Judgement:
    """The wished context fits in memory: under which layout, dtype and reading of 'free'."""
    memory = needed(found.memory)
    main, fp8 = memory.main, memory.fp8
    readings = [
        fits
        for cell in (main, memory.sharded)
        for fits in (memory.fits_free_before_pool(cell), memory.fits_free_after_pool(cell))
        if fits is not None
    ]
    word: Word = "undecided"
    if readings and len(set(readings)) == 1:
        word = "consistent" if readings[0] else "contradicted"
    before = memory.fits_free_before_pool(fp8)
    served = ""
    if memory.allowed is not None:
        served = (
            f". With the pool as it is, {memory.allowed.pool_tokens:,} tokens, {memory.engine} "
            f"{memory.allowed.behaviour}"
        )
    return Judgement(
        word,
        f"{main.kv_dtype} {main.layout} needs {main.wished_gb:.2f} GB against "
        f"{memory.free_gb or 0:g} GB free if that was read before the pool, and "
        f"{main.extra_gib or 0:.2f} GiB more than the pool has if after; fp8 needs "
        f"{fp8.wished_gb:.2f} GB and {'fits' if before else 'does not fit'} even in the first "
        f"reading{served}",
        "05-mla-memory#fits",
        condition="the server's KV size line and when the free memory was read would decide",
    )


def only_mla_fits(claim: ClaimRow, found: Findings) -> Judgement:
    """Without MLA the wish would not fit in the free memory."""
    memory = needed(found.memory)
    gqa, mha = memory.gqa, memory.mha
    if memory.elements is None:
        raise UnavailableError("The model keeps no latent, so there is nothing to do without.")
    free = memory.free_gb or 0.0
    cheaper = gqa.bytes_per_token < memory.main.bytes_per_token
    return Judgement(
        "contradicted" if cheaper or memory.fits_free_before_pool(gqa) else "consistent",
        f"{gqa.layout}, of the same depth takes {gqa.bytes_per_token:,.0f} B per token and "
        f"GPU, MLA {memory.main.layout} {memory.main.bytes_per_token:,.0f}: "
        f"{gqa.wished_gb:.2f} GB against {memory.main.wished_gb:.2f} GB, with {free:g} GB free. "
        f"Full MHA would take {mha.bytes_per_token:,.0f} B ({mha.wished_gb:.1f} GB)",
        "05-mla-memory#counterfactuals",
        condition="holds against full MHA only",
    )
