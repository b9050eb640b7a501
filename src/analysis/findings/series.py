"""Every series of a sweep as step-time lines, on both context axes and with both weights."""

from dataclasses import dataclass
from functools import cached_property
from typing import Literal

from analysis.model.kv_cache import bytes_per_token_per_gpu
from analysis.model.levers import (
    context_share,
    crossover_context,
    gain_of_slope,
    slope_for_gain,
)
from analysis.model.linearity import POWER_BEND_PCT, Linearity, linearity
from analysis.model.regression import Interval, PolynomialFit, Weights, fit_polynomial
from analysis.model.roofline import bandwidth_slope_us
from analysis.model.step_time import StepTime, throughput
from analysis.records.case import Case
from analysis.records.tables import SweepRow

Axis = Literal["prompt", "mean"]
AXES: tuple[Axis, ...] = ("prompt", "mean")
Straight = Literal["straight", "bent", "undecided"]
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

    @property
    def straight(self) -> Straight:
        """Straight if the bend's whole interval is small; bent if not, and the line is rejected.

        A test alone would not do: with few points it rejects nothing, and with many precise ones
        it rejects a line for a bend that nobody would notice.
        """
        evidence = self.linearity
        if evidence is None or evidence.p is None or evidence.bend_ci95 is None:
            return "undecided"
        low, high = evidence.bend_ci95
        if low > -POWER_BEND_PCT and high < POWER_BEND_PCT:
            return "straight"
        return "bent" if evidence.p < REJECTED_BELOW else "undecided"

    @property
    def straightness(self) -> str:
        """The same in a sentence, with its numbers."""
        evidence = self.linearity
        if evidence is None or evidence.p is None or evidence.bend_ci95 is None:
            if self.curve is not None and self.curve.dof > 0:
                return "The points leave no scatter to judge its straightness by."
            return "Too few contexts to test whether it is straight."
        low, high = evidence.bend_ci95
        bend = f"a bend of {evidence.bend_pct:.1f} % ({low:.1f} to {high:.1f})"
        numbers = f"{bend}, p = {evidence.p:.2g}"
        return {
            "straight": f"It is straight to within {POWER_BEND_PCT:.0f} %: {numbers}.",
            "bent": f"It is not straight: {numbers}.",
            "undecided": f"Whether it is straight is undecided: {numbers}, and this design would "
            f"see a bend of {POWER_BEND_PCT:.0f} % only {100 * (evidence.power or 0):.0f} % of "
            "the time.",
        }[self.straight]

    def tok_per_s(self, commit_length: float, context: float) -> float:
        """Throughput on the line."""
        return throughput(commit_length, self.step.step_ms(context))

    def gain_of_slope(self, new_slope_us: float, context: float) -> float:
        """What another slope would be worth at a context, as a factor on throughput."""
        return gain_of_slope(self.step, new_slope_us / 1000, context)

    def crossover(self, drafter_gain: float) -> float:
        """Context at which a better drafter and a vanished slope are worth the same."""
        return crossover_context(self.step, drafter_gain)

    def slope_worth(self, gain: float, context: float) -> float:
        """The slope, us per token, that alone would be worth ``gain`` at a context."""
        return 1000 * slope_for_gain(self.step, gain, context)

    def context_share(self, context: float) -> float:
        """Share of the step that grows with context."""
        return context_share(self.step, context)


@dataclass(frozen=True)
class SeriesFit:
    """All lines of one series, and the memory-bandwidth limit that its layout sets.

    The bytes are ``None`` where the model's facts are not known, the limit also without a GPU.
    """

    case: str
    series: str
    repeat: str
    speculation: str
    dcp: int
    rows: tuple[SweepRow, ...]
    bytes_per_token: float | None
    bandwidth_us: float | None
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
    def measured(self) -> bool:
        """Whether every step was timed by the engine, not worked out."""
        return all(row.step_kind == "measured" for row in self.rows)

    @property
    def over_bandwidth(self) -> float | None:
        """Slope over the bandwidth limit."""
        return None if self.bandwidth_us is None else self.prompt.slope_us / self.bandwidth_us

    @property
    def steps_are(self) -> str:
        """Where the steps come from, in words."""
        if self.measured:
            return "measured: the engine's own decode time over the verify steps counted"
        return "derived from throughput and commit length"

    @property
    def law(self) -> str:
        """The line on the mean context where that is known, with its intervals, in words."""
        line = self.mean
        around = [
            f" ({ends[0]:.3g} to {ends[1]:.3g})" if ends else ""
            for ends in (line.intercept_ci95, line.slope_ci95)
        ]
        return (
            f"{line.intercept_ms:.3g}{around[0]} ms + {line.slope_us:.3g}{around[1]} us per token "
            f"of {'mean context' if self.has_mean_axis else 'prompt'}"
        )

    def line(self, axis: Axis, weights: Weights = "none") -> LineFit:
        """One of the lines; the prompt axis stands in where there is no mean axis."""
        for wanted in (axis, "prompt"):
            for line in self.lines:
                if (line.axis, line.weights) == (wanted, weights):
                    return line
        raise KeyError((axis, weights))


def fit_series(case: Case) -> tuple[SeriesFit, ...]:
    """Fits of all series whose commit length was measured or is exact, in table order."""
    fits = []
    for rows in rows_by_series(case):
        usable = [row for row in rows if row.commit_kind in ("measured", "exact")]
        if len({row.prompt_tokens for row in usable}) >= 3:
            fits.append(_fit(case, usable))
    return tuple(fits)


def rows_by_series(case: Case) -> list[list[SweepRow]]:
    """The sweep's rows by series and repeat, in the order in which each first appears."""
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
    layout, model, gpu = case.facts.layout, case.model, case.gpu
    cell = limit = None
    if model is not None:
        ranks = layout.parallelism(first.dcp)
        cell = bytes_per_token_per_gpu(model.cache, layout.kv_dtype, ranks)
        limit = bandwidth_slope_us(cell, gpu.bandwidth_tb_per_s) if gpu else None
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
        rows=tuple(rows),
        bytes_per_token=cell,
        bandwidth_us=limit,
        lines=lines,
        counted_slope_us=counted,
    )
