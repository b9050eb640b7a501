"""llama.cpp's server by its own API: ``/props``, ``/slots``, ``/tokenize``, ``/completion``.

Field and metric names: ggml-org/llama.cpp, ``tools/server/README.md`` and
``tools/server/server-context.cpp``.
"""

import time
from typing import Any

from analysis.engines import fields, metrics
from analysis.engines.client import Clock, Counters, Prompt, Reply
from analysis.engines.http import Http, RequestError, TextTooShortError
from analysis.records.run import Server


class LlamaCpp:
    """A llama.cpp server. Each prompt keeps a slot of its own while there are slots enough."""

    def __init__(self, http: Http, props: dict[str, Any]) -> None:
        self._http = http
        self._slot_of: dict[str, int] = {}
        self._prompt_in: dict[int, str] = {}
        slots = _slots(http)
        self._slots = fields.count(props, "total_slots") or len(slots) or 1
        told = slots[0].get("speculative") if slots else None
        speculates = told if isinstance(told, bool) else None
        speculation = "none" if speculates is False else self._speculation()
        if speculates is None and speculation:
            speculates = speculation != "none"
        self.server = Server(
            kind="llama.cpp",
            version=str(props.get("build_info") or ""),
            model=str(props.get("model_alias") or props.get("model_path") or "").rsplit("/")[-1],
            context_limit=fields.count(props["default_generation_settings"], "n_ctx") or None,
            slots=self._slots,
            speculation=speculation,
            speculates=speculates,
            where="this machine" if http.local else "another machine",
        )

    def prompt(self, name: str, text: str, tokens: int) -> Prompt:
        """The first ``tokens`` tokens of ``text``, by the server's tokenizer."""
        found = fields.items(self._http.post("/tokenize", {"content": text}), "tokens")
        if len(found) < tokens:
            raise TextTooShortError(f"only {len(found)} tokens of text, {tokens} wanted")
        return Prompt(name, found[:tokens], tokens)

    def ask(self, prompt: Prompt, output_tokens: int, cold: bool) -> Reply:
        """Decode greedily past any end-of-sequence token; see ``Client.ask``."""
        slot = self._slot(prompt.name)
        body = {
            "prompt": prompt.content,
            "n_predict": output_tokens,
            "ignore_eos": True,
            "temperature": 0,
            "cache_prompt": not cold,
            "id_slot": slot,
            "stream": True,
        }
        self._prompt_in[slot] = ""
        clock = Clock(time.perf_counter())
        last: dict[str, Any] = {}
        for came, last in self._http.events("/completion", body):
            if last.get("tokens"):
                clock.token(came)
        request_s = time.perf_counter() - clock.sent
        if not last.get("stop"):
            raise RequestError("a stream that was cut short")
        self._prompt_in[slot] = prompt.name
        timings = fields.group(last, "timings")
        drafted = fields.count(timings, "draft_n")
        if drafted is None and self.server.speculates:
            drafted = 0  # both counts are left out where nothing was drafted
        accepted = 0 if drafted == 0 else fields.count(timings, "draft_n_accepted")
        return Reply(
            request_s=request_s,
            first_token_s=clock.first_token_s,
            decode_s=clock.decode_s,
            chunks=clock.chunks,
            prompt_tokens=fields.count(last, "tokens_evaluated"),
            cached_tokens=fields.count(timings, "cache_n"),
            output_tokens=fields.counted(timings, "predicted_n"),
            drafted_tokens=drafted,
            accepted_tokens=accepted,
            accepted_source=None if accepted is None else "timings",
            engine_decode_ms=fields.amount(timings, "predicted_ms"),
            engine_prefill_ms=fields.amount(timings, "prompt_ms"),
        )

    def holds(self, prompt: Prompt) -> bool:
        """Whether the prompt was the last one in its slot."""
        return self._prompt_in.get(self._slot(prompt.name)) == prompt.name

    def counters(self) -> Counters | None:
        """From ``/metrics``, where the server runs with ``--metrics``."""
        sums = metrics.read(self._http)
        if sums is None:
            return None
        return Counters(
            running=metrics.whole(sums, ["llamacpp:requests_processing"]),
            generated_tokens=metrics.whole(sums, ["llamacpp:tokens_predicted_total"]),
            accepted_tokens=metrics.whole(sums, ["llamacpp:spec_decode_num_accepted_tokens_total"]),
            drafted_tokens=metrics.whole(sums, ["llamacpp:spec_decode_num_draft_tokens_total"]),
            decodes=metrics.whole(sums, ["llamacpp:n_decode_total"]),
        )

    def close(self) -> None:
        """Close the connection."""
        self._http.close()

    def _slot(self, name: str) -> int:
        return self._slot_of.setdefault(name, len(self._slot_of) % self._slots)

    def _speculation(self) -> str:
        """The drafting methods by name; they stand only in the settings of a finished request."""
        body = {"prompt": " ", "n_predict": 1, "cache_prompt": False}
        settings = fields.group(self._http.post("/completion", body), "generation_settings")
        return str(settings.get("speculative.types") or "")


def _slots(http: Http) -> list[dict[str, Any]]:
    """What ``/slots`` shows, or nothing where the server keeps it closed."""
    response = http.get("/slots")
    try:
        content = response.json() if response.is_success else []
    except ValueError:
        raise RequestError("a page of slots that is not JSON") from None
    found = content if isinstance(content, list) else []
    return [slot for slot in found if isinstance(slot, dict)]
