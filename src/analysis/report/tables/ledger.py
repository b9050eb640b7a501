"""The claims ledger as a table."""

import pandas as pd

from analysis.findings.ledger import Judgement, Ledger
from analysis.records.tables import ClaimRow


def verdicts(found: Ledger) -> pd.DataFrame:
    """Every claim with its verdict, evidence, n, interval and the cell that decides it."""
    return pd.DataFrame(
        [
            {
                "id": v.claim.id,
                "claim": _stated(v.claim),
                "verdict": v.judgement.verdict,
                "evidence": _weighed(v.judgement),
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


def leading(found: Ledger) -> pd.DataFrame:
    """The same of a few claims, each pointing to its row in the whole ledger."""
    return verdicts(found).rename(columns={"id": "ledger_row"})


def _stated(claim: ClaimRow) -> str:
    """The claim and its value, where it has one."""
    return f"{claim.claim}: {claim.value} {claim.unit}".strip() if claim.value else claim.claim


def _weighed(judgement: Judgement) -> str:
    """The evidence, and the condition under which the verdict would be another."""
    if not judgement.condition:
        return judgement.evidence
    return f"{judgement.evidence.rstrip('.')}. Condition: {judgement.condition}"
