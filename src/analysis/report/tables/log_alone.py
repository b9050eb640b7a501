"""Tables of a log: its windows, their medians, their flags, and the live figures beside them."""

import numpy as np
import pandas as pd

from analysis.findings.log_alone import LogAlone
from analysis.records.window_file import rows_of

FIGURES = {
    "commit": "commit length (tokens/step)",
    "acceptance_length": "acceptance length (tokens/drafted step)",
    "step_ms": "step (ms)",
    "tok_per_s": "throughput (tok/s)",
    "context_tokens": "context of a request (tokens)",
    "running": "running requests",
}


def windows(found: LogAlone) -> pd.DataFrame:
    """Every window; the fitted line stands in every row."""
    fit = found.diagnosis.fit
    rows = []
    for part in found.diagnosis.windows:
        for row, time_s, used in zip(rows_of(part), part.time_s, part.unflagged, strict=True):
            rows.append(
                {
                    "line": row["line"],
                    "time_s": None if np.isnan(time_s) else float(time_s),
                    "clock": part.clock,
                    "source": row["source"],
                    "context_tokens": row["context_tokens"],
                    "running": row["running"],
                    "tok_per_s": row["tok_per_s"],
                    "commit_length": row["commit"],
                    "step_ms": row["step_ms"],
                    "counts": bool(used),
                    "flags": "; ".join(row["flags"]),
                    "fit_intercept_ms": None if fit is None else fit.intercept_ms,
                    "fit_slope_us_per_token": None if fit is None else fit.slope_us_per_token,
                }
            )
    return pd.DataFrame(rows)


def summary(found: LogAlone) -> pd.DataFrame:
    """Medians over the windows that count."""
    rows = []
    for name, label in FIGURES.items():
        middle = getattr(found.diagnosis.summary, name)
        if middle is not None:
            interval = None if middle.low is None else (middle.low, middle.high)
            rows.append(
                {
                    "figure": label,
                    "median": middle.median,
                    "median_ci95": interval,
                    "interval_kind": middle.kind or None,
                }
            )
    return pd.DataFrame(rows)


def live(found: LogAlone) -> pd.DataFrame:
    """Step and commit of each cell from the log, and as they were measured live."""
    return pd.DataFrame(
        [
            {
                "text": cell.text,
                "prompt_tokens": cell.prompt_tokens,
                "requests": cell.requests,
                "log_step_ms": cell.log_step_ms,
                "live_step_ms": cell.live_step_ms,
                "step_gap_pct": cell.step_gap_pct,
                "log_commit": cell.log_commit,
                "live_commit": cell.live_commit,
                "commit_gap_pct": cell.commit_gap_pct,
            }
            for cell in found.cells
        ]
    )
