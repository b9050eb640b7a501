"""The first screen's answer for a server that was measured: its step, its commit, its limits."""

from collections import Counter
from collections.abc import Sequence

from analysis.findings.ledger import Findings
from analysis.findings.missing import Missing
from analysis.findings.own_plain import OwnPlain
from analysis.findings.series import SeriesFit
from analysis.findings.step_time import StepTimes
from analysis.records.case import Case
from analysis.records.cells import cells
from analysis.records.run import EXPERIMENTS, Run, Sample


def answer(found: Findings, steps: StepTimes) -> str:
    """One or two sentences in bold, and what they stand on."""
    main = steps.main
    plain = found.own_plain
    pays = "" if isinstance(plain, Missing) else f" {_break_even(plain, main)}"
    return (
        f"**A step takes {main.law} and commits {_commit(main)} on the text "
        f"{text_of(main.series)}: {_ends(main)}.{pays}** "
        + " ".join(_other(fit) for fit in steps.series if fit is not main)
        + f" {quality(found.case)}"
    ).replace("  ", " ")


def scope(case: Case, steps: StepTimes) -> str:
    """What the answer is of."""
    host, server = case.runs[0].manifest.host, case.runs[0].manifest.server
    machine = f"{host.processor}, {host.cores} cores"
    if server.where == "another machine":
        machine = f"which one is not known; the client ran on {machine}"
    return (
        f"One stream on one machine ({machine}). Each point is the "
        f"median of the repeats of one cell that carry no flag; the line goes through "
        f"{steps.main.n} of them, and its ranges are 95 % confidence intervals by t. A commit "
        "length is that of the text named, and carries no interval here."
    )


def quality(case: Case) -> str:
    """Which flags fell, how far repeats lay apart, and what was left undone."""
    said = [_flagged(case.runs), _spread(case.runs)]
    said += [
        f"Run {run.name} was not brought to its end: {len(run.left())} of {len(run.plan)} "
        "requests are left."
        for run in case.runs
        if not run.ended
    ]
    return " ".join(text for text in said if text)


def text_of(series: str) -> str:
    """The text in the name of a measured series."""
    return series.rpartition(", ")[2]


def _flagged(runs: Sequence[Run]) -> str:
    samples: list[Sample] = [sample for run in runs for sample in run.samples if not sample.warmup]
    flagged = [sample for sample in samples if sample.flags]
    if not flagged:
        return f"None of {len(samples)} requests carries a flag."
    fell = Counter(flag for sample in flagged for flag in sample.flags)
    listed = ", ".join(f"{flag} {count}" for flag, count in fell.most_common())
    return (
        f"{len(flagged)} of {len(samples)} requests carry a flag and are left out of every median "
        f"({listed})."
    )


def _spread(runs: Sequence[Run]) -> str:
    """How many cells lie further apart than the bound that was written down before the run."""
    every = [cell for run in runs for name in EXPERIMENTS for cell in cells(run, name)]
    wide = [cell for cell in every if "spread" in cell.flags]
    if not wide:
        return ""
    bound = wide[0].spread_bound_pct
    return f"In {len(wide)} of {len(every)} cells the steps spread over more than {bound:g} %."


def _break_even(plain: OwnPlain, main: SeriesFit) -> str:
    points = [p for p in plain.main if p.series == f"{main.series} {main.repeat}".strip()]
    if not points:
        return plain.verdict
    first, last = points[0], points[-1]
    even = f"{first.break_even:.2f} tokens per step"
    gains = f"{first.gain:.2f} times as fast as plain"
    if last is not first:
        even += (
            f" at {first.context_tokens:,.0f} tokens and {last.break_even:.2f} at "
            f"{last.context_tokens:,.0f}"
        )
        gains = f"{first.gain:.2f} and {last.gain:.2f} times as fast as plain"
    return f"Its break-even against its own plain decoding is {even}, so it is {gains} there."


def _commit(fit: SeriesFit) -> str:
    commits = [row.commit_length for row in fit.rows if row.commit_length is not None]
    if fit.speculation == "none":
        return "1 token"
    low, high = min(commits), max(commits)
    if f"{low:.2f}" == f"{high:.2f}":
        return f"{low:.2f} tokens"
    return f"{low:.2f} to {high:.2f} tokens"


def _ends(fit: SeriesFit) -> str:
    rows = sorted(fit.rows, key=lambda row: row.prompt_tokens)
    first, last = rows[0], rows[-1]
    return (
        f"{first.tok_per_s:.1f} tok/s at a prompt of {first.prompt_tokens:,} tokens, "
        f"{last.tok_per_s:.1f} at {last.prompt_tokens:,}"
    )


def _other(fit: SeriesFit) -> str:
    name = f"{fit.series} {fit.repeat}".strip()
    commits = "" if fit.speculation == "none" else f", {_commit(fit)} a step"
    return f"{name[:1].upper()}{name[1:]}: {fit.law}{commits}, {_ends(fit)}."
