"""Plots of the context sweep and of the two-point decode."""

from collections.abc import Sequence

import pandas as pd
import seaborn as sns
from matplotlib.axes import Axes

from analysis.report.style import (
    BLUE,
    COLOURS,
    GREY,
    MARKERS,
    ORANGE,
    QUIET,
    SMALL,
    legend_below,
    linear_contexts,
)


def sweep_panels(axes: Sequence[Axes], table: pd.DataFrame) -> Sequence[Axes]:
    """Throughput, commit and step over prompt length, side by side; derived values hollow."""
    kind = "measured" if "step_kind" in table else "derived"
    names = list(dict.fromkeys(table.series))
    palette = {name: COLOURS[i % len(COLOURS)] for i, name in enumerate(names)}
    markers = {name: MARKERS[i % len(MARKERS)] for i, name in enumerate(names)}
    for axis, (column, label) in zip(
        axes,
        (
            ("tok_per_s", "throughput (tok/s)"),
            ("commit_length", "commit (tokens/step)"),
            ("step_ms", f"step (ms), {kind}"),
        ),
        strict=True,
    ):
        known = table[table[column].notna()] if column in table else table.head(0)
        sns.lineplot(
            data=known,
            x="prompt_tokens",
            y=column,
            hue="series",
            style="series",
            palette=palette,
            markers=markers,
            dashes=False,
            linewidth=0.8,
            estimator=None,
            ax=axis,
            legend=axis is axes[0] and len(names) > 1,
        )
        for line in axis.lines:
            line.set_markeredgecolor(line.get_color())
            hollow = column == "step_ms" and kind == "derived"
            line.set_markerfacecolor("white" if hollow else line.get_color())
        without = [name for name in names if name not in set(known.series)]
        if without:
            axis.annotate(
                "not known for\n" + "\n".join(without),
                (0.05, 0.04),
                xycoords="axes fraction",
                fontsize=SMALL,
                color=QUIET,
            )
        axis.set_title(label)
        axis.set_ylabel("")
        axis.set_xlabel("prompt (tokens)")
        axis.set_ylim(0, 1.15 * axis.get_ylim()[1])
        linear_contexts(axis)
        axis.set_xlim(-0.05 * table.prompt_tokens.max(), 1.08 * table.prompt_tokens.max())
    if len(names) > 1:
        legend_below(axes[0], 3)
    return axes


def needed_commits(axis: Axes, table: pd.DataFrame) -> Axes:
    """Commit that the two-point throughputs need, on both axes, beside the sweep's own."""
    x = table.context_tokens
    axis.vlines(x, table.needed_mean, table.needed_prompt, color=ORANGE, lw=4, alpha=0.35)
    axis.plot(
        x,
        table.needed_prompt,
        MARKERS[1],
        color=ORANGE,
        label="needed, steps of the prompt-axis fit",
    )
    axis.plot(
        x,
        table.needed_mean,
        MARKERS[1],
        color=ORANGE,
        mfc="white",
        label="needed, steps of the mean-axis fit",
    )
    axis.plot(x, table.sweep_commit, MARKERS[0], color=BLUE, label="committed in the sweep there")
    axis.plot(x, table.sweep_commit, "-", color=GREY, lw=0.8, zorder=0)
    axis.set_ylim(0, 1.15 * float(table.needed_prompt.max()))
    linear_contexts(axis)
    axis.set_xlim(-120, 1.05 * float(x.max()))
    axis.set_xlabel("context of the two-point decode (tokens)")
    axis.set_ylabel("commit (tokens/step)")
    axis.legend(loc="lower right")
    return axis


def two_point_steps(axis: Axes, table: pd.DataFrame) -> Axes:
    """Steps of the two-point decode as diamonds, on the sweep's line and prediction interval."""
    for i, (name, rows) in enumerate(table.groupby("series", sort=False)):
        rows = rows.sort_values("context_tokens")
        colour = COLOURS[i % len(COLOURS)]
        axis.plot(rows.context_tokens, rows.sweep_step_ms, "-", color=colour, lw=1)
        axis.fill_between(rows.context_tokens, rows.low, rows.high, color=colour, alpha=0.2, lw=0)
        axis.plot(
            rows.context_tokens,
            rows.step_ms,
            MARKERS[1],
            color=colour,
            mfc="white",
            label=str(name),
            zorder=3,
        )
    axis.set_ylim(0, 1.15 * float(table[["step_ms", "high"]].max().max()))
    linear_contexts(axis)
    axis.set_xlim(right=1.08 * float(table.context_tokens.max()))
    axis.set_xlabel("context of the two-point decode (tokens)")
    axis.set_ylabel("step (ms)")
    legend_below(axis)
    return axis


def own_break_even(axis: Axes, table: pd.DataFrame) -> Axes:
    """Commit length of every speculating cell, and the break-even that it has to exceed."""
    for i, (name, rows) in enumerate(table.groupby("series", sort=False)):
        rows = rows.sort_values("context_tokens")
        colour = COLOURS[i % len(COLOURS)]
        axis.plot(
            rows.context_tokens,
            rows.commit_length,
            f"{MARKERS[i % len(MARKERS)]}-",
            color=colour,
            lw=0.8,
            label=f"{name}: commit",
        )
        axis.plot(
            rows.context_tokens,
            rows.own_break_even,
            "--",
            color=colour,
            label=f"{name}: break-even with its own plain decoding",
        )
    axis.set_ylim(0, 1.1 * axis.get_ylim()[1])
    linear_contexts(axis)
    axis.set_xlim(right=1.08 * float(table.context_tokens.max()))
    axis.set_xlabel("mean context while decoding (tokens)")
    axis.set_ylabel("commit (tokens/step)")
    legend_below(axis, 1)
    return axis
