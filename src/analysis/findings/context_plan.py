"""What another context limit does to a server: capability, memory, and how the engine meets it."""

import difflib
from dataclasses import dataclass, field
from typing import Literal

from analysis.errors import InputError
from analysis.findings.context_layout import UnitLayout, unit_layout, whole_option
from analysis.model.context_limit import Allowed, allowed
from analysis.model.context_ways import Way, ways
from analysis.model.kv_cache import GIB, bytes_per_token_per_gpu
from analysis.model.kv_pool import SGLANG_REQUESTS, llama_cpp_cells, sglang_request_table_bytes
from analysis.records.case import Case
from analysis.records.engine_flags import FLAGS
from analysis.records.launch import Launch

Verdict = Literal["fits", "does not fit", "undecided"]
ON = ("1", "true", "True", "yes")


@dataclass(frozen=True)
class Memory:
    """What memory says of the wish. ``needed_gib``: one request of it, per GPU, without drafts."""

    verdict: Verdict
    text: str
    behaviour: str
    allowed: Allowed | None = None
    needed_gib: float | None = None
    ways: tuple[Way, ...] = ()
    conditions: tuple[str, ...] = ()


@dataclass(frozen=True)
class ContextPlan:
    """The finding. ``per_request`` is what one request gets: ``to``, or llama.cpp's share of it."""

    launch: Launch = field(repr=False)
    case: str
    to: int
    per_request: int
    capability: str
    memory: Memory
    verdict: Verdict
    conditions: tuple[str, ...]
    differences: tuple[str, ...]
    patched: bytes = field(repr=False)
    diff: bytes = field(repr=False)


def plan_change(launch: Launch, to: int, case: Case) -> ContextPlan:
    """The plan to set the context of ``launch`` to ``to`` tokens, by the facts of ``case``.

    Raises ``InputError`` where nothing would change, or where the engine refuses to start or caps
    the limit because it is above the model's own.
    """
    setting = launch.setting
    if setting.tokens == to:
        raise InputError(
            "--to", f"{to:,}, as {setting.name} says in line {setting.line}", "another number"
        )
    layout = unit_layout(launch, case)
    slots = layout.slots or 1
    capability, sure = _capability(launch, to, slots, case)
    memory = _memory(launch, to, slots, case, layout)
    conditions = [*memory.conditions, *layout.doubts]
    if layout.slots is None:
        conditions.append("one slot has the whole context: the unit gives --parallel as a variable")
    conditions += _request_table(launch, to)
    patched = launch.patched(to)
    uncertain = memory.verdict == "fits" and not (sure and layout.slots)
    return ContextPlan(
        launch=launch,
        case=case.name,
        to=to,
        per_request=to // slots,
        capability=capability,
        memory=memory,
        verdict="undecided" if uncertain else memory.verdict,
        conditions=tuple(conditions),
        differences=layout.differences,
        patched=patched,
        diff=unified_diff(launch.content, patched, launch.path.name),
    )


def unified_diff(before: bytes, after: bytes, name: str) -> bytes:
    """A unified diff that ``patch -p1`` and ``git apply`` take, byte for byte."""
    old, new = (content.decode("latin-1").split("\n") for content in (before, after))
    lines = [
        [line + "\n" for line in text[:-1]] + ([text[-1]] if text[-1] else [])
        for text in (old, new)
    ]
    made = difflib.unified_diff(lines[0], lines[1], f"a/{name}", f"b/{name}")
    whole = (
        line if line.endswith("\n") else f"{line}\n\\ No newline at end of file\n" for line in made
    )
    return "".join(whole).encode("latin-1")


def _capability(launch: Launch, to: int, slots: int, case: Case) -> tuple[str, bool]:
    """What the model's positions say, and whether that is sure."""
    model, engine, wished = case.model, launch.engine, to // slots
    if "rope" in launch.options:
        return (
            "undecided: the unit changes the model's positions itself (rope or config overrides); "
            "the engine's log says which limit it derives",
            False,
        )
    limit = model.max_position_embeddings if model else None
    if model is None or limit is None:
        return "undecided: the case does not give the model's position limit", False
    yarn = ""
    if model.yarn_factor and model.yarn_original_positions:
        product = model.yarn_factor * model.yarn_original_positions
        yarn = (
            f"; YaRN: {model.yarn_factor:g} x {model.yarn_original_positions:,} original positions "
            f"= {product:,.0f}"
            + (", stretched beyond the original" if wished > model.yarn_original_positions else "")
        )
    if wished <= limit:
        return f"yes: {wished:,} of the {limit:,} positions of {model.name}{yarn}", True
    override = FLAGS[engine].override
    if override and launch.environment.get(override) in ON:
        return (
            f"undecided: {wished:,} is above the {limit:,} positions of {model.name}, which "
            f"{override} lets pass; positions beyond were not trained{yarn}",
            False,
        )
    does = f"{engine} raises at the start unless {override} is set"
    if engine == "llama.cpp":
        does = "llama.cpp caps each slot there"
    most = f"at most {limit * slots:,}, the positions of {model.name}: {does}"
    raise InputError("--to", f"{to:,}", most)


def _memory(launch: Launch, to: int, slots: int, case: Case, layout: UnitLayout) -> Memory:
    engine, pool = launch.engine, case.facts.layout.pool_tokens
    cell = _cell(case, layout)
    cells = llama_cpp_cells(to) if engine == "llama.cpp" else to
    needed = None if cell is None else cells * cell / GIB
    needs = "" if needed is None else f"{needed:.2f} GiB of KV cache"
    where = " per GPU" if case.facts.layout.gpus else ""
    if engine == "llama.cpp" and pool is None:
        limit = case.model.max_position_embeddings if case.model else None
        return Memory(
            "undecided",
            f"{needs or 'the KV cache'} is allocated at the start, beside the weights; "
            "the case does not give what is free",
            allowed(engine, to, to, limit, slots).behaviour,
            needed_gib=needed,
            conditions=(f"{needs or 'the KV cache'} is free when the server starts",),
        )
    generic = (
        "accepts the limit; if the pool is smaller, clips output in silence at the pool less one "
        "token and rejects longer prompts"
        if engine == "SGLang"
        else "refuses to start if one request of the limit does not fit into the pool"
    )
    drafts = ", without the draft model's" if "speculation" in launch.options else ""
    needs = f"one request of {to:,} tokens takes {needs}{where}{drafts}; " if needs else ""
    if pool is None:
        return Memory(
            "undecided",
            f"{needs}the case does not give the server's pool",
            generic,
            needed_gib=needed,
            conditions=(f"the pool holds {to:,} tokens: the log of the start says it",),
        )
    fixed = whole_option(launch, "pool_limit") if engine == "SGLang" else None
    pool = min(pool, fixed or pool)
    if not layout.same_pool:
        about = _other_pool(pool, case, layout, cell)
        return Memory(
            "undecided",
            f"{needs}the case's pool of {pool:,} tokens is of another layout{about}",
            generic,
            needed_gib=needed,
            conditions=(f"the pool of the unit's layout holds {to:,} tokens",),
        )
    if engine == "SGLang" and case.facts.layout.dcp > 1:
        return Memory(
            "undecided",
            f"{needs}under DCP SGLang prints the tokens of one rank, and the case does not say "
            f"whether its {pool:,} are these",
            generic,
            needed_gib=needed,
            conditions=(f"the pool of all ranks holds {to:,} tokens",),
        )
    limit = case.model.max_position_embeddings if case.model else None
    free = launch.environment.get(FLAGS[engine].override) in ON or "rope" in launch.options
    found = allowed(engine, to, pool, None if free else limit, slots)
    fits = found.starts and pool >= to
    text = f"{needs}the pool holds {pool:,} tokens, {pool / to:.2f} such requests"
    return Memory(
        "fits" if fits else "does not fit",
        text,
        found.behaviour,
        allowed=found,
        needed_gib=needed,
        ways=() if fits or cell is None else _ways(to, pool, cell, case, layout),
        conditions=_pool_conditions(launch, pool, fixed),
    )


def _cell(case: Case, layout: UnitLayout) -> float | None:
    """Bytes per token and GPU in the unit's layout; ``None`` if it is not known."""
    if case.model is None or layout.parallelism is None or not layout.kv_dtype:
        return None
    try:
        return bytes_per_token_per_gpu(case.model.cache, layout.kv_dtype, layout.parallelism)
    except ValueError:
        return None


def _other_pool(pool: int, case: Case, layout: UnitLayout, cell: float | None) -> str:
    """Tokens that the bytes of the case's pool would hold in the unit's layout."""
    ranks, model = case.facts.layout.parallelism(), case.model
    same_gpus = layout.parallelism is not None and (
        (layout.parallelism.tp, layout.parallelism.pp) == (ranks.tp, ranks.pp)
    )
    if cell is None or model is None or not same_gpus:
        return ""
    was = bytes_per_token_per_gpu(model.cache, case.facts.layout.kv_dtype, ranks)
    return (
        f"; its bytes would hold about {int(pool * was / cell):,} in the unit's (an inference: "
        "same bytes, no draft cache)"
    )


def _ways(to: int, pool: int, cell: float, case: Case, layout: UnitLayout) -> tuple[Way, ...]:
    if case.model is None or layout.parallelism is None:
        return ()
    memory = case.gpu.memory_bytes if case.gpu else None
    found = ways(
        to,
        case.model.cache,
        layout.kv_dtype,
        layout.parallelism,
        pool * cell,
        memory_bytes=memory,
    )
    return tuple(way for way in found if way.enough is not False)


def _pool_conditions(launch: Launch, pool: int, fixed: int | None) -> tuple[str, ...]:
    found = [f"the server starts with the case's pool of {pool:,} tokens: its log says it"]
    fraction = launch.options.get("mem_fraction")
    if fixed:
        found = [f"the pool is at most the {fixed:,} tokens of --max-total-tokens"]
    elif fraction:
        found = [f"the case's pool of {pool:,} tokens is of this memory fraction ({fraction})"]
    return tuple(found)


def _request_table(launch: Launch, to: int) -> list[str]:
    """SGLang's table of requests grows with the limit, outside the pool."""
    now = launch.setting.tokens
    if launch.engine != "SGLang" or now is None or to <= now:
        return []
    rows = whole_option(launch, "max_requests") or SGLANG_REQUESTS
    if launch.options.get("max_requests", "") is None:
        return []
    grown = sglang_request_table_bytes(to - now, rows) / GIB
    return [
        f"{grown:.2f} GiB more is free beside the pool on each GPU: SGLang's table of {rows:,} "
        "requests has a row of the limit's length for each"
    ]
