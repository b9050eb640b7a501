"""The step-time model of a case: its lines beside other cases, and their limits."""

from dataclasses import dataclass

from analysis.findings.missing import Missing
from analysis.findings.series import SeriesFit, fit_series, rows_by_series
from analysis.model.regression import Interval, fit_polynomial
from analysis.model.roofline import occupancy_ceiling
from analysis.records.case import Case


@dataclass(frozen=True)
class PooledSlope:
    """A slope that exists only if the noisy commit lengths of a series are pooled into one."""

    series: str
    repeat: str
    n: int
    commit_length: float
    commit_low: float
    commit_high: float
    slope_us: float


@dataclass(frozen=True)
class StepTimes:
    """The step-time finding of a case."""

    main: SeriesFit
    series: tuple[SeriesFit, ...]
    compared: tuple[SeriesFit, ...]
    pooled: tuple[PooledSlope, ...]
    thread_blocks: int | None
    occupancy_limit: float | None
    neighbour_slope_us: float | None
    wished_tokens: int
    block_tokens: int | None = None
    far_tokens: int = 30_000

    @property
    def verdict(self) -> str:
        """The chapter's answer in one sentence."""
        line, name = self.main.prompt, self.main.series
        slope = line.slope_ci95
        between = f" ({slope[0]:.3g} to {slope[1]:.3g})" if slope else ""
        return (
            f"On prompt length, {name} fits step = {line.intercept_ms:.1f} ms + "
            f"{line.slope_us:.3g}{between} us per token, n = {self.main.n}, 95 % confidence by t. "
            f"{line.straightness}{self._against_limit}{self._others}"
        )

    @property
    def _against_limit(self) -> str:
        if self.main.over_bandwidth is None:
            return ""
        return (
            f" The slope is {self.main.over_bandwidth:.3g} times what reading the cache once "
            "would take."
        )

    @property
    def _others(self) -> str:
        """The other series of a measured case, each with its line."""
        if not self.main.measured:
            return ""
        others = [fit for fit in self.series[1:] if fit.repeat == self.main.repeat]
        return "".join(f" {_line_of(fit)}" for fit in others)

    @property
    def crossover_prompt(self) -> float:
        """Prompt length at which a doubled commit and a vanished slope are worth the same."""
        return self.main.prompt.crossover(2.0)

    @property
    def crossover_mean(self) -> float:
        """The same on the mean-context axis, where there is one."""
        return self.main.mean.crossover(2.0)

    @property
    def crossover_says(self) -> str:
        """Where a vanished slope overtakes a doubled commit, on the axes that the case has."""
        text = f"{self.crossover_prompt:,.0f} tokens of prompt"
        if self.main.has_mean_axis:
            text += f" ({self.crossover_mean:,.0f} of mean context)"
        return text

    @property
    def block_says(self) -> str:
        """Whether the block can hold twice as many tokens as the main series commits at most."""
        commits = [row.commit_length for row in self.main.rows if row.commit_length]
        most = max(commits, default=None)
        if self.block_tokens is None or most is None or 2 * most <= self.block_tokens:
            return ""
        return (
            f" Twice as good cannot be reached with this block: {most:.2f} of at most "
            f"{self.block_tokens} tokens are committed already."
        )

    @property
    def occupancy_weighed(self) -> str:
        """What too few thread blocks could explain of the gap to the bandwidth limit."""
        factor = self.main.over_bandwidth
        if self.occupancy_limit is None or self.unexplained is None or factor is None:
            return "The number of multiprocessors is not known, so no occupancy ceiling is given."
        ceiling = (
            f"A kernel that walks the prefix serially in one block per sequence and head has "
            f"{self.thread_blocks} blocks on each GPU here; that alone would explain a factor of "
            f"at most {self.occupancy_limit:.1f} over the limit."
        )
        if self.unexplained <= 1:
            return (
                f"{ceiling} The measured factor is {factor:.3g}, below that "
                "ceiling: this kernel cannot be such a one, or reads less than the whole cache."
            )
        return (
            f"{ceiling} The measured factor is {factor:.3g}, still "
            f"{self.unexplained:.0f} times more. Such a path is documented upstream for SGLang's "
            "Triton verify (sgl-project/sglang pull requests 27382, 39316, 20604); that the server "
            "of this case took it is an inference, and the rest stays unexplained."
        )

    @property
    def unexplained(self) -> float | None:
        """What of the gap to the bandwidth limit the occupancy ceiling leaves."""
        if self.occupancy_limit is None or self.main.over_bandwidth is None:
            return None
        return self.main.over_bandwidth / self.occupancy_limit

    @property
    def longest_context(self) -> float:
        """The longest context of the main series."""
        return max(self.main.prompt.contexts)

    @property
    def far(self) -> tuple[float, float | None, float | None]:
        """Line, quadratic and weighted quadratic at ``far_tokens``, ms: extrapolations."""
        return self.extrapolated(self.far_tokens)

    @property
    def far_step_ms(self) -> float:
        """The line at the wished context, ms: an extrapolation."""
        return self.main.prompt.step.step_ms(self.wished_tokens)

    @property
    def far_confidence_ms(self) -> Interval | None:
        """Confidence interval of the line there, if the line held."""
        return self.main.prompt.fit.confidence_interval(self.wished_tokens)

    def extrapolated(self, context: float) -> tuple[float, float | None, float | None]:
        """Line, quadratic and weighted quadratic at a context, on the prompt axis, ms."""
        line, weighted = self.main.prompt, self.main.prompt_weighted
        return (
            line.step.step_ms(context),
            line.curve.at(context) if line.curve else None,
            weighted.curve.at(context) if weighted.curve else None,
        )


def _line_of(fit: SeriesFit) -> str:
    line, ends = fit.prompt, fit.prompt.slope_ci95
    between = f" ({ends[0]:.3g} to {ends[1]:.3g})" if ends else ""
    return (
        f"{fit.series[:1].upper()}{fit.series[1:]}: {line.intercept_ms:.1f} ms + "
        f"{line.slope_us:.3g}{between} us per token, n = {fit.n}. {line.straightness}"
    )


def find(case: Case) -> StepTimes | Missing:
    """Fit every series of the case that has at least three points with a commit length."""
    series = fit_series(case)
    if not series:
        return Missing(
            "This case has no series of three or more contexts with a commit length, so no "
            "step-time model can be fitted."
        )
    compared = tuple(fit for other in case.compared for fit in fit_series(other))
    model, gpu = case.model, case.gpu
    heads_per_rank = ceiling = None
    if model is not None and gpu is not None:
        heads_per_rank = max(1, model.attention_heads // case.facts.layout.tp)
        if gpu.multiprocessors:
            ceiling = occupancy_ceiling(heads_per_rank, gpu.multiprocessors)
    limits = case.facts.limits
    longest = (model and model.max_position_embeddings) or int(max(series[0].prompt.contexts))
    return StepTimes(
        main=series[0],
        series=series,
        compared=compared,
        pooled=_pooled(case),
        neighbour_slope_us=neighbour_slope_us(case, series[0]),
        thread_blocks=heads_per_rank,
        occupancy_limit=ceiling,
        block_tokens=_most_committed(case),
        wished_tokens=limits.wished_context_tokens or limits.context_tokens or longest,
    )


def with_limit(found: StepTimes | Missing) -> StepTimes | Missing:
    """The finding, if a bandwidth limit is known to hold the slopes against; silent if not."""
    known = isinstance(found, Missing) or found.main.bandwidth_us is not None
    return found if known else Missing("")


def without_limit(found: StepTimes | Missing) -> StepTimes | Missing:
    """The finding, if no bandwidth limit is known; silent if one is."""
    known = isinstance(found, StepTimes) and found.main.bandwidth_us is not None
    return Missing("") if known else found


def measured(found: StepTimes | Missing) -> StepTimes | Missing:
    """The finding, if the engine timed the steps of its first series; silent if not."""
    return found if isinstance(found, Missing) or found.main.measured else Missing("")


def derived(found: StepTimes | Missing) -> StepTimes | Missing:
    """The finding, if the steps of its first series are commit over throughput; silent if not."""
    return Missing("") if isinstance(found, StepTimes) and found.main.measured else found


def on_gpu(found: StepTimes | Missing) -> StepTimes | Missing:
    """The finding, if the server has GPUs whose occupancy could matter; silent if not."""
    if isinstance(found, Missing) or found.thread_blocks is not None:
        return found
    return Missing("")


def _most_committed(case: Case) -> int | None:
    """Most tokens that a step of a measured case can commit: all that it verifies."""
    verified = case.facts.speculation.verified_tokens if case.facts.speculation else None
    return verified[1] if verified and case.runs else None


def pooled(found: StepTimes | Missing) -> StepTimes | Missing:
    """The finding, if any of its series has merely derived commit lengths."""
    if isinstance(found, Missing) or found.pooled:
        return found
    if found.main.measured:
        return Missing("")
    return Missing("No speculative series of this case has merely derived commit lengths.")


def neighbour_slope_us(case: Case, main: SeriesFit) -> float | None:
    """The slope of a neighbouring case with less, on speculation if it has that."""
    for other in case.compared:
        slopes = [p.slope_us for p in _pooled(other)] or [
            fit.prompt.slope_us for fit in fit_series(other)
        ]
        if slopes and slopes[0] < main.prompt.slope_us:
            return slopes[0]
    return None


def _pooled(case: Case) -> tuple[PooledSlope, ...]:
    found = []
    for rows in rows_by_series(case):
        commits = [r.commit_length for r in rows if r.commit_kind == "derived"]
        known = [c for c in commits if c is not None]
        if len(known) < 3 or len(known) < len(rows):
            continue
        pooled = sum(known) / len(known)
        steps = [1000 * pooled / row.tok_per_s for row in rows]
        fit = fit_polynomial([row.prompt_tokens for row in rows], steps)
        found.append(
            PooledSlope(
                series=rows[0].series,
                repeat=rows[0].repeat,
                n=len(rows),
                commit_length=pooled,
                commit_low=min(known),
                commit_high=max(known),
                slope_us=1000 * fit.coefficients[1],
            )
        )
    return tuple(found)
