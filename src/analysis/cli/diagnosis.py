"""A diagnosis as one JSON object, or as lines for people."""

import json
from collections.abc import Mapping, Sequence
from typing import Any

import click

from analysis.cli.output import WIDTH, print_columns, print_paragraphs
from analysis.findings.diagnosis import CHOSEN
from analysis.findings.diagnosis_types import Diagnosis, Middle, StepFit
from analysis.logs.redact import redact as redacted
from analysis.records.window_file import rows_of
from analysis.records.windows import FLAG_NAMES, Windows
from analysis.rounding import rounded

NO_INTERVAL = "none: too few that are independent"
SHOWN = 30
"""Windows that are printed for people; --json and --windows give all."""
HEAD = (
    "line",
    "time",
    "source",
    "context",
    "running",
    "tok/s",
    "commit",
    "accept",
    "step ms",
    "flags",
)
COLUMNS = ("context_tokens", "running", "tok_per_s", "commit", "acceptance_length", "step_ms")
SUMMARY = {
    "commit": "commit, tokens per step",
    "acceptance_length": "acceptance length",
    "step_ms": "step, ms",
    "tok_per_s": "throughput, tok/s",
    "context_tokens": "context, tokens per request",
    "running": "running requests",
}


def as_object(found: Diagnosis, redact: bool) -> dict[str, Any]:
    """The JSON object of a diagnosis."""
    summary = found.summary
    seen = found.seen
    examples = [*seen.malformed_examples, *seen.examples]
    return rounded(  # type: ignore[no-any-return]
        {
            "engine": found.engine,
            "version_hint": found.version_hint,
            "verdict": found.verdict,
            "details": list(found.details),
            "windows_total": found.windows_total,
            "binned": found.binned,
            "windows": [row for part in found.windows for row in _rows(part, found.binned)],
            "summary": {
                "windows_used": summary.windows_used,
                "windows_flagged": summary.windows_flagged,
                **{name: _middle(getattr(summary, name)) for name in SUMMARY},
            },
            "flags": {FLAG_NAMES[flag]: count for flag, count in found.flags.items()},
            "fit": _fit(found.fit),
            "block": seen.block,
            "verified_tokens": seen.verified_tokens,
            "unparsed": {
                "lines": seen.unparsed,
                "malformed": seen.malformed,
                "examples": [redacted(line) if redact else line for line in examples],
            },
        }
    )


def _rows(part: Windows, binned: bool) -> list[dict[str, Any]]:
    rows = list(rows_of(part))
    if binned:
        for row, count, used in zip(rows, part.count.tolist(), part.used.tolist(), strict=True):
            row |= {"windows": count, "windows_used": used}
    return rows


def _middle(middle: Middle | None) -> dict[str, float | str | None] | None:
    if middle is None:
        return None
    return {
        "median": middle.median,
        "low": middle.low,
        "high": middle.high,
        "interval": f"95 % confidence, by {middle.kind}" if middle.kind else None,
    }


def _fit(fit: StepFit | None) -> dict[str, Any] | None:
    if fit is None:
        return None
    straight = fit.linearity
    return {
        "intercept_ms": fit.intercept_ms,
        "intercept_ci95": fit.intercept_ci95,
        "slope_us_per_token": fit.slope_us_per_token,
        "slope_ci95": fit.slope_ci95,
        "n": fit.n,
        "running": fit.running,
        "context_range": fit.context_range,
        "bend_pct": None if straight is None else straight.bend_pct,
        "bend_ci95": None if straight is None else straight.bend_ci95,
        "of_bins": fit.of_bins,
    }


def show(found: Diagnosis, result: Mapping[str, Any], as_json: bool) -> None:
    """Print a diagnosis: the JSON object, or the verdict, the figures and the windows."""
    if as_json:
        click.echo(json.dumps(result, allow_nan=False))
        return
    said = [found.verdict, *found.details]
    for text in said:
        print_paragraphs([text])
        click.echo()
    if found.summary.windows_used:
        _show_summary(result["summary"])
        click.echo()
    _show_windows(result["windows"], found)
    _show_passed_over(result["unparsed"], found.seen.lines)


def _show_summary(summary: Mapping[str, Any]) -> None:
    rows = [("median of unflagged windows", "", "95 % interval")]
    for name, label in SUMMARY.items():
        middle = summary[name]
        if middle is not None:
            low, high = middle["low"], middle["high"]
            alone = "none: one window" if summary["windows_used"] == 1 else NO_INTERVAL
            interval = alone if low is None else f"{_figure(low)} to {_figure(high)}"
            interval = "" if name in CHOSEN else interval
            rows.append((label, _figure(middle["median"]), interval))
    if len(rows) > 1:
        print_columns(rows, left=(0, 2))


def _show_windows(rows: Sequence[Mapping[str, Any]], found: Diagnosis) -> None:
    files = {row["file"] for row in rows}
    shown: list[tuple[str, ...]] = [HEAD]
    for row in rows[:SHOWN]:
        shown.append(
            (
                f"{row['file']}:{row['line']}" if len(files) > 1 else str(row["line"]),
                row["time"] or "-",
                row["source"] or "-",
                *(_figure(row[name]) for name in COLUMNS),
                ", ".join(row["flags"]),
            )
        )
    if len(files) == 1:
        click.echo(f"{next(iter(files))}:")
    print_columns(shown, left=(1, 2, 9))
    if len(rows) > SHOWN:
        what = "bins" if found.binned else "windows"
        click.echo(
            f"... and {len(rows) - SHOWN:,} more {what}: --json, --windows FILE, --html FILE"
        )


def _show_passed_over(unparsed: Mapping[str, Any], lines: int) -> None:
    if not unparsed["lines"]:
        return
    broken = f", {unparsed['malformed']:,} of them broken" if unparsed["malformed"] else ""
    click.echo(f"\n{unparsed['lines']:,} of {lines:,} lines are no report on decoding{broken}:")
    for line in unparsed["examples"]:
        click.echo(f"  {line[: WIDTH - 2]}")


def _figure(value: float | None) -> str:
    if value is None:
        return "-"
    if value == int(value) and abs(value) < 1e9:
        return f"{int(value):,}"
    return (
        f"{value:,.1f}"
        if abs(value) >= 100
        else f"{value:.3g}"
        if abs(value) < 1
        else f"{value:.2f}"
    )
