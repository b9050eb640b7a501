"""A finding as a paragraph of Markdown, for an issue or a commit message."""

from analysis.findings.break_even import BreakEven, Row
from analysis.findings.comparison import Comparison
from analysis.findings.diagnosis_types import Diagnosis, Middle, StepFit
from analysis.logs.redact import redact as redacted
from analysis.model.log_ratio import LogRatio
from analysis.records.windows import FLAG_NAMES
from analysis.report.page.words import (
    count,
    engine,
    files,
    listed,
    made_by,
    middle_kind,
    middle_span,
    number,
    sentence,
    span,
    with_span,
)

QUANTITIES = (
    ("tok_per_s", "throughput", "tok/s"),
    ("commit", "commit", "tokens/step"),
    ("acceptance_length", "acceptance length", "tokens per drafted step"),
    ("step_ms", "step", "ms"),
    ("context_tokens", "context of a request", "tokens"),
    ("running", "running requests", ""),
)
"""Fields of a summary, their names and units, in the order in which they are told."""
MOST_ROWS = 12
"""Conditions that a paragraph lists; a page lists all."""


def for_diagnosis(diagnosis: Diagnosis, *, redact: bool = True) -> str:
    """Verdict, medians with intervals, flags, engine and how it was made."""
    summary = diagnosis.summary
    kind = middle_kind([m for name, *_ in QUANTITIES if (m := getattr(summary, name))])
    lines = [f"**{diagnosis.verdict}**", ""]
    for field, name, unit in QUANTITIES:
        middle: Middle | None = getattr(summary, field)
        if middle is not None:
            lines.append(f"- {name}: {median(middle, unit)}")
    if diagnosis.fit is not None:
        lines.append(f"- {fit(diagnosis.fit)}")
    lines += [f"- {windows(diagnosis)}", ""]
    lines += [
        f"Engine: {engine(diagnosis)}. Made by {made_by('diagnose')} from "
        f"{listed(files(diagnosis)) or 'no file with windows'}; medians over the windows without a "
        f"flag, in brackets the 95 % confidence interval of the median{kind and f', {kind}'}."
    ]
    return _done(lines, redact)


def for_comparison(result: Comparison, *, redact: bool = True) -> str:
    """The answer, each factor with its interval, both sides and how it was made."""
    lines = [f"**{result.sentence}**", ""]
    lines += [
        f"- {name}: × {with_span(ratio.ratio, ratio.interval95)}" for name, ratio in factors(result)
    ]
    lines += [
        f"- {name}: {side.name}, {count(len(side), 'value')}"
        for name, side in (("before", result.before), ("after", result.after))
    ]
    lines += [f"- {text}" for text in result.details]
    lines += [
        "",
        "Factors on throughput per stream: after over before, for the step before over after; in "
        "brackets 95 % confidence intervals where there are repeats. Made by "
        f"{made_by('compare')}.",
    ]
    return _done(lines, redact)


def factors(result: Comparison) -> list[tuple[str, LogRatio]]:
    """Throughput, and where it can be split the commit and the step."""
    found = [("throughput per stream", result.throughput)]
    if result.split is not None:
        found += [("commit", result.split.commit), ("step, before / after", result.split.step)]
    return found


def for_break_even(result: BreakEven, *, redact: bool = True) -> str:
    """The answer, every condition with its interval, and how it was made."""
    lines = [f"**{result.sentence}**", ""]
    for row in result.rows[:MOST_ROWS]:
        text = f"break-even {with_span(row.break_even_commit, row.break_even_interval95)}"
        if row.commit is not None and row.speedup is not None:
            gain = with_span(row.speedup, row.speedup_interval95)
            text += f", commit {number(row.commit)}, speed-up × {gain}"
        if row.block is not None:
            text += f", block {row.block}"
        lines.append(f"- {condition(row)}: {text}")
    if len(result.rows) > MOST_ROWS:
        lines.append(f"- and {count(len(result.rows) - MOST_ROWS, 'more condition')}")
    lines += [f"- {sentence(note)}" for note in result.notes]
    lines += [
        "",
        "Tokens per step; in brackets 95 % confidence intervals where there are repeats. "
        "Break-even is the step with speculation over the plain step. Made by "
        f"{made_by('breakeven')}.",
    ]
    return _done(lines, redact)


def label(row: Row) -> str:
    """A row's series and batch."""
    batch = "" if row.running == 1 else f"{row.running:g} running"
    return ", ".join(filter(None, (row.label, batch))) or "as given"


def condition(row: Row) -> str:
    """A row's series, batch and context."""
    if row.context_tokens is None:
        return label(row)
    at = f"context {row.context_tokens:,.0f}"
    return at if label(row) == "as given" else f"{label(row)}, {at}"


def median(middle: Middle, unit: str) -> str:
    """A median and, where there are windows enough, its interval."""
    between = f" [{middle_span(middle)}]" if middle.low is not None else ", no interval"
    return f"median {number(middle.median)} {unit}".rstrip() + between


def fit(found: StepFit) -> str:
    """The line of the step over context, with its intervals and its range."""
    sign = "−" if found.slope_us_per_token < 0 else "+"
    a, b = found.intercept_ms, abs(found.slope_us_per_token)
    text = f"step = {number(a)} ms {sign} {number(b)} µs per token of context"
    if found.intercept_ci95 and found.slope_ci95:
        text += f" (95 % CI {span(found.intercept_ci95, a)} ms and {span(found.slope_ci95, b)} µs)"
    low, high = found.context_range
    points = count(found.n, "bin" if found.of_bins else "window")
    return (
        f"{text}, from {points} at {found.running:.3g} running, "
        f"contexts {low:,.0f} to {high:,.0f} tokens"
    )


def windows(diagnosis: Diagnosis) -> str:
    """How many windows count, and how many were left out for what."""
    summary = diagnosis.summary
    text = f"windows: {summary.windows_used:,} of {diagnosis.windows_total:,} count"
    reasons = [
        f"{FLAG_NAMES[flag]} {n:,}"
        for flag, n in sorted(diagnosis.flags.items(), key=lambda item: -item[1])
        if n
    ]
    return f"{text}, left out: {', '.join(reasons)}" if reasons else text


def _done(lines: list[str], redact: bool) -> str:
    text = "\n".join(lines)
    return redacted(text, prompts=False) if redact else text
