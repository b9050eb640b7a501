"""Printing: JSON with nine significant digits, or aligned lines for people."""

import json
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from pathlib import Path
from textwrap import fill
from typing import Any

import click

from analysis.errors import InputError
from analysis.findings.comparison import three_digits
from analysis.model.regression import Interval
from analysis.records.cells import cells
from analysis.records.run import Run
from analysis.rounding import rounded

WIDTH = 100
"""Characters of a line of text."""

json_option = click.option("--json", "as_json", is_flag=True, help="print one JSON object")


def show(result: Mapping[str, Any], as_json: bool) -> None:
    """Print a result as one JSON object, or as ``name  value`` lines."""
    clean = rounded(dict(result))
    if as_json:
        click.echo(json.dumps(clean, indent=2, allow_nan=False))
        return
    width = max(len(name) for name in _flat(clean))
    for name, value in _flat(clean).items():
        click.echo(f"{name:<{width}}  {_readable(value)}")


def _flat(values: Mapping[str, Any], prefix: str = "") -> dict[str, Any]:
    flat: dict[str, Any] = {}
    for name, value in values.items():
        if isinstance(value, Mapping):
            flat |= _flat(value, f"{prefix}{name}.")
        else:
            flat[prefix + name] = value
    return flat


def _readable(value: Any) -> str:
    forms: dict[type, Callable[[Any], str]] = {
        type(None): lambda v: "undefined",
        bool: lambda v: "yes" if v else "no",
        int: lambda v: f"{v:,}",
        float: lambda v: f"{v:,.6g}" if abs(v) < 1e6 else f"{v:,.0f}",
        list: lambda v: (
            " to ".join(_readable(x) for x in v)
            if _is_interval(v)
            else "; ".join(_readable(x) for x in v)
        ),
    }
    return forms.get(type(value), str)(value)


def _is_interval(value: list[Any]) -> bool:
    return len(value) == 2 and all(isinstance(x, int | float) for x in value)


def show_cells(run: Run, as_json: bool) -> None:
    """Print what a run says: one line a cell, its flags, and what was called quiet."""
    rows = [
        {
            "experiment": cell.experiment,
            "text": cell.text,
            "prompt_tokens": cell.asked_prompt_tokens,
            "output_tokens": cell.asked_output_tokens,
            "samples": len(cell.samples),
            "used": len(cell.used),
            "step_ms": cell.step_ms,
            "commit_length": cell.commit_length,
            "tok_per_s": cell.tok_per_s,
            "spread_pct": cell.spread_pct,
            "flags": dict(cell.flags),
        }
        for experiment in run.manifest.experiments
        for cell in cells(run, experiment)
    ]
    if as_json:
        left = len(run.left())
        click.echo(
            json.dumps(rounded({"run": run.name, "left": left, "cells": rows}), allow_nan=False)
        )
        return
    lines = [CELL_HEAD, *(_cell_line(row) for row in rows)]
    print_columns(lines, left=(0, 1, len(CELL_HEAD) - 1))
    bounds = run.manifest.bounds
    click.echo(
        f"medians of unflagged samples; quiet: others use at most {bounds.busy_cores:g} cores, and "
        f"the greatest step of a cell exceeds the least by at most {bounds.spread_pct:g} %"
    )
    for reason, count in Counter(s.error for s in run.samples if s.error).most_common():
        click.echo(f"failed {count} times: {reason}")


CELL_HEAD = (
    "experiment",
    "text",
    "prompt",
    "output",
    "used",
    "step ms",
    "commit",
    "tok/s",
    "spread %",
    "flags",
)


def _cell_line(row: Mapping[str, Any]) -> tuple[str, ...]:
    flags = ", ".join(f"{flag} {count}" for flag, count in row["flags"].items())
    return (
        row["experiment"],
        row["text"],
        f"{row['prompt_tokens']:,}",
        f"{row['output_tokens']:,}",
        f"{row['used']}/{row['samples']}",
        *(
            "-" if row[name] is None else f"{row[name]:.{digits}f}"
            for name, digits in (
                ("step_ms", 2),
                ("commit_length", 2),
                ("tok_per_s", 1),
                ("spread_pct", 1),
            )
        ),
        flags,
    )


def print_paragraphs(texts: Iterable[str]) -> None:
    """Each text on lines of at most ``WIDTH`` characters."""
    for text in texts:
        click.echo(fill(text, WIDTH, subsequent_indent="  "))


def print_columns(rows: Sequence[tuple[str, ...]], left: Collection[int] = (0,)) -> None:
    """Rows of equal length as aligned columns, those of ``left`` to the left.

    Columns that are empty below their head are left out.
    """
    kept = [i for i in range(len(rows[0])) if i == 0 or any(row[i] for row in rows[1:])]
    widths = {i: max(len(row[i]) for row in rows) for i in kept}
    for row in rows:
        cells = (row[i].ljust(widths[i]) if i in left else row[i].rjust(widths[i]) for i in kept)
        click.echo("  ".join(cells).rstrip())


def between(interval: Interval | None, scale: float = 1.0) -> str:
    """An interval in three digits, or nothing."""
    if interval is None:
        return ""
    return " to ".join(three_digits(scale * end) for end in interval)


def check_output(option: str, out: Path | None, inputs: Iterable[str | Path]) -> None:
    """Refuse to write over what is read, and a page under a name that no browser opens."""
    if out is None:
        return
    if option == "--html" and out.suffix not in (".html", ".htm"):
        raise InputError(f"{option} {out.name}", repr(out.suffix), ".html")
    for given in inputs:
        path = Path(given)
        if path.exists() and out.exists() and out.samefile(path):
            raise InputError(f"{option} {out.name}", "a file that is read", "another name")
