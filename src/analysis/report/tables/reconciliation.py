"""Tables of the reconciliation: predictions at the named contexts, and where speculation pays."""

import numpy as np
import pandas as pd

from analysis.findings.ledger import Findings
from analysis.findings.missing import Missing
from analysis.findings.reconciliation import Prediction, Reconciliation
from analysis.model.speculation import break_even_commit


def predictions(found: Reconciliation) -> pd.DataFrame:
    """At the account's own context, on both axes and with growth."""
    return pd.DataFrame([_row(p) for p in (found.prompt_axis, found.mean_axis, found.growing)])


def named_contexts(found: Reconciliation) -> pd.DataFrame:
    """At every context that the account names, under every reading."""
    return pd.DataFrame([{"label": p.label} | _row(p) for p in found.contexts])


def forest(found: Reconciliation) -> pd.DataFrame:
    """The same for drawing: interval ends in columns of their own, and the observation."""
    return pd.DataFrame(
        [
            {
                "label": p.label,
                "axis": p.axis,
                "predicted_tok_per_s": p.predicted_tok_per_s,
                "low": (p.prediction_interval95 or (None, None))[0],
                "high": (p.prediction_interval95 or (None, None))[1],
                "observed_tok_per_s": found.observed_tok_per_s,
            }
            for p in found.contexts
        ]
    )


def break_even(found: Findings) -> pd.DataFrame:
    """Commit needed to match plain decoding over context, and the commits that were seen."""
    reconciliation, steps, sweep = found.reconciliation, found.steps, found.sweep
    rows: list[dict[str, object]] = []
    if (
        isinstance(reconciliation, Missing)
        or isinstance(steps, Missing)
        or isinstance(sweep, Missing)
    ):
        return pd.DataFrame(rows)
    line = steps.main.mean
    plain = reconciliation.plain
    for context in np.linspace(0, 1.08 * max(line.contexts), 40):
        step = line.step.step_ms(float(context))
        if plain and step > 0:
            fast, slow = plain.token_ms
            rows.append(
                {
                    "kind": "break-even",
                    "context_tokens": float(context),
                    "low": break_even_commit(step, slow),
                    "high": break_even_commit(step, fast),
                }
            )
    rows += [
        {"kind": "sweep", "context_tokens": p.context_tokens, "commit_length": p.commit_length}
        for p in sweep.main
        if p.context_tokens is not None
    ]
    observation = reconciliation.observation
    contexts = [named.tokens for named in observation.contexts]
    rows.append(
        {
            "kind": "observation",
            "context_tokens": sum(contexts) / len(contexts),
            "commit_length": observation.commit_length,
            "low": min(contexts),
            "high": max(contexts),
        }
    )
    return pd.DataFrame(rows)


def _row(p: Prediction) -> dict[str, object]:
    return {
        "axis": p.axis,
        "context_tokens": p.context_tokens,
        "step_ms": p.step_ms,
        "predicted_tok_per_s": p.predicted_tok_per_s,
        "prediction_interval95": p.prediction_interval95,
        "commit_for_observed": p.commit_for_observed,
        "context_for_observed": p.context_for_observed,
    }
