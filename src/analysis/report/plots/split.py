"""Throughput as commit over step, on axes where equal lengths are equal factors."""

from collections.abc import Sequence
from dataclasses import dataclass
from math import log10
from textwrap import fill

import numpy as np
from matplotlib.axes import Axes
from matplotlib.ticker import FixedLocator, FuncFormatter, MaxNLocator, NullLocator

from analysis.records.windows import Floats
from analysis.report.plots.windows import MANY, cut
from analysis.report.style import (
    COLOURS,
    INK,
    MARKERS,
    QUIET,
    SMALL,
    linear_contexts,
    log2_contexts,
)


@dataclass(frozen=True)
class Stage:
    """One row of the split: from ``start`` to ``end`` tokens/s, with words at both sides."""

    name: str
    text: str
    start: float
    end: float
    low: float | None = None
    high: float | None = None


@dataclass(frozen=True)
class Ratio:
    """One row of a comparison: a factor on throughput, with its 95 % interval where known."""

    name: str
    text: str
    value: float
    low: float | None = None
    high: float | None = None


def waterfall(axis: Axes, stages: Sequence[Stage]) -> Axes:
    """Factors from steps per second to throughput, one a row; a stage that ends where it starts
    is a point.
    """
    ends = [v for s in stages for v in (s.start, s.end, s.low, s.high) if v is not None]
    low, high = min(ends), max(ends)
    room = max(0.12 * log10(high / low), 0.06)
    for row, stage in enumerate(stages):
        colour = COLOURS[0] if stage.start == stage.end else COLOURS[1]
        if stage.start != stage.end:
            axis.plot(
                [stage.start, stage.end], [row, row], "-", color=colour, lw=9, solid_capstyle="butt"
            )
        else:
            axis.plot([stage.end], [row], "o", color=colour, ms=8, zorder=4)
        if stage.low is not None and stage.high is not None:
            interval_bar(axis, (stage.low, stage.high), row)
        if row + 1 < len(stages):
            axis.plot([stage.end] * 2, [row, row + 1], ":", color=QUIET, lw=1, zorder=1)
    named_rows(axis, [stage.name for stage in stages], [stage.text for stage in stages])
    _log(axis, low / 10**room, high * 10**room)
    axis.set_xlabel("per second, on a log axis: equal lengths are equal factors")
    return axis


def ratios(axis: Axes, rows: Sequence[Ratio]) -> Axes:
    """Bars from 1 on a log axis, with intervals, and the value of each at the right."""
    ends = [v for r in rows for v in (1.0, r.value, r.low, r.high) if v is not None and v > 0]
    reach = max(max(abs(log10(v)) for v in ends), log10(1.05))
    for place, row in enumerate(rows):
        colour = COLOURS[place % len(COLOURS)]
        axis.plot([1, row.value], [place] * 2, "-", color=colour, lw=11, solid_capstyle="butt")
        axis.plot([row.value], [place], "o", color=INK, ms=4, zorder=4)
        if row.low is not None and row.high is not None:
            interval_bar(axis, (row.low, row.high), place)
    axis.axvline(1, color=INK, lw=1.2, zorder=1)
    named_rows(axis, [row.name for row in rows], [row.text for row in rows])
    _log(axis, 10 ** (-1.12 * reach), 10 ** (1.12 * reach))
    axis.set_xlabel("factor on throughput, on a log axis; 1 is no change")
    return axis


@dataclass(frozen=True)
class Values:
    """Observations of one side: a quantity over context; undefined is NaN."""

    name: str
    context_tokens: Floats
    values: Floats


def two_sides(axis: Axes, sides: Sequence[Values], label: str) -> Axes:
    """A quantity on both sides over context; side by side where a context is not known."""
    contexts = np.concatenate([side.context_tokens for side in sides])
    known = bool(np.isfinite(contexts).all()) and bool((contexts > 0).all())
    for place, side in enumerate(sides):
        n = len(side.values)
        x = side.context_tokens if known else place + np.linspace(-0.2, 0.2, n) * (n > 1)
        axis.plot(
            x,
            side.values,
            MARKERS[place],
            color=COLOURS[place],
            mfc="none" if place else COLOURS[place],
            alpha=0.8 if n < MANY else 0.4,
            ms=5 if n < MANY else 2.2,
            rasterized=n >= MANY,
            label=side.name,
        )
    if known and float(contexts.max()) > 4 * float(contexts.min()):
        log2_contexts(axis, float(contexts.min()) / 1.2, 1.2 * float(contexts.max()))
    elif known:
        linear_contexts(axis)
        axis.set_xlim(0, 1.12 * float(contexts.max()))
    else:
        axis.set_xlim(-0.5, 1.5)
        axis.set_xticks(range(len(sides)), [side.name for side in sides])
    axis.set_xlabel("context (tokens)" if known else "")
    axis.set_title(label)
    every = np.concatenate([side.values for side in sides])
    axis.set_ylim(0, 1.15 * float(np.nanmax(every)) if np.isfinite(every).any() else 1)
    return axis


def interval_bar(axis: Axes, ends: tuple[float, float], row: float) -> None:
    """A 95 % confidence interval on a row."""
    axis.plot(ends, [row] * 2, "-", color=INK, lw=1.4, marker="|", ms=9, zorder=5)


def named_rows(axis: Axes, names: Sequence[str], texts: Sequence[str]) -> None:
    """Names at the left, values at the right, the first row on top."""
    axis.set_ylim(len(names) - 0.45, -0.55)
    axis.set_yticks(range(len(names)), [fill(cut(name), 30) for name in names], color=INK)
    axis.tick_params(axis="y", length=0)
    axis.spines["left"].set_visible(False)
    right = axis.secondary_yaxis("right")
    right.set_yticks(range(len(texts)), texts, color=INK, fontsize=SMALL + 1)
    right.tick_params(axis="y", length=0)
    right.spines["right"].set_visible(False)


def _log(axis: Axes, low: float, high: float) -> None:
    axis.set_xscale("log")
    axis.set_xlim(low, high)
    for steps in ((1,), (1, 2, 5), (1, 1.5, 2, 3, 4, 5, 7)):
        ticks = [m * 10.0**k for k in range(-6, 8) for m in steps if low <= m * 10.0**k <= high]
        if len(ticks) >= 3:
            break
    else:
        even = MaxNLocator(5, steps=[1, 2, 5, 10]).tick_values(low, high)
        ticks = [float(tick) for tick in even if low <= tick <= high]
    axis.xaxis.set_major_locator(FixedLocator(ticks))
    axis.xaxis.set_minor_locator(NullLocator())
    axis.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,g}"))
    axis.grid(axis="x", zorder=0)
