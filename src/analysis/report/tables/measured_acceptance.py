"""Tables of commit length by text."""

import pandas as pd

from analysis.findings.measured_acceptance import Acceptance


def texts(found: Acceptance) -> pd.DataFrame:
    """Every text: commit, how wide and how long its steps are, and its throughput."""
    return pd.DataFrame(
        [
            {
                "series": result.series,
                "text": result.text,
                "prompt_tokens": result.cell.asked_prompt_tokens,
                "excerpts": result.excerpts,
                "n": result.n,
                "commit_length": result.cell.commit_length,
                "commit_range": result.commit_range,
                "drafted_per_step": result.drafted_per_step,
                "accepted_pct": result.accepted_pct,
                "step_ms": result.cell.step_ms,
                "tok_per_s": result.cell.tok_per_s,
            }
            for result in found.texts
        ]
    )


def break_even(found: Acceptance) -> pd.DataFrame:
    """Every text that can be set against plain decoding."""
    return pd.DataFrame(
        [
            {
                "series": result.series,
                "text": result.text,
                "step_ms": result.cell.step_ms,
                "plain_step_ms": result.plain_ms,
                "plain_from": result.plain_source,
                "break_even": result.break_even,
                "commit_length": result.cell.commit_length,
                "gain": result.gain,
                "pays": result.pays,
            }
            for result in found.texts
            if result.gain is not None
        ]
    )


def text_points(found: Acceptance) -> pd.DataFrame:
    """For drawing: commit, step and throughput of every request, median and break-even."""
    rows: list[dict[str, object]] = []
    for result in found.texts:
        own = {"series": result.series, "text": result.text}
        rows += [
            {
                **own,
                "kind": "request",
                "commit_length": sample.commit_length,
                "step_ms": sample.step_ms,
                "tok_per_s": sample.tok_per_s,
            }
            for sample in result.cell.used
        ]
        if result.n:
            rows.append(
                {
                    **own,
                    "kind": "median",
                    "commit_length": result.cell.commit_length,
                    "step_ms": result.cell.step_ms,
                    "tok_per_s": result.cell.tok_per_s,
                    "break_even": result.break_even,
                }
            )
    return pd.DataFrame(rows).reindex(
        columns=["series", "text", "kind", "commit_length", "step_ms", "tok_per_s", "break_even"]
    )
