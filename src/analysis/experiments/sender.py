"""Sending one planned request, and making a sample of what came back."""

import time
from collections.abc import Iterator
from datetime import UTC, datetime

from analysis.engines.client import Client, Counters, Prompt, Reply
from analysis.engines.http import RequestError, ServerGoneError, TextTooShortError
from analysis.experiments import guards
from analysis.experiments.estimate import WARMUP_OUTPUT_TOKENS, prompt_name
from analysis.experiments.host import Seen, Watch
from analysis.experiments.texts import load_text
from analysis.logs.commit import VLLM_INTERVAL, LoggedCommit, commit_from_log
from analysis.logs.source import LogSource
from analysis.model.decode_steps import decoded_tokens, steps_from_accepted
from analysis.records.run import Manifest, Planned, Sample, StepsSource

CHARACTERS_PER_TOKEN = 10
"""More than any tokenizer packs into one on average, so that a text cut there is long enough."""
IN_A_ROW = 3
"""So many failures in a row, and the server is taken for ill."""
ONE_BATCH = 256
"""Prompt tokens that surely were one forward, so that what is left of the count is decoding."""


class StoppedError(RuntimeError):
    """The session cannot go on; what was measured stays, and can be resumed."""


class Sender:
    """Sends requests one at a time, each prompt warmed up before it is first measured."""

    def __init__(
        self, client: Client, manifest: Manifest, watch: Watch, log: LogSource | None
    ) -> None:
        self._client = client
        self._server = manifest.server
        self._bounds = manifest.bounds
        self._watch = watch
        self._log = log
        self._prompts: dict[str, Prompt] = {}
        self._warm: set[str] = set()
        self._failed = 0

    def send(self, planned: Planned) -> Iterator[Sample]:
        """The samples of a request: a warm-up where the prompt is new, and the request itself.

        Raises ``StoppedError`` once nothing answers any more.
        """
        if guards.beyond_limit(planned, self._server):
            yield _sample(planned, {"sent_utc": datetime.now(UTC), "flags": ("beyond limit",)})
            return
        try:
            prompt = self._prompt(planned)
            new = prompt.name not in self._warm
            spoils = planned.experiment == "two-point" and not planned.cold
            if new or (spoils and not self._client.holds(prompt)):
                yield self._measured(
                    planned.model_copy(
                        update={"warmup": True, "asked_output_tokens": WARMUP_OUTPUT_TOKENS}
                    ),
                    prompt,
                )
                self._warm.add(prompt.name)
            yield self._measured(planned, prompt)
            self._failed = 0
        except ServerGoneError as error:
            raise StoppedError(f"the server is gone: {error}") from None
        except RequestError as error:
            self._failed += not isinstance(error, TextTooShortError)
            yield _sample(
                planned,
                {"sent_utc": datetime.now(UTC), "flags": ("error",), "error": str(error)},
            )
            if self._failed >= IN_A_ROW:
                raise StoppedError(f"{IN_A_ROW} requests in a row failed: {error}") from None

    def _prompt(self, planned: Planned) -> Prompt:
        name = prompt_name(planned)
        if name not in self._prompts:
            needed = CHARACTERS_PER_TOKEN * planned.asked_prompt_tokens
            content = _excerpt(planned.text, planned.excerpt, needed)
            self._prompts[name] = self._client.prompt(name, content, planned.asked_prompt_tokens)
        return self._prompts[name]

    def _measured(self, planned: Planned, prompt: Prompt) -> Sample:
        before = self._client.counters()
        mark = self._log.mark() if self._log else None
        self._watch.start()
        sent = datetime.now(UTC)
        reply = self._client.ask(prompt, planned.asked_output_tokens, planned.cold)
        seen = self._watch.stop()
        ended = datetime.now(UTC)
        after = self._client.counters()
        logged = None
        if self._log and mark is not None and reply.accepted_tokens is None and reply.output_tokens:
            if self._server.kind == "vLLM":
                time.sleep(VLLM_INTERVAL.total_seconds())
            lines = self._log.since(mark)
            zone = ended.astimezone().tzinfo or UTC
            logged = commit_from_log(lines, sent, ended, reply.output_tokens, zone)
        return self._judged(planned, reply, seen, sent, before, after, logged)

    def _judged(
        self,
        planned: Planned,
        reply: Reply,
        seen: Seen,
        sent: datetime,
        before: Counters | None,
        after: Counters | None,
        logged: LoggedCommit | None,
    ) -> Sample:
        steps, source = self._steps(reply)
        if steps is None and logged is not None:
            source = "log"
        found = guards.flags(planned, reply, steps, self._server, self._bounds, seen, before, after)
        return _sample(
            planned,
            {
                "sent_utc": sent,
                "request_s": reply.request_s,
                "first_token_s": reply.first_token_s,
                "decode_s": reply.decode_s,
                "chunks": reply.chunks,
                "prompt_tokens": reply.prompt_tokens,
                "cached_tokens": reply.cached_tokens,
                "output_tokens": reply.output_tokens,
                "drafted_tokens": reply.drafted_tokens,
                "accepted_tokens": reply.accepted_tokens,
                "steps": steps,
                "steps_source": source,
                "counter_steps": _counted_steps(reply, before, after),
                "logged_commit_length": logged.commit_length if logged else None,
                "engine_decode_ms": reply.engine_decode_ms,
                "engine_prefill_ms": reply.engine_prefill_ms,
                "running_before": before.running if before else None,
                "busy_cores": seen.busy_cores,
                "clock_step_ms": seen.clock_step_ms,
                "flags": found,
            },
        )

    def _steps(self, reply: Reply) -> tuple[int | None, StepsSource | None]:
        if not reply.output_tokens:
            return None, None
        if reply.steps is not None:
            if reply.steps > decoded_tokens(reply.output_tokens):
                found = f"{reply.steps} steps for {reply.output_tokens} output tokens"
                raise RequestError(f"counts that cannot be: {found}")
            return reply.steps, reply.accepted_source
        if reply.accepted_tokens is not None:
            try:
                steps = steps_from_accepted(reply.output_tokens, reply.accepted_tokens)
            except ValueError as error:
                raise RequestError(f"counts that cannot be: {error}") from None
            return steps, reply.accepted_source
        if self._server.speculates is False:
            return decoded_tokens(reply.output_tokens), "no drafting"
        return None, None


def _counted_steps(reply: Reply, before: Counters | None, after: Counters | None) -> int | None:
    """Decode steps by the server's own counter; of forwards, where prefill surely was one.

    ``None`` where there is none, or where it did not go on as counters do.
    """
    if before is None or after is None:
        return None
    if before.steps is not None and after.steps is not None:
        counted = after.steps - before.steps
    elif before.decodes is not None and after.decodes is not None and _one_prefill(reply):
        counted = after.decodes - before.decodes - 1
    else:
        return None
    return counted if counted >= 0 else None


def _one_prefill(reply: Reply) -> bool:
    if reply.prompt_tokens is None or reply.cached_tokens is None:
        return False
    return reply.prompt_tokens - reply.cached_tokens <= ONE_BATCH


def _excerpt(name: str, excerpt: int, characters: int) -> str:
    """A piece of a text, from its start or from a later word; repeated text is long enough."""
    text = load_text(name)
    if text.repeated:
        return text.at_least(characters + excerpt)[excerpt:]
    content = text.content
    start = 0
    if excerpt:
        start = content.find(" ", len(content) * excerpt // 8) + 1
    return content[start : start + characters]


def _sample(planned: Planned, values: dict[str, object]) -> Sample:
    return Sample.model_validate(planned.model_dump() | values)
