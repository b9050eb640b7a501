"""Diagnoses built by hand: invented windows, medians without statistics behind them."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from analysis.findings.diagnosis_types import Diagnosis, Middle, StepFit, Summary
from analysis.records.seen import Seen
from analysis.records.windows import FLAG_NAMES, Clock, Flag, Windows, windows

START = 1796079379.0
"""2026-11-30 22:56:19, as a log prints it."""


def invented_windows(
    n: int,
    *,
    file: str = "/home/ann/logs/server.log",
    clock: Clock = "date",
    sources: Sequence[str] = ("TP0",),
    flagged: float = 0.2,
    running: float = 1,
    commit: bool = True,
    low: float = 1024,
    high: float = 131072,
) -> Windows:
    """``n`` windows of a server whose step is 20 ms + 0.3 µs per token of context."""
    made = np.random.default_rng(n)
    context = np.geomspace(low, high, n) if n > 1 else np.array([low])
    step = (20 + 0.0003 * context) * made.normal(1, 0.02, n)
    length = 3.2 + made.normal(0, 0.2, n)
    speed = 1000 * length * running / step
    flags = np.where(made.random(n) < flagged, int(Flag.PREFILL), 0)
    flags[: int(flagged > 0)] |= int(Flag.IDLE)
    speed[flags > 0] *= made.uniform(0.02, 0.9, int((flags > 0).sum()))
    unknown = np.full(n, np.nan)
    return windows(
        "sglang",
        file,
        clock,
        sources,
        line=3 * np.arange(n) + 4,
        source=np.arange(n) % len(sources),
        flags=flags,
        time_s=unknown if clock == "none" else START + 4 * np.arange(n),
        context_tokens=context,
        running=np.full(n, running),
        tok_per_s=speed,
        commit=length if commit else unknown,
        acceptance_length=length + 0.05 if commit else unknown,
        step_ms=1000 * length * running / speed if commit else unknown,
    )


def invented(*batches: Windows, fit: bool = True, binned: bool = False, **more: Any) -> Diagnosis:
    """What a diagnosis of these windows could say."""
    used = sum(int(batch.unflagged.sum()) for batch in batches)
    total = sum(map(len, batches))
    known = {
        name: _middle(
            np.concatenate([np.zeros(0), *(getattr(b, name)[b.unflagged] for b in batches)])
        )
        for name in (
            "commit",
            "acceptance_length",
            "step_ms",
            "tok_per_s",
            "context_tokens",
            "running",
        )
    }
    summary = Summary(windows_used=used, windows_flagged=total - used, **known)
    line = StepFit(
        intercept_ms=20.1,
        intercept_ci95=(19.6, 20.6),
        slope_us_per_token=0.301,
        slope_ci95=(0.281, 0.321),
        n=used,
        running=1.0,
        context_range=(
            min((float(b.context_tokens.min()) for b in batches), default=0.0),
            max((float(b.context_tokens.max()) for b in batches), default=0.0),
        ),
        linearity=None,
        of_bins=binned,
    )
    flags = {
        flag: count
        for flag in FLAG_NAMES
        if (count := sum(int((b.flags & flag > 0).sum()) for b in batches))
    }
    speed = known["tok_per_s"]
    given: dict[str, Any] = {
        "engine": "sglang",
        "version_hint": "0.5.6 or newer",
        "verdict": "No window shows decoding alone."
        if speed is None
        else f"{speed.median:.0f} tok/s, because a step takes 25 ms and commits 3.2 tokens: "
        "that is 2.1 times plain decoding with the same step.",
        "details": ("The step grows by 0.30 µs per token of context, the commit does not change.",),
        "seen": Seen(lines=3 * total + 12, unparsed=12, examples=["The server is fired up!"]),
        **more,
    }
    return Diagnosis(
        windows_total=total,
        windows=batches,
        binned=binned,
        summary=summary,
        fit=line if fit and used > 2 and known["step_ms"] else None,
        flags=flags,
        **given,
    )


def _middle(values: np.ndarray) -> Middle | None:
    values = values[np.isfinite(values)]
    if not len(values):
        return None
    if len(values) < 6:
        return Middle(float(np.median(values)), None, None)
    low, middle, high = np.quantile(values, (0.4, 0.5, 0.6))
    return Middle(float(middle), float(low), float(high))
