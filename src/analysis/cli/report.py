"""``analysis report``."""

import os
from pathlib import Path

import click

from analysis import paths
from analysis.errors import InputError
from analysis.report import pages, runner


@click.command()
@click.option("--case", "case", help="another case folder; its report goes to build/cases")
@click.option("--run", "run", help="a run; its report goes to build/cases")
@click.option("--notebook", help="one notebook only, such as 03-step-time-model")
@click.option("-p", "given", multiple=True, metavar="NAME=JSON", help="a notebook parameter")
@click.option("--force", is_flag=True, help="run also what is up to date")
@click.option("--jobs", type=click.IntRange(min=1), help="notebooks at once  [default: cores]")
def report(
    case: str | None,
    run: str | None,
    notebook: str | None,
    given: tuple[str, ...],
    force: bool,
    jobs: int | None,
) -> None:
    """Run every stale notebook on every committed case, rebuild figures, values and pages.

    --run makes a case for a run (a folder, or a name in data/runs) and reports on that.
    """
    from analysis.report.parameters import parse

    parameters = parse(given)
    if case is not None and run is not None:
        raise InputError("--case and --run", "both", "one of them")
    if case is None and run is None and parameters:
        raise InputError("-p", "parameters without --case", "--case, so that the report stays")
    if "case" in parameters:
        raise InputError("-p", "parameter case", "the case in --case")
    cases, target = _cases(case if run is None else _case_of(run))
    with runner.only_one():
        tasks = runner.plan(cases, target, notebook, parameters)
        try:
            changed = runner.build(tasks, force, jobs or os.cpu_count() or 1, click.echo)
        except runner.RunFailedError as error:
            raise InputError("report", f"a failed run: {error}", "every cell to run") from None
        if notebook is None:
            changed += runner.prune(tasks)
            runner.merge_values(tasks, target.figures / "values.json")
            page = pages.refresh(tasks, target, force)
            click.echo(f"{os.path.relpath(page)} is up to date")
    known = changed if target is runner.COMMITTED else []
    for name in sorted({p.stem for p in known if p.is_relative_to(target.figures)}):
        click.echo(f"changed: figure {name}")


def _case_of(run: str) -> str:
    """The folder of a case that is made for a run."""
    from analysis.records.run import load_run
    from analysis.records.run_case import case_of_run

    return str(case_of_run(load_run(run)).folder)


def _cases(case: str | None) -> tuple[dict[str, str], runner.Target]:
    """Case names to the parameter that names them, the first case first; where results go."""
    names = sorted(path.parent.name for path in paths.CASES.glob("*/case.toml"))
    names.sort(key=lambda name: name != paths.FIRST_CASE)
    if case is None:
        return {name: name for name in names}, runner.COMMITTED
    folder = Path(case)
    if (folder / "case.toml").is_file():
        folder = folder.resolve()
        return {folder.name: _parameter(folder)}, runner.target_for(folder.name)
    if case in names:
        return {case: case}, runner.target_for(case)
    expected = f"one of {', '.join(names)}, or a folder with a case.toml"
    raise InputError("--case", repr(case), expected)


def _parameter(folder: Path) -> str:
    """What names a case in its notebooks; no path of this machine where it lies in the project."""
    inside = folder.is_relative_to(paths.ROOT)
    return os.path.relpath(folder, paths.CASES) if inside else str(folder)
