"""Plots of the roofline."""

import pandas as pd
from matplotlib.axes import Axes

from analysis.report.style import (
    COLOURS,
    MARKERS,
    QUIET,
    RED,
    TEXT,
    legend_below,
    log2_contexts,
    log_values,
    note,
)

LEFT = 0.22
"""Left end of the axis: room for the names of the lines, which start at one token."""


def over_width(axis: Axes, table: pd.DataFrame) -> Axes:
    """Limits as lines over the tokens of a step, measured slopes as marks at their widths."""
    limits = table[table.kind == "limit"]
    measured = table[table.kind == "measured"]
    ceiling = table[table.kind == "occupancy"]
    for label, rows in limits.groupby("label", sort=False):
        axis.plot(rows.queries, rows.slope_us, color=QUIET, lw=1.4)
        first = float(rows.slope_us.iloc[0])
        _name(axis, f"limit, {label}", first, QUIET)
    if len(ceiling):
        axis.plot(ceiling.queries, ceiling.slope_us, "--", color=RED, lw=1.6)
        first = float(ceiling.slope_us.iloc[0])
        _name(axis, "too few blocks, at most", first, TEXT[RED])
    for i, row in enumerate(measured.itertuples()):
        colour, marker = COLOURS[i % len(COLOURS)], MARKERS[i % len(MARKERS)]
        span = [row.queries, row.queries_most]
        axis.plot(
            span, [row.slope_us] * 2, marker=marker, color=colour, lw=2, label=row.label, zorder=4
        )
        if row.slope_low == row.slope_low and row.slope_low is not None:
            middle = (span[0] * span[1]) ** 0.5
            axis.plot([middle] * 2, [row.slope_low, row.slope_high], color=colour, lw=1.2)
    slopes = table.slope_us
    log2_contexts(axis, LEFT, float(limits.queries.max()))
    log_values(axis, 0.5 * float(slopes.min()), 2 * float(slopes.max()))
    ticks = [2.0**k for k in range(7)]
    axis.set_xticks(ticks, [f"{tick:g}" for tick in ticks])
    axis.set_xlabel("tokens that a step computes for one request")
    axis.set_ylabel("us per token of context")
    legend_below(axis, 2)
    return axis


def _name(axis: Axes, text: str, slope_us: float, colour: str) -> None:
    """A line's name left of its start, where no mark is."""
    note(axis, text, (1, slope_us), xytext=(-9, 0), ha="right", va="center", color=colour)
