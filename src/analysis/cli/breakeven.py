"""``analysis breakeven``."""

from pathlib import Path
from typing import Any

import click

from analysis.cli.output import between, json_option, print_columns, print_paragraphs, show
from analysis.errors import InputError
from analysis.findings.break_even import BreakEven, Row, of_numbers, of_sides
from analysis.findings.sides import load_side
from analysis.model.regression import Interval

POSITIVE = click.FloatRange(min=0, min_open=True)


@click.command()
@click.option("--base-step-ms", type=POSITIVE, help="plain step, ms (time per token)")
@click.option("--spec-step-ms", type=POSITIVE, help="speculating step, ms")
@click.option("--commit", type=click.FloatRange(min=1), help="tokens per step, not those seen")
@click.option("--base", help="plain decoding: a log, run, case or CSV table")
@click.option("--spec", help="speculating: a log, run, case or CSV table")
@click.option("--series-base", help="series of --base, where it holds several")
@click.option("--series-spec", help="one series of --spec")
@click.option("--block", type=click.IntRange(min=1), help="most tokens a step can commit")
@click.option("--html", type=click.Path(path_type=Path), help="write one offline page")
@click.option("--no-redact", is_flag=True, help="keep hosts, addresses, paths and prompts")
@json_option
def breakeven(
    base_step_ms: float | None,
    spec_step_ms: float | None,
    commit: float | None,
    base: str | None,
    spec: str | None,
    series_base: str | None,
    series_spec: str | None,
    block: int | None,
    html: Path | None,
    no_redact: bool,
    as_json: bool,
) -> None:
    """Find the commit length above which speculation pays.

    From two step times at the same context and batch, or from two sources: then by context, batch
    and text. A block is drafts + 1. Intervals are 95 % confidence intervals by Student's t.
    """
    steps, sides = (base_step_ms, spec_step_ms), (base, spec)
    if steps == (None, None) and base is not None and spec is not None:
        sources = load_side(base, series_base), load_side(spec, series_spec)
        found = of_sides(*sources, block, commit)
    elif base_step_ms is not None and spec_step_ms is not None and sides == (None, None):
        found = of_numbers(base_step_ms, spec_step_ms, commit, block)
    else:
        named: dict[str, float | str | None] = {
            "base-step-ms": base_step_ms,
            "spec-step-ms": spec_step_ms,
            "commit": commit,
            "base": base,
            "spec": spec,
        }
        given = [f"--{name}" for name, value in named.items() if value is not None]
        expected = "--base-step-ms and --spec-step-ms, or --base and --spec (with either: --commit)"
        raise InputError("breakeven", " ".join(given) or "neither steps nor sources", expected)
    if html is not None:
        from analysis.report.page import breakeven_page  # matplotlib: only where one draws

        breakeven_page.write(found, html, redact=not no_redact)
    if as_json:
        show(as_object(found), as_json)
        return
    _print(found)


def as_object(found: BreakEven) -> dict[str, Any]:
    """Break-even as ``--json`` prints it: the row at the median context, then all of them."""
    rows = {"rows": [_row(row) for row in found.rows]} if len(found.rows) > 1 else {}
    return _row(found.main) | {"sentence": found.sentence, "notes": list(found.notes)} | rows


def _row(row: Row) -> dict[str, Any]:
    return {
        "break_even_commit": row.break_even_commit,
        "commit": row.commit,
        "block": row.block,
        "reachable": row.reachable,
        "pays": row.pays,
        "speedup": row.speedup,
        "interval95": {
            "break_even_commit": row.break_even_interval95,
            "speedup": row.speedup_interval95,
        },
        "label": row.label,
        "context_tokens": row.context_tokens,
        "running": row.running,
        "base_step_ms": row.base_step_ms,
        "spec_step_ms": row.spec_step_ms,
        "context_adjustment": row.adjustment,
    }


HEAD = (
    "",
    "context",
    "running",
    "plain ms",
    "spec ms",
    "break-even",
    "block",
    "reachable",
    "commit",
    "speed-up",
    "pays",
)
WORDS = {True: "yes", False: "no", None: "undecided"}


def _print(found: BreakEven) -> None:
    print_paragraphs([found.sentence])
    click.echo()
    print_columns([HEAD, *(_line(row) for row in found.rows)])
    click.echo()
    if any(row.break_even_interval95 for row in found.rows):
        print_paragraphs(["In brackets: 95 % confidence intervals by Student's t."])
    print_paragraphs(f"{note[0].upper()}{note[1:]}." for note in found.notes)


def _line(row: Row) -> tuple[str, ...]:
    speedup = "" if row.speedup is None else _with(row.speedup, row.speedup_interval95)
    return (
        row.label,
        "" if row.context_tokens is None else f"{row.context_tokens:,.0f}",
        f"{row.running:g}",
        f"{row.base_step_ms:.4g}",
        f"{row.spec_step_ms:.4g}",
        _with(row.break_even_commit, row.break_even_interval95),
        "" if row.block is None else str(row.block),
        "" if row.reachable is None else WORDS[row.reachable],
        "" if row.commit is None else f"{row.commit:.2f}",
        speedup,
        "" if row.speedup is None else WORDS[row.pays],
    )


def _with(value: float, interval: Interval | None) -> str:
    """A value with its interval in brackets, if it has one."""
    return f"{value:.2f}" if interval is None else f"{value:.2f} ({between(interval)})"
