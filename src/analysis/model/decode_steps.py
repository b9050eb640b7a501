"""Verify steps and commit length of one request, from what its server counted.

Prefill samples the first token, so ``n`` output tokens take ``n - 1`` decoded ones, and every step
commits exactly one token that was not drafted: ``steps = n - 1 - accepted``. That holds where some
steps draft nothing too (n-gram and suffix drafters), where the number of *drafted* steps does not.
llama.cpp ``tools/server/server-context.cpp`` (timings), vLLM ``v1/spec_decode/metrics.py``.

A reply that is cut at its maximum can lose drafts that were counted as accepted; each lost one
makes the count a step too low, at most as many as a step drafts. llama.cpp drafts no further than
the maximum and is exact; vLLM 0.32 counted 21 for 28 steps in one short reply, so its client asks
for a count that is not cut. The bias shrinks with length: see ``FEW_STEPS``.
"""

FEW_STEPS = 20
"""Below this many steps, one miscounted step is worth more than 5 %."""


def steps_from_accepted(output_tokens: int, accepted_tokens: int) -> int:
    """Decode steps of a request that put out ``output_tokens``, of which drafts were accepted.

    Raises ``ValueError`` where more drafts were accepted than tokens were decoded.
    """
    steps = decoded_tokens(output_tokens) - accepted_tokens
    if steps < 0 or (steps == 0 and output_tokens > 1):
        raise ValueError(f"{accepted_tokens} accepted drafts in {output_tokens} output tokens")
    return steps


def decoded_tokens(output_tokens: int) -> int:
    """Output tokens less the one that prefill sampled."""
    if output_tokens < 1:
        raise ValueError(f"{output_tokens} output tokens are not at least 1")
    return output_tokens - 1


def commit_length(output_tokens: int, steps: int) -> float:
    """Tokens committed per verify step over all steps, bonus token included, prefill's excluded."""
    if steps < 1:
        raise ValueError(f"{steps} steps are not at least 1")
    return decoded_tokens(output_tokens) / steps
