"""Checks on claims of throughput, commit length, step time and levers."""

import re

from analysis.errors import InputError
from analysis.findings.ledger import Findings, Judgement, UnavailableError, Word, needed
from analysis.findings.series import Straight
from analysis.model.linearity import POWER_BEND_PCT
from analysis.records.tables import ClaimRow


def given(claim: ClaimRow, found: Findings) -> Judgement:
    """An observation that is taken as it is."""
    tables = {"two-point": "01-two-point-decode#points", "sweep": "02-context-sweep#table"}
    return Judgement(
        "given",
        f"{claim.given_in_source}; {claim.note}" if claim.note else claim.given_in_source,
        tables.get(claim.topic, "00-summary#facts"),
        n=1,
    )


def not_testable(claim: ClaimRow, found: Findings) -> Judgement:
    """A claim that no data of the case speak of; the claim's note says what would decide."""
    return Judgement("not testable here", claim.note, "00-summary#ledger")


def sweep_step_times(claim: ClaimRow, found: Findings) -> Judgement:
    """The stated steps are the commits over the throughputs, rounded."""
    stated = numbers(claim)
    steps = needed(found.sweep).steps
    same = len(stated) == len(steps) and all(
        round(step) == value for step, value in zip(steps, stated, strict=True)
    )
    listed = ", ".join(f"{step:.2f}" for step in steps)
    return Judgement(
        "reproduced" if same else "contradicted",
        f"commit / throughput gives {listed} ms; derived, so no test of tok/s = commit / step",
        "02-context-sweep#derived",
        n=len(steps),
    )


def step_linear(claim: ClaimRow, found: Findings) -> Judgement:
    """Straight only if no bend that matters fits the data."""
    line = needed(found.steps).main.prompt
    evidence = line.linearity
    if evidence is None or evidence.p is None or evidence.power is None:
        return Judgement(
            "undecided", "too few contexts to test", "03-step-time-model#linearity", n=line.fit.n
        )
    words: dict[Straight, Word] = {
        "straight": "consistent",
        "bent": "contradicted",
        "undecided": "undecided",
    }
    slope = line.slope_ci95 or (float("nan"), float("nan"))
    bend = evidence.bend_ci95 or (float("nan"), float("nan"))
    return Judgement(
        words[line.straight],
        f"it grows: {line.slope_us:.2f} us/token ({slope[0]:.1f} to {slope[1]:.1f}). On "
        f"straightness: a bend between {bend[0]:.0f} % and {bend[1]:.0f} %, p = {evidence.p:.2f}, "
        f"with a power of {evidence.power:.2f} against a bend of {POWER_BEND_PCT:.0f} %",
        "03-step-time-model#linearity",
        n=line.fit.n,
        interval=line.slope_ci95,
        interval_kind="95 % confidence, slope, us/token",
    )


def commit_stable(claim: ClaimRow, found: Findings) -> Judgement:
    """Every commit length of the sweep lies in the stated range."""
    low, high = numbers(claim)[:2]
    commits = [p for p in needed(found.sweep).main if p.commit_length is not None]
    if not commits:
        raise UnavailableError("The sweep gives no commit lengths.")
    outside = [p for p in commits if p.commit_length and not low <= p.commit_length <= high]
    listed = ", ".join(f"{p.commit_length:g} at {p.prompt_tokens}" for p in outside)
    return Judgement(
        "contradicted" if outside else "consistent",
        f"outside {low:g} to {high:g}: {listed}" if outside else "all inside the stated range",
        "02-context-sweep#commit",
        n=len(commits),
    )


def account_product(claim: ClaimRow, found: Findings) -> Judgement:
    """Commit over the account's own step time gives the stated figure."""
    stated = numbers(claim)[0]
    result = needed(found.reconciliation)
    same = abs(result.account_tok_per_s - stated) < 0.5
    prompt, mean = result.prompt_axis, result.mean_axis
    interval = prompt.prediction_interval95
    return Judgement(
        "reproduced" if same else "contradicted",
        f"the product is {result.account_tok_per_s:.1f} tok/s; the fitted step gives "
        f"{prompt.predicted_tok_per_s:.1f} (prompt axis) or {mean.predicted_tok_per_s:.1f} (mean "
        f"axis). {result.observed_tok_per_s:g} is "
        f"{abs(result.shortfall_pct):.0f} % away, inside the prediction interval at "
        f"{len(result.within)} of {len(result.contexts)} readings of the named contexts",
        "04-reconciliation#account",
        n=needed(found.steps).main.n,
        interval=interval,
        interval_kind="95 % prediction at a fixed commit, tok/s",
    )


def product_is_observed(claim: ClaimRow, found: Findings) -> Judgement:
    """The product gives exactly the stated throughput."""
    stated = numbers(claim)[0]
    result = needed(found.reconciliation)
    same = abs(result.account_tok_per_s - stated) < 0.5
    low, high = result.named_range
    return Judgement(
        "reproduced" if same else "contradicted",
        f"the account's own product is {result.account_tok_per_s:.1f}, not {stated:g}; over the "
        f"contexts that it names the fit gives {low:.1f} to {high:.1f}",
        "04-reconciliation#account",
        n=needed(found.steps).main.n,
    )


def components_explain(claim: ClaimRow, found: Findings) -> Judgement:
    """Not a regression: only if the components predict the observation wherever it may be."""
    result = needed(found.reconciliation)
    inside, all_of_them = len(result.within), len(result.contexts)
    word: Word = "undecided"
    if inside == 0:
        word = "contradicted"
    elif inside == all_of_them:
        word = "consistent"
    baseline = ""
    if result.baseline_step_ms and result.observation.baseline_tok_per_s:
        baseline = (
            f" The baseline of {result.observation.baseline_tok_per_s:g} tok/s would need a step "
            f"of {result.baseline_step_ms:.1f} ms at {result.observation.commit_length:g} tokens "
            "per step; it was never measured on the same text."
        )
    return Judgement(
        word,
        f"the observation lies inside the prediction interval at {inside} of {all_of_them} "
        f"readings of the named contexts.{baseline}",
        "04-reconciliation#contexts",
        condition="a measurement of the same text before the change would decide",
        n=needed(found.steps).main.n,
    )


def context_dominates(claim: ClaimRow, found: Findings) -> Judgement:
    """The part of the step that grows with context is more than half of it."""
    steps = needed(found.steps)
    context = needed(found.reconciliation).observation.context_tokens
    share = 100 * steps.main.prompt.context_share(context)
    crossover = steps.main.prompt.crossover(2.0)
    over = steps.main.over_bandwidth
    limit = (
        "" if over is None else f"; the slope is {over:.0f} times what reading the cache would take"
    )
    rest = (
        ""
        if not steps.unexplained
        else (
            f"; few thread blocks explain a factor of at most {steps.occupancy_limit:.1f}, which "
            f"leaves a factor of {steps.unexplained:.0f}"
        )
    )
    return Judgement(
        "consistent" if share > 50 else "contradicted",
        f"{share:.0f} % of the step at {context:,} tokens grows with context (more than half "
        f"above {crossover:,.0f}){limit}{rest}",
        "03-step-time-model#limits",
        condition="that this server took the Triton verify path is an inference",
        n=steps.main.n,
    )


def drafter_first(claim: ClaimRow, found: Findings) -> Judgement:
    """The drafter is worth more than a vanished slope at the contexts that the account names."""
    return _rank(claim, found, numbers(claim)[0])


def kernel_second(claim: ClaimRow, found: Findings) -> Judgement:
    """The same comparison, from the side of the kernel."""
    return _rank(claim, found, 2.0)


def _rank(claim: ClaimRow, found: Findings, drafter_gain: float) -> Judgement:
    line = needed(found.steps).main.prompt
    observation = needed(found.reconciliation).observation
    contexts = [named.tokens for named in observation.contexts]
    nearest = min(contexts)
    gain = line.gain_of_slope(0.0, nearest)
    kernel_wins = [line.gain_of_slope(0.0, context) > drafter_gain for context in contexts]
    word: Word = "undecided" if any(kernel_wins) else "consistent"
    if all(kernel_wins):
        word = "contradicted"
    crossover = line.crossover(drafter_gain)
    reach = observation.commit_length * drafter_gain
    published = [row.commit_length for row in found.case.accept]
    enough = ""
    if gain > drafter_gain:
        slope = line.slope_worth(drafter_gain, nearest)
        enough = (
            f" A slope of {slope:.1f} us per token there, {line.slope_us / slope:.1f} times less, "
            f"would already be worth {drafter_gain:g} times."
        )
    optimistic = ""
    if published:
        optimistic = (
            f" A drafter {drafter_gain:g} times better would commit {reach:.1f}; published "
            f"drafters of this family commit {min(published):g} to {max(published):g}."
        )
    return Judgement(
        word,
        f"at {nearest:,} tokens, the shortest context named, a vanished slope is worth "
        f"{gain:.2f} times, a {drafter_gain:g}x drafter {drafter_gain:g} times; they are equal "
        f"at {crossover:,.0f}.{enough}{optimistic}",
        "03-step-time-model#levers",
        condition=f"holds below {crossover:,.0f} tokens of prompt",
        n=line.fit.n,
    )


def cause_of_low_commit(claim: ClaimRow, found: Findings) -> Judgement:
    """Confounded with the text as long as one drafter was seen on two kinds of text."""
    commits = needed(found.sweep).commits
    observed = needed(found.reconciliation).observation.commit_length
    published = [row.commit_length for row in found.case.accept]
    known = f"; published drafters of this family commit {min(published):g} to {max(published):g}"
    return Judgement(
        "undecided",
        f"the same drafter commits up to {max(commits):g} on filler and {observed:g} on "
        f"reasoning: text and drafter are confounded{known if published else ''}",
        "02-context-sweep#commit",
        condition="another drafter on the same text, or this one on more texts, would decide",
        n=len(commits) + 1,
    )


def step_at_wish(claim: ClaimRow, found: Findings) -> Judgement:
    """The step at the wished context exceeds the stated number of seconds, by extrapolation."""
    stated_s = numbers(claim)[0]
    steps = needed(found.steps)
    band = steps.far_confidence_ms
    word: Word = "undecided"
    if band is not None and band[0] > 1000 * stated_s:
        word = "consistent"
    elif band is not None and band[1] < 1000 * stated_s:
        word = "contradicted"
    return Judgement(
        word,
        f"the line says {steps.far_step_ms / 1000:.1f} s at {steps.wished_tokens:,} tokens, an "
        f"extrapolation to {steps.wished_tokens / steps.longest_context:.0f} times the longest "
        "context measured",
        "03-step-time-model#far",
        condition="if the line held that far",
        n=steps.main.n,
        interval=band and (band[0] / 1000, band[1] / 1000),
        interval_kind="95 % confidence of the line, s",
    )


def numbers(claim: ClaimRow) -> list[float]:
    """The numbers in a claim's value: '34/63/101/144', '7-8', '>1'."""
    found = [float(text) for text in re.findall(r"\d+(?:\.\d+)?", claim.value)]
    if not found:
        raise InputError(f"claims.csv, {claim.id}, value", repr(claim.value), "a number")
    return found
