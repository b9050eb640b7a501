"""The ways to reach a wished context, over all that a case leaves open."""

from collections.abc import Iterable
from dataclasses import dataclass

from analysis.model.context_ways import Way, cell_bytes, ways
from analysis.model.draft_cache import NO_DRAFT, DraftCache
from analysis.model.kv_cache import GB, HeadCache
from analysis.records.case import Case
from analysis.records.model_config import ModelConfig, load_model

DRAFT_SAYS = {
    "none": "without a draft cache",
    "eagle layer ratio": "with EAGLE's draft cache by layer ratio",
    "dflash layer ratio": "with DFlash's draft cache by layer ratio",
    "dflash own cell": "with DFlash's draft cache in its own cell",
}


@dataclass(frozen=True)
class WayRow:
    """One way to reach the wish: the tokens that then fit, by draft rule, and when it is enough."""

    name: str
    costs: str
    order: int
    tokens: dict[str, int]
    enough: str


def draft_caches(case: Case) -> tuple[DraftCache, ...]:
    """No draft cache, then those that the engine might keep: its version decides the rule."""
    speculation = case.facts.speculation
    if speculation is None or not speculation.draft_model:
        return (NO_DRAFT,)
    own = load_model(speculation.draft_model).cache
    if "dflash" not in speculation.method.lower() or not isinstance(own, HeadCache):
        return (NO_DRAFT, DraftCache("eagle layer ratio", own.layers))
    return (
        NO_DRAFT,
        DraftCache("dflash layer ratio", own.layers),
        DraftCache("dflash own cell", own.layers, own),
    )


def way_rows(
    case: Case, model: ModelConfig, wished: int, drafts: Iterable[DraftCache]
) -> Iterable[WayRow]:
    """Every way by every draft rule and both readings of the free memory, one row a way."""
    layout, memory = case.facts.layout, case.gpu.memory_bytes if case.gpu else None
    ranks, printed = layout.parallelism(), layout.pool_tokens or 0
    found: dict[str, dict[str, tuple[Way, ...]]] = {}
    for draft in drafts:
        pool = printed * cell_bytes(model.cache, layout.kv_dtype, ranks, draft)
        free = None if layout.free_gb_per_gpu is None else layout.free_gb_per_gpu * GB
        for after in (free, None if free is None else max(0.0, free - pool)):
            for way in ways(
                wished,
                model.cache,
                layout.kv_dtype,
                ranks,
                pool,
                draft,
                memory_bytes=memory,
                free_after_pool_bytes=after,
            ):
                by_rule = found.setdefault(way.name.split(" by ")[0], {})
                by_rule[draft.rule] = (*by_rule.get(draft.rule, ()), way)
    for by_rule in sorted(found.values(), key=lambda one: next(iter(one.values()))[0].order):
        first = next(iter(by_rule.values()))[0]
        yield WayRow(
            name=_name(by_rule),
            costs=first.costs,
            order=first.order,
            tokens={rule: made[0].tokens for rule, made in by_rule.items()},
            enough=_enough(by_rule),
        )


def _enough(by_rule: dict[str, tuple[Way, ...]]) -> str:
    """When a way is enough, in words: by every rule and reading, by some, or by none."""
    answers = {rule: tuple(way.enough for way in made) for rule, made in by_rule.items()}
    if all(a == (True, True) for a in answers.values()):
        return "yes"
    if all(a == (False, False) for a in answers.values()):
        return "no"
    if all(a == (True, False) for a in answers.values()):
        return "only if the free memory was read after the pool"
    if any(None in a for a in answers.values()):
        return "not known: free memory is not given"
    works = [DRAFT_SAYS[rule] for rule, a in answers.items() if a == (True, True)]
    return f"only {' or '.join(works)}" if works else "only by some readings"


def _name(by_rule: dict[str, tuple[Way, ...]]) -> str:
    """The name, with the range of its number where the rules give several."""
    first, *others = sorted({made[0].name for made in by_rule.values()})
    return f"{first} to {others[-1].split()[-1]}" if others else first
