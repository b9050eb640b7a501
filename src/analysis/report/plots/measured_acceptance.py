"""Plot of commit length, step and throughput by text."""

from collections.abc import Sequence

import pandas as pd
from matplotlib.axes import Axes

from analysis.report.style import COLOURS, MARKERS, RED, SMALL, legend_below

PANELS = (
    ("commit_length", "commit (tokens/step)"),
    ("step_ms", "step (ms)"),
    ("tok_per_s", "throughput (tok/s)"),
)
APART = 0.22
"""Distance between the series of one text."""


def by_text(axes: Sequence[Axes], table: pd.DataFrame) -> Sequence[Axes]:
    """One row a text: every request small, the median large, break-even as a bar."""
    texts = list(dict.fromkeys(table.text))
    names = list(dict.fromkeys(table.series))
    for axis, (column, label) in zip(axes, PANELS, strict=True):
        for i, (name, rows) in enumerate(table.groupby("series", sort=False)):
            shift = APART * (i - (len(names) - 1) / 2)
            shown = rows.assign(y=[texts.index(text) + shift for text in rows.text])
            requests, medians = shown[shown.kind == "request"], shown[shown.kind == "median"]
            colour, marker = COLOURS[i % len(COLOURS)], MARKERS[i % len(MARKERS)]
            axis.plot(requests[column], requests.y, marker, color=colour, ms=3, alpha=0.6, mew=0)
            axis.plot(
                medians[column],
                medians.y,
                marker,
                color=colour,
                mfc="none",
                zorder=3,
                label=f"{name}, median",
            )
            even = medians[medians.break_even.notna()]
            if column == "commit_length" and len(even):
                axis.plot(even.break_even, even.y, "|", color=RED, ms=14, mew=2, label="break-even")
        known = table[column].dropna()
        axis.set_xlim(0, 1.12 * float(known.max()) if len(known) else 1)
        axis.set_title(label)
        axis.set_ylim(len(texts) - 0.5, -0.5)
        axis.set_yticks(range(len(texts)), texts if axis is axes[0] else [], fontsize=SMALL)
        axis.grid(axis="y")
    legend_below(axes[0], 3)
    return axes
