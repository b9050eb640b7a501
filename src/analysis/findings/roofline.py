"""The roofline of attention over the context: what bytes and FLOP allow, and what was measured."""

from dataclasses import dataclass
from itertools import groupby

from analysis.findings.missing import Missing
from analysis.findings.series import SeriesFit, fit_series
from analysis.model.attention_cost import AttentionCost, attention_cost
from analysis.model.kv_cache import Parallelism
from analysis.model.regression import Interval
from analysis.model.roofline import arithmetic_slope_us, bandwidth_slope_us, compute_bound_from
from analysis.records.case import Case
from analysis.records.hardware import Gpu, all_gpus
from analysis.records.model_config import ModelConfig, all_models

Queries = tuple[int, int]
OTHER_DTYPES = ("bf16", "fp8")
DCP_SIZES = (2, 4, 8, 16)


@dataclass(frozen=True)
class Limit:
    """What a GPU allows a layout; ``label`` says which model, layout or GPU it is about.

    Arithmetic is taken at the GPU's dense bf16 peak, into which kernels for fp8 caches convert
    too, unless they multiply in fp8.
    """

    label: str
    kv_dtype: str
    cost: AttentionCost
    gpu: Gpu | None

    @property
    def memory_us(self) -> float | None:
        """Least us per context token by memory bandwidth."""
        if self.gpu is None:
            return None
        return bandwidth_slope_us(self.cost.bytes_per_token, self.gpu.bandwidth_tb_per_s)

    def compute_us(self, queries: float) -> float | None:
        """Least us per context token by arithmetic, for so many tokens a step."""
        if self.gpu is None or self.gpu.dense_bf16_tflops is None:
            return None
        return arithmetic_slope_us(self.cost.flop(queries), self.gpu.dense_bf16_tflops)

    @property
    def compute_bound_from(self) -> int | None:
        """Fewest tokens a step at which arithmetic sets the limit."""
        if self.gpu is None or self.gpu.dense_bf16_tflops is None:
            return None
        return compute_bound_from(
            self.cost.intensity(), self.gpu.bandwidth_tb_per_s, self.gpu.dense_bf16_tflops
        )

    def slope_us(self, queries: float) -> float | None:
        """The roofline: the larger of both limits, or memory's where arithmetic is not known."""
        if self.memory_us is None:
            return None
        return max(self.memory_us, self.compute_us(queries) or 0.0)


@dataclass(frozen=True)
class SeriesRate:
    """A measured slope beside its limit, and the rates that it means.

    ``queries`` are the least and the greatest number of tokens that a step of the series
    verifies; ``None`` where the case does not say.
    """

    fit: SeriesFit
    limit: Limit
    queries: Queries | None

    @property
    def slope_us(self) -> float:
        """Measured, us per token of context."""
        return self.fit.prompt.slope_us

    @property
    def slope_ci95(self) -> Interval | None:
        """Its 95 % confidence interval by t."""
        return self.fit.prompt.slope_ci95

    @property
    def gb_per_s(self) -> float:
        """Bytes of the cache, read once a step, over the slope: GB/s on one GPU (10^9 B)."""
        return self.limit.cost.bytes_per_token / self.slope_us / 1e3

    @property
    def gflop_per_s(self) -> Interval | None:
        """FLOP over the slope, at the least and the greatest width: GFLOP/s on one GPU."""
        if self.queries is None:
            return None
        low, high = (self.limit.cost.flop(q) / self.slope_us / 1e3 for q in self.queries)
        return low, high

    @property
    def limit_us(self) -> float | None:
        """The roofline at the greatest width."""
        return self.limit.slope_us(self.queries[1] if self.queries else 1)

    @property
    def over_limit(self) -> float | None:
        """Measured slope over the roofline."""
        return None if self.limit_us is None else self.slope_us / self.limit_us


@dataclass(frozen=True)
class Roofline:
    """The roofline finding of a case; ``main`` is its first series.

    ``layouts`` are ways to serve the same model, ``models`` others served alike, ``gpus`` the
    same on other GPUs.
    """

    main: SeriesRate
    rates: tuple[SeriesRate, ...]
    layouts: tuple[Limit, ...]
    models: tuple[Limit, ...]
    left_out: tuple[str, ...]
    gpus: tuple[Limit, ...]

    @property
    def verdict(self) -> str:
        """The chapter's answer."""
        return f"{self._slope_says} {self._limit_says}"

    @property
    def _slope_says(self) -> str:
        ends = self.main.slope_ci95
        between = f" ({ends[0]:.3g} to {ends[1]:.3g}, 95 % confidence)" if ends else ""
        name = self.main.fit.series
        return (
            f"{name[:1].upper()}{name[1:]} adds {self.main.slope_us:.3g}{between} us to a step per "
            "token of context."
        )

    @property
    def _limit_says(self) -> str:
        limit = self.main.limit
        if limit.gpu is None or limit.memory_us is None:
            rates = self.main.gflop_per_s
            done = ""
            if rates is not None:
                between = f"{rates[0]:.3g}" if rates[0] == rates[1] else "{:.3g} to {:.3g}"
                done = f" and {between.format(*rates)} GFLOP/s by the tokens that a step verifies"
            return (
                f"If a step reads the cache once, that is {self.main.gb_per_s:.3g} GB/s{done}. "
                "No GPU is known for this server, so there is no limit to hold it against."
            )
        return (
            f"Reading its {limit.cost.bytes_per_token:,.0f} B once at "
            f"{limit.gpu.bandwidth_tb_per_s:g} TB/s takes {1000 * limit.memory_us:.1f} ns: the "
            f"slope is {self.slope_over_memory:,.3g} times that. {self.bound_says}"
        )

    @property
    def slope_over_memory(self) -> float | None:
        """Measured slope over the limit by memory bandwidth."""
        memory = self.main.limit.memory_us
        return None if memory is None else self.main.slope_us / memory

    @property
    def bound_says(self) -> str:
        """Whether memory or arithmetic would set the limit at the case's width."""
        first = self.main.limit.compute_bound_from
        if first is None:
            return "No peak of arithmetic is known for this GPU."
        says = f"Arithmetic would set the limit from {first} tokens a step on"
        if self.main.queries is None:
            return f"{says}; how many a step verifies is not known."
        low, high = self.main.queries
        width = f"{low}" if low == high else f"{low} to {high}"
        if high < first:
            return f"{says}. A step here computes {width}, so memory sets it."
        if low >= first:
            return f"{says}. A step here computes {width}, so arithmetic sets it."
        return f"{says}. A step here computes {width}, so it depends on the step."

    @property
    def left_out_says(self) -> str:
        """Which models of the table's folder are not in it."""
        if not self.left_out:
            return "No model is left out."
        return (
            f"Left out: {', '.join(self.left_out)}. Their attention is sparse, or their heads "
            "cannot be shared out over so many ranks."
        )


def find(case: Case) -> Roofline | Missing:
    """Hold every fitted series of the case, and of those beside it, against its limits."""
    fits = fit_series(case)
    if not fits:
        return Missing(
            "This case has no series of three or more contexts with a commit length, so there is "
            "no slope to hold against a limit."
        )
    if case.model is None:
        return Missing("The facts of the model are not known, so neither bytes nor FLOP are.")
    try:
        rates = [_rate(case, case.model, fit) for fit in fits]
    except ValueError as reason:
        return Missing(f"No roofline is given: {reason}.")
    compared = [
        _rate(other, other.model, fit)
        for other in case.compared
        if other.model is not None
        for fit in fit_series(other)
    ]
    models, left_out = _models(case) if case.facts.published else ((), ())
    layout = rates[0].limit
    return Roofline(
        main=rates[0],
        rates=(*rates, *compared),
        layouts=tuple(_layouts(case, case.model)),
        models=models,
        left_out=left_out,
        gpus=tuple(
            Limit(gpu.gpu, layout.kv_dtype, layout.cost, gpu) for gpu in all_gpus() if case.gpu
        ),
    )


def with_gpu(found: Roofline | Missing) -> Roofline | Missing:
    """The finding, if the server's GPU is known; silent if not."""
    known = isinstance(found, Missing) or found.main.limit.gpu is not None
    return found if known else Missing("")


def with_models(found: Roofline | Missing) -> Roofline | Missing:
    """The finding, if other models stand beside the case's; silent if not."""
    return found if isinstance(found, Missing) or found.models else Missing("")


def _rate(case: Case, model: ModelConfig, fit: SeriesFit) -> SeriesRate:
    layout = case.facts.layout
    cost = attention_cost(
        model.cache, model.attention_heads, layout.kv_dtype, layout.parallelism(fit.dcp)
    )
    name = f"{fit.case}: {fit.series} {fit.repeat}".strip()
    return SeriesRate(fit, Limit(name, layout.kv_dtype, cost, case.gpu), _queries(case, fit))


def _queries(case: Case, fit: SeriesFit) -> Queries | None:
    if fit.speculation == "none":
        return 1, 1
    return case.facts.speculation.verified_tokens if case.facts.speculation else None


def _layouts(case: Case, model: ModelConfig) -> list[Limit]:
    """The case's own layout first, then those that the same GPUs allow, in both dtypes."""
    layout = case.facts.layout
    own = layout.parallelism()
    ways = [own, *(Parallelism(own.tp, dcp) for dcp in DCP_SIZES if own.tp % dcp == 0)]
    if own.tp > 1:
        ways += [Parallelism(own.tp), Parallelism(own.tp, dp_attention=True)]
    found = []
    for dtype in dict.fromkeys((layout.kv_dtype, *OTHER_DTYPES)):
        for way in dict.fromkeys(ways):
            try:
                cost = attention_cost(model.cache, model.attention_heads, dtype, way)
            except ValueError:
                continue  # such a layout does not exist for this model
            found.append(Limit(_layout_label(way), dtype, cost, case.gpu))
    return found


def _layout_label(way: Parallelism) -> str:
    if way.dp_attention:
        return f"DP attention on {way.tp} ranks"
    return f"TP{way.tp}" if way.dcp == 1 else f"TP{way.tp}, DCP{way.dcp}"


def _models(case: Case) -> tuple[tuple[Limit, ...], tuple[str, ...]]:
    """Every committed model in the case's layout; models that cost the same share a row."""
    layout = case.facts.layout
    costs: list[tuple[AttentionCost, str, str]] = []
    left_out = []
    for model in all_models():
        try:
            cost = attention_cost(
                model.cache, model.attention_heads, layout.kv_dtype, layout.parallelism()
            )
        except ValueError:
            left_out.append(model.name.split("/")[-1])
            continue
        costs.append((cost, model.attention, model.name.split("/")[-1]))
    costs.sort(key=lambda row: (row[1], row[0].bytes_per_token, row[0].flop_per_query))
    rows = [
        Limit(
            f"{attention}: {', '.join(name for _, _, name in alike)}",
            layout.kv_dtype,
            cost,
            case.gpu,
        )
        for (cost, attention), alike in groupby(costs, key=lambda row: row[:2])
    ]
    return tuple(rows), tuple(left_out)
