"""Tables of our own context sweep and of rising output length."""

import numpy as np
import pandas as pd

from analysis.findings.measured_output_length import OutputLengths
from analysis.findings.measured_sweep import Series, Sweep

CURVE_POINTS = 30


def cells(found: Sweep) -> pd.DataFrame:
    """Every cell: step, commit, throughput by the client, and commit over step beside it."""
    return pd.DataFrame(
        [
            {
                "series": one.name,
                "prompt_tokens": point.cell.prompt_tokens or point.cell.asked_prompt_tokens,
                "context_tokens": point.cell.context_tokens,
                "n": len(point.cell.used),
                "step_ms": point.cell.step_ms,
                "spread_pct": point.cell.spread_pct,
                "commit_length": point.cell.commit_length,
                "predicted_tok_per_s": point.predicted_tok_per_s,
                "client_tok_per_s": point.client_tok_per_s,
                "gap_pct": point.gap_pct,
            }
            for one in found.series
            for point in one.points
        ]
    )


def lines(found: Sweep) -> pd.DataFrame:
    """Each line twice: through cell medians and through every request; with its straightness."""
    rows = []
    for one in found.series:
        for points, line in (("cell medians", one.medians), ("requests", one.requests)):
            if line is None:
                continue
            evidence = line.linearity
            rows.append(
                {
                    "series": one.name,
                    "points": points,
                    "n": line.fit.n,
                    "intercept_ms": line.intercept_ms,
                    "intercept_ci95": line.intercept_ci95,
                    "slope_us": line.slope_us,
                    "slope_ci95": line.slope_ci95,
                    "bend_pct": evidence.bend_pct if evidence else None,
                    "bend_ci95": evidence.bend_ci95 if evidence else None,
                    "p": evidence.p if evidence else None,
                    "power": evidence.power if evidence else None,
                }
            )
    return pd.DataFrame(rows)


def step_points(found: Sweep) -> pd.DataFrame:
    """For drawing: requests, medians and lines with the confidence interval of the line."""
    return pd.DataFrame([row for one in found.series for row in _step_rows(one)])


def panels(found: Sweep) -> pd.DataFrame:
    """For drawing: step, commit and throughput of requests and cells."""
    rows: list[dict[str, object]] = []
    for one in found.series:
        rows += [
            {
                "series": one.name,
                "kind": "request",
                "context_tokens": sample.context_tokens,
                "step_ms": sample.step_ms,
                "commit_length": sample.commit_length,
                "tok_per_s": sample.tok_per_s,
            }
            for sample in one.used
        ]
        rows += [
            {
                "series": one.name,
                "kind": "median",
                "context_tokens": point.cell.context_tokens,
                "step_ms": point.cell.step_ms,
                "commit_length": point.cell.commit_length,
                "tok_per_s": point.cell.tok_per_s,
            }
            for point in one.points
            if point.cell.used
        ]
    return pd.DataFrame(rows)


def output_lengths(found: OutputLengths) -> pd.DataFrame:
    """Every output length: its step beside the sweep's line there, and its commit lengths."""
    return pd.DataFrame(
        [
            {
                "series": one.series,
                "output_tokens": length.cell.asked_output_tokens,
                "context_tokens": length.cell.context_tokens,
                "n": len(length.cell.used),
                "step_ms": length.cell.step_ms,
                "sweep_step_ms": length.line_ms,
                "sweep_step_ci95": length.line_ci95,
                "residual_pct": length.residual_pct,
                "commit_length": length.cell.commit_length,
                "added_commit": length.added_commit,
            }
            for one in found.series
            for length in one.lengths
        ]
    )


def effects(found: OutputLengths) -> pd.DataFrame:
    """What the longest output changes against the shortest."""
    rows = []
    for one in found.series:
        for what, effect in (("commit length", one.commit), ("step less the line", one.step)):
            if effect is not None:
                rows.append(
                    {
                        "series": one.series,
                        "effect_on": what,
                        "n": effect.n,
                        "change_pct": effect.change_pct,
                        "change_ci95": effect.ci95,
                        "per_thousand": effect.per_1000,
                        "is_cause": effect.word,
                    }
                )
    return pd.DataFrame(rows)


def length_points(found: OutputLengths) -> pd.DataFrame:
    """For drawing: step, the line and commit over output length, requests and medians."""
    rows: list[dict[str, object]] = []
    for one in found.series:
        for length in one.lengths:
            rows += [
                {
                    "series": one.series,
                    "kind": "request",
                    "output_tokens": sample.output_tokens,
                    "step_ms": sample.step_ms,
                    "commit_length": sample.commit_length,
                }
                for sample in length.cell.used
            ]
            if length.cell.used:
                rows.append(
                    {
                        "series": one.series,
                        "kind": "median",
                        "output_tokens": length.cell.output_tokens,
                        "step_ms": length.cell.step_ms,
                        "commit_length": length.cell.commit_length,
                        "sweep_step_ms": length.line_ms,
                    }
                )
    return pd.DataFrame(rows).reindex(
        columns=["series", "kind", "output_tokens", "step_ms", "commit_length", "sweep_step_ms"]
    )


def _step_rows(one: Series) -> list[dict[str, object]]:
    own = {"series": one.name}
    rows: list[dict[str, object]] = [
        {**own, "kind": "request", "context_tokens": s.context_tokens, "step_ms": s.step_ms}
        for s in one.used
        if s.step_ms is not None
    ]
    rows += [
        {
            **own,
            "kind": "median",
            "context_tokens": point.cell.context_tokens,
            "step_ms": point.cell.step_ms,
        }
        for point in one.points
        if point.cell.step_ms is not None
    ]
    if one.medians is None:
        return rows
    fit = one.medians.fit
    for context in np.linspace(*fit.x_range, CURVE_POINTS):
        low, high = fit.confidence_interval(context) or (None, None)
        rows.append(
            {
                **own,
                "kind": "line",
                "context_tokens": float(context),
                "step_ms": fit.at(context),
                "confidence_low": low,
                "confidence_high": high,
            }
        )
    return rows
