"""Any server with OpenAI's completions API: lengths by ``usage``, and what its log may add.

Such a server tells neither commit length nor decode time; both stay undefined unless its log is
given. Token counts are the server's own ``usage``; chunks are never counted as tokens.
"""

import time
from typing import Any

from analysis.engines import fields
from analysis.engines.client import Clock, Counters, Prompt, Reply
from analysis.engines.http import Http, RequestError, TextTooShortError
from analysis.records.run import Server

TRIES = 12
CHARACTERS_PER_TOKEN = 4.0
"""As English has them; only the first try rests on it."""
NONCE_DIGITS = 5
"""Few, so that a cold prompt is hardly longer; enough not to come twice in a run."""


class OpenAi:
    """A server that speaks ``/v1/completions``."""

    def __init__(self, http: Http, model: dict[str, Any]) -> None:
        self.http = http
        self.model = str(model["id"])
        self._seen: set[str] = set()
        self.server = Server(
            kind="OpenAI-compatible",
            model=self.model.rsplit("/")[-1],
            context_limit=fields.count(model, "max_model_len") or None,
            where="this machine" if http.local else "another machine",
        )

    def prompt(self, name: str, text: str, tokens: int) -> Prompt:
        """A start of ``text`` that this server counts as ``tokens``, or as near as there is one."""
        length = min(len(text), round(tokens * CHARACTERS_PER_TOKEN))
        short, long = 0, len(text) + 1
        best: Prompt | None = None
        for _ in range(TRIES):
            counted = self._count(text[:length])
            if best is None or abs(counted - tokens) < abs(best.tokens - tokens):
                best = Prompt(name, text[:length], counted)
            if counted == tokens:
                break
            if counted < tokens and length == len(text):
                raise TextTooShortError(f"only {counted} tokens of text, {tokens} wanted")
            short, long = (length, long) if counted < tokens else (short, length)
            if long - short < 2:
                break
            length = min(len(text), round(length * tokens / max(1, counted)))
            if not short < length < long:
                length = (short + long) // 2
        assert best is not None
        return best

    def ask(self, prompt: Prompt, output_tokens: int, cold: bool) -> Reply:
        """See ``Client.ask``; ``ignore_eos`` is asked for, and the count that came back is kept."""
        body = self.body(prompt, output_tokens, cold)
        clock = Clock(time.perf_counter())
        usage: dict[str, Any] = {}
        finished = False
        for came, event in self.http.events("/v1/completions", body):
            for choice in fields.objects(event, "choices"):
                if choice.get("text") or choice.get("token_ids"):
                    clock.token(came)
                finished = finished or choice.get("finish_reason") is not None
            usage = fields.group(event, "usage") or usage
            self.note(event)
        request_s = time.perf_counter() - clock.sent
        if not finished:
            raise RequestError("a stream that was cut short")
        if fields.count(usage, "completion_tokens") is None:
            raise RequestError("a reply without usage: how many tokens came is not known")
        self._seen.add(prompt.name)
        return Reply(
            request_s=request_s,
            first_token_s=clock.first_token_s,
            decode_s=clock.decode_s,
            chunks=clock.chunks,
            prompt_tokens=fields.count(usage, "prompt_tokens"),
            cached_tokens=fields.count(
                fields.group(usage, "prompt_tokens_details"), "cached_tokens"
            ),
            output_tokens=fields.count(usage, "completion_tokens"),
        )

    def body(self, prompt: Prompt, output_tokens: int, cold: bool) -> dict[str, Any]:
        """The request's JSON; what is cold begins with a word that no prompt began with."""
        content = prompt.content
        if cold and isinstance(content, str):
            nonce = f"{time.monotonic_ns() % 16**NONCE_DIGITS:0{NONCE_DIGITS}x} "
            content = (nonce + content)[: len(content)]
        return {
            "model": self.model,
            "prompt": content,
            "max_tokens": output_tokens,
            "temperature": 0,
            "ignore_eos": True,
            "stream": True,
            "stream_options": {"include_usage": True},
        }

    def note(self, event: dict[str, Any]) -> None:
        """Take from a streamed event what an engine adds to it."""

    def holds(self, prompt: Prompt) -> bool:
        """Whether it was sent before."""
        return prompt.name in self._seen

    def counters(self) -> Counters | None:
        """None: the API has no counters."""
        return None

    def close(self) -> None:
        """Close the connection."""
        self.http.close()

    def _count(self, text: str) -> int:
        body = {"model": self.model, "prompt": text, "max_tokens": 1, "temperature": 0}
        usage = fields.group(self.http.post("/v1/completions", body), "usage")
        counted = fields.count(usage, "prompt_tokens")
        if counted is None:
            raise RequestError("a reply without usage: how long the prompt was is not known")
        return counted
