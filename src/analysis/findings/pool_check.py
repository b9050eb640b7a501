"""One printed pool against the memory model: nothing here is fitted.

A row says how its server laid out the cache. What follows is a size in bytes, and the printed
size must lie between that of the printed tokens and that of one page more, give or take half of
its last digit. The page: vLLM has a rest that makes no whole block, SGLang allocates one page of
padding rows (``model/kv_pool.py``).
"""

from dataclasses import dataclass, replace
from typing import Literal

from analysis.errors import InputError
from analysis.model.kv_cache import (
    GIB,
    HeadCache,
    LatentCache,
    Parallelism,
    bytes_per_token_per_gpu,
)
from analysis.model.kv_pool import gib_rounding
from analysis.records.model_config import load_model
from analysis.records.tables import PoolRow

Outcome = Literal["inside", "outside", "no size", "unknown model", "impossible layout"]
MIB = 2**20


@dataclass(frozen=True)
class Part:
    """One printed size: the pool, or its keys or values. Bytes on one GPU."""

    printed: float
    predicted: float
    page: float

    @property
    def inside(self) -> bool:
        """Whether the printed size is that of the tokens, or of up to one page more."""
        return -gib_rounding() <= self.printed - self.predicted <= gib_rounding() + self.page


@dataclass(frozen=True)
class PoolCheck:
    """A row against the model.

    ``model`` is the config's name. ``bytes_per_token`` is predicted, for each printed token on one
    GPU; it is ``None`` where ``reason`` says why nothing can be predicted, as are the properties
    that need it.
    """

    row: PoolRow
    model: str = ""
    cache: LatentCache | HeadCache | None = None
    bytes_per_token: float | None = None
    parts: tuple[Part, ...] = ()
    outcome: Outcome = "no size"
    reason: str = ""

    @property
    def name(self) -> str:
        """Engine, model and ranks."""
        row = self.row
        ranks = [f"TP {row.tp}"]
        ranks += [f"DCP {row.dcp}"] if row.dcp > 1 else []
        ranks += [f"PP {row.pp}"] if row.pp > 1 else []
        ranks += ["DP attention"] if row.dp_attention else []
        return f"{row.engine}, {row.model} at {', '.join(ranks)}"

    @property
    def printed_bytes_per_token(self) -> float | None:
        """Printed size over printed tokens."""
        return sum(part.printed for part in self.parts) / self.row.tokens if self.parts else None

    @property
    def error_pct(self) -> float | None:
        """Printed over predicted bytes per token, minus one, per cent."""
        if self.printed_bytes_per_token is None or self.bytes_per_token is None:
            return None
        return 100 * (self.printed_bytes_per_token / self.bytes_per_token - 1)

    @property
    def gap_mib(self) -> float:
        """Printed size less that of the printed tokens, MiB."""
        return sum(part.printed - part.predicted for part in self.parts) / MIB

    @property
    def allowed_mib(self) -> tuple[float, float]:
        """What rounding and one page allow for ``gap_mib``."""
        rounding = len(self.parts) * gib_rounding()
        return -rounding / MIB, (rounding + sum(part.page for part in self.parts)) / MIB

    @property
    def allowed_pct(self) -> tuple[float, float] | None:
        """The same for ``error_pct``."""
        predicted = sum(part.predicted for part in self.parts)
        if not predicted:
            return None
        low, high = self.allowed_mib
        return 100 * low * MIB / predicted, 100 * high * MIB / predicted

    @property
    def could_explain(self) -> str:
        """For a row outside: what could, each marked as conjecture, with what it would give."""
        if self.outcome != "outside" or self.cache is None:
            return ""
        deeper = _checked(self.row, replace(self.cache, layers=self.cache.layers + 1))
        low, high = self.allowed_mib
        text = (
            f"{self.name}: the printed size is {self.gap_mib:+.0f} MiB from that of the printed "
            f"tokens, where {low:.1f} to {high:.1f} MiB are allowed. Why is not known. Conjectures:"
        )
        if self.row.engine == "vLLM" and self.gap_mib > 0:
            text += (
                " (a) each worker prints its own available memory and all take the fewest blocks "
                "of any (`v1/core/kv_cache_utils.py`), so the quoted size may be that of another "
                "worker than the one that decided;"
            )
        else:
            text += " (a) the server ran with another layout or KV dtype than the row says;"
        return (
            f"{text} (b) {deeper.cache.layers if deeper.cache else 0} layers in the cache instead "
            f"of {self.cache.layers} would leave {deeper.gap_mib:+.1f} MiB, which is "
            f"{'within' if deeper.outcome == 'inside' else 'still outside'} what is allowed."
        )


def check(row: PoolRow) -> PoolCheck:
    """One row against the model; what cannot be predicted is an outcome, not an error."""
    try:
        model = load_model(row.config)
    except InputError as error:
        return PoolCheck(row, outcome="unknown model", reason=error.found)
    cache = model.cache if row.layers is None else replace(model.cache, layers=row.layers)
    try:
        if row.indexer_bytes is not None:
            cache = _with_indexer(cache, row.indexer_bytes)
        return replace(_checked(row, cache), model=model.name)
    except ValueError as error:
        return PoolCheck(row, outcome="impossible layout", reason=str(error))


def _checked(row: PoolRow, cache: LatentCache | HeadCache) -> PoolCheck:
    whole, each = _bytes(row, cache, 1), _bytes(row, cache, row.dcp)
    if row.engine == "SGLang":  # prints the tokens of one rank of DCP, vLLM those of all
        each = whole
    sizes: tuple[tuple[float, float | None], ...] = ((1.0, row.printed_gib),)
    if row.printed_k_gib is not None:
        if isinstance(cache, LatentCache):
            raise ValueError("keys and values apart, of a model that keeps one latent")
        share = cache.key_dim / (cache.key_dim + cache.value_dim)
        sizes = ((share, row.printed_k_gib), (1 - share, row.printed_v_gib))
    made = tuple(
        Part(gib * GIB, share * each * row.tokens, share * whole * row.page_tokens)
        for share, gib in sizes
        if gib is not None
    )
    outcome: Outcome = "no size"
    if made:
        outcome = "inside" if all(part.inside for part in made) else "outside"
    return PoolCheck(row, "", cache, each, made, outcome)


def _bytes(row: PoolRow, cache: LatentCache | HeadCache, dcp: int) -> float:
    ranks = Parallelism(row.tp, dcp, row.dp_attention, row.pp)
    return bytes_per_token_per_gpu(cache, row.kv_dtype, ranks)


def _with_indexer(cache: LatentCache | HeadCache, indexer_bytes: int) -> LatentCache | HeadCache:
    if isinstance(cache, LatentCache):
        return replace(cache, indexer_bytes=indexer_bytes)
    if indexer_bytes:
        raise ValueError("an indexer beside a cache of heads")
    return cache
