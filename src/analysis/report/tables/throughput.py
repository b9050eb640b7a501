"""Every throughput of a case over its context, with the lines that they are read against."""

import numpy as np
import pandas as pd

from analysis.findings.ledger import Findings
from analysis.findings.missing import Missing
from analysis.findings.step_time import StepTimes
from analysis.model.step_time import throughput

ISO_COMMITS = (2, 4, 8, 16)
COLUMNS = ["kind", "series", "context_tokens", "tok_per_s", "commit_length", "low", "high"]


def throughput_map(found: Findings) -> pd.DataFrame:
    """Rows of kind iso, observed-commit, sweep, two-point, observation and plain.

    A measured sweep says that its contexts are means, in a column ``axis``.
    """
    rows = _sweep_rows(found)
    longest = max((float(str(row["context_tokens"])) for row in rows), default=0.0)
    steps = found.steps
    if not isinstance(steps, Missing) and _speculates(found, steps):
        rows += _iso_rows(found, steps, 1.15 * longest)
    rows += _two_point_rows(found) + _observation_rows(found) + _plain_rows(found)
    table = pd.DataFrame(rows, columns=COLUMNS)
    if not isinstance(found.sweep, Missing) and found.sweep.measured:
        table["axis"] = "mean"
    return table


def _speculates(found: Findings, steps: StepTimes) -> bool:
    """Whether the fitted series commits more than the one token of plain decoding."""
    if isinstance(found.sweep, Missing):
        return False
    main = found.sweep.of(steps.main.series, steps.main.repeat)
    return any(p.commit_length is not None and p.commit_length > 1 for p in main)


def _sweep_rows(found: Findings) -> list[dict[str, object]]:
    if isinstance(found.sweep, Missing):
        return []
    first = found.sweep.main[0].repeat
    return [
        {
            "kind": "sweep",
            "series": p.series,
            "context_tokens": p.context_tokens if p.context_tokens is not None else p.prompt_tokens,
            "tok_per_s": p.tok_per_s,
            "commit_length": p.commit_length,
        }
        for p in found.sweep.points
        if p.repeat == first
    ]


def _iso_rows(found: Findings, steps: StepTimes, longest: float) -> list[dict[str, object]]:
    line = steps.main.mean.step
    commits: list[tuple[str, float]] = [("iso", float(c)) for c in ISO_COMMITS]
    if not isinstance(found.reconciliation, Missing):
        commits.append(("observed-commit", found.reconciliation.observation.commit_length))
    contexts = np.geomspace(32, longest, 60)
    return [
        {
            "kind": kind,
            "series": f"{commit:g} tokens/step",
            "context_tokens": float(context),
            "tok_per_s": throughput(commit, line.step_ms(float(context))),
            "commit_length": commit,
        }
        for kind, commit in commits
        for context in contexts
        if line.step_ms(float(context)) > 0
    ]


def _two_point_rows(found: Findings) -> list[dict[str, object]]:
    return [
        {
            "kind": "two-point",
            "series": "two-point decode",
            "context_tokens": row.context_tokens,
            "tok_per_s": row.tok_per_s,
            "commit_length": row.commit_length,
        }
        for row in found.case.two_point
    ]


def _observation_rows(found: Findings) -> list[dict[str, object]]:
    if isinstance(found.reconciliation, Missing):
        return []
    observation = found.reconciliation.observation
    contexts = [named.tokens for named in observation.contexts]
    return [
        {
            "kind": "observation",
            "series": "observed",
            "context_tokens": sum(contexts) / len(contexts),
            "tok_per_s": observation.tok_per_s,
            "commit_length": observation.commit_length,
            "low": min(contexts),
            "high": max(contexts),
        }
    ]


def _plain_rows(found: Findings) -> list[dict[str, object]]:
    """Published plain decoding: single points of this engine, and lines of compared cases."""
    rows: list[dict[str, object]] = []
    if not isinstance(found.reconciliation, Missing) and found.reconciliation.plain:
        plain = found.reconciliation.plain
        reference = next(row for row in found.case.plain if row.spec == "none")
        rows.append(
            {
                "kind": "plain",
                "series": f"plain, {found.case.facts.engine.name}",
                "context_tokens": reference.prompt_tokens + reference.output_tokens / 2,
                "tok_per_s": sum(plain.tok_per_s) / 2,
                "commit_length": 1.0,
                "low": plain.tok_per_s[0],
                "high": plain.tok_per_s[1],
            }
        )
        if not isinstance(found.steps, Missing):
            rows += _plain_lines(found, found.steps)
    return rows


def _plain_lines(found: Findings, steps: StepTimes) -> list[dict[str, object]]:
    lines = [f for f in steps.compared if f.speculation == "none" and f.dcp == 1]
    if not lines:
        return []
    line = lines[0]
    longest = 1.15 * max(steps.main.mean.contexts)
    return [
        {
            "kind": "plain-line",
            "series": f"plain, {line.case}",
            "context_tokens": float(context),
            "tok_per_s": throughput(1.0, line.prompt.step.step_ms(float(context))),
            "commit_length": 1.0,
        }
        for context in np.geomspace(32, longest, 30)
    ]
