"""Plots of the two-point decode: request times with their lines, and the step by three clocks."""

from collections.abc import Sequence

import pandas as pd
from matplotlib.axes import Axes

from analysis.report.style import (
    BLUE,
    COLOURS,
    DASHES,
    MARKERS,
    ORANGE,
    PURPLE,
    label_ends,
    legend_below,
    linear_contexts,
)

CLOCKS = {
    "whole request times": (BLUE, MARKERS[0]),
    "server's timings": (ORANGE, MARKERS[1]),
    "client, first to last token": (PURPLE, MARKERS[2]),
}

NUMBERS = ["step_ms", "step_low", "step_high"]
"""Columns that may hold nothing at all, which pandas would not take for numbers."""


def request_times(panels: Sequence[Axes], table: pd.DataFrame) -> Sequence[Axes]:
    """Request time over output length with the fitted lines, one panel for each series."""
    top = 1.06 * float(table.request_s.max())
    prompts = list(dict.fromkeys(table.prompt))
    for axis, (name, rows) in zip(panels, table.groupby("series", sort=False), strict=True):
        ends = []
        for prompt, part in rows.groupby("prompt", sort=False):
            place = prompts.index(prompt)
            colour = COLOURS[place % len(COLOURS)]
            requests, line = part[part.kind == "request"], part[part.kind == "line"]
            axis.plot(
                requests.output_tokens,
                requests.request_s,
                MARKERS[place % len(MARKERS)],
                color=colour,
                mfc="white",
                ms=5,
                zorder=3,
            )
            axis.plot(
                line.output_tokens,
                line.request_s,
                DASHES[place % len(DASHES)],
                color=colour,
                lw=1.2,
            )
            ends.append((float(line.request_s.iloc[-1]), str(prompt), colour))
        axis.set_title(str(name))
        axis.set_xlabel("output (tokens)")
        axis.set_xlim(0, 1.02 * float(table.output_tokens.max()))
        axis.set_ylim(0, top)
        label_ends(axis, ends)
    panels[0].set_ylabel("whole request (s)")
    return panels


def step_clocks(panels: Sequence[Axes], table: pd.DataFrame) -> Sequence[Axes]:
    """The step by three clocks over context, one panel for each series."""
    right = 1.08 * float(table.context_tokens.max())
    shifts = {clock: (i - 1) * 0.022 * right for i, clock in enumerate(CLOCKS)}
    for axis, (name, rows) in zip(panels, table.groupby("series", sort=False), strict=True):
        for clock, part in rows.groupby("clock", sort=False):
            colour, marker = CLOCKS[str(clock)]
            known = part[part.step_ms.notna()].astype(dict.fromkeys(NUMBERS, float))
            axis.errorbar(
                known.context_tokens + shifts[str(clock)],
                known.step_ms,
                yerr=[
                    (known.step_ms - known.step_low).fillna(0),
                    (known.step_high - known.step_ms).fillna(0),
                ],
                fmt=marker,
                color=colour,
                mfc=colour if clock == "whole request times" else "white",
                ms=5,
                capsize=3,
                label=str(clock),
            )
        axis.set_title(str(name))
        axis.set_xlabel("context (tokens)")
        linear_contexts(axis)
        axis.set_xlim(right=right)
        axis.set_ylim(0, 1.1 * float(table[NUMBERS].astype(float).max().max()))
    panels[0].set_ylabel("step (ms)")
    legend_below(panels[0], 3)
    return panels
