"""What the KV cache costs on each GPU, and what of the wished context fits."""

from dataclasses import dataclass

from analysis.findings.context_fit import layouts
from analysis.findings.missing import Missing
from analysis.findings.pool_check import check
from analysis.model.context_limit import ENGINES, Allowed, allowed
from analysis.model.kv_cache import (
    GB,
    GIB,
    KIB,
    HeadCache,
    LatentCache,
    Parallelism,
    bytes_per_token_per_gpu,
)
from analysis.model.kv_pool import sglang_allocated_bytes
from analysis.records.case import Case
from analysis.records.model_config import ModelConfig
from analysis.records.tables import PoolRow

COUNTERFACTUAL_HEADS = 8
COUNTERFACTUAL_HEAD_DIM = 128
"""The GQA counterfactual: 8 KV heads of 128, as in Llama 3.1 70B and 405B."""


@dataclass(frozen=True)
class Cell:
    """One cache layout: its cost per token on one GPU, and what contexts and the pool take."""

    layout: str
    kv_dtype: str
    bytes_per_token: float
    wished_tokens: int
    max_tokens: int
    pool_tokens: int | None

    @property
    def kib_per_token(self) -> float:
        """KiB (1024 bytes) per token and GPU."""
        return self.bytes_per_token / KIB

    @property
    def wished_gb(self) -> float:
        """GB (10^9 bytes) per GPU at the wished context."""
        return self.bytes_per_token * self.wished_tokens / GB

    @property
    def wished_gib(self) -> float:
        """GiB (2^30 bytes) per GPU at the wished context."""
        return self.bytes_per_token * self.wished_tokens / GIB

    @property
    def max_gib(self) -> float:
        """GiB per GPU at the model's own limit."""
        return self.bytes_per_token * self.max_tokens / GIB

    @property
    def pool_gib(self) -> float | None:
        """GiB per GPU that the printed number of pool tokens takes."""
        return None if self.pool_tokens is None else self.bytes_per_token * self.pool_tokens / GIB

    @property
    def extra_gib(self) -> float | None:
        """GiB per GPU that the wished context needs beyond the pool as it is."""
        return None if self.pool_gib is None else self.wished_gib - self.pool_gib


@dataclass(frozen=True)
class Memory:
    """The finding of the chapter. ``main`` is the layout that the case states."""

    model: ModelConfig
    main: Cell
    cells: tuple[Cell, ...]
    counterfactuals: tuple[Cell, ...]
    gpus: int
    pool_tokens: int | None
    free_gb: float | None
    wished_tokens: int
    max_tokens: int
    allowed: Allowed | None
    same_pools: tuple[PoolRow, ...]
    pools_known: int
    engine: str

    @property
    def verdict(self) -> str:
        """The chapter's answer in one sentence."""
        if not self.gpus:
            return (
                f"{self.model.name} keeps {self.main.bytes_per_token:,.0f} B per token in "
                f"{self.main.kv_dtype}: {self.wished_tokens:,} tokens take "
                f"{self.main.wished_gb:.3g} GB ({self.main.wished_gib:.3g} GiB) of memory."
            )
        pool = ""
        if self.pool_tokens and self.main.pool_gib is not None:
            pool = (
                f" A pool of {self.pool_tokens:,} tokens takes {self.main.pool_gib:.2f} GiB of "
                "each GPU so."
            )
        return (
            f"{self.model.attention} {self.main.layout} costs {self.main.bytes_per_token:,.0f} B "
            f"per token and GPU in {self.main.kv_dtype}: {self.wished_tokens:,} tokens take "
            f"{self.main.wished_gb:.2f} GB ({self.main.wished_gib:.2f} GiB) of each GPU.{pool}"
        )

    @property
    def config_says(self) -> str:
        """What of the model's config decides the cache, in a sentence or two."""
        model, cache = self.model, self.model.cache
        what = (
            f"{cache.elements} latent elements"
            if isinstance(cache, LatentCache)
            else f"{cache.kv_heads} KV heads of {cache.key_dim}"
        )
        limit = ""
        if model.max_position_embeddings:
            limit = f" The model's own limit is {model.max_position_embeddings:,} tokens"
            if model.yarn_factor and model.yarn_original_positions:
                limit += (
                    f" (YaRN factor {model.yarn_factor:g} on {model.yarn_original_positions:,})"
                )
            limit += "."
        if not self.gpus:
            return (
                f"{model.name}: {model.attention}, {what} in each of {cache.layers} layers, a key "
                f"and a value each; {self.main.bytes_per_token:,.0f} B per token in "
                f"{self.main.kv_dtype}.{limit}"
            )
        return (
            f"{model.name}: {what} in each of {cache.layers} layers; "
            f"{self.main.bytes_per_token:,.0f} B per token and GPU in {self.main.kv_dtype}, "
            f"{self.main.layout}.{limit}"
        )

    @property
    def elements(self) -> int | None:
        """Latent elements per token and layer; ``None`` without a latent."""
        return self.model.cache.elements if isinstance(self.model.cache, LatentCache) else None

    @property
    def sharded(self) -> Cell:
        """Divided over every rank: heads by plain TP, the latent only by DCP."""
        layout = "divided over all ranks (DCP)" if self.elements else "heads shared out (TP)"
        return self.cell(layout, self.main.kv_dtype)

    @property
    def fp8(self) -> Cell:
        """The stated layout in fp8."""
        return self.cell(self.main.layout, "fp8")

    @property
    def gqa(self) -> Cell:
        """The GQA counterfactual."""
        return self.counterfactuals[0]

    @property
    def mha(self) -> Cell:
        """The MHA counterfactual."""
        return self.counterfactuals[1]

    @property
    def line(self) -> str:
        """The server's own line on its pool, predicted for the stated layout."""
        return _printed_line(self.engine, self.pool_tokens or 0, self.main, bool(self.elements))

    @property
    def line_if_divided(self) -> str:
        """The same line, predicted for a cache that is divided over all ranks."""
        return _printed_line(self.engine, self.pool_tokens or 0, self.sharded, bool(self.elements))

    @property
    def line_caveat(self) -> str:
        """What that line cannot tell."""
        if self.engine != "SGLang":
            return f"{self.engine} prints GiB of one GPU; under DCP the tokens are those of all."
        return (
            f"{self.engine} prints GiB and calls them GB. The line is of the target's cache; a "
            "drafter has one of its own. Under DCP this engine prints the tokens of one rank, so "
            "the size beside them would be that of the first line: whether the server was started "
            "with DCP is read from its launch."
        )

    def cell(self, layout: str, kv_dtype: str) -> Cell:
        """One of the cells by layout and dtype."""
        return next(c for c in self.cells if (c.layout, c.kv_dtype) == (layout, kv_dtype))

    def fits_free_before_pool(self, cell: Cell) -> bool | None:
        """Whether the wish fits if the free memory was read before the pool was allocated."""
        return None if self.free_gb is None else cell.wished_gb <= self.free_gb

    def fits_free_after_pool(self, cell: Cell) -> bool | None:
        """Whether the wish fits if the free memory was read after the pool was allocated."""
        if self.free_gb is None or cell.extra_gib is None:
            return None
        return cell.extra_gib * GIB <= self.free_gb * GB


def _printed_line(engine: str, tokens: int, cell: Cell, latent: bool) -> str:
    """What the server prints of its pool at the start, if its cache lies so."""
    if engine == "vLLM":
        size = f"Available KV cache memory: {tokens * cell.bytes_per_token / GIB:.2f} GiB"
        return f"{size}, GPU KV cache size: {tokens:,} tokens"
    gib = sglang_allocated_bytes(tokens, cell.bytes_per_token) / GIB
    sizes = f"KV size: {gib:.2f} GB"
    if not latent:
        sizes = f"K size: {gib / 2:.2f} GB, V size: {gib / 2:.2f} GB"
    return f"KV Cache is allocated. #tokens: {tokens}, {sizes}"


def find(case: Case) -> Memory | Missing:
    """Work out the cache of a case under every layout that it might have had."""
    layout, model = case.facts.layout, case.model
    if model is None:
        return Missing("The facts of this case's model are not known (no model in case.toml).")
    limits = case.facts.limits
    longest = model.max_position_embeddings or 0
    wished = limits.wished_context_tokens or limits.context_tokens or longest
    if not wished:
        return Missing("Neither the case nor the model's config gives a context limit.")

    def cell(name: str, cache: LatentCache | HeadCache, dtype: str, ranks: Parallelism) -> Cell:
        cost = bytes_per_token_per_gpu(cache, dtype, ranks)
        return Cell(name, dtype, cost, wished, longest or wished, layout.pool_tokens)

    plain, named = Parallelism(layout.tp), layouts(case, model)
    dtypes = list(dict.fromkeys([layout.kv_dtype, "bf16", "fp8"]))
    cells = tuple(cell(n, model.cache, d, ranks) for n, ranks in named for d in dtypes)
    dim = COUNTERFACTUAL_HEAD_DIM
    gqa = HeadCache(model.cache.layers, COUNTERFACTUAL_HEADS, dim, dim)
    mha = model.uncompressed or HeadCache(model.cache.layers, model.attention_heads, dim, dim)
    dtype = "fp8" if layout.kv_dtype == "fp8_ds_mla" else layout.kv_dtype
    pool = layout.pool_tokens
    limit, engine = limits.wished_context_tokens or limits.context_tokens, case.facts.engine.name
    return Memory(
        model=model,
        main=cells[0],
        cells=cells,
        counterfactuals=(
            cell(f"GQA, {COUNTERFACTUAL_HEADS} KV heads of {dim}", gqa, dtype, plain),
            cell(f"MHA, {mha.kv_heads} heads, uncompressed", mha, dtype, plain),
        ),
        gpus=layout.gpus,
        pool_tokens=pool,
        free_gb=layout.free_gb_per_gpu,
        wished_tokens=wished,
        max_tokens=longest or wished,
        allowed=(
            allowed(engine, limit, pool, model.max_position_embeddings)
            if limit and pool and engine in ENGINES
            else None
        ),
        same_pools=tuple(
            row for row in case.pools if row.tp == layout.tp and check(row).model == model.name
        ),
        pools_known=len(case.pools),
        engine=engine,
    )


def on_gpus(found: Memory | Missing) -> Memory | Missing:
    """The finding, if the cache lies on GPUs and so in a layout over ranks; silent if not."""
    if isinstance(found, Missing) or found.gpus:
        return found
    return Missing("")


def with_pools(found: Memory | Missing) -> Memory | Missing:
    """The finding, if the case refers to pools that servers printed; silent if not."""
    return Missing("") if isinstance(found, Memory) and not found.pools_known else found


def undecided(found: Memory | Missing) -> Memory | Missing:
    """The finding, if a line of the server would tell its layout; silent if not."""
    if isinstance(found, Missing):
        return found
    told = found.engine in ("SGLang", "vLLM") and found.pool_tokens and found.elements
    return found if told and found.sharded is not found.main else Missing("")
