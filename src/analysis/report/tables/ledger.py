"""The claims ledger as a table."""

import pandas as pd

from analysis.findings.ledger import Ledger


def verdicts(found: Ledger) -> pd.DataFrame:
    """Every claim with its verdict, evidence, n, interval and the cell that decides it."""
    return pd.DataFrame(
        [
            {
                "id": v.claim.id,
                "claim": v.claim.claim,
                "value": " ".join(part for part in (v.claim.value, v.claim.unit) if part),
                "verdict": v.judgement.verdict,
                "evidence": v.judgement.evidence,
                "condition": v.judgement.condition or None,
                "n": v.judgement.n,
                "interval_text": None
                if v.judgement.interval is None
                else f"{v.judgement.interval[0]:.3g} to {v.judgement.interval[1]:.3g} "
                f"({v.judgement.interval_kind})",
                "cell": v.judgement.cell,
            }
            for v in found.verdicts
        ]
    )
