"""Tables of printed pools against the memory model."""

import pandas as pd

from analysis.findings.kv_validation import KvValidation
from analysis.findings.pool_check import PoolCheck


def checks(found: KvValidation) -> pd.DataFrame:
    """Predicted against printed bytes per token, one row a server start."""
    return pd.DataFrame(
        [
            {
                "server": check.name,
                "kept": _kept(check),
                "tokens": check.row.tokens,
                "printed_size": _size(check),
                "bytes_per_token": check.bytes_per_token,
                "printed_bytes": check.printed_bytes_per_token,
                "bytes_error_pct": check.error_pct,
                "allowed_pct": check.allowed_pct,
                "outcome": check.outcome,
            }
            for check in found.checks
        ]
    )


def ratios(found: KvValidation) -> pd.DataFrame:
    """Two servers with the same memory: tokens as a ratio."""
    return pd.DataFrame(
        [
            {
                "server": f"{ratio.one.row.engine}, {ratio.one.row.model}, TP {ratio.one.row.tp}",
                "memory": ratio.one.row.memory,
                "differs": ratio.differs,
                "tokens_pair": f"{ratio.one.row.tokens:,} : {ratio.other.row.tokens:,}",
                "expected_ratio": ratio.expected,
                "printed_ratio": ratio.printed,
                "ratio_error_pct": ratio.error_pct,
                "agrees": "yes" if ratio.inside else "no",
            }
            for ratio in found.ratios
        ]
    )


def errors(found: KvValidation) -> pd.DataFrame:
    """For drawing: printed less predicted size of every row with a size, and what is allowed."""
    return pd.DataFrame(
        [
            {
                "row": _short(check),
                "gap_mib": check.gap_mib,
                "allowed_low_mib": check.allowed_mib[0],
                "allowed_high_mib": check.allowed_mib[1],
                "outcome": check.outcome,
            }
            for check in found.sized
        ]
    )


def _kept(check: PoolCheck) -> str:
    cache = check.cache
    layers = f"{cache.layers} layers, " if cache else ""
    indexer = getattr(cache, "indexer_bytes", 0)
    return f"{layers}{check.row.kv_dtype}{f' and {indexer} B of indexer' if indexer else ''}"


def _size(check: PoolCheck) -> str | None:
    row = check.row
    if row.printed_gib is not None:
        return f"{row.printed_gib:.2f}"
    if row.printed_k_gib is None or row.printed_v_gib is None:
        return None
    return f"K {row.printed_k_gib:.2f}, V {row.printed_v_gib:.2f}"


def _short(check: PoolCheck) -> str:
    row = check.row
    dcp = f", DCP {row.dcp}" if row.dcp > 1 else ""
    return f"{row.engine} {row.model.split('/')[-1]}{dcp}, {row.tokens:,}"
