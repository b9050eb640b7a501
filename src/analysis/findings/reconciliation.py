"""Does commit length over step time give the observed throughput, and does speculation pay?"""

from dataclasses import dataclass

from analysis.findings import step_time
from analysis.findings.missing import Missing
from analysis.findings.series import LineFit
from analysis.findings.sweep import plain_token_ms
from analysis.model.regression import Interval
from analysis.model.speculation import break_even_commit
from analysis.model.step_time import (
    commit_for,
    decode_seconds,
    implied_step_ms,
    mean_context,
    throughput,
)
from analysis.records.case import Case, Observation


@dataclass(frozen=True)
class Prediction:
    """One prediction of the observed throughput.

    ``context_tokens`` is what the axis calls context. The interval is a 95 % prediction interval
    of one new step, turned into tok/s at a fixed commit length: the commit length's own
    uncertainty is not in it, since the account gives none.
    """

    label: str
    axis: str
    context_tokens: float
    step_ms: float
    step_interval95: Interval | None
    predicted_tok_per_s: float
    prediction_interval95: Interval | None
    commit_for_observed: float
    context_for_observed: float | None
    interval_includes_commit_uncertainty: bool = False


@dataclass(frozen=True)
class PlainDecoding:
    """Published decoding without speculation on the same hardware, and what it asks of a step.

    Each range is that of the published figures. ``break_even`` belongs to the step at the
    account's context on the prompt axis, ``break_even_mean`` and ``context_that_pays`` to the
    mean axis.
    """

    token_ms: Interval
    tok_per_s: Interval
    break_even: Interval
    break_even_mean: Interval
    step_ms_that_pays: Interval
    context_that_pays: Interval | None


@dataclass(frozen=True)
class Reconciliation:
    """The finding of the chapter."""

    observation: Observation
    account_tok_per_s: float
    prompt_axis: Prediction
    mean_axis: Prediction
    growing: Prediction
    ending: Prediction | None
    contexts: tuple[Prediction, ...]
    plain: PlainDecoding | None
    baseline_step_ms: float | None
    n: int
    intercept_ms: float
    fastest_tok_per_s: float
    fastest_interval95: Interval | None

    @property
    def verdict(self) -> str:
        """The chapter's answer in one sentence."""
        prompt, mean = self.prompt_axis, self.mean_axis
        pays = ""
        if self.plain:
            low, high = self.plain.break_even
            word = "pays" if self.observation.commit_length > high else "does not pay"
            if low <= self.observation.commit_length <= high:
                word = "may or may not pay"
            pays = (
                f" Plain decoding on the same hardware is published at "
                f"{self.plain.tok_per_s[0]:.0f} to {self.plain.tok_per_s[1]:.0f} tok/s: there, "
                f"speculation {word} at {self.observation.commit_length:g} tokens per step, since "
                f"break-even is {low:.1f} to {high:.1f}."
            )
        return (
            f"Commit length over the stated step is {self.account_tok_per_s:.1f} tok/s, against "
            f"{self.observed_tok_per_s:g} observed; the sweep predicts"
            f" {prompt.predicted_tok_per_s:.1f} (prompt axis) or"
            f" {mean.predicted_tok_per_s:.1f} (mean axis) at "
            f"{self.observation.context_tokens:,} tokens, and the observation lies inside the "
            f"prediction interval at {len(self.within)} of {len(self.contexts)} readings of the "
            f"contexts given for it.{pays}"
        )

    @property
    def observed_tok_per_s(self) -> float:
        """The throughput to be explained."""
        return self.observation.tok_per_s

    @property
    def shortfall_pct(self) -> float:
        """How far the account's own product lies from the observation, per cent of it."""
        return 100 * (self.account_tok_per_s / self.observed_tok_per_s - 1)

    @property
    def named_range(self) -> Interval:
        """Least and greatest prediction over the named contexts, both axes and growth."""
        values = [p.predicted_tok_per_s for p in self.contexts]
        return min(values), max(values)

    @property
    def reached(self) -> tuple[Prediction, ...]:
        """Named contexts whose prediction reaches the observed throughput."""
        return tuple(p for p in self.contexts if p.predicted_tok_per_s >= self.observed_tok_per_s)

    @property
    def ending_says(self) -> str:
        """How much depends on whether the output lies before or after the named context."""
        if self.ending is None:
            return ""
        return (
            f"How the output is counted matters as much: if {self.observation.context_tokens:,} "
            f"tokens are where {self.observation.growing_output_tokens:,} growing tokens *end*, "
            f"the prediction is {self.ending.predicted_tok_per_s:.1f} tok/s, where they *start* "
            f"{self.growing.predicted_tok_per_s:.1f}."
        )

    @property
    def readings(self) -> int:
        """Readings of the named contexts."""
        return len(self.contexts)

    @property
    def reached_count(self) -> int:
        """How many readings reach the observation."""
        return len(self.reached)

    @property
    def within_count(self) -> int:
        """How many readings hold the observation in their prediction interval."""
        return len(self.within)

    @property
    def within(self) -> tuple[Prediction, ...]:
        """Named contexts whose prediction interval holds the observation.

        Judged in steps: an interval that reaches below zero has no upper end in tok/s.
        """
        observed_step_ms = implied_step_ms(self.observation.commit_length, self.observed_tok_per_s)

        def holds(interval: Interval | None) -> bool:
            return interval is not None and interval[0] <= observed_step_ms <= interval[1]

        return tuple(p for p in self.contexts if holds(p.step_interval95))


def find(case: Case) -> Reconciliation | Missing:
    """Predict the observation of a case from its own step-time fit."""
    observation = case.facts.observation
    if observation is None:
        return Missing(
            "This case has no single observed throughput to explain (no observation in case.toml)."
        )
    steps = step_time.find(case)
    if isinstance(steps, Missing):
        return steps
    main = steps.main
    context = observation.context_tokens
    output = observation.growing_output_tokens
    baseline = observation.baseline_tok_per_s
    at_zero = main.mean.fit.confidence_interval(0.0)
    return Reconciliation(
        observation=observation,
        account_tok_per_s=throughput(observation.commit_length, observation.step_ms),
        prompt_axis=_fixed(observation, main.prompt, context, "the account's context"),
        mean_axis=_fixed(observation, main.mean, context, "the account's context"),
        growing=_growing(observation, main.mean, context, output, "growing"),
        ending=_growing(observation, main.mean, context - output, output, "ending there")
        if context >= output
        else None,
        contexts=tuple(_named(observation, main.prompt, main.mean)),
        plain=_plain(case, observation, main.prompt, main.mean),
        baseline_step_ms=1000 * observation.commit_length / baseline if baseline else None,
        n=main.n,
        intercept_ms=main.prompt.intercept_ms,
        fastest_tok_per_s=throughput(observation.commit_length, main.mean.intercept_ms),
        fastest_interval95=_as_throughput(observation.commit_length, at_zero),
    )


def with_baseline(found: Reconciliation | Missing) -> Reconciliation | Missing:
    """The finding, if a baseline was given; silent if not."""
    if isinstance(found, Missing) or found.baseline_step_ms is not None:
        return found
    return Missing("")


def _named(observation: Observation, prompt: LineFit, mean: LineFit) -> list[Prediction]:
    found = []
    for named in observation.contexts:
        found.append(_fixed(observation, prompt, named.tokens, named.label))
        found.append(_fixed(observation, mean, named.tokens, named.label))
        if named.output_tokens:
            for start, reading in (
                (named.tokens, "starting there"),
                (named.tokens - named.output_tokens, "ending there"),
            ):
                label = f"{named.label}, {reading}"
                found.append(_growing(observation, mean, start, named.output_tokens, label))
    return found


def _fixed(observation: Observation, line: LineFit, context: float, label: str) -> Prediction:
    step_ms = line.step.step_ms(context)
    interval = line.fit.prediction_interval(context)
    return Prediction(
        label=label,
        axis=line.axis,
        context_tokens=context,
        step_ms=step_ms,
        step_interval95=interval,
        predicted_tok_per_s=throughput(observation.commit_length, step_ms),
        prediction_interval95=_as_throughput(observation.commit_length, interval),
        commit_for_observed=commit_for(observation.tok_per_s, step_ms),
        context_for_observed=_context_for_observed(observation, line),
    )


def _growing(
    observation: Observation, line: LineFit, prompt: float, output: int, label: str
) -> Prediction:
    """The context grows by ``output`` tokens from ``prompt``; needs the mean-axis line."""
    middle = mean_context(prompt, output)
    step_ms = line.step.step_ms(middle)
    interval = line.fit.prediction_interval(middle)
    seconds = decode_seconds(line.step, observation.commit_length, prompt, output)
    at = _context_for_observed(observation, line)
    return Prediction(
        label=label,
        axis="growing",
        context_tokens=prompt,
        step_ms=step_ms,
        step_interval95=interval,
        predicted_tok_per_s=output / seconds,
        prediction_interval95=_as_throughput(observation.commit_length, interval),
        commit_for_observed=commit_for(observation.tok_per_s, step_ms),
        context_for_observed=None if at is None else at - output / 2,
    )


def _context_for_observed(observation: Observation, line: LineFit) -> float | None:
    if line.slope_us <= 0:
        return None
    return line.step.context_for(1000 * observation.commit_length / observation.tok_per_s)


def _as_throughput(commit: float, step: Interval | None) -> Interval | None:
    """Tok/s of a step interval; ``None`` where its low end is not positive, so unbounded."""
    if step is None or step[0] <= 0:
        return None
    return throughput(commit, step[1]), throughput(commit, step[0])


def _plain(
    case: Case, observation: Observation, prompt: LineFit, mean: LineFit
) -> PlainDecoding | None:
    token_ms = plain_token_ms(case)
    if token_ms is None:
        return None
    low, high = token_ms
    on_prompt, on_mean = (f.step.step_ms(observation.context_tokens) for f in (prompt, mean))
    pays = (observation.commit_length * low, observation.commit_length * high)
    return PlainDecoding(
        token_ms=token_ms,
        tok_per_s=(1000 / high, 1000 / low),
        break_even=(break_even_commit(on_prompt, high), break_even_commit(on_prompt, low)),
        break_even_mean=(break_even_commit(on_mean, high), break_even_commit(on_mean, low)),
        step_ms_that_pays=pays,
        context_that_pays=None
        if mean.slope_us <= 0
        else (mean.step.context_for(pays[0]), mean.step.context_for(pays[1])),
    )
