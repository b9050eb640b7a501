"""What a change is worth, as a factor on throughput, at a given context."""

from math import inf

from analysis.model.step_time import StepTime


def gain_of_slope(step: StepTime, new_slope_ms_per_token: float, context_tokens: float) -> float:
    """Speed-up if only the slope changed: a better kernel, or less cache per GPU."""
    changed = StepTime(step.intercept_ms, new_slope_ms_per_token)
    return step.step_ms(context_tokens) / changed.step_ms(context_tokens)


def slope_for_gain(step: StepTime, gain: float, context_tokens: float) -> float:
    """The slope, ms per token, that alone would speed a step up by ``gain`` at a context.

    Inverse of ``gain_of_slope``; negative where even a vanished slope is worth less.
    """
    return (step.step_ms(context_tokens) / gain - step.intercept_ms) / context_tokens


def crossover_context(step: StepTime, drafter_gain: float) -> float:
    """Context at which a drafter worth ``drafter_gain`` and a vanished slope are worth the same.

    Solves (a + b c) / a = gain. Below it the drafter wins, above it the kernel does; it is
    infinite for a step that does not grow.
    """
    if step.slope_ms_per_token <= 0:
        return inf
    return step.context_for(drafter_gain * step.intercept_ms)


def context_share(step: StepTime, context_tokens: float) -> float:
    """Share of the step that grows with context, between 0 and 1."""
    return step.slope_ms_per_token * context_tokens / step.step_ms(context_tokens)
