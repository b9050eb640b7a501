"""``analysis promote``."""

import shutil
from pathlib import Path

import click

from analysis import paths
from analysis.errors import InputError
from analysis.records.run import load_run


@click.command()
@click.argument("run", type=click.Path(path_type=Path))
@click.option("--name", "name", help="name in data/runs  [default: the folder's own]")
def promote(run: Path, name: str | None) -> None:
    """Copy a finished RUN into data/runs, where cases and notebooks find it by name."""
    found = load_run(run)
    if not found.ended:
        left = f"{len(found.left())} of {len(found.plan)} requests left"
        raise InputError(paths.relative(run), f"an unfinished run ({left})", "one that has ended")
    target = paths.RUNS / (name or found.name)
    if target.parent != paths.RUNS:
        raise InputError("--name", repr(name), "a name without folders")
    if target.exists():
        raise InputError(paths.relative(target), "a run of that name", "another --name")
    partial = target.with_name(f"{target.name}.partial")
    shutil.rmtree(partial, ignore_errors=True)
    shutil.copytree(found.folder, partial)
    partial.rename(target)
    click.echo(
        f"{paths.relative(target)}; `make checksums` and a line in a case's `runs` come next"
    )
