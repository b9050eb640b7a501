"""Plots of the step-time model."""

from collections.abc import Sequence
from typing import Any

import pandas as pd
from matplotlib.axes import Axes

from analysis.report.style import (
    BLUE,
    COLOURS,
    DASHES,
    INK,
    MARKERS,
    ORANGE,
    PURPLE,
    QUIET,
    RED,
    SMALL,
    label_ends,
    legend_below,
    linear_contexts,
    log2_contexts,
    log_values,
    note,
    plain_log_x,
)

AXIS_NAMES = {"prompt": "prompt (tokens)", "mean": "mean context while decoding (tokens)"}


def lines(panels: Sequence[Axes], table: pd.DataFrame) -> Sequence[Axes]:
    """Points, lines, and both bands, one panel for each context axis."""
    for axis, (name, rows) in zip(panels, table.groupby("axis", sort=False), strict=False):
        ends = []
        alone = rows.series.nunique() == 1
        for i, (series, part) in enumerate(rows.groupby("series", sort=False)):
            _line(axis, part, COLOURS[i], MARKERS[i], bands=alone)
            ends.append((float(part.step_ms.iloc[-1]), str(series), COLOURS[i]))
        axis.set_xlabel(AXIS_NAMES[str(name)])
        linear_contexts(axis)
        axis.set_xlim(right=float(rows.context_tokens.max()))
        axis.set_ylim(0, axis.get_ylim()[1] * 1.05)
        if not alone:
            label_ends(axis, ends)
    panels[0].set_ylabel("step (ms)")
    _share_y(panels)
    if panels[0].get_legend_handles_labels()[0]:
        legend_below(panels[0], 3)
    return panels


def _share_y(panels: Sequence[Axes]) -> None:
    top = max(axis.get_ylim()[1] for axis in panels)
    for axis in panels:
        axis.set_ylim(0, top)


def _line(axis: Axes, part: pd.DataFrame, colour: Any, marker: str, bands: bool) -> None:
    measured, line = part[part.kind == "measured"], part[part.kind == "line"]
    kind = "measured" if "step_kind" in part else "derived"
    if bands and line.prediction_low.notna().all():
        axis.fill_between(
            line.context_tokens,
            line.prediction_low,
            line.prediction_high,
            color=colour,
            alpha=0.12,
            lw=0,
            label="95 % prediction of one new run",
        )
        axis.fill_between(
            line.context_tokens,
            line.confidence_low,
            line.confidence_high,
            color=colour,
            alpha=0.28,
            lw=0,
            label="95 % confidence of the line",
        )
    axis.plot(line.context_tokens, line.step_ms, "-", color=colour, lw=1.3)
    axis.plot(
        measured.context_tokens,
        measured.step_ms,
        marker,
        color=colour,
        mfc="white" if kind == "derived" else colour,
        label=f"{kind} step of the sweep" if bands else "",
        zorder=3,
        clip_on=False,
    )


def slopes(axis: Axes, table: pd.DataFrame) -> Axes:
    """Measured slopes with intervals, and the time to read its cache once, where it is known."""
    y = list(range(len(table)))[::-1]
    low = (table.slope_us - table.slope_low).fillna(0)
    high = (table.slope_high - table.slope_us).fillna(0)
    axis.errorbar(
        table.slope_us,
        y,
        xerr=[low, high],
        fmt=MARKERS[0],
        color=BLUE,
        ms=5,
        capsize=2,
        label="measured slope, 95 % confidence",
    )
    if "bandwidth_us" in table:
        _limits(axis, table, y)
        plain_log_x(axis)
    else:
        axis.axvline(0, color=QUIET, lw=0.8)
    axis.set_yticks(y, list(table.series), fontsize=SMALL)
    axis.set_ylim(-0.6, len(table) - 0.3)
    axis.set_xlabel("us per token of context")
    legend_below(axis)
    return axis


def _limits(axis: Axes, table: pd.DataFrame, y: list[int]) -> None:
    axis.plot(
        table.bandwidth_us,
        y,
        "|",
        color=RED,
        ms=10,
        mew=2,
        label="reading the cache once at peak bandwidth",
    )
    for place, row in zip(y, table.itertuples(), strict=True):
        axis.plot(
            [row.bandwidth_us, row.slope_us], [place, place], ":", color=QUIET, lw=0.8, zorder=0
        )
        middle = (row.bandwidth_us * row.slope_us) ** 0.5
        note(
            axis,
            f"{row.limit_ratio:.3g}x",
            (middle, place),
            xytext=(0, 1),
            ha="center",
            color=QUIET,
        )


LEVERS = {
    "slope vanishes": (BLUE, DASHES[0]),
    "slope as in the case beside": (PURPLE, DASHES[1]),
    "drafter twice as good": (ORANGE, DASHES[3]),
}


def levers(panels: Sequence[Axes], table: pd.DataFrame) -> Sequence[Axes]:
    """What each lever is worth over context, one panel for each context axis."""
    for axis, (name, rows) in zip(panels, table.groupby("axis", sort=False), strict=False):
        for lever, part in rows.groupby("lever", sort=False):
            colour, dash = LEVERS[str(lever)]
            axis.plot(part.context_tokens, part.gain, dash, color=colour, label=str(lever))
        axis.set_xlabel(AXIS_NAMES[str(name)])
        linear_contexts(axis)
        axis.set_ylim(0, axis.get_ylim()[1] * 1.05)
    panels[0].set_ylabel("times as many tok/s")
    _share_y(panels)
    legend_below(panels[0], 3)
    return panels


def extrapolations(axis: Axes, table: pd.DataFrame) -> Axes:
    """Three models that agree on the data and part beyond it."""
    ends = []
    shown = table[(table.context_tokens >= 256) & (table.step_ms > 0)]
    for i, (kind, rows) in enumerate(shown.groupby("kind", sort=False)):
        inside, outside = rows[rows.measured], rows[~rows.measured]
        outside = pd.concat([inside.tail(1), outside])
        colour = (BLUE, ORANGE, PURPLE)[i]
        axis.plot(inside.context_tokens, inside.step_ms, "-", color=colour, lw=2)
        axis.plot(outside.context_tokens, outside.step_ms, DASHES[i + 1], color=colour, lw=1.6)
        ends.append((float(outside.step_ms.iloc[-1]), str(kind), colour))
    edge = float(table[table.measured].context_tokens.max())
    log2_contexts(axis, float(shown.context_tokens.min()), float(shown.context_tokens.max()))
    log_values(axis, 0.8 * float(shown.step_ms.min()), 1.3 * float(shown.step_ms.max()))
    axis.axvline(edge, color=INK, lw=0.8)
    note(
        axis,
        "data end here",
        (edge, 0.97),
        xytext=(-4, 0),
        xycoords=("data", "axes fraction"),
        ha="right",
        va="top",
    )
    label_ends(axis, ends)
    axis.set_xlabel("prompt (tokens)")
    axis.set_ylabel("step (ms)")
    return axis
