"""The first screen of a case: question, answer, scope, and what it is not."""

from dataclasses import dataclass

from analysis.findings.ledger import Findings
from analysis.findings.missing import Missing
from analysis.findings.reconciliation import Reconciliation
from analysis.findings.step_time import StepTimes
from analysis.records.case import Case


@dataclass(frozen=True)
class Headline:
    """What a reader sees first. ``leading_claims`` are ids of the ledger to show at once."""

    title: str
    summary: str
    source: str
    question: str
    answer: str
    scope: str
    is_not: str
    leading_claims: tuple[str, ...] = ()


NOT_MEASURED_HERE = (
    "It is not a measurement of ours: every number of this case was published by others and is "
    "checked here against the rest. It says nothing of batches, of other texts, or of another "
    "install."
)


def find(found: Findings) -> Headline:
    """The headline of a case, by what it has: an observation to explain, or slopes to compare."""
    case = found.case
    if not isinstance(found.reconciliation, Missing):
        return _observed(case, found.reconciliation)
    if not isinstance(found.steps, Missing):
        return _slopes(case, found.steps)
    return _headline(case, "What does this case hold?", found.steps.reason, "")


def _observed(case: Case, result: Reconciliation) -> Headline:
    observation, prompt = result.observation, result.prompt_axis
    interval = prompt.prediction_interval95
    band = f" (95 % prediction {interval[0]:.1f} to {interval[1]:.1f})" if interval else ""
    answer = (
        f"**Because a step at {observation.context_tokens:,} tokens takes "
        f"{prompt.step_ms:.0f} ms and commits {observation.commit_length:g} tokens: "
        f"{prompt.predicted_tok_per_s:.1f} tok/s{band} against {result.observed_tok_per_s:g} "
        "observed.**"
    )
    if result.plain:
        low, high = result.plain.break_even
        answer += (
            f" The lever that the account does not list is to switch speculation off: plain "
            f"decoding on the same hardware is published at {result.plain.tok_per_s[0]:.0f} to "
            f"{result.plain.tok_per_s[1]:.0f} tok/s, and a step this long would have to commit "
            f"{low:.1f} to {high:.1f} tokens to match it."
        )
    return _headline(
        case,
        f"Why is this server at {result.observed_tok_per_s:g} tok/s"
        + (
            f" and not at {observation.baseline_tok_per_s:g}?"
            if observation.baseline_tok_per_s
            else "?"
        ),
        answer,
        "One stream; step times derived from four published throughputs; the commit length "
        "carries no interval, since the account gives none; plain decoding is another install.",
        ("S40", "S31", "S25"),
    )


def _slopes(case: Case, steps: StepTimes) -> Headline:
    first = [fit for fit in steps.series if fit.repeat == steps.main.repeat]
    parts = [f"{fit.prompt.slope_us:.3f} us per token ({fit.series})" for fit in first]
    low, high = steps.main.prompt.slope_ci95 or (float("nan"), float("nan"))
    answer = (
        f"**By {', '.join(parts)}: n = {steps.main.n} contexts each, the first with a 95 % "
        f"confidence interval of {low:.3f} to {high:.3f}.** At {steps.longest_context:,.0f} "
        f"tokens a plain step takes {steps.main.prompt.step.step_ms(steps.longest_context):.1f} "
        f"ms, against {steps.main.prompt.intercept_ms:.1f} ms at none."
    )
    return _headline(
        case,
        "How much does each token of context add to a step?",
        answer,
        "One stream, without speculation; prompt lengths as published (nominal).",
    )


def _headline(
    case: Case, question: str, answer: str, scope: str, claims: tuple[str, ...] = ()
) -> Headline:
    known = {claim.id for claim in case.claims}
    return Headline(
        title=case.facts.title,
        summary=case.facts.summary,
        source=case.facts.source,
        question=question,
        answer=answer,
        scope=scope,
        is_not=NOT_MEASURED_HERE,
        leading_claims=tuple(claim for claim in claims if claim in known),
    )
