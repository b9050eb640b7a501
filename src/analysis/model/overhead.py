"""Can one step-time line serve a sweep and a two-point decode, if each sweep request paid a fee?

A sweep's tok/s is output over *total* time, so a fixed overhead per request (time to first
token, set-up) hides in it: ``T = t0 + (N / tau) (a + b c)``. A two-point decode cancels it. Per
step, with the sweep's own commit length on both sides:

    sweep:      1000 tau / tok_s = a + b c + t0 * 1000 tau / N
    two-point:  1000 tau / tok_s = a + b c

which is linear in (a, b, t0).
"""

from collections.abc import Sequence
from dataclasses import dataclass
from math import sqrt

import numpy as np

from analysis.model.regression import Weights, least_squares
from analysis.model.step_time import implied_step_ms


@dataclass(frozen=True)
class Decodes:
    """Throughputs of one kind: contexts (tokens), commit lengths, tok/s, all of equal length."""

    context_tokens: Sequence[float]
    commit_length: Sequence[float]
    tok_per_s: Sequence[float]


@dataclass(frozen=True)
class OverheadFit:
    """The joint fit, and the scatter that it leaves beside that of a fit without overhead.

    ``rms`` are root mean squares over n minus the number of coefficients: in ms, or as a share
    of the step under relative weights.
    """

    intercept_ms: float
    slope_ms_per_token: float
    overhead_s: float
    rms: float
    rms_without_overhead: float


def fit_overhead(
    sweep: Decodes, output_tokens: float, two_point: Decodes, weights: Weights = "none"
) -> OverheadFit:
    """Fit one line through both measurements, with and without overhead per sweep request."""
    context = np.array([*sweep.context_tokens, *two_point.context_tokens], dtype=float)
    commit = np.array([*sweep.commit_length, *two_point.commit_length], dtype=float)
    tok_per_s = np.array([*sweep.tok_per_s, *two_point.tok_per_s], dtype=float)
    step = np.array([implied_step_ms(c, t) for c, t in zip(commit, tok_per_s, strict=True)])
    per_overhead_s = 1000 * commit / output_tokens
    per_overhead_s[len(sweep.context_tokens) :] = 0.0
    scale = 1 / step if weights == "relative" else np.ones_like(step)

    columns = np.column_stack([np.ones_like(context), context, per_overhead_s])
    columns *= scale[:, None]
    joint, _, rss = least_squares(columns, step * scale)
    _, _, rss_without = least_squares(columns[:, :2], step * scale)
    return OverheadFit(
        intercept_ms=float(joint[0]),
        slope_ms_per_token=float(joint[1]),
        overhead_s=float(joint[2]),
        rms=sqrt(rss / (len(step) - 3)),
        rms_without_overhead=sqrt(rss_without / (len(step) - 2)),
    )
