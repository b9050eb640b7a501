"""One look for all figures: safe for every kind of colour vision, legible in grey."""

from math import log10
from typing import Any

import matplotlib as mpl
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patheffects import withStroke
from matplotlib.ticker import FixedLocator, FuncFormatter, NullLocator

COLOURS = mpl.color_sequences["petroff6"]
BLUE, ORANGE, RED, PURPLE, GREY, VIOLET = COLOURS
INK = "#222222"
QUIET = "#5f5f5f"
TEXT = dict(
    zip(
        COLOURS,
        ("#2b5fc7", "#955600", "#c01524", "#7d3a73", "#62626a", "#6a14c9"),
        strict=True,
    )
)
"""A darker tone of each colour: text needs more contrast with white than a line does."""
MARKERS = ("o", "D", "s", "^", "v", "P")
DASHES = ("-", "--", ":", "-.")

RC: dict[Any, Any] = {
    "axes.edgecolor": QUIET,
    "axes.labelcolor": INK,
    "axes.spines.right": False,
    "axes.spines.top": False,
    "axes.titlelocation": "left",
    "axes.titlesize": 10,
    "axes.titlepad": 8,
    "figure.constrained_layout.use": True,
    "figure.dpi": 150,
    "font.family": "DejaVu Sans",
    "font.size": 10,
    "grid.color": "#dddddd",
    "grid.linewidth": 0.6,
    "legend.fontsize": 9,
    "legend.frameon": False,
    "lines.linewidth": 1.6,
    "lines.markersize": 6,
    "savefig.dpi": 150,
    "savefig.facecolor": "white",
    "svg.fonttype": "path",
    "svg.hashsalt": "speculative-decoding-report",
    "text.color": INK,
    "xtick.color": QUIET,
    "ytick.color": QUIET,
}

SMALL = 9
"""Points: the smallest text in a figure, still read at the width of a text column."""

WIDTH = 7.2
"""Inches: a document column at full size, half a slide."""


def new_figure(width: float = WIDTH, height: float = 4.0) -> Figure:
    """An empty figure in this style, without pyplot's global state."""
    return Figure(figsize=(width, height), layout="constrained")


def short_tokens(value: float, _: object = None) -> str:
    """Tokens as people say them: 512, 2k, 128k (1k = 1024 where it is a power of two)."""
    if value >= 1024 and value % 1024 == 0:
        return f"{value / 1024:g}k"
    if value >= 1000 and value % 1000 == 0:
        return f"{value / 1000:g}k"
    return f"{value:g}"


def log2_contexts(axis: Axes, low: float, high: float) -> None:
    """A log2 context axis with ticks at powers of two, not exponents."""
    axis.set_xscale("log", base=2)
    axis.set_xlim(low, high)
    ticks = [2.0**k for k in range(4, 21) if low <= 2.0**k <= high]
    axis.xaxis.set_major_locator(FixedLocator(ticks[:: max(1, (len(ticks) + 6) // 7)]))
    axis.xaxis.set_minor_locator(NullLocator())
    axis.xaxis.set_major_formatter(FuncFormatter(short_tokens))


def linear_contexts(axis: Axes) -> None:
    """A linear context axis from zero, in thousands of tokens."""
    axis.set_xlim(left=0)
    axis.locator_params(axis="x", nbins=5)
    axis.xaxis.set_major_formatter(FuncFormatter(lambda v, _: f"{v / 1000:g}k" if v else "0"))


def legend_below(axis: Axes, columns: int = 2) -> None:
    """A legend under the whole figure, where it hides nothing and the layout keeps it inside."""
    handles, labels = axis.get_legend_handles_labels()
    own = axis.get_legend()
    if own is not None:
        own.remove()
    axis.figure.legend(handles, labels, loc="outside lower center", ncols=columns)


def log_values(axis: Axes, low: float, high: float) -> None:
    """A log y axis with plain numbers at 1, 2, 5 of each decade, or closer in a short range."""
    axis.set_yscale("log")
    axis.set_ylim(low, high)
    for steps in ((1, 2, 5), (1, 1.5, 2, 3, 4, 5, 7)):
        ticks = [m * 10.0**k for k in range(-6, 7) for m in steps if low <= m * 10.0**k <= high]
        if len(ticks) >= 4:
            break
    axis.yaxis.set_major_locator(FixedLocator(ticks))
    axis.yaxis.set_minor_locator(NullLocator())
    axis.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,g}"))


def plain_log_x(axis: Axes) -> None:
    """A log x axis with plain numbers at whole decades."""
    axis.set_xscale("log")
    axis.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    axis.xaxis.set_minor_locator(NullLocator())


def spread(wanted: list[float], gap: float) -> list[float]:
    """Positions near ``wanted`` that keep at least ``gap`` apart, in the same order."""
    order = sorted(range(len(wanted)), key=lambda i: wanted[i])
    placed = [wanted[i] for i in order]
    for _ in range(200):
        moved = False
        for i in range(len(placed) - 1):
            short = gap - (placed[i + 1] - placed[i])
            if short > 1e-9:
                placed[i] -= short / 2
                placed[i + 1] += short / 2
                moved = True
        if not moved:
            break
    result = [0.0] * len(wanted)
    for position, index in zip(placed, order, strict=True):
        result[index] = position
    return result


def label_ends(axis: Axes, ends: list[tuple[float, str, Any]]) -> None:
    """Direct labels at the right end, pushed apart where they would touch."""
    low, high = axis.get_ylim()
    log = axis.get_yscale() == "log"
    gap = 0.055 * (log10(high / low) if log else high - low)
    wanted = [log10(end[0]) if log else end[0] for end in ends]
    right = axis.get_xlim()[1]
    for place, (_, name, colour) in zip(spread(wanted, gap), ends, strict=True):
        axis.annotate(
            name,
            (right, 10**place if log else place),
            (5, 0),
            textcoords="offset points",
            va="center",
            color=TEXT.get(colour, colour),
            fontsize=SMALL,
            annotation_clip=False,
        )


def bar_over(axis: Axes, span: tuple[float, float], value: float, colour: Any, label: str) -> None:
    """A value that holds somewhere in a span of contexts; a tick where the span is one context."""
    axis.plot(
        span,
        [value] * 2,
        marker="|",
        ms=12,
        color=colour,
        lw=5,
        solid_capstyle="butt",
        zorder=5,
        label=label,
    )


def note(axis: Axes, text: str, at: tuple[float, float], **where: Any) -> None:
    """A word on the plot, with a white edge, so that a line behind it does not cut it."""
    given: dict[str, Any] = {"fontsize": SMALL, "textcoords": "offset points", "zorder": 6, **where}
    made = axis.annotate(text, at, **given)
    made.set_path_effects([withStroke(linewidth=3, foreground="white")])
