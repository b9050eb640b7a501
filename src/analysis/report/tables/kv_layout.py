"""Tables of the KV layout experiment."""

import pandas as pd

from analysis.findings.kv_layout import Layouts
from analysis.logs.kv_buffers import GIB, KvBuffer


def servers(found: Layouts) -> pd.DataFrame:
    """Every server: its pool as predicted and as printed, in the unit that it was not given."""
    return pd.DataFrame(
        [
            {
                "server": f"{one.engine} {one.predicted.attention}",
                "ranks": one.predicted.tp,
                "given": _given(one.predicted.given_bytes, one.predicted.given_tokens),
                "predicted_tokens": one.predicted.tokens if one.prints_tokens else None,
                "printed_tokens": one.printed_tokens if one.prints_tokens else None,
                "predicted_rank_gib": None if one.prints_tokens else one.predicted_gib,
                "printed_rank_gib": None if one.prints_tokens else one.printed_gib,
                "error_pct": one.error_pct,
                "outcome": one.verdict,
            }
            for one in found.servers
        ]
    )


def ranks(found: Layouts) -> pd.DataFrame:
    """Every server: what its log and its gauges said of the pool, and of each rank's part."""
    return pd.DataFrame(
        [
            {
                "server": f"{one.engine} {one.predicted.attention}",
                "ranks": one.predicted.tp,
                "page_tokens": one.gauges.block_tokens or one.predicted.page_tokens,
                "logged": "; ".join(
                    [
                        *(_size(buffer) for buffer in one.buffers),
                        *([f"{one.logged_tokens:,} tokens"] if one.logged_tokens else []),
                    ]
                ),
                "gauged": "; ".join(
                    [
                        *(f"{gib:.6f} GiB" for _, gib in sorted(one.gauges.rank_gib.items())),
                        *([f"{one.gauge_tokens:,} tokens"] if one.gauge_tokens else []),
                    ]
                ),
            }
            for one in found.servers
        ]
    )


def per_token(found: Layouts) -> pd.DataFrame:
    """For drawing: bytes of a token on one rank, as predicted and as printed."""
    return pd.DataFrame(
        [
            {
                "engine": f"{one.engine} {one.version}",
                "attention": one.predicted.attention,
                "ranks": one.predicted.tp,
                "predicted_bytes": one.predicted.bytes_per_token,
                "printed_bytes": one.printed_bytes_per_token,
            }
            for one in found.servers
        ]
    )


def _size(buffer: KvBuffer) -> str:
    """A log line's size as printed, K and V apart where they are."""
    parts = " + ".join(f"{name} {size / GIB:.2f}" for name, size in buffer.sizes.items())
    return f"{parts} GiB"


def _given(size: int | None, tokens: int | None) -> str:
    return f"{tokens:,} tokens" if size is None else f"{size / GIB:g} GiB on each rank"
