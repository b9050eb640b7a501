"""The page of `analysis diagnose`: why a server is this fast, from its log alone."""

from dataclasses import replace
from pathlib import Path

from analysis.findings.diagnosis_types import Diagnosis, StepFit
from analysis.records.windows import FLAG_MEANINGS, FLAG_NAMES, NOTE_NAMES
from analysis.report.page import paste
from analysis.report.page.diagnose_pictures import (
    context_picture,
    split_picture,
    time_picture,
)
from analysis.report.page.words import (
    UNDEFINED,
    count,
    engine,
    engine_name,
    files,
    listed,
    made_by,
    middle_kind,
    middle_span,
    number,
    span,
)
from analysis.report.page.write import (
    Examples,
    Page,
    Table,
    redacted,
    unnamed,
    write_page,
)

NAMES = {
    "tok_per_s": "throughput of all running requests",
    "commit": "commit, over all steps, with the bonus token",
    "acceptance_length": "acceptance length, over the steps that drafted",
    "step_ms": "step: one target forward and its drafting",
    "context_tokens": "context of a running request",
    "running": "running requests",
}
SCOPE = (
    "Medians are over windows, each of which is itself a mean over the steps between two lines of "
    "the log. This is the speed of decoding inside the server: not the time to the first token, "
    "not queueing, not what a client sees."
)


def write(result: Diagnosis, out: Path, *, redact: bool = True) -> None:
    """Write the page of one diagnosis; ``redact`` takes hosts, people, paths and prompts out."""
    if redact:
        page = redacted(page_of(replace(result, windows=unnamed(result.windows))))
    else:
        page = page_of(result)
    write_page(page, out)


def page_of(result: Diagnosis) -> Page:
    """All that the page says, nothing taken out of it yet."""
    speed = result.summary.tok_per_s
    pictures = [split_picture(result.summary), time_picture(result), context_picture(result)]
    lead, *others = [*filter(None, pictures), None]
    pace = f" at {number(speed.median)} tok/s" if speed else " at this speed"
    return Page(
        command="diagnose",
        title=f"Why does {engine_name(result.engine) or 'this server'} decode{pace}?",
        verdict=result.verdict,
        details=result.details,
        lead=lead,
        numbers=tuple(filter(None, (_numbers(result), _fit(result.fit)))),
        scope=SCOPE,
        pictures=tuple(filter(None, others)),
        flags=(flag_table(result),) if any(result.flags.values()) else (),
        flags_text=_left_out(result),
        passed_over=passed_over(result),
        paste=paste.for_diagnosis(result, redact=False),
        made_from=made_from(result, "diagnose"),
    )


def flag_table(result: Diagnosis) -> Table:
    """Windows left out, by reason."""
    rows = sorted(((flag, n) for flag, n in result.flags.items() if n), key=lambda item: -item[1])
    return Table(
        "flags",
        "Flagged windows by reason; a window may have several",
        ("reason", "windows", "of a flagged window"),
        tuple((FLAG_NAMES[flag], f"{n:,}", FLAG_MEANINGS[flag]) for flag, n in rows),
    )


def passed_over(result: Diagnosis) -> tuple[Examples, ...]:
    """Lines that were no report on decoding, and those that looked like one and were not read."""
    seen, found = result.seen, []
    if seen.malformed:
        found.append(
            Examples(
                f"{count(seen.malformed, 'line')} {_are(seen.malformed)} like a report on decoding "
                "and could not be read. Please report it: the format may be newer than this "
                "reader. Examples:",
                tuple(seen.malformed_examples),
            )
        )
    rest = seen.unparsed - seen.malformed
    if rest > 0:
        share = f"{rest:,} of {count(seen.lines, 'line')}"
        found.append(
            Examples(
                f"{share} {_are(rest)} no report on decoding and passed over."
                + (" Examples, one a kind:" if seen.examples else ""),
                tuple(seen.examples),
            )
        )
    return tuple(found)


def made_from(result: Diagnosis, command: str) -> tuple[str, ...]:
    """Files, engine, what was assumed, and the command."""
    seen = result.seen
    notes = {
        name
        for batch in result.windows
        for note, name in NOTE_NAMES.items()
        if bool((batch.notes & note).any())
    }
    facts = [
        f"Files: {listed(files(result), 12) or 'none with windows'}",
        f"Engine: {engine(result)}",
        f"Lines read: {seen.lines:,}; windows: {result.windows_total:,}",
        f"Most tokens that one step can commit: {seen.block} ({seen.block_from})"
        if seen.block
        else "",
        f"Steps a line: {seen.steps_per_line}{_assumed(seen.steps_per_line_assumed)}"
        if seen.steps_per_line
        else "",
        f"Length of a window: {number(seen.window_s)} s{_assumed(seen.window_s_assumed)}"
        if seen.window_s
        else "",
        f"Noted: {'; '.join(sorted(notes))}" if notes else "",
        f"Made by {made_by(command)}",
    ]
    return tuple(filter(None, facts))


def _numbers(result: Diagnosis) -> Table | None:
    rows, middles = [], []
    for field, _, unit in paste.QUANTITIES:
        middle = getattr(result.summary, field)
        if middle is not None:
            middles.append(middle)
            rows.append(
                (NAMES[field], f"{number(middle.median)} {unit}".strip(), middle_span(middle))
            )
    if not rows:
        return None
    n = result.summary.windows_used
    kind = middle_kind(middles)
    short = (
        f"; intervals {kind}"
        if kind
        else ""
        if any(row[2] != UNDEFINED for row in rows)
        else ("; too few of them for an interval")
    )
    return Table(
        "medians",
        f"Medians over {count(n, 'window')} without a flag{short}",
        ("quantity", "median", "95 % confidence interval of the median"),
        tuple(rows),
    )


def _fit(fit: StepFit | None) -> Table | None:
    if fit is None:
        return None
    a, b = fit.intercept_ms, fit.slope_us_per_token
    low, high = fit.context_range
    rows = [
        ("intercept: the step without context", f"{number(a)} ms", span(fit.intercept_ci95, a)),
        ("slope: what context adds", f"{number(b)} µs per token", span(fit.slope_ci95, b)),
    ]
    if fit.linearity is not None:
        bend = fit.linearity.bend_pct
        between = span(fit.linearity.bend_ci95, bend)
        rows.append(("bend: largest gap to a curve", f"{number(bend)} % of the step", between))
    points = count(fit.n, "bin" if fit.of_bins else "window")
    return Table(
        "fit",
        f"Line of the step over context, from {points} with {fit.running:.3g} running, "
        f"contexts {low:,.0f} to {high:,.0f} tokens",
        ("quantity", "estimate", "95 % confidence interval (Student's t)"),
        tuple(rows),
    )


def _left_out(result: Diagnosis) -> str:
    flagged = result.summary.windows_flagged
    if not flagged:
        return ""
    share = f"{flagged:,} of {count(result.windows_total, 'window')} {_are(flagged)} flagged"
    return (
        f"{share}: the rate there is not that of decoding alone, and no median and no line "
        "rests on it."
    )


def _assumed(assumed: bool) -> str:
    return ", assumed: the log does not say" if assumed else ""


def _are(n: int) -> str:
    return "is" if n == 1 else "are"
