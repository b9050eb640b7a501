"""Tables of the experiments on a server of our own: what was measured, and what counts."""

import pandas as pd

from analysis.findings.measured_quality import Quality


def servers(found: Quality) -> pd.DataFrame:
    """Server, machine and date of each run; undefined where the server does not tell."""
    rows = []
    for one in found.series:
        manifest = one.run.manifest
        server, host = manifest.server, manifest.host
        rows.append(
            {
                "series": one.name,
                "run": one.run.name,
                "date": f"{manifest.started_utc:%Y-%m-%d}",
                "engine": f"{server.kind} {server.version}".strip(),
                "model": server.model,
                "speculation": server.speculation or None,
                "host": f"{host.processor}, {host.cores} cores; server: {server.where}",
            }
        )
    return pd.DataFrame(rows)


def quality(found: Quality) -> pd.DataFrame:
    """Every cell: how many requests were sent, how many count, and the flags of the others."""
    return pd.DataFrame(
        [
            {
                "series": row.series,
                "text": row.cell.text,
                "prompt_tokens": row.cell.asked_prompt_tokens,
                "output_tokens": row.cell.asked_output_tokens,
                "sent": len(row.cell.samples),
                "used": len(row.cell.used),
                "step_ms": row.cell.step_ms,
                "spread_pct": row.cell.spread_pct,
                "flags": row.flags,
            }
            for row in found.cells
        ]
    )
