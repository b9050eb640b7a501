"""Two-point decode: the time per token from two requests that differ only in output length.

With T(N) = prefill + queue + network + N * t, the difference (T2 - T1) / (N2 - N1) keeps t and
drops everything that both requests paid once. It speaks for tokens N1..N2, so for the context
p + (N1 + N2) / 2. With more than two output lengths the least-squares line through all of them
has the same slope and drops the same.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from math import sqrt

import numpy as np

from analysis.model.regression import fit_polynomial, t_quantile


@dataclass(frozen=True)
class TwoPoint:
    """Time per token, the context that it speaks for, and its standard error if known."""

    token_ms: float
    context_tokens: float
    standard_error_ms: float | None

    @property
    def tok_per_s(self) -> float:
        """Decode throughput."""
        return 1000 / self.token_ms


def two_point(
    prompt_tokens: float,
    outputs: tuple[int, int],
    seconds: tuple[float, float],
    seconds_sd: float | None = None,
    repeats: int = 1,
) -> TwoPoint:
    """Estimate from total times ``seconds`` of requests with ``outputs`` tokens, shorter first.

    ``seconds_sd`` is the scatter of one request's total time, ``repeats`` how many requests were
    averaged at each length. Raises ``ValueError`` unless the longer output took longer.
    """
    short, long = outputs
    if not 0 < short < long:
        raise ValueError(f"output lengths {short} and {long} are not rising and positive")
    extra = seconds[1] - seconds[0]
    if extra <= 0:
        raise ValueError("the longer request did not take longer: the noise hides the decode")
    error = None
    if seconds_sd is not None:
        error = 1000 * standard_error_s(seconds_sd, long - short, repeats)
    return TwoPoint(1000 * extra / (long - short), prompt_tokens + (short + long) / 2, error)


def many_point(
    prompt_tokens: float, outputs: Sequence[float], seconds: Sequence[float]
) -> TwoPoint:
    """The same from requests of two or more output lengths: the slope of a least-squares line.

    One output length and total time for each request; the standard error is that of the slope, by
    the scatter about the line. Raises ``ValueError`` for fewer than two lengths, or where longer
    requests did not take longer.
    """
    context = context_of_slope(prompt_tokens, outputs)
    line = fit_polynomial(outputs, seconds)
    if line.coefficients[1] <= 0:
        raise ValueError("the longer request did not take longer: the noise hides the decode")
    interval = line.coefficient_interval(1)
    error = None
    if interval is not None:
        error = 1000 * (interval[1] - interval[0]) / 2 / t_quantile(line.dof)
    return TwoPoint(1000 * line.coefficients[1], context, error)


def context_of_slope(prompt_tokens: float, outputs: Sequence[float]) -> float:
    """The context that such a slope speaks for: p + cov(N, N^2) / (2 var N).

    Where the step is linear in context, T(N) is a quadratic whose N^2 term is b / (2 tau). The
    least-squares slope of N^2 on N is cov(N, N^2) / var(N); with two lengths it is N1 + N2.
    Raises ``ValueError`` with fewer than two distinct lengths.
    """
    n = np.asarray(outputs, dtype=float)
    if len(np.unique(n)) < 2:
        raise ValueError(f"{len(np.unique(n))} distinct output lengths, not at least 2")
    centred = n - n.mean()
    return float(prompt_tokens + (centred @ n**2) / (centred @ n) / 2)


def standard_error_s(seconds_sd: float, extra_tokens: float, repeats: int = 1) -> float:
    """Standard error of the time per token, seconds: sd sqrt(2/m) / (N2 - N1)."""
    return seconds_sd * sqrt(2 / repeats) / extra_tokens
