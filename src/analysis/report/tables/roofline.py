"""Tables of the roofline: limits over verify width, layouts, models, GPUs, measured rates."""

import numpy as np
import pandas as pd

from analysis.findings import roofline_gap
from analysis.findings.missing import Missing
from analysis.findings.roofline import Limit, Roofline, SeriesRate
from analysis.findings.roofline_gap import Gap

WIDEST = 64


def rates(found: Roofline) -> pd.DataFrame:
    """Each measured slope with its limit and the rates that it means."""
    table = pd.DataFrame(
        [
            {
                "series": rate.limit.label,
                "queries": _one_if_equal(rate.queries),
                "slope_us": rate.slope_us,
                "slope_ci95": rate.slope_ci95,
                "roofline_us": rate.limit_us,
                "over_roofline": rate.over_limit,
                "gb_per_s": rate.gb_per_s,
                "gflop_per_s": _one_if_equal(rate.gflop_per_s),
            }
            for rate in found.rates
        ]
    )
    return table.dropna(axis="columns", how="all")


def layouts(found: Roofline) -> pd.DataFrame:
    """Bytes, FLOP and limits of each way to serve the model."""
    return _limits(found.layouts, "layout")


def models(found: Roofline) -> pd.DataFrame:
    """The same for other models in the layout of this case."""
    return _limits(found.models, "model").drop(columns="kv_dtype")


def gpus(found: Roofline) -> pd.DataFrame:
    """The same layout on other GPUs."""
    queries = found.main.queries[1] if found.main.queries else 1
    return pd.DataFrame(
        [
            {
                "gpu": limit.label,
                "tb_per_s": limit.gpu.bandwidth_tb_per_s,
                "bf16_tflops": limit.gpu.dense_bf16_tflops,
                "memory_ns": _ns(limit.memory_us),
                "compute_bound_from": limit.compute_bound_from,
                "roofline_ns": _ns(limit.slope_us(queries)),
            }
            for limit in found.gpus
            if limit.gpu is not None
        ]
    )


def over_width(found: Roofline) -> pd.DataFrame:
    """Limits over the verify width, and the measured slopes at their widths."""
    rows: list[dict[str, object]] = []
    for limit, name in _own_limits(found):
        rows += [
            {"kind": "limit", "label": name, "queries": float(q), "slope_us": limit.slope_us(q)}
            for q in np.geomspace(1, WIDEST, 61)
        ]
    for rate in _first_repeats(found):
        if rate.queries is None:
            continue
        low, high = rate.slope_ci95 or (None, None)
        rows.append(
            {
                "kind": "measured",
                "label": rate.limit.label,
                "queries": float(rate.queries[0]),
                "queries_most": float(rate.queries[1]),
                "slope_us": rate.slope_us,
                "slope_low": low if low and low > 0 else None,
                "slope_high": high,
            }
        )
    return pd.DataFrame(rows + _ceiling(found))


def factors(gap: Gap) -> pd.DataFrame:
    """What each candidate explains at most."""
    rows = [
        ("measured slope over reading the cache once", gap.factor),
        (f"too few thread blocks: {gap.blocks} on {gap.multiprocessors}", gap.occupancy_limit),
        ("the cache read anew for each token of a step", gap.by_query),
        ("the cache read anew for each head that could share it", gap.by_head),
        ("all ceilings together", gap.together),
    ]
    return pd.DataFrame(rows, columns=["fact", "times"])


def _own_limits(found: Roofline) -> list[tuple[Limit, str]]:
    """One limit for each distinct cost among the measured series, the first series first."""
    seen: dict[object, tuple[Limit, str]] = {}
    for rate in found.rates:
        limit = rate.limit
        if limit.memory_us is not None:
            dcp = f", DCP{rate.fit.dcp}" if rate.fit.dcp > 1 else ""
            seen.setdefault(
                (limit.cost.bytes_per_token, limit.cost.flop_per_query, limit.gpu),
                (limit, f"{limit.kv_dtype} cache{dcp}"),
            )
    return list(seen.values())


def _first_repeats(found: Roofline) -> list[SeriesRate]:
    """One series of each name: repeats would lie on one another."""
    seen: dict[tuple[str, str], SeriesRate] = {}
    for rate in found.rates:
        seen.setdefault((rate.fit.case, rate.fit.series), rate)
    return list(seen.values())


def _limits(limits: tuple[Limit, ...], first: str) -> pd.DataFrame:
    table = pd.DataFrame(
        [
            {
                first: limit.label,
                "kv_dtype": limit.kv_dtype,
                "heads": limit.cost.heads,
                "bytes_per_token": limit.cost.bytes_per_token,
                "flop_per_query": limit.cost.flop_per_query,
                "flop_per_byte": limit.cost.intensity(),
                "memory_ns": _ns(limit.memory_us),
                "compute_bound_from": limit.compute_bound_from,
            }
            for limit in limits
        ]
    )
    return table.dropna(axis="columns", how="all")


def _one_if_equal(pair: tuple[float, float] | None) -> object:
    return pair[0] if pair is not None and pair[0] == pair[1] else pair


def _ns(value_us: float | None) -> float | None:
    return None if value_us is None else 1000 * value_us


def _ceiling(found: Roofline) -> list[dict[str, object]]:
    """The limit of the first series times its occupancy ceiling, where that is known."""
    gap = roofline_gap.find(found)
    if isinstance(gap, Missing):
        return []
    return [
        {
            "kind": "occupancy",
            "label": "limit times the occupancy ceiling",
            "queries": float(q),
            "slope_us": gap.occupancy_limit * (found.main.limit.slope_us(q) or 0.0),
        }
        for q in np.geomspace(1, WIDEST, 61)
    ]
