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
    SMALL,
    bar_over,
    legend_below,
    linear_contexts,
    note,
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
    note(
        axis,
        f"observed: {observed:g} tok/s",
        (observed, 1.0),
        xytext=(0, 3),
        xycoords=("data", "axes fraction"),
        ha="center",
    )
    axis.set_yticks(y, list(table.label), fontsize=SMALL)
    axis.grid(axis="x")
    axis.set_xlabel("predicted throughput (tok/s)")
    legend_below(axis, 3)
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
        label="sweep",
    )
    for row in table[table.kind == "observation"].itertuples():
        label = "observed text, over the contexts given for it"
        bar_over(axis, (row.low, row.high), row.commit_length, RED, label)
    linear_contexts(axis)
    axis.set_ylim(0, axis.get_ylim()[1] * 1.05)
    axis.set_xlabel("mean context while decoding (tokens)")
    axis.set_ylabel("commit (tokens/step)")
    note(
        axis,
        "above the band speculation pays",
        (0.02, 0.97),
        xytext=(0, 0),
        xycoords="axes fraction",
        color=QUIET,
        va="top",
    )
    legend_below(axis)
    return axis
