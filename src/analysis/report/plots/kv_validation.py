"""Plot of printed pools against the memory model."""

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.ticker import FuncFormatter, NullLocator

from analysis.report.style import (
    BLUE,
    GREY,
    INK,
    MARKERS,
    ORANGE,
    SMALL,
    TEXT,
    legend_below,
    note,
)

LINEAR_MIB = 12.0
"""Within so many MiB the axis is linear; a row far outside does not squeeze the others."""


def errors(axis: Axes, table: pd.DataFrame) -> Axes:
    """Printed less predicted size, one row a server, beside what rounding and a page allow."""
    y = list(range(len(table)))[::-1]
    axis.barh(
        y,
        table.allowed_high_mib - table.allowed_low_mib,
        left=table.allowed_low_mib,
        height=0.62,
        color=GREY,
        alpha=0.35,
        lw=0,
        label="allowed: rounding of the print and one page",
    )
    axis.axvline(0, color=INK, lw=0.8)
    for outcome, colour, marker in (("inside", BLUE, MARKERS[0]), ("outside", ORANGE, MARKERS[1])):
        rows = [(place, row) for place, row in zip(y, table.itertuples(), strict=True)]
        shown = [(row.gap_mib, place) for place, row in rows if row.outcome == outcome]
        if not shown:
            continue
        axis.plot(
            [gap for gap, _ in shown],
            [place for _, place in shown],
            marker,
            color=colour,
            ms=6,
            ls="",
            label=f"printed - predicted, {outcome}",
            zorder=4,
        )
        if outcome == "outside":
            for gap, place in shown:
                note(
                    axis,
                    f"{gap:+,.0f} MiB",
                    (gap, place),
                    xytext=(-8, 0) if gap > 0 else (8, 0),
                    ha="right" if gap > 0 else "left",
                    va="center",
                    color=TEXT[colour],
                )
    axis.set_xscale("symlog", linthresh=LINEAR_MIB, linscale=2.0)
    most = max(
        LINEAR_MIB,
        float(table[["gap_mib", "allowed_low_mib", "allowed_high_mib"]].abs().max().max()),
    )
    least = min(-LINEAR_MIB, 1.6 * float(table.gap_mib.min()))
    axis.set_xlim(least, LINEAR_MIB if most <= LINEAR_MIB else 1.6 * most)
    far = [10.0**k for k in range(2, 7) if 10.0**k <= 1.6 * most]
    ticks = [-10.0, -5.0, 0.0, 5.0, 10.0, *far]
    ticks = [-tick for tick in far if -tick >= least] + ticks
    axis.set_xticks(ticks)
    axis.xaxis.set_minor_locator(NullLocator())
    axis.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,g}"))
    axis.set_yticks(y, list(table.row), fontsize=SMALL)
    axis.set_ylim(-0.7, len(table) - 0.3)
    beyond = "" if most <= LINEAR_MIB else f", logarithmic beyond {LINEAR_MIB:g}"
    axis.set_xlabel(f"MiB (2^20 B) on one GPU{beyond}", loc="right")
    legend_below(axis, 1)
    return axis
