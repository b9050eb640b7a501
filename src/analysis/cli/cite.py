"""``analysis cite``."""

import click

from analysis.cli.output import json_option, show
from analysis.report import cite as citing


@click.command()
@click.argument("figure_id", metavar="FIGURE-ID")
@json_option
def cite(figure_id: str, as_json: bool) -> None:
    """Print snippets that cite FIGURE-ID, such as kimi-k26-sglang/throughput."""
    record = citing.find(figure_id)
    path = f"figures/{figure_id}.svg"
    made = citing.snippets(record, path)
    if as_json:
        snippets = {"markdown": made.markdown, "latex": made.latex, "plain": made.plain}
        show({"id": figure_id, "hash": record["hash"], "path": path, **snippets}, as_json)
        return
    for name, text in (("Markdown", made.markdown), ("LaTeX", made.latex), ("Plain", made.plain)):
        click.echo(f"--- {name}\n{text}\n")
