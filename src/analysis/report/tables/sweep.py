"""Tables of the sweep and of the two-point decode."""

import pandas as pd

from analysis.findings.own_plain import OwnPlain
from analysis.findings.sweep import Sweep
from analysis.findings.two_point import TwoPoints


def sweep_points(found: Sweep) -> pd.DataFrame:
    """Every row of the sweep with its step; whose it is stands there where any was measured."""
    table = pd.DataFrame(
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
                "step_kind": p.step_kind if found.measured else None,
            }
            for p in found.points
        ]
    )
    return table.dropna(axis="columns", how="all")


def first_repeat(found: Sweep) -> pd.DataFrame:
    """For drawing: the rows of the first repeat alone, so that series do not cover each other."""
    table = sweep_points(found)
    first = found.main[0].repeat
    return table[[point.repeat == first for point in found.points]]


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


def own_break_even(found: OwnPlain) -> pd.DataFrame:
    """Every speculating cell against measured plain decoding of the same server."""
    return pd.DataFrame(
        [
            {
                "series": p.series,
                "context_tokens": p.context_tokens,
                "step_ms": p.step_ms,
                "plain_step_ms": p.plain_step_ms,
                "own_break_even": p.break_even,
                "commit_length": p.commit_length,
                "gain_over_plain": p.gain,
            }
            for p in found.points
        ]
    )


def two_point_steps(found: TwoPoints) -> pd.DataFrame:
    """The steps that counted two-point decodes give, beside the sweep's."""
    return pd.DataFrame(
        [
            {
                "series": p.series,
                "context_tokens": p.context_tokens,
                "tok_per_s": p.tok_per_s,
                "commit_length": p.commit_length,
                "step_ms": p.step_ms,
                "sweep_step_ms": p.sweep_step_ms,
                "sweep_step_interval": p.sweep_step_interval,
                "two_point_gap_pct": p.gap_pct,
                "agrees": p.agrees,
            }
            for p in found.points
        ]
    )


def two_point_dots(found: TwoPoints) -> pd.DataFrame:
    """The same for drawing: interval ends in columns of their own."""
    table = two_point_steps(found).drop(columns=["agrees", "two_point_gap_pct"])
    ends = table.pop("sweep_step_interval")
    table["low"] = [end[0] if end else None for end in ends]
    table["high"] = [end[1] if end else None for end in ends]
    return table


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
