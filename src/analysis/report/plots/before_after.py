"""A comparison, drawn from the tables that are kept beside its figures."""

from collections.abc import Sequence

import pandas as pd
from matplotlib.axes import Axes

from analysis.report.columns import readable
from analysis.report.plots.split import Ratio, Values, ratios, two_sides


def factors(axis: Axes, table: pd.DataFrame) -> Axes:
    """Throughput, commit and step as bars from 1 on a log axis."""
    rows = []
    for row in table.astype(object).to_dict("records"):
        known = isinstance(row["ratio_ci95"], tuple | list)
        low, high = row["ratio_ci95"] if known else (None, None)
        interval = f" ({readable(row['ratio_ci95'], '{:.3g}')})" if known else ""
        text = f"× {row['ratio']:.3g}{interval}"
        rows.append(Ratio(str(row["factor"]), text, float(row["ratio"]), low, high))
    return ratios(axis, rows)


def sides(axes: Sequence[Axes], table: pd.DataFrame) -> Sequence[Axes]:
    """Step and commit of both sides over context."""
    for axis, column, label in (
        (axes[0], "step_ms", "step (ms)"),
        (axes[1], "commit_length", "commit (tokens/step)"),
    ):
        two_sides(
            axis,
            [
                Values(
                    str(name),
                    rows["context_tokens"].astype(float).to_numpy(),
                    rows[column].astype(float).to_numpy(),
                )
                for name, rows in table.groupby("side", sort=False)
            ],
            label,
        )
    axes[0].legend(loc="upper left")
    return axes
