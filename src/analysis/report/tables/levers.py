"""Tables of the levers: ranking, turns, pairs, and gains over the context."""

import numpy as np
import pandas as pd

from analysis.findings.levers import Levers

CURVES = ("speculation", "drafter", "slope", "intercept", "layout")


def ranking(found: Levers) -> pd.DataFrame:
    """Every lever at the chapter's context, beside the shortest and the longest measured."""
    low, high = found.series.line(found.axis).fit.x_range
    return pd.DataFrame(
        [
            {
                "lever": row.lever.name,
                "gain_here": row.worth.gain,
                "gain_bounds": row.worth.bounds,
                "bounds": row.lever.bounds_are,
                "basis": row.lever.basis,
                "gain_short": row.lever.worth(low).gain,
                "gain_long": row.lever.worth(high).gain,
                "lever_note": row.lever.note,
            }
            for row in found.ranked
        ]
    )


def turns(found: Levers) -> pd.DataFrame:
    """Where leading levers change places."""
    return pd.DataFrame(
        [
            {
                "better_below": turn.below,
                "better_above": turn.above,
                "context_tokens": turn.context_tokens,
                "turn_ci95": turn.interval95,
                "turn_inside": turn.inside,
            }
            for turn in found.turns
        ]
    )


def together(found: Levers) -> pd.DataFrame:
    """Pairs of levers, and the product that one would expect of them."""
    return pd.DataFrame(
        [
            {"pair": pair.names, "gain_pair": pair.gain, "gain_product": pair.product}
            for pair in found.together
        ]
    )


def over_context(found: Levers) -> pd.DataFrame:
    """Gain with its bounds over the measured contexts: the best lever of each kind, somewhere."""
    low, high = found.series.line(found.axis).fit.x_range
    contexts = np.linspace(low, max(high, found.context_tokens), 41)
    shown: dict[str, None] = {}
    for context in (found.context_tokens, low, high):
        kinds: set[str] = set()
        for row in found.at(float(context)):
            if row.lever.kind in CURVES and row.lever.kind not in kinds:
                kinds.add(row.lever.kind)
                shown[row.lever.name] = None
    rows = []
    for lever in found.all:
        if lever.name not in shown:
            continue
        for context in contexts:
            worth = lever.worth(float(context))
            bounds = worth.bounds or (None, None)
            rows.append(
                {
                    "lever": lever.name,
                    "context_tokens": float(context),
                    "gain": worth.gain,
                    "low": bounds[0],
                    "high": bounds[1],
                    "axis": found.axis,
                }
            )
    return pd.DataFrame(rows)
