"""Tables of the KV cache: cost per layout, what fits, and pools that servers printed."""

import pandas as pd

from analysis.findings.memory import Cell, Memory


def layouts(found: Memory) -> pd.DataFrame:
    """Every layout and dtype of the model, and the counterfactuals."""
    return pd.DataFrame([_cell(cell) for cell in (*found.cells, *found.counterfactuals)])


def fits(found: Memory) -> pd.DataFrame:
    """Whether the wished context fits, under both readings of the free memory."""
    return pd.DataFrame(
        [
            {
                "layout": cell.layout,
                "kv_dtype": cell.kv_dtype,
                "wished_gb": cell.wished_gb,
                "extra_gib": cell.extra_gib,
                "fits_before": _word(found.fits_free_before_pool(cell)),
                "fits_after": _word(found.fits_free_after_pool(cell)),
            }
            for cell in (*found.cells, *found.counterfactuals)
        ]
    )


def per_gpu(found: Memory) -> pd.DataFrame:
    """For drawing: GB per GPU at the wished context, beside the free memory."""
    return pd.DataFrame(
        [
            {
                "layout": cell.layout,
                "kv_dtype": cell.kv_dtype,
                "counterfactual": cell in found.counterfactuals,
                "wished_tokens": cell.wished_tokens,
                "wished_gb": cell.wished_gb,
                "free_gb": found.free_gb,
            }
            for cell in (*found.cells, *found.counterfactuals)
        ]
    )


def printed_pools(found: Memory) -> pd.DataFrame:
    """Printed pools of plain MLA models against the model."""
    return pd.DataFrame(
        [
            {
                "model": c.row.model,
                "dcp": c.row.dcp,
                "kv_dtype": c.row.kv_dtype,
                "tokens": c.row.tokens,
                "printed_gib": c.row.printed_gib,
                "bytes_per_token": c.bytes_per_token,
                "error_pct": c.error_pct,
                "source": c.row.source,
            }
            for c in found.pool_checks
        ]
    )


def same_model_pools(found: Memory) -> pd.DataFrame:
    """Pools that other servers printed for the same model at the same tensor parallelism."""
    return pd.DataFrame(
        [
            {
                "model": f"{row.model}, {row.engine} {row.version}",
                "dcp": row.dcp,
                "kv_dtype": row.kv_dtype,
                "tokens": row.tokens,
                "source": row.source,
            }
            for row in found.same_pools
        ]
    )


def _cell(cell: Cell) -> dict[str, object]:
    return {
        "layout": cell.layout,
        "kv_dtype": cell.kv_dtype,
        "bytes_per_token": cell.bytes_per_token,
        "wished_gb": cell.wished_gb,
        "wished_gib": cell.wished_gib,
        "max_gib": cell.max_gib,
        "pool_gib": cell.pool_gib,
    }


def _word(fits: bool | None) -> str:
    return {True: "yes", False: "no", None: "not known"}[fits]
