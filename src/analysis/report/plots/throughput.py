"""The picture that carries a case: throughput over context, read against equal commit."""

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
    TEXT,
    bar_over,
    label_ends,
    linear_contexts,
    log2_contexts,
    log_values,
    note,
)


def throughput_map(axis: Axes, table: pd.DataFrame) -> Axes:
    """Measured points solid, lines of equal commit thin and behind, plain decoding apart."""
    kinds: dict[str, pd.DataFrame] = {str(k): rows for k, rows in table.groupby("kind", sort=False)}
    positive = table[table.context_tokens > 0]
    right = float(positive.context_tokens.max())
    shown = table[table.kind.isin(["sweep", "two-point", "observation", "plain"])]
    account = "observation" in kinds
    if account:
        log2_contexts(axis, 0.8 * max(32.0, float(positive.context_tokens.min())), right * 1.02)
        log_values(axis, 0.36 * float(shown.tok_per_s.min()), 1.6 * float(shown.tok_per_s.max()))
    else:
        linear_contexts(axis)
        axis.set_xlim(-0.02 * right, 1.02 * right)
        axis.set_ylim(0.8 * float(shown.tok_per_s.min()), 1.06 * float(shown.tok_per_s.max()))
    ends: list[tuple[float, str, Any]] = []
    for kind, colour, width, dash in (
        ("iso", "#a0a0a0", 0.9, "--"),
        ("observed-commit", RED, 2.0, "-"),
        ("plain-line", PURPLE, 1.4, "-."),
    ):
        for name, rows in kinds.get(kind, table.head(0)).groupby("series", sort=False):
            axis.plot(rows.context_tokens, rows.tok_per_s, dash, color=colour, lw=width, zorder=1)
            last = float(rows.tok_per_s.iloc[-1])
            low, high = axis.get_ylim()
            if low < last < high:
                ends.append((last, str(name), QUIET if kind == "iso" else colour))
    if account:
        _sweep_with_commits(axis, kinds["sweep"])
    else:
        _sweep_by_series(axis, kinds["sweep"], ends)
    _other_points(axis, kinds)
    label_ends(axis, ends)
    mean = account or "axis" in table
    axis.set_xlabel("mean context while decoding (tokens)" if mean else "prompt (tokens)")
    axis.set_ylabel("throughput of one stream (tok/s)")
    return axis


def _sweep_with_commits(axis: Axes, rows: pd.DataFrame) -> None:
    axis.plot(
        rows.context_tokens,
        rows.tok_per_s,
        MARKERS[0],
        color=BLUE,
        zorder=4,
        label="sweep, with its commit length",
    )
    for row in rows.itertuples():
        note(
            axis,
            f"{row.commit_length:g}",
            (row.context_tokens, row.tok_per_s),
            xytext=(6, 4),
            color=TEXT[BLUE],
        )


def _sweep_by_series(axis: Axes, rows: pd.DataFrame, ends: list[tuple[float, str, Any]]) -> None:
    for i, (name, points) in enumerate(rows.groupby("series", sort=False)):
        colour = COLOURS[i % len(COLOURS)]
        known = points.commit_length.notna().all()
        axis.plot(
            points.context_tokens,
            points.tok_per_s,
            MARKERS[i % len(MARKERS)],
            color=colour,
            zorder=4,
            ls=DASHES[0] if known else DASHES[2],
            lw=1,
            mfc=colour if known else "white",
        )
        ends.append((float(points.tok_per_s.iloc[-1]), str(name), colour))


def _other_points(axis: Axes, kinds: dict[str, pd.DataFrame]) -> None:
    if "two-point" in kinds:
        rows = kinds["two-point"]
        unknown = rows.commit_length.isna().any()
        axis.plot(
            rows.context_tokens,
            rows.tok_per_s,
            MARKERS[1],
            color=ORANGE,
            mfc="white",
            zorder=4,
            label="two-point decode" + (", commit unknown" if unknown else ""),
        )
    for row in kinds.get("plain", pd.DataFrame()).itertuples():
        axis.errorbar(
            [row.context_tokens],
            [row.tok_per_s],
            yerr=[[row.tok_per_s - row.low], [row.high - row.tok_per_s]],
            fmt=MARKERS[2],
            color=PURPLE,
            capsize=3,
            zorder=4,
            label=f"{row.series}, published range",
        )
    for row in kinds.get("observation", pd.DataFrame()).itertuples():
        label = "the observation, over the contexts given for it"
        bar_over(axis, (row.low, row.high), row.tok_per_s, INK, label)
    if axis.get_legend_handles_labels()[0]:
        axis.legend(loc="lower left")
