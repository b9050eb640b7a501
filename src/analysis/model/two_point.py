"""Two-point decode: the time per token from two requests that differ only in output length.

With T(N) = prefill + queue + network + N * t, the difference (T2 - T1) / (N2 - N1) keeps t and
drops everything that both requests paid once. It speaks for tokens N1..N2, so for the context
p + (N1 + N2) / 2.
"""

from dataclasses import dataclass
from math import sqrt


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


def standard_error_s(seconds_sd: float, extra_tokens: float, repeats: int = 1) -> float:
    """Standard error of the time per token, seconds: sd sqrt(2/m) / (N2 - N1)."""
    return seconds_sd * sqrt(2 / repeats) / extra_tokens
