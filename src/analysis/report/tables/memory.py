"""Tables of the KV cache: cost per layout, and pools of the same model on other servers."""

import pandas as pd

from analysis.findings.memory import Cell, Memory


def layouts(found: Memory) -> pd.DataFrame:
    """Every layout and dtype of the model, and the counterfactuals."""
    return pd.DataFrame([_cell(cell) for cell in (*found.cells, *found.counterfactuals)])


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


def same_model_pools(found: Memory) -> pd.DataFrame:
    """Pools that other servers printed for the same model at the same tensor parallelism."""
    return pd.DataFrame(
        [
            {
                "model": f"{row.model}, {row.engine} {row.version}",
                "dcp": row.dcp,
                "kv_dtype": row.kv_dtype,
                "tokens": row.tokens,
                "note": row.note,
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
