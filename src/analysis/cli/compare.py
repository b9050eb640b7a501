"""``analysis compare``."""

from pathlib import Path
from typing import Any

import click

from analysis.cli.output import between, json_option, print_columns, print_paragraphs, show
from analysis.findings.comparison import Comparison, three_digits
from analysis.findings.comparison import compare as compare_sides
from analysis.findings.sides import load_side
from analysis.model.log_ratio import LogRatio
from analysis.model.regression import Interval


@click.command()
@click.argument("before")
@click.argument("after")
@click.option("--series", help="series of both sides, where a table or case holds several")
@click.option("--series-before", help="series of BEFORE")
@click.option("--series-after", help="series of AFTER")
@click.option("--html", type=click.Path(path_type=Path), help="write one offline page")
@click.option("--no-redact", is_flag=True, help="keep hosts, addresses, paths and prompts")
@json_option
def compare(
    before: str,
    after: str,
    series: str | None,
    series_before: str | None,
    series_after: str | None,
    html: Path | None,
    no_redact: bool,
    as_json: bool,
) -> None:
    """Split a change in throughput into commit and step.

    BEFORE and AFTER are each a log, a run, a case or a CSV table with tok_per_s and commit_length
    or step_ms; commas join the rotated logs of one server, oldest first. Ratios are factors on
    throughput per stream: a step ratio above 1 is a faster step. Intervals are 95 % confidence
    intervals by Student's t.
    """
    found = compare_sides(
        load_side(before, series_before or series), load_side(after, series_after or series)
    )
    if html is not None:
        from analysis.report.page import compare_page  # matplotlib: only where something is drawn

        compare_page.write(found, html, redact=not no_redact)
    if as_json:
        show(as_object(found), as_json)
        return
    _print(found)


def as_object(found: Comparison) -> dict[str, Any]:
    """A comparison as ``--json`` prints it."""
    split, aligned = found.split, found.aligned
    commit, step = (split.commit, split.step) if split else (None, None)
    return {
        "throughput_ratio": found.throughput.ratio,
        "commit_ratio": commit.ratio if commit else None,
        "step_ratio": step.ratio if step else None,
        "commit_share": split.commit_share if split else None,
        "step_share": split.step_share if split else None,
        "interval95": {
            "throughput_ratio": found.throughput.interval95,
            "commit_ratio": commit.interval95 if commit else None,
            "step_ratio": step.interval95 if step else None,
            "commit_share": split.commit_share_interval95 if split else None,
            "step_share": split.step_share_interval95 if split else None,
        },
        "verdict": found.verdict,
        "smallest_detectable_pct": found.smallest_detectable_pct,
        "at_context": aligned.at_context,
        "context_adjustment": aligned.adjustment,
        "context_before": aligned.contexts[0],
        "context_after": aligned.contexts[1],
        "n_before": aligned.n_before,
        "n_after": aligned.n_after,
        "running_before": float(found.before.running.mean()),
        "running_after": float(found.after.running.mean()),
        "total_throughput_ratio": found.total_ratio,
        "sentence": found.sentence,
        "notes": list(found.notes),
    }


def _print(found: Comparison) -> None:
    """The answer, the product as a table, and what to know of it."""
    print_paragraphs([found.sentence])
    click.echo()
    split = found.split
    rows = [("", "ratio", "95 % interval", "share of the change", "95 % interval")]
    rows.append(("throughput", *_ratio(found.throughput), "", ""))
    if split is not None:
        commit, step = split.commit_share_interval95, split.step_share_interval95
        rows.append(("= commit", *_ratio(split.commit), *_share(split.commit_share, commit)))
        rows.append(("x step", *_ratio(split.step), *_share(split.step_share, step)))
    print_columns(rows)
    click.echo()
    print_paragraphs([f"before  {found.before.name}", f"after   {found.after.name}"])
    click.echo()
    print_paragraphs(found.details)


def _ratio(ratio: LogRatio) -> tuple[str, str]:
    return three_digits(ratio.ratio), between(ratio.interval95)


def _share(share: float | None, interval: Interval | None) -> tuple[str, str]:
    return "" if share is None else f"{100 * share:.0f} %", between(interval, 100)
