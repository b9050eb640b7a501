"""Plot of what a token costs on each of one and two ranks."""

from collections.abc import Sequence

import pandas as pd
from matplotlib.axes import Axes

from analysis.report.style import BLUE, GREY, INK, ORANGE, TEXT, legend_below, note

LOOKS = {"MLA": (BLUE, "o", "-"), "GQA": (ORANGE, "D", "--")}
OTHER = (GREY, "s", ":")


def per_token(axes: Sequence[Axes], table: pd.DataFrame) -> Sequence[Axes]:
    """Bytes of a token on a rank over the number of ranks, a panel for each engine."""
    top = 1.25 * float(table[["predicted_bytes", "printed_bytes"]].max().max())
    for axis, (engine, rows) in zip(axes, table.groupby("engine", sort=False), strict=True):
        axis.plot(
            rows.ranks,
            rows.predicted_bytes,
            "_",
            color=INK,
            ms=22,
            mew=1.4,
            zorder=2,
            label="predicted",
        )
        for attention, own in rows.groupby("attention", sort=False):
            colour, marker, dash = LOOKS.get(str(attention), OTHER)
            axis.plot(
                own.ranks,
                own.printed_bytes,
                marker + dash,
                color=colour,
                zorder=3,
                label=f"{attention}, printed",
            )
            above = attention == "MLA"
            for row in own[own.printed_bytes.notna()].itertuples():
                note(
                    axis,
                    f"{row.printed_bytes:,.0f}",
                    (row.ranks, row.printed_bytes),
                    xytext=(0, 8 if above else -9),
                    ha="center",
                    va="bottom" if above else "top",
                    color=TEXT[colour],
                )
        axis.set_title(str(engine))
        axis.set_xticks([1, 2])
        axis.set_xlim(0.7, 2.3)
        axis.set_ylim(0, top)
        axis.set_xlabel("tensor parallel ranks")
        axis.grid(axis="y")
    axes[0].set_ylabel("KV cache (B per token and rank)")
    legend_below(axes[0], 3)
    return axes
