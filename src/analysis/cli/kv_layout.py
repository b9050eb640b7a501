"""``analysis measure kv-layout``: the pools that vLLM and SGLang print, predicted first."""

import json
import sys
import time
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from analysis import paths
from analysis.cli.output import print_columns, print_paragraphs
from analysis.errors import InputError
from analysis.rounding import rounded

if TYPE_CHECKING:
    from analysis.engines.cpu_servers import CpuEngine
    from analysis.findings.kv_layout import Layouts
    from analysis.records.kv_layout import Prediction

NAME = "kv-layout"
ALLOWED = ("experiments", "engine", "out", "dry_run", "as_json")
QUIET_S = 15.0
"""Between two lines of progress where no terminal shows one that changes."""


def kv_layout(engine: str, out: Path | None, dry_run: bool, as_json: bool) -> None:
    """Read the pools of the chosen engines into a folder each below ``out``, and compare them.

    What was read before is not read again. Raises ``InputError`` as ``experiments.kv_layout`` does,
    before anything is started where an engine is not installed.
    """
    from analysis.engines.cpu_servers import ENGINES, installed_version
    from analysis.experiments import kv_layout as experiment
    from analysis.findings.kv_layout import read
    from analysis.findings.missing import Missing

    chosen = [one for one in ENGINES if engine in ("all", one.key)]
    if dry_run:
        _show_predictions({one.name: experiment.planned(one) for one in chosen}, as_json)
        return
    for one in chosen:
        installed_version(one)
        experiment.refuse_small_machine(one)
    folder = out or paths.MEASURED / NAME
    folders = [folder / one.key for one in chosen]
    try:
        for one, inner in zip(chosen, folders, strict=True):
            click.echo(f"{one.name}: {paths.relative(inner)}", err=True)
            with _Progress(one) as progress:
                experiment.measure(one, inner, progress.say)
    except (KeyboardInterrupt, InputError):
        if any(inner.exists() for inner in folders):
            click.echo("\nwhat was read is kept; the same command goes on", err=True)
        raise
    found = read(folders)
    assert not isinstance(found, Missing)
    _show(found, as_json)


def refuse_others(given: Iterable[str], experiments: Sequence[str]) -> None:
    """Raise ``InputError`` for other experiments beside it, and options that it does not have."""
    if len(set(experiments)) > 1:
        raise InputError(
            "EXPERIMENT", f"{NAME} and others", f"{NAME} alone: its servers are its own"
        )
    for name in given:
        if name not in ALLOWED:
            expected = f"of {NAME}: --engine, --out, --dry-run, --json"
            raise InputError(
                f"--{name.replace('_', '-')}", "an option of other experiments", expected
            )


class _Progress:
    """A line for each server: seconds since its start, and what it said last."""

    def __init__(self, engine: "CpuEngine") -> None:
        self._engine = engine
        self._last: tuple[str, float] = ("", 0.0)

    def __enter__(self) -> "_Progress":
        return self

    def __exit__(self, *ending: object) -> None:
        if sys.stderr.isatty():
            click.echo("\r\x1b[K", nl=False, err=True)

    def say(self, prediction: "Prediction", spent: float, line: str) -> None:
        """Show how far a start has come."""
        text = f"{self._engine.name} {prediction.server}: {spent:3.0f} s, {line or 'starting'}"
        if sys.stderr.isatty():
            click.echo(f"\r\x1b[K{text[:99]}", nl=False, err=True)
            return
        server, when = self._last
        if server != prediction.server or time.monotonic() - when > QUIET_S:
            self._last = (prediction.server, time.monotonic())
            click.echo(text[:160], err=True)


def _show_predictions(planned: Mapping[str, Sequence["Prediction"]], as_json: bool) -> None:
    rows = [
        {
            "engine": engine,
            "server": one.server,
            "given": one.given_bytes or one.given_tokens,
            "unit": "B" if one.given_bytes else "tokens",
            "page_tokens": one.page_tokens,
            "tokens": one.tokens,
            "gib_per_rank": one.rank_bytes / 2**30,
        }
        for engine, predictions in planned.items()
        for one in predictions
    ]
    if as_json:
        _json({"predictions": rows})
        return
    head = ("engine", "server", "given", "block", "tokens", "GiB per rank")
    lines = [
        (
            str(row["engine"]),
            str(row["server"]),
            f"{row['given']:,} {row['unit']}",
            f"{row['page_tokens']}",
            f"{row['tokens']:,}",
            f"{row['gib_per_rank']:.6f}",
        )
        for row in rows
    ]
    print_columns([head, *lines], left=(0, 1))


def _show(found: "Layouts", as_json: bool) -> None:
    if as_json:
        rows = [
            {
                "engine": one.engine,
                "version": one.version,
                "server": one.predicted.server,
                "predicted_tokens": one.predicted.tokens,
                "printed_tokens": one.printed_tokens,
                "predicted_gib_per_rank": one.predicted_gib,
                "printed_gib_per_rank": one.printed_gib,
                "error_pct": one.error_pct,
                "verdict": one.verdict,
            }
            for one in found.servers
        ]
        _json({"servers": rows, "unread": list(found.unread), "verdict": found.verdict})
        return
    head = ("server", "predicted", "printed", "", "error %", "verdict")
    lines: list[tuple[str, ...]] = []
    for one in found.servers:
        tokens = one.prints_tokens
        form, unit = ("{:,.0f}", "tokens") if tokens else ("{:.6f}", "GiB per rank")
        shown = ["-" if value is None else form.format(value) for value in one.compared]
        error = "-" if one.error_pct is None else f"{one.error_pct:.4f}"
        lines.append((one.name, *shown, unit, error, one.verdict))
    print_columns([head, *lines], left=(0, 3, 5))
    print_paragraphs([found.verdict])


def _json(values: Mapping[str, Any]) -> None:
    click.echo(json.dumps(rounded(dict(values)), indent=2, allow_nan=False))
