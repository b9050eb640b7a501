"""Tables of a comparison: the factors, and the values behind them."""

import numpy as np
import pandas as pd

from analysis.findings.before_after import BeforeAfter


def factors(found: BeforeAfter) -> pd.DataFrame:
    """Throughput, commit and step as factors on throughput, with their shares of the change."""
    split = found.comparison.split
    shares = {}
    if split is not None:
        shares = {
            "commit": (split.commit_share, split.commit_share_interval95),
            "step": (split.step_share, split.step_share_interval95),
        }
    rows = []
    for name, ratio in found.factors:
        share, interval = shares.get(name, (None, None))
        rows.append(
            {
                "factor": name,
                "ratio": ratio.ratio,
                "ratio_ci95": ratio.interval95,
                "share_pct": None if share is None else 100 * share,
                "share_ci95": None if interval is None else tuple(100 * end for end in interval),
            }
        )
    return pd.DataFrame(rows)


def values(found: BeforeAfter) -> pd.DataFrame:
    """Every value of both sides."""
    frames = []
    for name, side in (("before", found.comparison.before), ("after", found.comparison.after)):
        frames.append(
            pd.DataFrame(
                {
                    "side": name,
                    "text": side.text,
                    "context_tokens": side.context_tokens,
                    "running": side.running,
                    "commit_length": side.commit,
                    "step_ms": side.step_ms,
                }
            )
        )
    table = pd.concat(frames, ignore_index=True)
    return table.replace({np.nan: None})


def sides(found: BeforeAfter) -> pd.DataFrame:
    """What each side is made of: how many values, and their medians."""
    rows = []
    for name, side in (("before", found.comparison.before), ("after", found.comparison.after)):
        rows.append(
            {
                "side": name,
                "values": len(side),
                "context_tokens": _median(side.context_tokens),
                "commit_length": _median(side.commit),
                "step_ms": _median(side.step_ms),
            }
        )
    return pd.DataFrame(rows)


def _median(values: np.ndarray) -> float | None:
    known = values[np.isfinite(values)]
    return float(np.median(known)) if len(known) else None
