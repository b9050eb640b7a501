"""The law that the report stands on: ``tok/s = commit / step``, and ``step = a + b * context``.

*Commit length* counts all tokens that a verify step commits, the bonus token included. Contexts
are in tokens, steps in milliseconds. Which context a line speaks of, the *prompt* or the *mean
context while decoding*, is the caller's to keep: see ``mean_context``.
"""

from dataclasses import dataclass


@dataclass(frozen=True)
class StepTime:
    """``step_ms = intercept_ms + slope_ms_per_token * context``."""

    intercept_ms: float
    slope_ms_per_token: float

    def step_ms(self, context_tokens: float) -> float:
        """Step time at a context."""
        return self.intercept_ms + self.slope_ms_per_token * context_tokens

    def context_for(self, step_ms: float) -> float:
        """The context at which a step takes ``step_ms``; negative if even none is too slow."""
        if self.slope_ms_per_token <= 0:
            raise ValueError("a step that does not grow with context has no such context")
        return (step_ms - self.intercept_ms) / self.slope_ms_per_token


def throughput(commit_length: float, step_ms: float) -> float:
    """Tokens per second of one stream."""
    return 1000 * commit_length / step_ms


def implied_step_ms(commit_length: float, tok_per_s: float) -> float:
    """The step time that a throughput and a commit length imply. Derived, never a test."""
    return 1000 * commit_length / tok_per_s


def commit_for(tok_per_s: float, step_ms: float) -> float:
    """The commit length that would give this throughput at this step time."""
    return tok_per_s * step_ms / 1000


def mean_context(prompt_tokens: float, output_tokens: float) -> float:
    """Mean context while ``output_tokens`` are decoded after the prompt: p + n/2."""
    return prompt_tokens + output_tokens / 2


def decode_seconds(
    step: StepTime, commit_length: float, prompt_tokens: float, output_tokens: float
) -> float:
    """Time to decode ``output_tokens`` while the context grows: (n/tau) (a + b (p + n/2)).

    ``step`` must be a fit on the *mean-context* axis. A fit on prompt lengths already holds half
    an output in its intercept and would count it twice.
    """
    steps = output_tokens / commit_length
    return steps * step.step_ms(mean_context(prompt_tokens, output_tokens)) / 1000
