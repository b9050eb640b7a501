"""``analysis diagnose``."""

import os
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import click

from analysis.cli.diagnosis import as_object, show
from analysis.cli.output import check_output, json_option
from analysis.cli.progress import progress_bar
from analysis.findings.diagnosis import diagnose as diagnose_logs
from analysis.records.window_file import window_file


@click.command()
@click.argument("logs", nargs=-1, required=True, metavar="LOG...")
@click.option("--block", type=click.IntRange(min=1), help="most tokens that a step can commit")
@click.option("--processes", type=click.IntRange(min=1), help="for large files  [default: cores]")
@click.option(
    "--windows",
    "windows",
    type=click.Path(path_type=Path),
    help="write every window to this .csv or .parquet file",
)
@click.option("--html", type=click.Path(path_type=Path), help="write one offline page")
@click.option("--no-redact", is_flag=True, help="keep hosts, addresses, paths and prompts")
@json_option
def diagnose(
    logs: tuple[str, ...],
    block: int | None,
    processes: int | None,
    windows: Path | None,
    html: Path | None,
    no_redact: bool,
    as_json: bool,
) -> None:
    """Split throughput into commit and step, from what a server printed.

    LOG... are logs of SGLang, vLLM or llama.cpp, as they are or as gzip or zstd, or - for standard
    input; or recorded answers, a benchmark's result, or two snapshots of /metrics. Which of them
    it is, and of which version, is told from the lines. Intervals are 95 % confidence intervals of
    the median.
    """
    check_output("--html", html, logs)
    check_output("--windows", windows, logs)
    with (
        window_file(windows) if windows else nullcontext() as rows,
        progress_bar() as progress,
    ):
        found = diagnose_logs(
            logs, processes or cores(), progress, rows.add if rows else None, block
        )
    if html is not None:
        from analysis.report.page import diagnose_page  # matplotlib: only where something is drawn

        diagnose_page.write(found, html, redact=not no_redact)
    result: dict[str, Any] = as_object(found, redact=not no_redact)
    show(found, result, as_json)


def cores() -> int:
    """Processor cores that this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1
