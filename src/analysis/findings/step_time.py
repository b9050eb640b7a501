"""The step-time model of a case: lines on both context axes, their evidence, and their limits."""

from dataclasses import dataclass
from functools import cached_property
from typing import Literal

from analysis.findings.missing import Missing
from analysis.model.kv_cache import bytes_per_token_per_gpu
from analysis.model.levers import context_share, crossover_context, gain_of_slope
from analysis.model.linearity import POWER_BEND_PCT, Linearity, linearity
from analysis.model.regression import Interval, PolynomialFit, Weights, fit_polynomial
from analysis.model.roofline import bandwidth_slope_us, occupancy_ceiling
from analysis.model.step_time import StepTime, throughput
from analysis.records.case import Case
from analysis.records.tables import SweepRow

Axis = Literal["prompt", "mean"]
AXES: tuple[Axis, ...] = ("prompt", "mean")
REJECTED_BELOW = 0.05


@dataclass(frozen=True)
class LineFit:
    """One line of one series on one axis. Contexts in tokens, slope in us per token."""

    axis: Axis
    weights: Weights
    contexts: tuple[float, ...]
    steps: tuple[float, ...]

    @cached_property
    def fit(self) -> PolynomialFit:
        """The fitted line."""
        return fit_polynomial(self.contexts, self.steps, 1, self.weights)

    @cached_property
    def curve(self) -> PolynomialFit | None:
        """The quadratic, where there are points enough."""
        if len(set(self.contexts)) < 3:
            return None
        return fit_polynomial(self.contexts, self.steps, 2, self.weights)

    @cached_property
    def linearity(self) -> Linearity | None:
        """Evidence on straightness."""
        return linearity(self.contexts, self.steps, self.weights)

    @property
    def step(self) -> StepTime:
        """The line as a step-time law, in ms per token."""
        return StepTime(*self.fit.coefficients)

    @property
    def intercept_ms(self) -> float:
        """Step time at zero context on this axis."""
        return self.fit.coefficients[0]

    @property
    def intercept_ci95(self) -> Interval | None:
        """Its 95 % confidence interval."""
        return self.fit.coefficient_interval(0)

    @property
    def slope_us(self) -> float:
        """Slope, us per context token."""
        return 1000 * self.fit.coefficients[1]

    @property
    def slope_ci95(self) -> Interval | None:
        """Its 95 % confidence interval, us per token."""
        interval = self.fit.coefficient_interval(1)
        return None if interval is None else (1000 * interval[0], 1000 * interval[1])


@dataclass(frozen=True)
class SeriesFit:
    """All lines of one series, and the memory-bandwidth limit that its layout sets."""

    case: str
    series: str
    repeat: str
    speculation: str
    dcp: int
    bytes_per_token: float
    bandwidth_us: float
    lines: tuple[LineFit, ...]
    counted_slope_us: float | None

    @property
    def n(self) -> int:
        """Points of the series."""
        return len(self.lines[0].contexts)

    @property
    def prompt(self) -> LineFit:
        """Unweighted, on prompt length."""
        return self.line("prompt")

    @property
    def mean(self) -> LineFit:
        """Unweighted, on the mean context; on prompt length where outputs are not known."""
        return self.line("mean")

    @property
    def prompt_weighted(self) -> LineFit:
        """Weighted by 1/step**2, on prompt length."""
        return self.line("prompt", "relative")

    @property
    def mean_weighted(self) -> LineFit:
        """Weighted by 1/step**2, on the mean context."""
        return self.line("mean", "relative")

    @property
    def has_mean_axis(self) -> bool:
        """Whether output lengths, and so mean contexts, are known."""
        return any(line.axis == "mean" for line in self.lines)

    @property
    def over_bandwidth(self) -> float:
        """Measured slope over the bandwidth limit."""
        return self.prompt.slope_us / self.bandwidth_us

    def line(self, axis: Axis, weights: Weights = "none") -> LineFit:
        """One of the lines; the prompt axis stands in where there is no mean axis."""
        for wanted in (axis, "prompt"):
            for line in self.lines:
                if (line.axis, line.weights) == (wanted, weights):
                    return line
        raise KeyError((axis, weights))


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
    thread_blocks: int
    occupancy_limit: float | None
    neighbour_slope_us: float | None
    wished_tokens: int
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
            f"{straightness(line)} The slope is {self.main.over_bandwidth:.3g} times what reading "
            "the cache once would take."
        )

    @property
    def crossover_prompt(self) -> float:
        """Prompt length at which a doubled commit and a vanished slope are worth the same."""
        return lever_crossover(self.main.prompt, 2.0)

    @property
    def crossover_mean(self) -> float:
        """The same on the mean-context axis, where there is one."""
        return lever_crossover(self.main.mean, 2.0)

    @property
    def occupancy_weighed(self) -> str:
        """What too few thread blocks could explain of the gap to the bandwidth limit."""
        if self.occupancy_limit is None or self.unexplained is None:
            return "The number of multiprocessors is not known, so no occupancy ceiling is given."
        ceiling = (
            f"A kernel that walks the prefix serially in one block per sequence and head has "
            f"{self.thread_blocks} blocks on each GPU here; that alone would explain a factor of "
            f"at most {self.occupancy_limit:.1f} over the limit."
        )
        if self.unexplained <= 1:
            return (
                f"{ceiling} The measured factor is {self.main.over_bandwidth:.3g}, below that "
                "ceiling: this kernel cannot be such a one, or reads less than the whole cache."
            )
        return (
            f"{ceiling} The measured factor is {self.main.over_bandwidth:.3g}, still "
            f"{self.unexplained:.0f} times more. Such a path is documented upstream for SGLang's "
            "Triton verify (sgl-project/sglang pull requests 27382, 39316, 20604); that the server "
            "of this case took it is an inference, and the rest stays unexplained."
        )

    @property
    def unexplained(self) -> float | None:
        """What of the gap to the bandwidth limit the occupancy ceiling leaves."""
        if self.occupancy_limit is None:
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


def find(case: Case) -> StepTimes | Missing:
    """Fit every series of the case that has at least three points with a commit length."""
    series = fit_series(case)
    if not series:
        return Missing(
            "This case has no series of three or more contexts with a commit length, so no "
            "step-time model can be fitted."
        )
    compared = tuple(fit for other in case.compared for fit in fit_series(other))
    heads_per_rank = max(1, case.model.attention_heads // case.facts.layout.tp)
    ceiling = None
    if case.gpu.multiprocessors:
        ceiling = occupancy_ceiling(heads_per_rank, case.gpu.multiprocessors)
    limits = case.facts.limits
    longest = case.model.max_position_embeddings or int(max(series[0].prompt.contexts))
    return StepTimes(
        main=series[0],
        series=series,
        compared=compared,
        pooled=_pooled(case),
        neighbour_slope_us=_neighbour_slope(case, series[0]),
        thread_blocks=heads_per_rank,
        occupancy_limit=ceiling,
        wished_tokens=limits.wished_context_tokens or limits.context_tokens or longest,
    )


def pooled(found: StepTimes | Missing) -> StepTimes | Missing:
    """The finding, if any of its series has merely derived commit lengths."""
    if isinstance(found, Missing) or found.pooled:
        return found
    return Missing("No speculative series of this case has merely derived commit lengths.")


def fit_series(case: Case) -> tuple[SeriesFit, ...]:
    """Fits of all series whose commit length was measured or is exact, in table order."""
    fits = []
    for rows in _groups(case):
        usable = [row for row in rows if row.commit_kind in ("measured", "exact")]
        if len({row.prompt_tokens for row in usable}) >= 3:
            fits.append(_fit(case, usable))
    return tuple(fits)


Straight = Literal["straight", "bent", "undecided"]


def straight(line: LineFit) -> Straight:
    """Straight if the bend's whole interval is small; bent if not, and the line is rejected.

    A test alone would not do: with few points it rejects nothing, and with many precise ones it
    rejects a line for a bend that nobody would notice.
    """
    evidence = line.linearity
    if evidence is None or evidence.p is None or evidence.bend_ci95 is None:
        return "undecided"
    low, high = evidence.bend_ci95
    if low > -POWER_BEND_PCT and high < POWER_BEND_PCT:
        return "straight"
    return "bent" if evidence.p < REJECTED_BELOW else "undecided"


def straightness(line: LineFit) -> str:
    """The same in a sentence, with its numbers."""
    evidence = line.linearity
    if evidence is None or evidence.p is None or evidence.bend_ci95 is None:
        return "Too few contexts to test whether it is straight."
    low, high = evidence.bend_ci95
    numbers = f"a bend of {evidence.bend_pct:.1f} % ({low:.1f} to {high:.1f}), p = {evidence.p:.2g}"
    return {
        "straight": f"It is straight to within {POWER_BEND_PCT:.0f} %: {numbers}.",
        "bent": f"It is not straight: {numbers}.",
        "undecided": f"Whether it is straight is undecided: {numbers}, and this design would see "
        f"a bend of {POWER_BEND_PCT:.0f} % only {100 * (evidence.power or 0):.0f} % of the time.",
    }[straight(line)]


def lever_gain(fit: LineFit, new_slope_us: float, context: float) -> float:
    """What a changed slope would be worth at a context, as a factor."""
    return gain_of_slope(fit.step, new_slope_us / 1000, context)


def lever_crossover(fit: LineFit, drafter_gain: float) -> float:
    """Context at which the drafter and a vanished slope are worth the same."""
    return crossover_context(fit.step, drafter_gain)


def share_of_context(fit: LineFit, context: float) -> float:
    """Share of the step that grows with context."""
    return context_share(fit.step, context)


def tok_per_s(fit: LineFit, commit_length: float, context: float) -> float:
    """Throughput on the line."""
    return throughput(commit_length, fit.step.step_ms(context))


def _groups(case: Case) -> list[list[SweepRow]]:
    groups: dict[tuple[str, str], list[SweepRow]] = {}
    for row in case.sweep:
        groups.setdefault((row.series, row.repeat), []).append(row)
    return list(groups.values())


def _fit(case: Case, rows: list[SweepRow]) -> SeriesFit:
    steps = tuple(row.step_ms or 0.0 for row in rows)
    contexts: dict[Axis, tuple[float, ...]] = {"prompt": tuple(r.prompt_tokens for r in rows)}
    means = tuple(r.context_tokens for r in rows if r.context_tokens is not None)
    if len(means) == len(rows):
        contexts["mean"] = means
    lines = tuple(
        LineFit(axis, weights, contexts[axis], steps)
        for axis in AXES
        if axis in contexts
        for weights in ("none", "relative")
    )
    first = rows[0]
    cell = bytes_per_token_per_gpu(
        case.model.cache, case.facts.layout.kv_dtype, case.facts.layout.parallelism(first.dcp)
    )
    counted = None
    if all(row.counted_prompt_tokens is not None for row in rows if row.prompt_tokens):
        tokens = [row.counted_prompt_tokens or 0 for row in rows]
        counted = 1000 * fit_polynomial(tokens, steps).coefficients[1]
    return SeriesFit(
        case=case.name,
        series=first.series,
        repeat=first.repeat,
        speculation=first.speculation,
        dcp=first.dcp,
        bytes_per_token=cell,
        bandwidth_us=bandwidth_slope_us(cell, case.gpu.bandwidth_tb_per_s),
        lines=lines,
        counted_slope_us=counted,
    )


def _neighbour_slope(case: Case, main: SeriesFit) -> float | None:
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
    for rows in _groups(case):
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
