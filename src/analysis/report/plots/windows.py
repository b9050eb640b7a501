"""Plots of what a log says window by window: columns in, no table library needed."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import PurePath
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import FuncFormatter

from analysis.records.windows import Floats, Windows
from analysis.report.style import (
    COLOURS,
    GREY,
    INK,
    MARKERS,
    QUIET,
    SMALL,
    linear_contexts,
    log2_contexts,
)

NAMED = 12
"""Ranks, engines or slots that get a colour and marker of their own; the others are grey."""
MANY = 800
"""Points beyond which markers shrink and become pixels inside a drawing."""
WIDE = 4.0
"""Contexts that span more than this factor stand on a log2 axis."""
ROOM = 1.25
"""The vertical axis ends this far above the largest window that counts."""
UNITS = ((7200.0, 3600.0, "h"), (120.0, 60.0, "min"), (0.0, 1.0, "s"))
OTHERS = "others"
LINE = 16.0
"""Letters that an inch of a legend holds, the wide ones too."""
LONGEST = 60
"""Letters of a name that a picture shows."""


@dataclass(frozen=True)
class Group:
    """Windows of one source of one file, where they stand in time, and their look."""

    name: str
    rows: Windows
    x: Floats
    colour: Any
    marker: str


def groups(batches: Sequence[Windows]) -> tuple[list[Group], str]:
    """One group a source, with the same look in all pictures; and the words for their x axis."""
    times, words = _times(batches)
    found = []
    for batch, x in zip(batches, times, strict=True):
        for source in np.unique(batch.source):
            named = batch.sources[source] if source < len(batch.sources) else ""
            file = PurePath(batch.file).name if len(batches) > 1 else ""
            mine = batch.source == source
            found.append((f"{file} {named}".strip(), batch.rows(mine), x[mine]))
    looks = len(COLOURS)
    made = [
        Group(name, rows, x, COLOURS[i % looks], MARKERS[(i + i // looks) % len(MARKERS)])
        if i < NAMED
        else Group(OTHERS, rows, x, GREY, ".")
        for i, (name, rows, x) in enumerate(found)
    ]
    return made, words


def over_time(
    axis: Axes, batches: Sequence[Windows], column: str, label: str, median: float | None = None
) -> Axes:
    """One quantity of every window over the time that the log prints, or else over its lines."""
    known, words = groups(batches)
    top = _top(known, column)
    for group in known:
        _points(axis, group, group.x, column, top, _size(batches))
    if median is not None:
        axis.axhline(median, color=INK, lw=1, ls="--", zorder=1)
        axis.annotate(
            "median",
            (1, median),
            (4, 0),
            xycoords=("axes fraction", "data"),
            textcoords="offset points",
            va="center",
            fontsize=SMALL,
            annotation_clip=False,
        )
    axis.set_ylim(0, top)
    _horizontal(axis, np.concatenate([group.x for group in known]) if known else np.zeros(0))
    axis.set_xlabel(words)
    axis.set_ylabel(label)
    return axis


def over_context(
    axis: Axes,
    batches: Sequence[Windows],
    line: tuple[float, float] | None = None,
    span: tuple[float, float] | None = None,
) -> Axes:
    """The step of every window over its context, and ``line`` (ms, ms per token) over its span."""
    known, _ = groups(batches)
    top = _top(known, "step_ms")
    for group in known:
        _points(axis, group, group.rows.context_tokens, "step_ms", top, _size(batches))
    drawn = [g.rows.context_tokens[g.rows.step_ms > 0] for g in known]
    contexts = np.concatenate(drawn) if drawn else np.zeros(0)
    contexts = contexts[np.isfinite(contexts) & (contexts > 0)]
    if line is not None and span is not None:
        x = np.linspace(*span, 200)
        axis.plot(x, line[0] + line[1] * x, "-", color=INK, lw=1.4, zorder=4)
    axis.set_ylim(0, top)
    low, high = (float(contexts.min()), float(contexts.max())) if len(contexts) else (1.0, 1.0)
    if high > WIDE * low:
        log2_contexts(axis, low / 1.2, high * 1.2)
    else:
        linear_contexts(axis)
        axis.set_xlim(0, 1.12 * high)
        if high < 4000:
            axis.xaxis.set_major_formatter(FuncFormatter(lambda v, _: f"{v:,.0f}"))
    axis.set_xlabel("context of a running request (tokens)")
    axis.set_ylabel("step (ms)")
    return axis


def key(figure: Figure, batches: Sequence[Windows], columns: Sequence[str], line: str = "") -> None:
    """The legend under the figure: how a window counts, whose it is, what the line is."""
    known, _ = groups(batches)
    used = any(bool(group.rows.unflagged.any()) for group in known)
    flagged = any(not bool(group.rows.unflagged.all()) for group in known)
    several = len(known) > 1
    plain: dict[str, Any] = {"ls": "none", "color": QUIET if several else known[0].colour}
    entries = []
    if used:
        entries.append(Line2D([], [], marker="o", label="window that counts", **plain))
    if flagged:
        entries.append(Line2D([], [], marker="o", mfc="white", label="flagged: left out", **plain))
    if _beyond(known, columns):
        entries.append(
            Line2D([], [], marker="^", mfc="white", label="flagged, above the picture", **plain)
        )
    if line:
        entries.append(Line2D([], [], color=INK, lw=1.4, label=line))
    if several:
        named = {group.name or "unnamed": group for group in known}
        entries += [
            Line2D([], [], ls="none", marker=group.marker, color=group.colour, label=name)
            for name, group in named.items()
        ]
    legend(figure, entries)


def legend(figure: Figure, entries: Sequence[Line2D]) -> None:
    """A legend under the figure, in as many columns as its longest name leaves room for."""
    names = [cut(str(entry.get_label())) for entry in entries]
    fit = int(LINE * figure.get_figwidth() // (max(map(len, names)) + 8))
    ncols = max(1, min(3, fit, len(entries)))
    figure.legend(list(entries), names, loc="outside lower center", ncols=ncols)


def cut(name: str) -> str:
    """A name that fits into a picture."""
    return name if len(name) <= LONGEST else f"{name[: LONGEST - 1]}…"


def _times(batches: Sequence[Windows]) -> tuple[list[Floats], str]:
    """Where each window stands on a common axis: time if all batches tell it alike, else lines."""
    clocks = {batch.clock for batch in batches}
    times = [batch.time_s for batch in batches]
    known = np.concatenate(times) if times else np.zeros(0)
    known = known[np.isfinite(known)]
    total = sum(map(len, batches))
    if len(clocks) != 1 or clocks == {"none"} or 2 * len(known) <= total:
        return [batch.line.astype(np.float64) for batch in batches], "line of the log"
    zero = 0.0 if clocks == {"since start"} else float(known.min())
    span = float(known.max()) - zero
    _, unit, name = next(row for row in UNITS if span >= row[0])
    since = "the server's start" if clocks == {"since start"} else _moment(zero, *clocks)
    return [(time - zero) / unit for time in times], f"time since {since} ({name})"


def _moment(time_s: float, clock: str) -> str:
    form = "%Y-%m-%d %H:%M:%S" if clock == "date" else "%m-%d %H:%M:%S"
    try:
        return datetime.fromtimestamp(time_s, UTC).strftime(form)
    except (OverflowError, ValueError, OSError):
        return "the first window"


def _size(batches: Sequence[Windows]) -> int:
    return sum(map(len, batches))


def _top(known: Sequence[Group], column: str) -> float:
    """Above the largest window that counts; of all windows where none does."""
    values = [getattr(group.rows, column) for group in known]
    used = [v[group.rows.unflagged] for v, group in zip(values, known, strict=True)]
    for chosen in (used, values):
        every = np.concatenate(chosen) if chosen else np.zeros(0)
        every = every[np.isfinite(every) & (every > 0)]
        if len(every):
            return ROOM * float(every.max())
    return 1.0


def _beyond(known: Sequence[Group], columns: Sequence[str]) -> bool:
    return any(
        bool((getattr(g.rows, c)[~g.rows.unflagged] > _top(known, c)).any())
        for c in columns
        for g in known
    )


def _points(axis: Axes, group: Group, x: Floats, column: str, top: float, total: int) -> None:
    """Full where a window counts, hollow where not, a triangle at the edge where it is beyond."""
    y = getattr(group.rows, column)
    used, beyond = group.rows.unflagged, y > top
    many = total > MANY
    common: dict[str, Any] = {
        "ls": "none",
        "color": group.colour,
        "ms": 2.2 if many else 6 if total < 200 else 4,
        "alpha": 0.5 if many else 1,
        "rasterized": many,
    }
    hollow: dict[str, Any] = {"mfc": "none" if many else "white", "mew": 0.5 if many else 1.2}
    axis.plot(x[~used], y[~used], group.marker, **common, **hollow, zorder=2)
    axis.plot(x[used], y[used], group.marker, mew=0 if many else 0.6, **common, zorder=3)
    beyond &= ~used
    edge = np.full(int(beyond.sum()), 0.97 * top)
    axis.plot(x[beyond], edge, "^", **common, **hollow, zorder=2)


def _horizontal(axis: Axes, x: Floats) -> None:
    known = x[np.isfinite(x)]
    if not len(known):
        axis.set_xlim(0, 1)
        return
    low, high = float(known.min()), float(known.max())
    room = 0.03 * (high - low) or 1.0
    axis.set_xlim(low - room, high + room)
    if low == high:
        axis.set_xticks([low])
    else:
        axis.locator_params(axis="x", nbins=7)
    axis.xaxis.set_major_formatter(FuncFormatter(lambda v, _: f"{v:,.6g}"))
