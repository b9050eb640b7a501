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
    label_ends,
    legend_below,
    linear_contexts,
    log2_contexts,
    log_values,
    plain_log_x,
)

AXIS_NAMES = {"prompt": "prompt (tokens)", "mean": "mean context while decoding (tokens)"}


def lines(panels: Sequence[Axes], table: pd.DataFrame) -> Sequence[Axes]:
    """Points, lines, and both bands, one panel for each context axis."""
    for axis, (name, rows) in zip(panels, table.groupby("axis", sort=False), strict=False):
        for i, (series, part) in enumerate(rows.groupby("series", sort=False)):
            _line(axis, part, COLOURS[i], MARKERS[i], str(series), bands=rows.series.nunique() == 1)
        axis.set_xlabel(AXIS_NAMES[str(name)])
        axis.set_ylabel("step (ms)")
        linear_contexts(axis)
        axis.set_ylim(0, axis.get_ylim()[1] * 1.05)
        axis.legend(frameon=False, fontsize=8, loc="lower right")
    return panels


def _line(axis: Axes, part: pd.DataFrame, colour: Any, marker: str, name: str, bands: bool) -> None:
    measured, line = part[part.kind == "measured"], part[part.kind == "line"]
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
        mfc="white",
        label="derived step of the sweep" if bands else name,
        zorder=3,
        clip_on=False,
    )


def slopes(axis: Axes, table: pd.DataFrame) -> Axes:
    """Measured slopes with intervals, and under each the time to read its cache once."""
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
        axis.annotate(
            f"{row.limit_ratio:.3g}x",
            (middle, place),
            (0, 2),
            textcoords="offset points",
            ha="center",
            fontsize=7,
            color=QUIET,
        )
    plain_log_x(axis)
    axis.set_yticks(y, list(table.series), fontsize=8)
    axis.set_ylim(-0.8, len(table) - 0.2)
    axis.set_xlabel("us per token of context")
    legend_below(axis)
    return axis


def levers(panels: Sequence[Axes], table: pd.DataFrame) -> Sequence[Axes]:
    """What each lever is worth over context, one panel for each context axis."""
    colours = {
        "slope vanishes": BLUE,
        "slope as in the case beside": PURPLE,
        "drafter twice as good": ORANGE,
    }
    for axis, (name, rows) in zip(panels, table.groupby("axis", sort=False), strict=False):
        for i, (lever, part) in enumerate(rows.groupby("lever", sort=False)):
            axis.plot(
                part.context_tokens,
                part.gain,
                DASHES[i],
                color=colours[str(lever)],
                label=str(lever),
            )
        axis.set_xlabel(AXIS_NAMES[str(name)])
        axis.set_ylabel("factor on tok/s")
        linear_contexts(axis)
        axis.set_ylim(0, axis.get_ylim()[1] * 1.05)
    panels[0].legend(frameon=False, fontsize=8, loc="lower right")
    return panels


def extrapolations(axis: Axes, table: pd.DataFrame) -> Axes:
    """Three models that agree on the data and part beyond it."""
    ends = []
    for i, (kind, rows) in enumerate(table.groupby("kind", sort=False)):
        rows = rows[(rows.context_tokens >= 256) & (rows.step_ms > 0)]
        inside, outside = rows[rows.measured], rows[~rows.measured]
        colour = (BLUE, ORANGE, PURPLE)[i]
        axis.plot(inside.context_tokens, inside.step_ms, "-", color=colour, lw=2)
        axis.plot(outside.context_tokens, outside.step_ms, DASHES[i + 1], color=colour, lw=1.2)
        ends.append((float(outside.step_ms.iloc[-1]), str(kind), colour))
    edge = float(table[table.measured].context_tokens.max())
    axis.axvline(edge, color=INK, lw=0.8)
    axis.annotate(
        "data end here",
        (edge, 0.97),
        (-4, 0),
        xycoords=("data", "axes fraction"),
        textcoords="offset points",
        fontsize=8,
        ha="right",
        va="top",
    )
    positive = table[table.step_ms > 0]
    log2_contexts(axis, 256, float(table.context_tokens.max()))
    log_values(axis, 0.7 * float(positive.step_ms.min()), 1.5 * float(positive.step_ms.max()))
    label_ends(axis, ends)
    axis.set_xlabel("prompt (tokens)")
    axis.set_ylabel("step (ms)")
    return axis
