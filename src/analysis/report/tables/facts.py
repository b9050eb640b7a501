"""What is known of a deployment, as a table."""

import pandas as pd

from analysis.records.case import Case
from analysis.records.run import Run


def facts(case: Case) -> pd.DataFrame:
    """One row a fact, with undefined facts left out."""
    known = case.facts
    layout, model = known.layout, case.model
    rows = {
        "model": model and model.name,
        "attention": model and f"{model.attention}, {model.cache.layers} layers",
        "GPUs": known.gpu and f"{layout.gpus} x {known.gpu}",
        "engine": f"{known.engine.name} {known.engine.version or '(version not given)'}",
        "parallelism": known.gpu
        and f"TP {layout.tp}, DCP {layout.dcp}, "
        f"DP attention {'on' if layout.dp_attention else 'off'}",
        "KV dtype": model and layout.kv_dtype,
        "KV pool": layout.pool_tokens and f"{layout.pool_tokens:,} tokens",
        "context limit": known.limits.context_tokens and f"{known.limits.context_tokens:,} tokens",
        "wished context": known.limits.wished_context_tokens
        and f"{known.limits.wished_context_tokens:,} tokens",
        "speculation": known.speculation and known.speculation.method,
        "source": known.source,
    } | {f"run {run.name}": _run(run) for run in case.runs}
    return pd.DataFrame(
        [{"fact": name, "value": str(value)} for name, value in rows.items() if value]
    )


def _run(run: Run) -> str:
    """Server, host and size of a run."""
    server, host = run.manifest.server, run.manifest.host
    where = "" if server.where == "embedded" else f" on {server.where}"
    flags = f" ({' '.join(server.flags)})" if server.flags else ""
    return (
        f"{server.model} served by {server.kind} {server.version}{where}{flags}; {host.processor}, "
        f"{host.cores} cores, {host.memory_gib:.3g} GiB; {len(run.samples)} requests, "
        f"{run.manifest.started_utc:%Y-%m-%d %H:%M} UTC"
    )
