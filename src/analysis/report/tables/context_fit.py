"""Tables of a wished context: what fits by every reading, how engines meet it, ways to reach it."""

import pandas as pd

from analysis.findings.context_fit import ContextFit
from analysis.findings.ways_to_fit import DRAFT_SAYS
from analysis.model.context_limit import Allowed


def readings(found: ContextFit) -> pd.DataFrame:
    """Whether the wished context fits, by layout, dtype, draft cache and reading of "free"."""
    return pd.DataFrame(
        [
            {
                "layout": reading.layout,
                "kv_dtype": reading.kv_dtype,
                "draft": DRAFT_SAYS[reading.draft_rule],
                "bytes_per_token": reading.bytes_per_token,
                "wished_gib": reading.wished_gib,
                "pool_gib": reading.pool_gib,
                "held_tokens": reading.pool_tokens,
                "missing_gib": reading.missing_gib,
                "fits_before": _word(reading.fits_before),
                "fits_after": _word(reading.fits_after),
            }
            for reading in found.readings
        ]
    )


def engines(found: ContextFit) -> pd.DataFrame:
    """The limit in force, the wish, and what other engines would do with the wish."""
    rows = [("this server, now", found.now), ("this server, as wished", found.then)]
    rows += [("another engine, as wished", other) for other in found.elsewhere]
    if found.limit_tokens == found.wished_tokens:
        rows[0] = ("this server", found.now)
        del rows[1]
    return pd.DataFrame([_allowed(which, answer) for which, answer in rows if answer is not None])


def ways(found: ContextFit) -> pd.DataFrame:
    """Ways to reach the wish, the cheapest first, with the tokens that then fit."""
    rules = {rule for way in found.ways for rule in way.tokens}
    return pd.DataFrame(
        [
            {
                "way": way.name,
                "costs": way.costs,
                **{f"tokens, {rule}": way.tokens.get(rule) for rule in DRAFT_SAYS if rule in rules},
                "enough": way.enough,
            }
            for way in found.ways
        ]
    )


def _allowed(which: str, answer: Allowed) -> dict[str, object]:
    return {
        "which": which,
        "engine": answer.engine,
        "limit_tokens": answer.limit_tokens,
        "starts": "yes" if answer.starts else "no",
        "largest_request": answer.largest_request or None,
        "largest_prompt": answer.largest_prompt or None,
        "requests_at_limit": answer.requests_at_limit,
        "behaviour": answer.behaviour,
    }


def _word(fits: bool | None) -> str:
    return {True: "yes", False: "no", None: "not known"}[fits]
