"""Two-point decode: the time per token from two requests that differ only in output length.

With T(N) = prefill + queue + network + N * t, the difference (T2 - T1) / (N2 - N1) keeps t and
drops everything that both requests paid once. It speaks for tokens N1..N2, so for the context
p + (N1 + N2) / 2. With more than two output lengths the least-squares line through all of them
has the same slope and drops the same.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from math import sqrt

from analysis.model.regression import fit_polynomial


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
    prompt_tokens: float,
    outputs: Sequence[float],
    seconds: Sequence[float],
    seconds_sd: float | None = None,
    repeats: float = 1,
) -> TwoPoint:
    """The same from two or more output lengths: the slope of total time over output tokens.

    The standard error is sd / sqrt(m S), S the sum of squares of the outputs about their mean; of
    two lengths it is ``standard_error_s``. Raises ``ValueError`` for fewer than two lengths, or
    where longer requests did not take longer.
    """
    line = fit_polynomial(outputs, seconds)
    if line.coefficients[1] <= 0:
        raise ValueError("the longer request did not take longer: the noise hides the decode")
    error = None
    if seconds_sd is not None:
        middle = sum(outputs) / len(outputs)
        spread = sum((tokens - middle) ** 2 for tokens in outputs)
        error = 1000 * seconds_sd / sqrt(repeats * spread)
    context = prompt_tokens + (min(outputs) + max(outputs)) / 2
    return TwoPoint(1000 * line.coefficients[1], context, error)


def standard_error_s(seconds_sd: float, extra_tokens: float, repeats: int = 1) -> float:
    """Standard error of the time per token, seconds: sd sqrt(2/m) / (N2 - N1)."""
    return seconds_sd * sqrt(2 / repeats) / extra_tokens
