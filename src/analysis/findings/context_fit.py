"""What a wished context takes of each GPU under every reading, and how the engine meets it.

What is not said in a case stays open: the layout, the rule by which the draft cache is sized, and
whether the free memory was read before or after the pool. Each combination is worked out, and the
verdict names its conditions.
"""

from dataclasses import dataclass

from analysis import paths
from analysis.errors import InputError
from analysis.findings.missing import Missing
from analysis.findings.ways_to_fit import DRAFT_SAYS, WayRow, draft_caches, way_rows
from analysis.model.context_limit import ENGINES, Allowed, allowed
from analysis.model.context_ways import cell_bytes
from analysis.model.draft_cache import DraftCache
from analysis.model.kv_cache import GB, GIB, LatentCache, Parallelism, bytes_per_token_per_gpu
from analysis.model.kv_pool import (
    SGLANG_REQUESTS,
    llama_cpp_cells,
    sglang_request_table_bytes,
)
from analysis.records.case import Case
from analysis.records.model_config import ModelConfig


@dataclass(frozen=True)
class Reading:
    """One way to read the case. Bytes are of target and draft cache together, on one GPU.

    ``pool_bytes`` is what the printed pool takes under this layout and rule in the KV dtype that
    the server ran with; ``pool_tokens`` is what it holds in ``kv_dtype``.
    """

    layout: str
    kv_dtype: str
    draft_rule: str
    bytes_per_token: float
    wished_tokens: int
    pool_bytes: float | None
    free_bytes: float | None

    @property
    def wished_gib(self) -> float:
        """GiB for the wished context."""
        return self.bytes_per_token * self.wished_tokens / GIB

    @property
    def wished_gb(self) -> float:
        """GB for the wished context."""
        return self.bytes_per_token * self.wished_tokens / GB

    @property
    def pool_gib(self) -> float | None:
        """GiB of the pool."""
        return None if self.pool_bytes is None else self.pool_bytes / GIB

    @property
    def pool_tokens(self) -> int | None:
        """Tokens that the pool holds."""
        return None if self.pool_bytes is None else int(self.pool_bytes // self.bytes_per_token)

    @property
    def missing_gib(self) -> float | None:
        """GiB that the wish needs beyond the pool; zero if it fits there."""
        return None if self.pool_gib is None else max(0.0, self.wished_gib - self.pool_gib)

    @property
    def fits_before(self) -> bool | None:
        """Whether the wish fits if the free memory was read before the pool was allocated."""
        if self.free_bytes is None:
            return None
        return self.bytes_per_token * self.wished_tokens <= self.free_bytes

    @property
    def fits_after(self) -> bool | None:
        """Whether the wish fits if the free memory was read after the pool was allocated."""
        if self.free_bytes is None or self.missing_gib is None:
            return None
        return self.missing_gib * GIB <= self.free_bytes


@dataclass(frozen=True)
class ContextFit:
    """The finding. ``readings`` start with the case's own layout and dtype, without a draft cache.

    ``now`` is the limit in force, ``then`` the wished one, each on the pool as it is; ``elsewhere``
    is what other engines would do with the wish on a pool like that. ``allocates`` says that the
    engine makes its pool as long as the limit, so that there is no pool that the wish must fit in.
    """

    engine: str
    gpus: int
    model: ModelConfig
    wished_tokens: int
    limit_tokens: int | None
    pool_tokens: int | None
    free_gb: float | None
    readings: tuple[Reading, ...]
    ways: tuple[WayRow, ...]
    now: Allowed | None
    then: Allowed | None
    elsewhere: tuple[Allowed, ...]
    allocates: bool

    @property
    def main(self) -> Reading:
        """The case's own layout and dtype, without a draft cache."""
        return self.readings[0]

    @property
    def held(self) -> bool:
        """Whether the pool as it is holds a request of the wished length, by every draft rule."""
        if self.allocates:
            return self.then is not None and self.then.held
        return self.pool_tokens is not None and self.pool_tokens >= self.wished_tokens

    @property
    def fits_says(self) -> str:
        """Whether the wish fits, with the conditions that decide, and how the engine meets it."""
        meets = f"How {self.engine} meets such a limit is not known here."
        if self.then is not None:
            meets = f"{self.engine} {self.then.behaviour}."
        if self.allocates and self.then is not None:
            return (
                f"{self.engine} allocates the cells of its limit when it starts: {self.needs_says} "
                f"With that memory it {self.then.behaviour}."
            )
        if self.pool_tokens is None:
            return f"{self.needs_says} Whether they fit is not known: the case gives no pool."
        if self.held:
            return (
                f"{self.wished_tokens:,} tokens fit in the pool of {self.pool_tokens:,}, "
                f"{self.pool_tokens / self.wished_tokens:.2f} requests of that length. {meets}"
            )
        return (
            f"{self.wished_tokens:,} tokens do not fit in the pool of {self.pool_tokens:,} "
            f"as it is. {meets}{self.conditions}"
        )

    @property
    def needs_says(self) -> str:
        """What the wish takes."""
        return (
            f"{self.wished_tokens:,} tokens take {self.main.wished_gib:.3g} GiB in "
            f"{self.main.kv_dtype}."
        )

    @property
    def conditions(self) -> str:
        """Under which readings of the free memory the wish fits with a larger pool, and in fp8."""
        main = self.main
        text = ""
        if self.free_gb is not None and main.missing_gib is not None:
            after = "enough" if main.fits_after else "not enough"
            before = "enough" if main.fits_before else "not enough"
            text += (
                f" {main.layout[:1].upper()}{main.layout[1:]}, in {main.kv_dtype}, they need "
                f"{main.missing_gib:.2f} GiB more than the pool has on each GPU: "
                f"{self.free_gb:g} GB free are {after} if read after the pool was allocated, "
                f"and {before} if read before ({main.wished_gb:.2f} GB)."
            )
        smaller = [
            r
            for r in self.readings
            if (r.layout, r.kv_dtype) == (main.layout, "fp8") and r.kv_dtype != main.kv_dtype
        ]
        if smaller:
            held = [
                f"{r.pool_tokens:,} {DRAFT_SAYS[r.draft_rule]}"
                for r in smaller
                if r.pool_tokens is not None
            ]
            text += f" Tokens that the same memory holds in fp8: {', '.join(held)}."
        return text + self.table_says

    @property
    def table_gib(self) -> float | None:
        """What the wish adds on each GPU to SGLang's table of requests, GiB, beside the pool."""
        limit = self.limit_tokens
        if self.engine != "SGLang" or limit is None or self.wished_tokens <= limit:
            return None
        return sglang_request_table_bytes(self.wished_tokens - limit) / GIB

    @property
    def table_says(self) -> str:
        """The same in a sentence."""
        if self.table_gib is None:
            return ""
        return (
            f" Beside the pool, {self.engine}'s table of requests grows with the limit: by "
            f"{self.table_gib:.2f} GiB on each GPU for {SGLANG_REQUESTS:,} requests, which "
            "--max-running-requests lowers."
        )

    @property
    def change_factor(self) -> float:
        """Longest request at the wish over that at the limit in force."""
        if self.now is None or self.then is None or not self.now.largest_request:
            return float("nan")
        return self.then.largest_request / self.now.largest_request


def find(case: Case, wished_tokens: int = 0) -> ContextFit | Missing:
    """Work out a wish, the case's own if none is given, under every reading of the case."""
    layout, limits, model = case.facts.layout, case.facts.limits, case.model
    if model is None:
        return Missing("The facts of this case's model are not known (no model in case.toml).")
    longest = model.max_position_embeddings
    wished = wished_tokens or limits.wished_context_tokens or limits.context_tokens or longest or 0
    if not wished:
        return Missing("Neither the case nor the model's config gives a context limit.")
    engine, limit, printed = case.facts.engine.name, limits.context_tokens, layout.pool_tokens
    allocates = printed is None and engine == "llama.cpp"
    free = None if layout.free_gb_per_gpu is None else layout.free_gb_per_gpu * GB
    drafts = draft_caches(case)

    named = layouts(case, model)

    def reading(name: str, dtype: str, ranks: Parallelism, draft: DraftCache) -> Reading:
        cell = cell_bytes(model.cache, dtype, ranks, draft)
        own = cell_bytes(model.cache, layout.kv_dtype, ranks, draft)
        held = None if printed is None else printed * own
        return Reading(name, dtype, draft.rule, cell, wished, held, free)

    dtypes = list(dict.fromkeys([layout.kv_dtype, "bf16", "fp8"]))
    readings = tuple(
        reading(name, dtype, ranks, draft)
        for name, ranks in named
        if ranks == layout.parallelism() or not ranks.dp_attention
        for dtype in dtypes
        for draft in drafts
    )

    def answer(name: str, asked: int | None) -> Allowed | None:
        pool = llama_cpp_cells(asked) if asked and allocates else printed
        if name not in ENGINES or not asked or not pool:
            return None
        return allowed(name, asked, pool, longest)

    others = [answer(name, wished) for name in ENGINES if printed and name != engine]
    return ContextFit(
        engine=engine,
        gpus=layout.gpus,
        model=model,
        wished_tokens=wished,
        limit_tokens=limit,
        pool_tokens=printed,
        free_gb=layout.free_gb_per_gpu,
        readings=readings,
        ways=tuple(way_rows(case, model, wished, drafts)) if printed else (),
        now=answer(engine, limit),
        then=answer(engine, wished),
        elsewhere=tuple(other for other in others if other is not None),
        allocates=allocates,
    )


def layouts(case: Case, model: ModelConfig) -> list[tuple[str, Parallelism]]:
    """The layout that the case states, then the others that it might have had, by name.

    Raises ``InputError`` where the model cannot be laid out as the case states.
    """
    layout = case.facts.layout
    tp, stated = layout.tp, layout.parallelism()
    try:
        bytes_per_token_per_gpu(model.cache, layout.kv_dtype, stated)
    except ValueError as error:
        place = f"{paths.relative(case.folder / 'case.toml')}, layout"
        raise InputError(place, str(error), f"a layout that {model.name} can have") from None
    whole = ("whole, own requests only (DP attention)", Parallelism(tp, dp_attention=True))
    if isinstance(model.cache, LatentCache):
        named = [
            ("replicated on every rank (plain TP)", Parallelism(tp)),
            ("divided over all ranks (DCP)", Parallelism(tp, dcp=tp)),
            whole,
        ]
    else:
        named = [("heads shared out (TP)", Parallelism(tp)), whole]
    if stated not in [ranks for _, ranks in named]:
        named.append((f"divided over {layout.dcp} of {tp} ranks (DCP)", stated))
    return sorted(named, key=lambda one: one[1] != stated)


def with_pool(found: ContextFit | Missing) -> ContextFit | Missing:
    """The finding, if the engine's answer to the wish is known; silent if not."""
    return Missing("") if isinstance(found, ContextFit) and found.then is None else found


def by_reading(found: ContextFit | Missing) -> ContextFit | Missing:
    """The finding, if the cache lies on GPUs and so in a layout to be read; silent if not."""
    return Missing("") if isinstance(found, ContextFit) and not found.gpus else found


def to_reach(found: ContextFit | Missing) -> ContextFit | Missing:
    """The finding, if the wish does not fit and the pool's size is known; silent if not."""
    if isinstance(found, Missing):
        return found
    return Missing("") if found.held or not found.ways else found
