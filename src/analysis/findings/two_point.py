"""The account's two-point decode against its sweep, and two explanations of the gap."""

from dataclasses import dataclass

import numpy as np

from analysis.findings import step_time
from analysis.findings.missing import Missing
from analysis.findings.needed_commit import NeededCommit, counted_verdict, joint_level
from analysis.findings.series import AXES, Axis, SeriesFit
from analysis.model.overhead import Decodes, OverheadFit, fit_overhead
from analysis.model.regression import Weights
from analysis.model.step_time import commit_for
from analysis.records.case import Case
from analysis.records.tables import TwoPointRow


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
    def verdict(self) -> str:
        """The chapter's answer in one sentence."""
        if self.counted:
            return counted_verdict(self.points)
        above = sum(p.needed_on_prompt_axis > p.sweep_commit for p in self.points)
        low, high = self.needed
        agreement = "disagree" if above else "agree"
        return (
            f"The two measurements {agreement}: with the sweep's own step times, the two-point "
            f"throughputs need {low:.1f} to {high:.1f} committed tokens per step, more than the "
            f"sweep committed at {above} of {len(self.points)} contexts. Which of two "
            "explanations holds is undecided."
        )

    @property
    def counted(self) -> bool:
        """Whether the two-point requests have a commit length of their own."""
        return all(p.commit_length is not None for p in self.points)

    @property
    def caption(self) -> str:
        """The finding of the figure."""
        if self.counted:
            return (
                "Steps of the two-point decode (diamonds) beside the sweep's line and its "
                f"prediction interval, 95 % for all points together: "
                f"{sum(bool(p.agrees) for p in self.points)} of {len(self.points)} lie inside."
            )
        return (
            f"With the sweep's step times, the two-point throughputs need {self.needed[0]:.1f} to "
            f"{self.needed[1]:.1f} tokens per step; the sweep committed at most "
            f"{self.sweep_commit_max:g}."
        )

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
    def overhead_weighed(self) -> str:
        """What speaks for and against a fixed overhead in each sweep request."""
        if not self.variants:
            return (
                "The sweep's output lengths are not all one known number, so no joint fit exists."
            )
        (low, high), (less, more) = self.overhead_s, self.residual_ratio
        against = ""
        if self.ttft_s is not None and self.ttft_share_pct is not None:
            against = (
                f" Against it: the account itself reads a time to first token of {self.ttft_s:g} "
                f"s, {self.ttft_share_pct:.0f} % of the smallest overhead. If that figure holds "
                "for the sweep's requests, prefill cannot be the overhead."
            )
        return (
            f"For it: an overhead of {low:.1f} to {high:.1f} s per request leaves {less:.2f} to "
            f"{more:.2f} of the scatter that remains without it, and moves the intercept to "
            f"{self.intercept_ms[0]:.0f} to {self.intercept_ms[1]:.0f} ms (ranges over the choices "
            f"above, not confidence intervals).{against}"
        )

    @property
    def commits_weighed(self) -> str:
        """What speaks for and against higher commits in the two-point runs."""
        verified = published = ""
        if self.verified_max is not None:
            word = "would allow" if self.verified_max + 1 >= self.needed[1] else "would not allow"
            verified = (
                f" The account says that up to {self.verified_max} tokens are verified per step, "
                f"which {word} it;"
            )
        if self.published_max is not None:
            published = (
                f" published drafters of this family reach {self.published_max:g} on real tasks."
            )
        return (
            f"They would have to be {self.needed[0]:.1f} to {self.needed[1]:.1f} tokens per step "
            f"(prompt axis) or {self.needed_mean[0]:.1f} to {self.needed_mean[1]:.1f} (mean axis)."
            f"{verified} the sweep never committed more than {self.sweep_commit_max:g}."
            f"{published[:1]}{published[1:].capitalize() if published else ''}"
        )

    @property
    def ttft_share_pct(self) -> float | None:
        """The account's time to first token as a share of the smallest overhead, per cent."""
        if self.ttft_s is None or self.overhead_s[0] <= 0:
            return None
        return 100 * self.ttft_s / self.overhead_s[0]


def find(case: Case) -> TwoPoints | Missing:
    """Set the two-point decode of a case beside the fit of its sweep."""
    if not case.two_point:
        where = "no run of it" if case.runs else "no two_point.csv"
        return Missing(f"This case has no two-point decode ({where}).")
    steps = step_time.find(case)
    if isinstance(steps, Missing):
        return steps
    observation, speculation = case.facts.observation, case.facts.speculation
    commits = [row.commit_length for row in steps.main.rows if row.commit_length]
    published = [row.commit_length for row in case.accept]
    verified = speculation.verified_tokens if speculation else None
    return TwoPoints(
        points=tuple(
            _needed(row, _beside(row, steps), joint_level(len(case.two_point)))
            for row in case.two_point
        ),
        variants=() if steps.main.measured else _overheads(case, steps.main),
        sweep_commit_max=max(commits),
        verified_max=verified[1] if verified else None,
        published_max=max(published) if published else None,
        ttft_s=observation.ttft_s if observation else None,
    )


def uncounted(found: TwoPoints | Missing) -> TwoPoints | Missing:
    """The finding, if the commit lengths of the two-point decode are not known; silent if so."""
    if isinstance(found, Missing) or not found.counted:
        return found
    return Missing("")


def counted(found: TwoPoints | Missing) -> TwoPoints | Missing:
    """The finding, if the commit lengths of the two-point decode are known; silent if not."""
    if isinstance(found, Missing) or found.counted:
        return found
    return Missing("")


def _beside(row: TwoPointRow, steps: step_time.StepTimes) -> SeriesFit:
    """The series of the sweep that was measured alike, else one that drafts alike, else the first.

    A series is named by its drafting and its text.
    """
    drafting = row.series.rpartition(", ")[0]
    for fit in steps.series:
        if fit.series == row.series:
            return fit
    for fit in steps.series:
        if drafting and fit.series.startswith(f"{drafting}, "):
            return fit
    return steps.main


def _needed(row: TwoPointRow, main: SeriesFit, level: float) -> NeededCommit:
    on_prompt = main.prompt.step.step_ms(row.context_tokens)
    on_mean = main.mean.step.step_ms(row.context_tokens)
    return NeededCommit(
        series=row.series,
        context_tokens=row.context_tokens,
        tok_per_s=row.tok_per_s,
        token_ms=1000 / row.tok_per_s,
        sweep_commit=_sweep_commit(main, row.context_tokens, "prompt"),
        needed_on_prompt_axis=commit_for(row.tok_per_s, on_prompt),
        needed_on_mean_axis=commit_for(row.tok_per_s, on_mean),
        commit_length=row.commit_length,
        step_error_ms=row.commit_length
        and row.standard_error_ms
        and row.commit_length * row.standard_error_ms,
        sweep_step_ms=on_mean,
        sweep_step_interval=main.mean.fit.prediction_interval(row.context_tokens, level),
        level=level,
    )


def _sweep_commit(main: SeriesFit, context: float, axis: Axis) -> float:
    """The sweep's commit length at a context: linear between its points, flat outside."""
    commits = [row.commit_length or 0.0 for row in main.rows]
    rising = sorted(zip(main.line(axis).contexts, commits, strict=True))
    return float(np.interp(context, [at for at, _ in rising], [commit for _, commit in rising]))


def _overheads(case: Case, main: SeriesFit) -> tuple[OverheadVariant, ...]:
    rows = main.rows
    outputs = {row.output_tokens for row in rows}
    output = outputs.pop()
    if output is None or outputs:
        return ()
    variants = []
    for axis in AXES:
        sweep = Decodes(
            main.line(axis).contexts,
            [row.commit_length or 0.0 for row in rows],
            [row.tok_per_s for row in rows],
        )
        contexts = [row.context_tokens for row in case.two_point]
        points = Decodes(
            contexts,
            [_sweep_commit(main, context, axis) for context in contexts],
            [row.tok_per_s for row in case.two_point],
        )
        for weights in ("none", "relative"):
            fit = fit_overhead(sweep, output, points, weights)
            variants.append(OverheadVariant(axis, weights, fit))
    return tuple(variants)
