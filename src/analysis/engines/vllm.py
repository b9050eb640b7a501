"""vLLM by its own API: ``/tokenize``, prompts as token ids, per-request metrics, ``/metrics``.

Field and metric names: vllm-project/vllm 0.32, ``vllm/v1/metrics/loggers.py`` and
``vllm/entrypoints/openai``. Per-request metrics stand in a reply only where the server was started
with ``--enable-per-request-metrics`` and ``--per-request-spec-decode-metrics``, cached tokens only
with ``--enable-prompt-tokens-details``; ``/metrics`` tells the same while no other request runs.

vLLM drafts beyond the last token that was asked for, and counts as accepted what is then cut: up
to a whole block in the last step. So its steps are not ``output - 1 - accepted``. Exact are the
gaps between tokens, of which a request has one in each decode step (``v1/metrics/stats.py``,
``update_from_output``).
"""

import time
from dataclasses import replace
from typing import Any

from analysis.engines import fields, metrics
from analysis.engines.client import Counters, Prompt, Reply
from analysis.engines.http import Http, TextTooShortError
from analysis.engines.openai import OpenAi

ANY_COUNTER = "vllm:generation_tokens_total"
SPECULATION = "vllm:spec_decode_num_accepted_tokens_total"
GAPS = (
    "vllm:inter_token_latency_seconds_count",
    "vllm:time_per_output_token_seconds_count",  # its name before 0.11
)
CACHED = ("vllm:prompt_tokens_cached_total", "vllm:prefix_cache_hits_total")
SETTLES_S = 1.0
"""vLLM counts a request as finished shortly after its last chunk."""


class Vllm(OpenAi):
    """A vLLM server."""

    def __init__(self, http: Http, model: dict[str, Any], version: str) -> None:
        super().__init__(http, model)
        sums = metrics.read(http) or {}
        speculates = SPECULATION in sums if ANY_COUNTER in sums else None
        self._told: dict[str, Any] = {}
        self.server = self.server.model_copy(
            update={
                "kind": "vLLM",
                "version": version,
                "speculation": {True: "speculation", False: "none", None: ""}[speculates],
                "speculates": speculates,
            }
        )

    def prompt(self, name: str, text: str, tokens: int) -> Prompt:
        """The first ``tokens`` tokens of ``text``, by the server's tokenizer."""
        body = {"model": self.model, "prompt": text, "add_special_tokens": False}
        found = fields.items(self.http.post("/tokenize", body), "tokens")
        if len(found) < tokens:
            raise TextTooShortError(f"only {len(found)} tokens of text, {tokens} wanted")
        return Prompt(name, found[:tokens], tokens)

    def ask(self, prompt: Prompt, output_tokens: int, cold: bool) -> Reply:
        """See ``Client.ask``: by the reply itself, and by the counters for what it leaves out."""
        self._told = {}
        before = self.counters()
        reply = super().ask(prompt, output_tokens, cold)
        after = self._settled(before)
        decode_ms = fields.amount(self._told, "generation_time_ms")
        reply = replace(
            self._by_reply(reply),
            engine_decode_ms=decode_ms,
            engine_prefill_ms=fields.amount(self._told, "time_to_first_token_ms"),
        )
        if before is None or after is None or not _alone(before, after, reply):
            return reply
        return _by_counters(reply, before, after)

    def body(self, prompt: Prompt, output_tokens: int, cold: bool) -> dict[str, Any]:
        """The request's JSON; what is cold has a salt of its own, which no cached block has."""
        asked = super().body(prompt, output_tokens, False) | {"return_token_ids": True}
        return asked | ({"cache_salt": f"{time.monotonic_ns():x}"} if cold else {})

    def note(self, event: dict[str, Any]) -> None:
        """Per-request metrics come with the last events."""
        self._told |= fields.group(event, "metrics")

    def counters(self) -> Counters | None:
        """From ``/metrics``."""
        sums = metrics.read(self.http)
        if sums is None:
            return None
        return Counters(
            running=metrics.whole(sums, ["vllm:num_requests_running"]),
            generated_tokens=metrics.whole(sums, [ANY_COUNTER]),
            accepted_tokens=metrics.whole(sums, [SPECULATION]),
            drafted_tokens=metrics.whole(sums, ["vllm:spec_decode_num_draft_tokens_total"]),
            cached_tokens=metrics.whole(sums, CACHED),
            decodes=metrics.whole(sums, ["vllm:iteration_tokens_total_count"]),
            steps=metrics.whole(sums, GAPS),
            decode_s=sums.get("vllm:request_decode_time_seconds_sum"),
            finished=metrics.whole(sums, ["vllm:request_decode_time_seconds_count"]),
        )

    def _by_reply(self, reply: Reply) -> Reply:
        """What the reply's own metrics say of drafting."""
        told = fields.group(self._told, "speculative_decoding")
        accepted = fields.count(told, "num_accepted_draft_tokens")
        if accepted is None or not reply.output_tokens:
            return reply
        return replace(
            reply,
            drafted_tokens=fields.count(told, "num_draft_tokens"),
            accepted_tokens=accepted,
            accepted_source="timings",
            steps=_at_least(reply, accepted, fields.count(told, "num_spec_steps") or 0),
        )

    def _settled(self, before: Counters | None) -> Counters | None:
        """The counters once the request is counted as finished, or as they are after a second."""
        until = time.monotonic() + SETTLES_S
        while True:
            after = self.counters()
            if before is None or before.finished is None or after is None:
                return after
            if after.finished != before.finished or time.monotonic() > until:
                return after
            time.sleep(0.02)


def _by_counters(reply: Reply, before: Counters, after: Counters) -> Reply:
    """A reply with what it did not tell itself, from the counters before and after it."""
    steps = _more(before.steps, after.steps)
    accepted = _more(before.accepted_tokens, after.accepted_tokens)
    if reply.accepted_tokens is None and accepted is not None and reply.output_tokens:
        reply = replace(
            reply,
            drafted_tokens=_more(before.drafted_tokens, after.drafted_tokens),
            accepted_tokens=accepted,
            accepted_source="metrics",
            steps=_at_least(reply, accepted) if steps is None else steps,
        )
    if (
        reply.engine_decode_ms is None
        and before.decode_s is not None
        and after.decode_s is not None
    ):
        reply = replace(reply, engine_decode_ms=1000 * (after.decode_s - before.decode_s))
    if reply.cached_tokens is None:
        reply = replace(reply, cached_tokens=_more(before.cached_tokens, after.cached_tokens))
    return reply


def _at_least(reply: Reply, accepted: int, drafted_steps: int = 0) -> int:
    """Decode steps of a reply: too few only where chunks were merged and the last block was cut.

    A step commits one token beside accepted drafts, drafts at most once, and sends one chunk.
    """
    assert reply.output_tokens is not None
    return max(reply.output_tokens - 1 - accepted, drafted_steps, reply.chunks - 1)


def _alone(before: Counters, after: Counters, reply: Reply) -> bool:
    """Whether all that was counted meanwhile is this one request."""
    return (
        _more(before.finished, after.finished) == 1
        and _more(before.generated_tokens, after.generated_tokens) == reply.output_tokens
    )


def _more(before: int | None, after: int | None) -> int | None:
    return None if before is None or after is None else after - before
