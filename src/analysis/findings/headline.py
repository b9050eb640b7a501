"""The first screen of a case: question, answer, scope, and what it is not."""

from dataclasses import dataclass

from analysis import paths
from analysis.findings import server_answer
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
    rerun: str
    leading_claims: tuple[str, ...] = ()


PUBLISHED = (
    "It is not a measurement of ours: every number of this case was published by others and is "
    "checked here against the rest. "
)
LIMITS = "It says nothing of batches, of other texts, or of another install."


def find(found: Findings) -> Headline:
    """The headline of a case, by what it has: an observation, runs of ours, or slopes."""
    case = found.case
    if not isinstance(found.reconciliation, Missing):
        return _observed(case, found.reconciliation)
    if not isinstance(found.steps, Missing) and case.runs:
        return _headline(
            case,
            "Why is this server this fast, and what will context do to it?",
            server_answer.answer(found, found.steps),
            server_answer.scope(case, found.steps),
        )
    if not isinstance(found.steps, Missing):
        return _slopes(case, found.steps)
    return _headline(case, "What does this case hold?", found.steps.reason, "")


def _observed(case: Case, result: Reconciliation) -> Headline:
    observation, prompt = result.observation, result.prompt_axis
    interval = prompt.prediction_interval95
    band = f" (95 % prediction {interval[0]:.1f} to {interval[1]:.1f})" if interval else ""
    step = (
        f"A step at {observation.context_tokens:,} tokens takes {prompt.step_ms:.0f} ms and commits"
        f" {observation.commit_length:g} tokens: {prompt.predicted_tok_per_s:.1f} tok/s{band}"
        f" against {result.observed_tok_per_s:g} observed"
    )
    named = [context.tokens for context in observation.contexts]
    inside = interval is not None and interval[0] <= result.observed_tok_per_s <= interval[1]
    if not inside:
        answer = f"**Commit over step does not explain it. {step}.**"
    elif len(result.within) == len(result.contexts):
        answer = f"**{step}. Commit over step accounts for it.**"
    else:
        answer = (
            f"**{step}. That accounts for it at the short end of the contexts named for it "
            f"({min(named):,} to {max(named):,} tokens), not at the long end.**"
        )
    if observation.baseline_tok_per_s:
        answer += (
            f" {observation.baseline_tok_per_s:g} tok/s at this commit length would need a step of "
            f"{result.baseline_step_ms:.0f} ms, against an intercept of "
            f"{result.intercept_ms:.0f} ms; on what text it was read is not said."
        )
    if result.plain:
        low, high = result.plain.break_even
        answer += (
            f" One lever is missing from the account: speculation off. Plain decoding on the same "
            f"kind of GPUs is published at {result.plain.tok_per_s[0]:.0f} to "
            f"{result.plain.tok_per_s[1]:.0f} tok/s; a step this long would have to commit "
            f"{low:.1f} to {high:.1f} tokens to match it."
        )
    scope = (
        f"One stream; the step is a line through {result.n} steps, each commit length over "
        "throughput on the text of the sweep: a tree drafter may verify another number of tokens "
        "on other text. The commit length carries no interval."
    )
    if result.plain:
        scope += " Plain decoding is another install, its step assumed flat over these contexts."
    baseline = observation.baseline_tok_per_s
    return _headline(
        case,
        f"Why is this server at {result.observed_tok_per_s:g} tok/s"
        + (f" and not at {baseline:g}?" if baseline else "?"),
        answer,
        scope,
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
        is_not=(PUBLISHED if case.facts.published else "") + LIMITS,
        rerun=_rerun(case),
        leading_claims=tuple(claim for claim in claims if claim in known),
    )


def _rerun(case: Case) -> str:
    if case.committed:
        return "make report"
    if case.runs and case.folder.parent == paths.BUILD / "cases":
        return f"make report RUN={paths.relative(case.runs[0].folder)}"
    return f"analysis report --case {case.name}"
