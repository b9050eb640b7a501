"""The page of `analysis breakeven`: what speculation must commit to pay, and whether it does."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
from matplotlib.figure import Figure

from analysis.findings.break_even import BreakEven, Row
from analysis.report.page import paste
from analysis.report.page.diagnose_pictures import WIDTH
from analysis.report.page.words import (
    UNDEFINED,
    count,
    made_by,
    number,
    sentence,
    short_names,
    with_short_name,
    with_span,
)
from analysis.report.page.write import Page, Picture, Table, drawn, redacted, write_page
from analysis.report.plots.needed import (
    Needed,
    needed_by_row,
    needed_key,
    needed_over_context,
)
from analysis.report.style import new_figure

SCOPE = (
    "Break-even is the step with speculation over the plain step at the same context and batch. "
    "“Does not pay at this commit” and “cannot be reached with this block” are two findings: the "
    "first may change with text and drafter, the second cannot. An interval that holds 1 leaves "
    "open whether it pays."
)
SHOWN = 6
"""Series in a picture; the others are in the table."""


def write(result: BreakEven, out: Path, *, redact: bool = True) -> None:
    """Write the page of one break-even; ``redact`` takes hosts, people and paths out."""
    page = page_of(named(result))
    write_page(redacted(page) if redact else page, out)


def named(result: BreakEven) -> BreakEven:
    """The same, with files named without their folders."""
    base, spec = (side and with_short_name(side) for side in (result.base, result.spec))
    notes = short_names(result.notes, (result.base, result.spec))
    return replace(result, base=base, spec=spec, notes=notes)


def page_of(result: BreakEven) -> Page:
    """All that the page says, nothing taken out of it yet."""
    return Page(
        command="breakeven",
        title="Does speculation pay here, and could it?",
        verdict=result.sentence,
        details=tuple(map(sentence, result.notes)),
        lead=needed_picture(result.rows),
        numbers=(_numbers(result.rows), _steps(result.rows)),
        scope=SCOPE,
        pictures=(),
        flags=(),
        flags_text="",
        passed_over=(),
        paste=paste.for_break_even(result, redact=False),
        made_from=made_from(result),
    )


def needed_picture(rows: Sequence[Row]) -> Picture:
    """Break-even, commit and block: over context where a series has several, else by row."""
    series = _series(rows)
    over = any(len(set(one.context_tokens.tolist())) > 1 for one in series)
    by_row = [_needed(paste.condition(row), [row]) for row in rows]

    def draw() -> Figure:
        shown = (series if over else by_row)[: SHOWN if over else 2 * SHOWN]
        figure = new_figure(WIDTH, 3.6 if over else 0.5 * len(shown) + 1.2)
        axis = figure.subplots()
        if over:
            needed_over_context(axis, shown)
        else:
            needed_by_row(axis, shown)
        needed_key(figure, shown, over)
        return figure

    needs = _range([row.break_even_commit for row in rows])
    commits = [row.commit for row in rows if row.commit is not None]
    has = f", and {_range(commits)} are committed" if commits else ""
    drawn_rows = len(series) > SHOWN if over else len(by_row) > 2 * SHOWN
    more = " The others are in the table." if drawn_rows else ""
    bars = any(row.break_even_interval95 for row in rows)
    return Picture(
        id="needed",
        svg=drawn(draw),
        alt=f"Break-even commit {'over context' if over else 'by condition'}, tokens per step: "
        f"{needs} are needed{has}.",
        caption=f"Speculation pays where the full marker lies {'above' if over else 'right of'} "
        f"the hollow one: {needs} tokens per step are needed{has}."
        + (" Bars: 95 % confidence interval of break-even." if bars else "")
        + (" Series are set slightly apart." if over and len(series) > 1 else "")
        + more,
    )


def made_from(result: BreakEven) -> tuple[str, ...]:
    """The sides and the command."""
    facts = [
        f"{name}: {side.name} ({side.kind}, {count(len(side), 'row')})"
        for name, side in (("Plain", result.base), ("Speculating", result.spec))
        if side is not None
    ]
    return (*facts, f"Made by {made_by('breakeven')}")


def _range(values: Sequence[float]) -> str:
    low, high = number(min(values)), number(max(values))
    return low if low == high else f"{low} to {high}"


def _series(rows: Sequence[Row]) -> list[Needed]:
    """Rows of one label and running count together, those with a context only."""
    found: dict[str, list[Row]] = {}
    for row in rows:
        if row.context_tokens is not None:
            found.setdefault(paste.label(row), []).append(row)
    return [_needed(name, group) for name, group in found.items()]


def _needed(name: str, rows: Sequence[Row]) -> Needed:
    intervals = [row.break_even_interval95 or (None, None) for row in rows]

    def column(values: Sequence[float | None]) -> np.ndarray:
        return np.array([np.nan if value is None else float(value) for value in values])

    return Needed(
        name=name,
        context_tokens=column([row.context_tokens for row in rows]),
        needed=column([row.break_even_commit for row in rows]),
        low=column([low for low, _ in intervals]),
        high=column([high for _, high in intervals]),
        commit=column([row.commit for row in rows]),
        block=column([row.block for row in rows]),
    )


def _numbers(rows: Sequence[Row]) -> Table:
    words = {True: "pays", False: "does not pay", None: "undecided"}
    reach = {True: "yes", False: "no", None: UNDEFINED}
    return Table(
        "break-even",
        "Tokens per step, with 95 % confidence intervals in brackets where there are repeats",
        ("condition", "break-even", "commit", "block", "block reaches it", "speed-up", "verdict"),
        tuple(
            (
                paste.condition(row),
                with_span(row.break_even_commit, row.break_even_interval95),
                number(row.commit),
                UNDEFINED if row.block is None else str(row.block),
                reach[row.reachable],
                UNDEFINED
                if row.speedup is None
                else f"× {with_span(row.speedup, row.speedup_interval95)}",
                UNDEFINED if row.speedup is None else words[row.pays],
            )
            for row in rows
        ),
    )


def _steps(rows: Sequence[Row]) -> Table:
    return Table(
        "steps",
        "The steps behind it",
        ("condition", "plain step", "step with speculation", "same context by"),
        tuple(
            (
                paste.condition(row),
                f"{number(row.base_step_ms)} ms",
                f"{number(row.spec_step_ms)} ms",
                row.adjustment,
            )
            for row in rows
        ),
    )
