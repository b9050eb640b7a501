"""Plots of the KV cache."""

import pandas as pd
import seaborn as sns
from matplotlib.axes import Axes

from analysis.report.style import (
    BLUE,
    INK,
    MARKERS,
    ORANGE,
    PURPLE,
    TEXT,
    legend_below,
    note,
    plain_log_x,
)


def per_gpu(axis: Axes, table: pd.DataFrame) -> Axes:
    """GB per GPU at the wished context, by layout and dtype, against the free memory."""
    dtypes = list(dict.fromkeys(table.kv_dtype))
    palette = dict(zip(dtypes, (BLUE, ORANGE, PURPLE), strict=False))
    sns.scatterplot(
        data=table,
        y="layout",
        x="wished_gb",
        hue="kv_dtype",
        style="kv_dtype",
        palette=palette,
        markers=dict(zip(dtypes, MARKERS, strict=False)),
        s=60,
        zorder=4,
        ax=axis,
    )
    axis.grid(axis="y")
    for row in table.itertuples():
        note(
            axis,
            f"{row.wished_gb:.2f}",
            (row.wished_gb, row.layout),
            xytext=(0, 7),
            ha="center",
            color=TEXT[palette[row.kv_dtype]],
        )
    free = table.free_gb.dropna()
    if not free.empty:
        axis.axvline(float(free.iloc[0]), color=INK, lw=1.2)
        note(
            axis,
            f"free: {free.iloc[0]:g} GB",
            (float(free.iloc[0]), 1.0),
            xytext=(4, 2),
            xycoords=("data", "axes fraction"),
        )
    plain_log_x(axis)
    axis.margins(y=0.12)
    axis.set_xlim(0.6 * float(table.wished_gb.min()), 1.8 * float(table.wished_gb.max()))
    axis.set_xlabel(f"GB (10^9 B) on each GPU for {int(table.wished_tokens.iloc[0]):,} tokens")
    axis.set_ylabel("")
    legend_below(axis, 3)
    return axis
