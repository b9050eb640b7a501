"""The account's two-point decode against its sweep, and two explanations of the gap."""

from dataclasses import dataclass

import numpy as np

from analysis.findings import step_time
from analysis.findings.missing import Missing
from analysis.findings.step_time import Axis, SeriesFit
from analysis.model.overhead import Decodes, OverheadFit, fit_overhead
from analysis.model.regression import Weights
from analysis.model.step_time import commit_for
from analysis.records.case import Case
from analysis.records.tables import TwoPointRow


@dataclass(frozen=True)
class NeededCommit:
    """The commit length that a two-point throughput would need with the sweep's step times."""

    context_tokens: float
    tok_per_s: float
    token_ms: float
    sweep_commit: float
    needed_on_prompt_axis: float
    needed_on_mean_axis: float


@dataclass(frozen=True)
class OverheadVariant:
    """The joint fit under one choice of axis and weights."""

    axis: Axis
    weights: Weights
    fit: OverheadFit

    @property
    def residual_ratio(self) -> float:
        """Scatter with overhead over scatter without."""
        return self.fit.rms / self.fit.rms_without_overhead


@dataclass(frozen=True)
class TwoPoints:
    """The finding of the chapter."""

    points: tuple[NeededCommit, ...]
    variants: tuple[OverheadVariant, ...]
    sweep_commit_max: float
    verified_max: int | None
    published_max: float | None
    ttft_s: float | None

    @property
    def needed(self) -> tuple[float, float]:
        """Least and greatest commit length needed, on the prompt axis."""
        values = [p.needed_on_prompt_axis for p in self.points]
        return min(values), max(values)

    @property
    def needed_mean(self) -> tuple[float, float]:
        """The same on the mean-context axis."""
        values = [p.needed_on_mean_axis for p in self.points]
        return min(values), max(values)

    @property
    def overhead_s(self) -> tuple[float, float]:
        """Least and greatest overhead per sweep request over the variants, seconds."""
        values = [v.fit.overhead_s for v in self.variants]
        return min(values), max(values)

    @property
    def intercept_ms(self) -> tuple[float, float]:
        """Least and greatest intercept of the joint fits, ms."""
        values = [v.fit.intercept_ms for v in self.variants]
        return min(values), max(values)

    @property
    def residual_ratio(self) -> tuple[float, float]:
        """Least and greatest ratio of scatter with overhead to scatter without."""
        values = [v.residual_ratio for v in self.variants]
        return min(values), max(values)

    @property
    def ttft_share_pct(self) -> float | None:
        """The account's time to first token as a share of the smallest overhead, per cent."""
        if self.ttft_s is None or self.overhead_s[0] <= 0:
            return None
        return 100 * self.ttft_s / self.overhead_s[0]


def find(case: Case) -> TwoPoints | Missing:
    """Set the two-point decode of a case beside the fit of its sweep."""
    if not case.two_point:
        return Missing("This case has no two-point decode (no two_point.csv).")
    steps = step_time.find(case)
    if isinstance(steps, Missing):
        return steps
    observation, speculation = case.facts.observation, case.facts.speculation
    commits = [row.commit_length for row in case.sweep if row.commit_length is not None]
    published = [row.commit_length for row in case.accept]
    verified = speculation.verified_tokens if speculation else None
    return TwoPoints(
        points=tuple(_needed(row, case, steps.main) for row in case.two_point),
        variants=_overheads(case, steps.main),
        sweep_commit_max=max(commits),
        verified_max=verified[1] if verified else None,
        published_max=max(published) if published else None,
        ttft_s=observation.ttft_s if observation else None,
    )


def _needed(row: TwoPointRow, case: Case, main: SeriesFit) -> NeededCommit:
    on_prompt = main.prompt.step.step_ms(row.context_tokens)
    on_mean = main.mean.step.step_ms(row.context_tokens)
    return NeededCommit(
        context_tokens=row.context_tokens,
        tok_per_s=row.tok_per_s,
        token_ms=1000 / row.tok_per_s,
        sweep_commit=_sweep_commit(case, row.context_tokens, "prompt"),
        needed_on_prompt_axis=commit_for(row.tok_per_s, on_prompt),
        needed_on_mean_axis=commit_for(row.tok_per_s, on_mean),
    )


def _sweep_commit(case: Case, context: float, axis: Axis) -> float:
    """The sweep's commit length at a context: linear between its points, flat outside."""
    rows = [row for row in case.sweep if row.commit_length is not None]
    at = [row.prompt_tokens if axis == "prompt" else row.context_tokens or 0.0 for row in rows]
    return float(np.interp(context, at, [row.commit_length or 0.0 for row in rows]))


def _overheads(case: Case, main: SeriesFit) -> tuple[OverheadVariant, ...]:
    outputs = {row.output_tokens for row in case.sweep}
    output = outputs.pop()
    if output is None or outputs:
        return ()
    rows = case.sweep
    variants = []
    for axis in step_time.AXES:
        sweep = Decodes(
            main.line(axis).contexts,
            [row.commit_length or 0.0 for row in rows],
            [row.tok_per_s for row in rows],
        )
        contexts = [row.context_tokens for row in case.two_point]
        points = Decodes(
            contexts,
            [_sweep_commit(case, context, axis) for context in contexts],
            [row.tok_per_s for row in case.two_point],
        )
        for weights in ("none", "relative"):
            fit = fit_overhead(sweep, output, points, weights)
            variants.append(OverheadVariant(axis, weights, fit))
    return tuple(variants)
