"""Tables of a change of the context limit: steps far beyond the data, and what lies beside."""

import numpy as np
import pandas as pd

from analysis.findings.context_extension import Extension
from analysis.model.step_time import throughput

NEAREST = 256
"""Tokens: where the drawing begins."""


def far_steps(found: Extension) -> pd.DataFrame:
    """Line and quadratics at the contexts that matter, on both axes; all but the first beyond."""
    return pd.DataFrame(
        [
            {
                "axis": far.axis,
                "context_tokens": far.context_tokens,
                "beyond": far.beyond,
                "line_ms": far.line_ms,
                "line_ci95": far.line_ci95,
                "quadratic_ms": far.curve_ms,
                "weighted_quadratic_ms": far.weighted_ms,
                "line_tok_per_s": far.line_tok_per_s,
                "weighted_tok_per_s": far.weighted_tok_per_s,
            }
            for far in found.far
        ]
    )


def beside(found: Extension) -> pd.DataFrame:
    """Plain series of other cases, measured further, at the wished context."""
    return pd.DataFrame(
        [
            {
                "series": f"{fit.case}: {fit.series}",
                "measured_to": max(fit.prompt.contexts),
                "beyond": found.wished_tokens / max(fit.prompt.contexts),
                "line_ms": fit.prompt.step.step_ms(found.wished_tokens),
                "line_tok_per_s": throughput(1.0, fit.prompt.step.step_ms(found.wished_tokens)),
            }
            for fit in found.beside
        ]
    )


def extrapolated(found: Extension) -> pd.DataFrame:
    """For drawing: step and tok/s of the three models and of a case beside, over prompt length.

    ``kind`` is the model or series, ``measured`` whether the context lies within its data.
    """
    line, weighted = found.main.prompt, found.main.prompt_weighted
    low, high = found.measured
    last = 1.25 * max(found.wished_tokens, high)
    contexts = sorted({*np.geomspace(NEAREST, last, 60), high, float(found.wished_tokens)})
    rows = []
    for kind, fit in (
        ("line", line.fit),
        ("quadratic", line.curve),
        ("weighted quadratic", weighted.curve),
    ):
        for context in contexts:
            step = None if fit is None else fit.at(context)
            if step is not None and step > 0:
                rows.append(_row(kind, context, step, found.commit_length, low <= context <= high))
    for context, step in zip(line.contexts, line.steps, strict=True):
        if context >= NEAREST:
            rows.append(_row("point", context, step, found.commit_length, True))
    for fit_beside in found.beside[:1]:
        low, high = min(fit_beside.prompt.contexts), max(fit_beside.prompt.contexts)
        name = f"{fit_beside.case}, {fit_beside.series}"
        rows += [
            _row(name, context, fit_beside.prompt.step.step_ms(context), 1.0, context <= high)
            for context in sorted({*contexts, high})
        ]
    table = pd.DataFrame(rows)
    table["wished_tokens"] = found.wished_tokens
    table["limit_tokens"] = found.fit.limit_tokens
    table["measured_low"], table["measured_high"] = found.measured
    return table


def _row(
    kind: str, context: float, step_ms: float, commit: float, measured: bool
) -> dict[str, object]:
    return {
        "kind": kind,
        "context_tokens": float(context),
        "step_ms": step_ms,
        "tok_per_s": throughput(commit, step_ms),
        "measured": bool(measured),
    }
