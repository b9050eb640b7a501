"""Plots of the KV cache."""

import pandas as pd
import seaborn as sns
from matplotlib.axes import Axes

from analysis.report.style import BLUE, INK, ORANGE, PURPLE, legend_below, plain_log_x


def bars(axis: Axes, table: pd.DataFrame) -> Axes:
    """GB per GPU at the wished context, by layout and dtype, against the free memory."""
    dtypes = list(dict.fromkeys(table.kv_dtype))
    palette = dict(zip(dtypes, (BLUE, ORANGE, PURPLE), strict=False))
    sns.barplot(
        data=table,
        y="layout",
        x="wished_gb",
        hue="kv_dtype",
        palette=palette,
        ax=axis,
        width=0.7,
        errorbar=None,
    )
    for i, container in enumerate(axis.containers):
        axis.bar_label(container, fmt="%.2f", padding=3, fontsize=8)  # type: ignore[arg-type]
        for bar in container:
            bar.set_hatch(("", "///", "...")[i])
            bar.set_edgecolor("white")
    free = table.free_gb.dropna()
    if not free.empty:
        axis.axvline(float(free.iloc[0]), color=INK, lw=1.2)
        axis.annotate(
            f"free: {free.iloc[0]:g} GB",
            (float(free.iloc[0]), 1.0),
            (3, 2),
            xycoords=("data", "axes fraction"),
            textcoords="offset points",
            fontsize=8,
        )
    plain_log_x(axis)
    axis.set_xlim(right=3 * float(table.wished_gb.max()))
    axis.set_xlabel(
        f"GB (10^9 B) per GPU for {int(table.wished_tokens.iloc[0]):,} tokens, log scale"
    )
    axis.set_ylabel("")
    legend_below(axis, 3)
    return axis
