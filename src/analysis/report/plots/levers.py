"""Plots of the levers."""

import pandas as pd
from matplotlib.axes import Axes

from analysis.report.plots.step_time import AXIS_NAMES
from analysis.report.style import (
    COLOURS,
    DASHES,
    INK,
    label_ends,
    linear_contexts,
    log_values,
)


def over_context(axis: Axes, table: pd.DataFrame) -> Axes:
    """Gain of each lever over the context, with its bounds as a band."""
    ends = []
    for i, (lever, rows) in enumerate(table.groupby("lever", sort=False)):
        colour = COLOURS[i % len(COLOURS)]
        axis.plot(rows.context_tokens, rows.gain, DASHES[i % len(DASHES)], color=colour, lw=2)
        known = rows.dropna(subset=["low", "high"])
        if len(known):
            axis.fill_between(
                known.context_tokens,
                known.low.astype(float),
                known.high.astype(float),
                color=colour,
                alpha=0.14,
                lw=0,
            )
        ends.append((float(rows.gain.iloc[-1]), str(lever), colour))
    values = pd.concat([table.gain, table.low, table.high]).dropna().astype(float)
    linear_contexts(axis)
    axis.set_xlim(0, float(table.context_tokens.max()))
    log_values(axis, 0.85 * float(values.min()), 1.15 * float(values.max()))
    axis.axhline(1, color=INK, lw=0.8)
    label_ends(axis, ends)
    axis.set_xlabel(AXIS_NAMES[str(table.axis.iloc[0])])
    axis.set_ylabel("times as many tok/s (log)")
    return axis
