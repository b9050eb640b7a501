"""Plots of the reconciliation."""

import pandas as pd
from matplotlib.axes import Axes

from analysis.report.style import (
    BLUE,
    INK,
    MARKERS,
    ORANGE,
    PURPLE,
    QUIET,
    RED,
    legend_below,
    linear_contexts,
)

AXES = {
    "prompt": (BLUE, MARKERS[0], "context is the prompt"),
    "mean": (ORANGE, MARKERS[1], "context is the mean"),
    "growing": (PURPLE, MARKERS[2], "context grows while decoding"),
}


def forest(axis: Axes, table: pd.DataFrame) -> Axes:
    """Prediction and interval of every reading, against the observed throughput."""
    y = list(range(len(table)))[::-1]
    for name, (colour, marker, label) in AXES.items():
        rows = table[table.axis == name]
        if rows.empty:
            continue
        places = [y[i] for i in rows.index]
        axis.errorbar(
            rows.predicted_tok_per_s,
            places,
            xerr=[rows.predicted_tok_per_s - rows.low, rows.high - rows.predicted_tok_per_s],
            fmt=marker,
            color=colour,
            capsize=2,
            label=label,
        )
    observed = float(table.observed_tok_per_s.iloc[0])
    axis.axvline(observed, color=INK, lw=1.2)
    axis.annotate(
        f"observed {observed:g}",
        (observed, 1.0),
        (3, 2),
        xycoords=("data", "axes fraction"),
        textcoords="offset points",
        fontsize=8,
    )
    axis.set_yticks(y, list(table.label), fontsize=8)
    axis.set_xlim(left=0)
    axis.set_xlabel("predicted throughput, 95 % prediction interval at a fixed commit (tok/s)")
    legend_below(axis, 2)
    return axis


def break_even(axis: Axes, table: pd.DataFrame) -> Axes:
    """The commit that speculation needs to pay, and the commits that were seen."""
    band = table[table.kind == "break-even"]
    if not band.empty:
        axis.fill_between(
            band.context_tokens,
            band.low,
            band.high,
            color=PURPLE,
            alpha=0.3,
            lw=0,
            label="break-even with plain decoding, published range",
        )
    sweep = table[table.kind == "sweep"]
    axis.plot(
        sweep.context_tokens,
        sweep.commit_length,
        MARKERS[0],
        color=BLUE,
        label="sweep, filler text",
    )
    for row in table[table.kind == "observation"].itertuples():
        axis.plot(
            [row.low, row.high],
            [row.commit_length] * 2,
            color=RED,
            lw=4,
            solid_capstyle="butt",
            label="observed text, over the contexts given for it",
        )
    linear_contexts(axis)
    axis.set_ylim(0, axis.get_ylim()[1] * 1.05)
    axis.set_xlabel("mean context while decoding (tokens)")
    axis.set_ylabel("commit (tokens/step)")
    axis.annotate(
        "speculation pays above the band",
        (0.02, 0.97),
        xycoords="axes fraction",
        color=QUIET,
        fontsize=8,
        va="top",
    )
    axis.legend(frameon=False, fontsize=8, loc="lower right")
    return axis
