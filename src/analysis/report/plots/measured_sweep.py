"""Plots of our own context sweep and of rising output length."""

from collections.abc import Sequence
from typing import Any

import pandas as pd
from matplotlib.axes import Axes

from analysis.report.style import (
    COLOURS,
    GREY,
    MARKERS,
    label_ends,
    legend_below,
    linear_contexts,
)

PANELS = (
    ("step_ms", "step (ms)"),
    ("commit_length", "commit (tokens/step)"),
    ("tok_per_s", "throughput (tok/s)"),
)


def step_lines(axis: Axes, table: pd.DataFrame) -> Axes:
    """Requests small, medians large, the line with the confidence interval of the line."""
    ends: list[tuple[float, str, Any]] = []
    for i, (name, rows) in enumerate(table.groupby("series", sort=False)):
        colour = COLOURS[i % len(COLOURS)]
        line = rows[rows.kind == "line"]
        if len(line):
            if line.confidence_low.notna().all():
                axis.fill_between(
                    line.context_tokens,
                    line.confidence_low,
                    line.confidence_high,
                    color=colour,
                    alpha=0.25,
                    lw=0,
                    label="95 % confidence of the line" if not ends else "",
                )
            axis.plot(line.context_tokens, line.step_ms, "-", color=colour, lw=1.2)
        _points(axis, rows, "context_tokens", "step_ms", i, said=not ends)
        ends.append((float(rows.step_ms.iloc[-1]), str(name), colour))
    linear_contexts(axis)
    axis.set_xlim(right=1.04 * float(table.context_tokens.max()))
    axis.set_ylim(0, 1.12 * float(table.step_ms.max()))
    axis.set_xlabel("mean context while decoding (tokens)")
    axis.set_ylabel("step (ms)")
    label_ends(axis, ends)
    legend_below(axis, 3)
    return axis


def sweep_panels(axes: Sequence[Axes], table: pd.DataFrame) -> Sequence[Axes]:
    """Step, commit and throughput over context, requests small and medians large."""
    for axis, (column, label) in zip(axes, PANELS, strict=True):
        for i, (name, rows) in enumerate(table.groupby("series", sort=False)):
            _points(axis, rows, "context_tokens", column, i, named=str(name))
        axis.set_title(label)
        axis.set_xlabel("mean context (tokens)")
        linear_contexts(axis)
        axis.set_xlim(right=1.06 * float(table.context_tokens.max()))
        _from_zero(axis, table[column])
    legend_below(axes[0], 3)
    return axes


def output_lengths(axes: Sequence[Axes], table: pd.DataFrame) -> Sequence[Axes]:
    """Step with the sweep's line at its mean context, and commit, over output length."""
    for axis, (column, label) in zip(axes, PANELS[:2], strict=True):
        for i, (name, rows) in enumerate(table.groupby("series", sort=False)):
            line = rows[rows.sweep_step_ms.notna()]
            if column == "step_ms" and len(line):
                axis.plot(
                    line.output_tokens,
                    line.sweep_step_ms,
                    "--",
                    color=GREY,
                    lw=1.2,
                    zorder=1,
                    label="the sweep's line at the same mean context" if not i else "",
                )
            _points(axis, rows, "output_tokens", column, i, named=str(name))
        axis.set_title(label)
        axis.set_xlabel("output (tokens)")
        axis.set_xlim(0, 1.06 * float(table.output_tokens.max()))
        _from_zero(axis, table[column])
    legend_below(axes[0], 2)
    return axes


def _points(
    axis: Axes,
    rows: pd.DataFrame,
    x: str,
    y: str,
    place: int,
    named: str = "",
    said: bool = False,
) -> None:
    """Requests small, medians large. ``said`` explains both, ``named`` names the series."""
    colour: Any = COLOURS[place % len(COLOURS)]
    marker = MARKERS[place % len(MARKERS)]
    requests, medians = rows[rows.kind == "request"], rows[rows.kind == "median"]
    axis.plot(
        requests[x],
        requests[y],
        marker,
        color=colour,
        ms=3,
        alpha=0.6,
        mew=0,
        zorder=2,
        label="one request" if said else "",
    )
    axis.plot(
        medians[x],
        medians[y],
        marker,
        color=colour,
        mfc="none",
        zorder=3,
        label="median of a cell" if said else f"{named}, median of a cell" if named else "",
    )


def _from_zero(axis: Axes, values: pd.Series) -> None:
    known = values.dropna()
    if len(known):
        axis.set_ylim(0, 1.15 * float(known.max()))
    else:
        axis.set_ylim(0, 1)
        axis.set_yticks([])
        axis.annotate("not known", (0.05, 0.5), xycoords="axes fraction")
