"""``analysis levers``."""

from typing import Any

import click

from analysis.cli.output import between, json_option, print_columns, print_paragraphs, show
from analysis.errors import InputError
from analysis.findings import levers as finding
from analysis.findings.levers import Levers
from analysis.findings.missing import Missing
from analysis.findings.series import Axis
from analysis.records.case import load_case


@click.command()
@click.argument("case")
@click.option("--context", type=click.FloatRange(min=0), help="tokens; else where it was observed")
@click.option("--axis", type=click.Choice(["mean", "prompt"]), help="what a context is")
@click.option("--commit", type=click.FloatRange(min=1), help="tokens per step; else as observed")
@json_option
def levers(
    case: str, context: float | None, axis: Axis | None, commit: float | None, as_json: bool
) -> None:
    """Rank what would make a server faster, at a context.

    CASE is a case in data/cases or a folder with a case.toml. A gain is a factor on tok/s, each
    lever taken alone; what its bounds are stands beside them. By default a context is the mean
    while decoding, where outputs are known.
    """
    for option, value in (("--context", context), ("--commit", commit)):
        if value is not None and not value < float("inf"):
            raise InputError(option, str(value), "a finite number")
    found = finding.find(load_case(case), context, axis, commit)
    if isinstance(found, Missing):
        raise InputError(case, found.reason, "a context sweep with commit lengths")
    if as_json:
        show(as_object(found), as_json)
        return
    print_paragraphs([found.verdict])
    click.echo()
    print_columns(
        [("lever", "gain", "bounds", "basis", "what the bounds are"), *_lines(found)], (0, 3, 4)
    )
    click.echo()
    if found.turns:
        print_paragraphs(["Where leading levers change places, in tokens:"])
        print_columns(
            [("better below", "better above", "tokens", "95 % confidence"), *_turns(found)], (0, 1)
        )
        click.echo()
    print_paragraphs(f"{note[0].upper()}{note[1:]}." for note in found.notes)
    print_paragraphs([found.undecided_says])


def as_object(found: Levers) -> dict[str, Any]:
    """The ranking as ``--json`` prints it, best first."""
    return {
        "case": found.case,
        "context_tokens": found.context_tokens,
        "axis": found.axis,
        "commit_length": found.commit_length,
        "levers": [
            {
                "lever": row.lever.name,
                "gain": row.worth.gain,
                "low": row.worth.bounds and row.worth.bounds[0],
                "high": row.worth.bounds and row.worth.bounds[1],
                "basis": row.lever.basis,
                "bounds": row.lever.bounds_are,
                "for_one_stream": row.lever.alone,
                "note": row.lever.note,
            }
            for row in found.ranked
        ],
        "turns": [
            {
                "better_below": turn.below,
                "better_above": turn.above,
                "context_tokens": turn.context_tokens,
                "ci95": turn.interval95,
            }
            for turn in found.turns
        ],
        "notes": [*found.notes, found.undecided_says],
    }


HEAD = ("lever", "gain", "bounds", "basis", "what the bounds are")
TURNS_HEAD = ("better below", "better above", "tokens", "95 % confidence")


def _lines(found: Levers) -> list[tuple[str, ...]]:
    return [
        (
            row.lever.name,
            f"{row.worth.gain:.2f}",
            between(row.worth.bounds),
            row.lever.basis,
            row.lever.bounds_are,
        )
        for row in found.ranked
    ]


def _turns(found: Levers) -> list[tuple[str, ...]]:
    return [
        (
            turn.below,
            turn.above,
            f"{turn.context_tokens:,.0f}",
            f"{turn.interval95[0]:,.0f} to {turn.interval95[1]:,.0f}" if turn.interval95 else "",
        )
        for turn in found.turns
    ]
