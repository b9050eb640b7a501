"""Windows of a log, drawn from the table that is kept beside the figure."""

from collections.abc import Sequence

import numpy as np
import pandas as pd
from matplotlib.axes import Axes

from analysis.records.windows import Flag, Windows, windows
from analysis.report.plots.windows import key, over_context
from analysis.report.plots.windows import over_time as draw_over_time

NUMBERS = ("time_s", "context_tokens", "running", "tok_per_s", "step_ms")


def over_time(axes: Sequence[Axes], table: pd.DataFrame) -> Sequence[Axes]:
    """Throughput and commit of every window over time; flagged ones are hollow."""
    rows = _windows(table)
    draw_over_time(axes[0], [rows], "tok_per_s", "throughput (tok/s)")
    draw_over_time(axes[1], [rows], "commit", "commit (tokens/step)")
    key(axes[0].figure, [rows], ["tok_per_s", "commit"])  # type: ignore[arg-type]
    return axes


def step_over_context(axis: Axes, table: pd.DataFrame) -> Axes:
    """The step of every window over its context, and the fitted line."""
    rows = _windows(table)
    first = table.iloc[0]
    counted = rows.context_tokens[rows.unflagged]
    line = (float(first["fit_intercept_ms"]), float(first["fit_slope_us_per_token"]) / 1000)
    over_context(axis, [rows], line, (float(np.nanmin(counted)), float(np.nanmax(counted))))
    key(axis.figure, [rows], ["step_ms"], "line fitted to windows that count")  # type: ignore[arg-type]
    return axis


def _windows(table: pd.DataFrame) -> Windows:
    sources = sorted(set(table["source"]))
    numbers = {name: table[name].astype(float).to_numpy() for name in NUMBERS}
    return windows(
        "llama.cpp",
        "log",
        table["clock"].iloc[0],
        sources if len(sources) <= 1 else [""],
        line=table["line"].to_numpy(),
        source=np.zeros(len(table), dtype=np.int64),
        flags=np.where(table["counts"], 0, int(Flag.NO_RATE)),
        commit=table["commit_length"].astype(float).to_numpy(),
        **numbers,
    )
