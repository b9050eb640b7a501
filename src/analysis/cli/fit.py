"""``analysis fit``."""

from pathlib import Path
from typing import Literal

import click

from analysis.cli.output import json_option, show
from analysis.errors import InputError
from analysis.model.linearity import linearity
from analysis.model.regression import fit_polynomial
from analysis.records.numbers import read_columns, run_columns
from analysis.records.run import committed_runs, is_run, load_run


@click.command()
@click.argument("table", type=click.Path(path_type=Path))
@click.option("--x", "x", default="context_tokens", show_default=True, help="context column")
@click.option("--y", "y", default="step_ms", show_default=True, help="step-time column, ms")
@click.option("--series", help="one series of a table that holds several")
@click.option(
    "--weights", type=click.Choice(["none", "relative"]), default="none", show_default=True
)
@json_option
def fit(
    table: Path,
    x: str,
    y: str,
    series: str | None,
    weights: Literal["none", "relative"],
    as_json: bool,
) -> None:
    """Fit step_ms = intercept + slope * context to TABLE: a CSV file with a header, or a run.

    Intervals are 95 % confidence intervals by Student's t. step_ms is derived from commit_length
    and tok_per_s, and context_tokens from prompt_tokens and output_tokens, where TABLE lacks them.
    A run gives one row for each cell of its context sweep.
    """
    if is_run(table) or str(table) in committed_runs():
        columns = run_columns(load_run(table), x, y, series)
    else:
        columns = read_columns(table, x, y, series)
    try:
        line = fit_polynomial(columns.x, columns.y, 1, weights)
        straight = linearity(columns.x, columns.y, weights)
    except ValueError as error:
        raise InputError(str(table), str(error), f"{x} and {y} that determine a line") from None
    slope = line.coefficient_interval(1)
    show(
        {
            "intercept_ms": line.coefficients[0],
            "intercept_ci95": line.coefficient_interval(0),
            "slope_us_per_token": 1000 * line.coefficients[1],
            "slope_ci95": None if slope is None else [1000 * end for end in slope],
            "n": line.n,
            "dof": line.dof,
            "x": x,
            "weights": weights,
            "linearity": None
            if straight is None
            else {
                "f": straight.f,
                "p": straight.p,
                "bend_pct": straight.bend_pct,
                "bend_ci95": straight.bend_ci95,
                "power": straight.power,
            },
            "derived": columns.derived,
        },
        as_json,
    )
