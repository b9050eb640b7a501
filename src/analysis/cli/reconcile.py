"""``analysis reconcile``."""

from typing import Any

import click

from analysis.cli.output import json_option, show
from analysis.errors import InputError
from analysis.findings import reconciliation
from analysis.findings.missing import Missing
from analysis.findings.reconciliation import Prediction
from analysis.records.case import load_case


@click.command()
@click.argument("case")
@json_option
def reconcile(case: str, as_json: bool) -> None:
    """Set commit length over step time against the throughput that CASE observed.

    CASE is a name in data/cases or the path of a case folder. Intervals are 95 % prediction
    intervals of one new step at a fixed commit length.
    """
    found = reconciliation.find(load_case(case))
    if isinstance(found, Missing):
        what = f"nothing to reconcile ({found.reason.rstrip('.')})"
        raise InputError(f"case {case}", what, "a case with an observation and a sweep")
    show(
        {
            "observed_tok_per_s": found.observed_tok_per_s,
            "account_tok_per_s": found.account_tok_per_s,
            "prompt_axis": _prediction(found.prompt_axis),
            "mean_axis": _prediction(found.mean_axis),
            "growing": _prediction(found.growing)
            | {"output_tokens": found.observation.growing_output_tokens},
        },
        as_json,
    )


def _prediction(prediction: Prediction) -> dict[str, Any]:
    return {
        "context_tokens": prediction.context_tokens,
        "predicted_tok_per_s": prediction.predicted_tok_per_s,
        "prediction_interval95": prediction.prediction_interval95,
        "commit_for_observed": prediction.commit_for_observed,
        "context_for_observed": prediction.context_for_observed,
        "interval_includes_commit_uncertainty": prediction.interval_includes_commit_uncertainty,
    }
