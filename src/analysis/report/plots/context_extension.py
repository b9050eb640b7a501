"""Plot of steps and throughput far beyond the measured contexts."""

from collections.abc import Sequence

import pandas as pd
from matplotlib.axes import Axes

from analysis.report.style import (
    BLUE,
    DASHES,
    GREY,
    INK,
    MARKERS,
    ORANGE,
    PURPLE,
    QUIET,
    RED,
    legend_below,
    log2_contexts,
    log_values,
    note,
    short_tokens,
)

COLOURS = {"line": BLUE, "quadratic": ORANGE, "weighted quadratic": PURPLE}


def extrapolated(panels: Sequence[Axes], table: pd.DataFrame) -> Sequence[Axes]:
    """Step and tok/s over prompt length: solid within the data, broken beyond."""
    for axis, column, name, height in zip(
        panels,
        ("step_ms", "tok_per_s"),
        ("step (ms)", "throughput (tok/s)"),
        (0.36, 0.71),
        strict=True,
    ):
        _panel(axis, table, column, height)
        axis.set_xlabel("prompt (tokens)")
        axis.set_ylabel(name)
    legend_below(panels[0], 2)
    return panels


def _panel(axis: Axes, table: pd.DataFrame, column: str, height: float) -> None:
    """One panel; ``height`` is where its notes stand, as a share of it."""
    first = table.iloc[0]
    low, high = float(table.context_tokens.min()), float(table.context_tokens.max())
    axis.axvspan(
        max(low, first.measured_low),
        first.measured_high,
        color=GREY,
        alpha=0.18,
        lw=0,
        label="measured contexts of this server",
    )
    lines = table[table.kind != "point"]
    for kind, rows in lines.groupby("kind", sort=False):
        colour = COLOURS.get(str(kind), RED)
        dash = DASHES[1 + list(COLOURS).index(str(kind))] if kind in COLOURS else DASHES[1]
        inside, outside = rows[rows.measured], rows[~rows.measured]
        outside = outside[outside.context_tokens > inside.context_tokens.max()]
        outside = pd.concat([inside.tail(1), outside])
        axis.plot(inside.context_tokens, inside[column], "-", color=colour, lw=2)
        label = f"{kind}, beyond its data"
        axis.plot(outside.context_tokens, outside[column], dash, color=colour, lw=1.6, label=label)
    points = table[table.kind == "point"]
    axis.plot(
        points.context_tokens,
        points[column],
        MARKERS[0],
        color=INK,
        ms=5,
        ls="",
        label="step of the sweep" if column == "step_ms" else "",
        zorder=5,
    )
    log2_contexts(axis, low, high)
    least, most = float(table[column].min()), float(table[column].max())
    log_values(axis, 0.7 * least, 1.5 * most)
    for value, word in ((first.limit_tokens, "limit"), (first.wished_tokens, "wish")):
        if value is None or pd.isna(value) or not low < value < high:
            continue
        axis.axvline(float(value), color=QUIET, lw=0.9)
        note(
            axis,
            f"{word} {short_tokens(float(value))}",
            (float(value), height),
            xycoords=("data", "axes fraction"),
            xytext=(-3, 0),
            rotation=90,
            ha="right",
            va="center",
            color=QUIET,
        )
