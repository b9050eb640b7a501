"""vLLM by its own API: ``/tokenize``, prompts as token ids, per-request metrics, ``/metrics``.

Field and metric names: vllm-project/vllm, ``vllm/v1/metrics/loggers.py`` and
``vllm/entrypoints/openai``. Per-request metrics stand in a reply only where the server was started
with ``--enable-per-request-metrics`` and ``--per-request-spec-decode-metrics``.
"""

import time
from dataclasses import replace
from typing import Any

from analysis.engines import metrics
from analysis.engines.client import Counters, Prompt, Reply
from analysis.engines.http import Http, TextTooShortError
from analysis.engines.openai import OpenAi
from analysis.records.run import Server, StepsSource

SPECULATION = "vllm:spec_decode_num_accepted_tokens_total"
SETTLES_S = 1.0
"""vLLM counts a request as finished shortly after its last chunk."""


class Vllm(OpenAi):
    """A vLLM server."""

    def __init__(self, http: Http, model: dict[str, Any], version: str) -> None:
        super().__init__(http, model)
        sums = metrics.read(http)
        speculates = None if sums is None else SPECULATION in sums
        self._told: dict[str, Any] = {}
        self.server = Server(
            kind="vLLM",
            version=version,
            model=self.server.model,
            context_limit=self.server.context_limit,
            speculation={True: "speculation", False: "none", None: ""}[speculates],
            speculates=speculates,
            where=self.server.where,
        )

    def prompt(self, name: str, text: str, tokens: int) -> Prompt:
        """The first ``tokens`` tokens of ``text``, by the server's tokenizer."""
        body = {"model": self.model, "prompt": text, "add_special_tokens": False}
        found = self.http.post("/tokenize", body).get("tokens")
        if not isinstance(found, list) or len(found) < tokens:
            raise TextTooShortError(f"only {len(found or [])} tokens of text, {tokens} wanted")
        return Prompt(name, found[:tokens], tokens)

    def ask(self, prompt: Prompt, output_tokens: int, cold: bool) -> Reply:
        """See ``Client.ask``. Cold: the ids rotated by one, so that no block has been seen."""
        self._told = {}
        before = self.counters()
        asked = prompt
        if cold and not isinstance(prompt.content, str):
            turn = time.monotonic_ns() % len(prompt.content)
            asked = replace(prompt, content=[*prompt.content[turn:], *prompt.content[:turn]])
        reply = super().ask(asked, output_tokens, False)
        told = self._told.get("speculative_decoding") or {}
        accepted = told.get("num_accepted_draft_tokens")
        drafted = told.get("num_draft_tokens")
        source: StepsSource | None = None if accepted is None else "timings"
        decode_ms = self._told.get("generation_time_ms")
        after = self._settled(before)
        if before is not None and after is not None and _alone(before, after, reply):
            if accepted is None and self.server.speculates:
                accepted = _more(before.accepted_tokens, after.accepted_tokens)
                drafted = _more(before.drafted_tokens, after.drafted_tokens)
                source = None if accepted is None else "metrics"
            if decode_ms is None and before.decode_s is not None and after.decode_s is not None:
                decode_ms = 1000 * (after.decode_s - before.decode_s)
        return replace(
            reply,
            drafted_tokens=drafted,
            accepted_tokens=accepted,
            accepted_source=source,
            engine_decode_ms=decode_ms,
            engine_prefill_ms=self._told.get("time_to_first_token_ms"),
        )

    def note(self, event: dict[str, Any]) -> None:
        """Per-request metrics come with the last events."""
        told = event.get("metrics")
        if isinstance(told, dict):
            self._told |= told

    def counters(self) -> Counters | None:
        """From ``/metrics``."""
        sums = metrics.read(self.http)
        if sums is None:
            return None
        return Counters(
            running=metrics.whole(sums, ["vllm:num_requests_running"]),
            generated_tokens=metrics.whole(sums, ["vllm:generation_tokens_total"]),
            accepted_tokens=metrics.whole(sums, [SPECULATION]),
            drafted_tokens=metrics.whole(sums, ["vllm:spec_decode_num_draft_tokens_total"]),
            decodes=metrics.whole(sums, ["vllm:iteration_tokens_total_count"]),
            decode_s=sums.get("vllm:request_decode_time_seconds_sum"),
            finished=metrics.whole(sums, ["vllm:request_decode_time_seconds_count"]),
        )

    def _settled(self, before: Counters | None) -> Counters | None:
        """The counters once the request is counted as finished, or as they are after a second."""
        until = time.monotonic() + SETTLES_S
        while True:
            after = self.counters()
            if before is None or after is None or after.finished != before.finished:
                return after
            if time.monotonic() > until:
                return after
            time.sleep(0.02)


def _alone(before: Counters, after: Counters, reply: Reply) -> bool:
    """Whether all that was counted meanwhile is this one request."""
    return (
        _more(before.finished, after.finished) == 1
        and _more(before.generated_tokens, after.generated_tokens) == reply.output_tokens
    )


def _more(before: int | None, after: int | None) -> int | None:
    return None if before is None or after is None else after - before
