"""Tables of the sweep and of the two-point decode."""

import pandas as pd

from analysis.findings.sweep import Sweep
from analysis.findings.two_point import TwoPoints


def sweep_points(found: Sweep) -> pd.DataFrame:
    """Every row of the sweep with its derived step."""
    return pd.DataFrame(
        [
            {
                "series": p.series,
                "repeat": p.repeat or None,
                "prompt_tokens": p.prompt_tokens,
                "context_tokens": p.context_tokens,
                "tok_per_s": p.tok_per_s,
                "commit_length": p.commit_length,
                "commit_kind": p.commit_kind,
                "step_ms": p.step_ms,
            }
            for p in found.points
        ]
    ).dropna(axis="columns", how="all")


def first_repeat(found: Sweep) -> pd.DataFrame:
    """For drawing: the rows of the first repeat alone, so that series do not cover each other."""
    table = sweep_points(found)
    return table[table.repeat == table.repeat.iloc[0]] if "repeat" in table else table


def break_even_points(found: Sweep) -> pd.DataFrame:
    """Commit that each point of the first series would need to match plain decoding."""
    return pd.DataFrame(
        [
            {
                "series": p.series,
                "prompt_tokens": p.prompt_tokens,
                "commit_length": p.commit_length,
                "step_ms": p.step_ms,
                "break_even": (p.break_even_low, p.break_even_high),
            }
            for p in found.main
        ]
    )


def needed_commits(found: TwoPoints) -> pd.DataFrame:
    """What the two-point throughputs need, beside what the sweep committed."""
    return pd.DataFrame(
        [
            {
                "context_tokens": p.context_tokens,
                "tok_per_s": p.tok_per_s,
                "token_ms": p.token_ms,
                "sweep_commit": p.sweep_commit,
                "needed_prompt": p.needed_on_prompt_axis,
                "needed_mean": p.needed_on_mean_axis,
            }
            for p in found.points
        ]
    )


def overheads(found: TwoPoints) -> pd.DataFrame:
    """The joint fit with an overhead per sweep request, under every choice."""
    return pd.DataFrame(
        [
            {
                "axis": v.axis,
                "weights": v.weights,
                "overhead_s": v.fit.overhead_s,
                "intercept_ms": v.fit.intercept_ms,
                "slope_us": 1000 * v.fit.slope_ms_per_token,
                "residual_ratio": v.residual_ratio,
            }
            for v in found.variants
        ]
    )
