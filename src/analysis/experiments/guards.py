"""What makes a sample unfit to be averaged: each reason is a flag that stays with it."""

from analysis.engines.client import Counters, Reply
from analysis.experiments.host import Seen
from analysis.records.run import Bounds, Flag, Planned, Server

LENGTH_TOLERANCE = 0.02
"""A prompt may miss the asked length by this share: what is fitted is the count that came back."""
COLD_SHARE = 0.05
"""Of a cold prompt at most this share may come from a cache."""
WARM_SHARE = 0.9
"""Of a warm prompt at least this share must come from the cache; caches keep whole blocks."""


def flags(
    planned: Planned,
    reply: Reply,
    steps: int | None,
    server: Server,
    bounds: Bounds,
    seen: Seen,
    before: Counters | None,
    after: Counters | None,
) -> tuple[Flag, ...]:
    """All flags of one answered request."""
    found: list[tuple[bool, Flag]] = [
        (_below(reply.output_tokens, planned.asked_output_tokens), "short output"),
        (_below(planned.asked_output_tokens, reply.output_tokens), "long output"),
        (_length_missed(planned, reply), "prompt length"),
        (_cached(planned, reply), "cached prompt"),
        (_cold(planned, reply), "cold prompt"),
        (_others(reply, before, after), "other requests"),
        (seen.busy_cores is not None and seen.busy_cores > bounds.busy_cores, "host busy"),
        (seen.clock_step_ms > bounds.clock_step_ms, "clock step"),
        (_undrafted(planned, reply, server), "nothing drafted"),
        (steps is not None and steps < bounds.few_steps, "few steps"),
    ]
    return tuple(flag for holds, flag in found if holds)


def beyond_limit(planned: Planned, server: Server) -> bool:
    """Whether prompt and output together exceed the server's context limit."""
    asked = planned.asked_prompt_tokens + planned.asked_output_tokens
    return server.context_limit is not None and asked > server.context_limit


def _below(value: int | None, bound: int | None) -> bool:
    return value is not None and bound is not None and value < bound


def _length_missed(planned: Planned, reply: Reply) -> bool:
    if reply.prompt_tokens is None:
        return False
    asked = planned.asked_prompt_tokens
    return abs(reply.prompt_tokens - asked) > max(2, LENGTH_TOLERANCE * asked)


def _undrafted(planned: Planned, reply: Reply, server: Server) -> bool:
    """Where step time is asked for, a step of another width; of acceptance it is the result."""
    if planned.experiment == "acceptance":
        return False
    return bool(server.speculates) and reply.drafted_tokens == 0


def _cached(planned: Planned, reply: Reply) -> bool:
    """A shared first token or block is no cached prompt."""
    if not planned.cold or reply.cached_tokens is None:
        return False
    return reply.cached_tokens > COLD_SHARE * planned.asked_prompt_tokens


def _cold(planned: Planned, reply: Reply) -> bool:
    """A prompt that was not cached spoils what holds the whole request's time: the two-point."""
    if planned.cold or planned.experiment != "two-point":
        return False
    return reply.cached_tokens is not None and (
        reply.cached_tokens < WARM_SHARE * planned.asked_prompt_tokens
    )


def _others(reply: Reply, before: Counters | None, after: Counters | None) -> bool:
    """Whether the server had another request, before this one, meanwhile or after it."""
    if before is None or after is None:
        return False
    if before.running or after.running:
        return True
    if before.generated_tokens is None or after.generated_tokens is None:
        return False
    return after.generated_tokens - before.generated_tokens > (reply.output_tokens or 0)
