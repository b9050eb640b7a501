"""What speculation must commit, what it commits and what its block can commit."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from analysis.records.windows import Floats
from analysis.report.plots.split import interval_bar, named_rows
from analysis.report.plots.windows import WIDE, legend
from analysis.report.style import COLOURS, MARKERS, QUIET, linear_contexts, log2_contexts

APART = 1.05
"""By which factor of context series are set apart on a log axis."""


@dataclass(frozen=True)
class Needed:
    """What one series must commit and what it commits, over context; undefined is NaN."""

    name: str
    context_tokens: Floats
    needed: Floats
    low: Floats
    high: Floats
    commit: Floats
    block: Floats


def needed_over_context(axis: Axes, series: Sequence[Needed]) -> Axes:
    """Break-even hollow on a dashed line, commit full, the block as a dotted ceiling."""
    top = _ceiling(series)
    contexts = np.concatenate([one.context_tokens for one in series])
    low, high = float(contexts.min()), float(contexts.max())
    wide = low > 0 and high > WIDE * low
    for place, one in enumerate(series):
        marker = MARKERS[place % len(MARKERS)]
        look: dict[str, Any] = {"color": COLOURS[place % len(COLOURS)], "marker": marker}
        aside = place - (len(series) - 1) / 2  # series at the same contexts would hide each other
        x = one.context_tokens * (APART**aside if wide else 1)
        known = np.isfinite(one.low) & np.isfinite(one.high)
        axis.vlines(x[known], one.low[known], one.high[known], color=look["color"], lw=1.2)
        axis.plot(x, one.needed, ls="--", lw=1.2, mfc="white", **look, zorder=3)
        axis.plot(x, one.commit, ls="none", **look, zorder=4)
        axis.plot(x, np.where(one.block <= top, one.block, np.nan), ":", color=QUIET, zorder=1)
    if wide:
        log2_contexts(axis, low / 1.2, 1.2 * high)
    else:
        linear_contexts(axis)
        axis.set_xlim(0, 1.12 * high)
    axis.set_ylim(0, 1.1 * top)
    axis.set_xlabel("mean context while decoding (tokens)")
    axis.set_ylabel("tokens per step")
    return axis


def needed_by_row(axis: Axes, series: Sequence[Needed]) -> Axes:
    """The same where there is no context to draw over: a row a series, values at the right."""
    top = _ceiling(series)
    texts = []
    for place, one in enumerate(series):
        needed, commit, block = float(one.needed[0]), float(one.commit[0]), float(one.block[0])
        if np.isfinite(block) and block <= top:
            axis.plot([block] * 2, [place - 0.3, place + 0.3], ":", color=QUIET, lw=2.5)
        if np.isfinite(commit):
            axis.plot([needed, commit], [place] * 2, "-", color=COLOURS[4], lw=1, zorder=1)
            axis.plot([commit], [place], "o", color=COLOURS[0], ms=8, zorder=4)
        if np.isfinite(one.low[0]) and np.isfinite(one.high[0]):
            interval_bar(axis, (float(one.low[0]), float(one.high[0])), place)
        axis.plot([needed], [place], "D", color=COLOURS[1], mfc="white", mew=1.6, zorder=4)
        texts.append("" if np.isnan(commit) else f"× {commit / needed:.3g}")
    named_rows(axis, [one.name for one in series], texts)
    axis.set_xlim(0, 1.1 * top)
    axis.set_xlabel("tokens per step")
    return axis


def needed_key(figure: Figure, series: Sequence[Needed], over_context: bool) -> None:
    """The legend of both: what hollow, full and dotted mean, and whose they are."""
    colours: tuple[Any, Any] = (QUIET, QUIET) if over_context else (COLOURS[1], COLOURS[0])
    shape = "o" if over_context else "D"
    entries = [
        Line2D(
            [],
            [],
            ls="--" if over_context else "none",
            marker=shape,
            mfc="white",
            color=colours[0],
            label="break-even",
        )
    ]
    if any(bool(np.isfinite(one.commit).any()) for one in series):
        entries.append(
            Line2D([], [], ls="none", marker="o", color=colours[1], label="commit observed")
        )
    if any(bool((one.block <= _ceiling(series)).any()) for one in series):
        entries.append(Line2D([], [], ls=":", color=QUIET, label="most that the block can commit"))
    if over_context and len(series) > 1:
        entries += [
            Line2D(
                [],
                [],
                ls="none",
                marker=MARKERS[place % len(MARKERS)],
                color=COLOURS[place % len(COLOURS)],
                label=one.name,
            )
            for place, one in enumerate(series)
        ]
    legend(figure, entries)


def _ceiling(series: Sequence[Needed]) -> float:
    """Room for all but a block that is so large that it would press the rest to the floor."""
    values = [v for s in series for v in (s.needed, s.high, s.commit)]
    known = np.concatenate(values)
    top = 1.1 * float(np.nanmax(known))
    blocks = np.concatenate([s.block for s in series])
    near = blocks[np.isfinite(blocks) & (blocks <= 3 * top)]
    return max(top, float(near.max())) if len(near) else top
