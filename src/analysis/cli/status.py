"""``analysis status``."""

import click

from analysis import paths
from analysis.cli.output import json_option, show
from analysis.report import cite as citing


@click.command()
@json_option
def status(as_json: bool) -> None:
    """Say which committed figures are stale, and which input, module or file changed."""
    known = citing.sidecars(paths.FIGURES)
    reasons = {name: citing.stale(sidecar) for name, sidecar in known.items()}
    stale = {name: why for name, why in reasons.items() if why}
    if as_json:
        show({"figures": len(known), "stale": stale}, as_json)
        return
    for name, why in stale.items():
        click.echo(f"stale  {name}: {', '.join(why)}")
    click.echo(f"{len(known) - len(stale)} of {len(known)} figures are up to date")
