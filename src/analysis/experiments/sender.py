"""Sending one planned request, and making a sample of what came back."""

import time
from collections.abc import Iterator, Mapping
from contextlib import suppress
from datetime import UTC, datetime

from analysis.engines.client import Client, Counters, Prompt, Reply
from analysis.engines.http import RefusedError, RequestError, ServerGoneError
from analysis.errors import InputError
from analysis.experiments import guards
from analysis.experiments.estimate import WARMUP_OUTPUT_TOKENS, prompt_name
from analysis.experiments.host import Seen, Watch
from analysis.experiments.texts import Text
from analysis.logs.commit import VLLM_INTERVAL, LoggedCommit, commit_from_log
from analysis.logs.source import LogSource, Mark
from analysis.model.decode_steps import decoded_tokens, steps_from_accepted
from analysis.records.run import Manifest, Planned, Sample, StepsSource

CHARACTERS_PER_TOKEN = 10
"""More than any tokenizer packs into one on average, so that a text cut there is long enough."""
IN_A_ROW = 3
"""So many failures in a row, and the server is taken for ill."""
PLACES = 8
"""Excerpts start at eighths of a text, or closer where more are asked for."""
LATE_S = 1.0
"""How long after its interval a line of vLLM may still be on its way."""
ONE_BATCH = 256
"""Prompt tokens that surely were one forward, so that what is left of the count is decoding."""


class StoppedError(RuntimeError):
    """The session cannot go on; what was measured stays, and can be resumed."""


class Sender:
    """Sends requests one at a time, each prompt warmed up before it is first measured."""

    def __init__(
        self,
        client: Client,
        manifest: Manifest,
        texts: Mapping[str, Text],
        watch: Watch,
        log: LogSource | None,
    ) -> None:
        self._client = client
        self._server = manifest.server
        self._bounds = manifest.bounds
        self._experiments = manifest.experiments
        self._texts = texts
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
        sent = datetime.now(UTC)
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
            refused = isinstance(error, RefusedError)
            self._failed += not refused
            flags = ("error", "refused") if refused else ("error",)
            yield _sample(planned, {"sent_utc": sent, "flags": flags, "error": str(error)})
            if self._failed >= IN_A_ROW:
                raise StoppedError(f"{IN_A_ROW} requests in a row failed: {error}") from None

    def _prompt(self, planned: Planned) -> Prompt:
        name = prompt_name(planned)
        if name not in self._prompts:
            needed = CHARACTERS_PER_TOKEN * planned.asked_prompt_tokens
            excerpts = int(self._experiments[planned.experiment]["excerpts"])
            content = _excerpt(self._texts[planned.text], planned.excerpt, excerpts, needed)
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
        # From here on the reply is there, and nothing that fails may lose it.
        after = None
        with suppress(RequestError, ServerGoneError):
            after = self._client.counters()
        logged = None
        if mark is not None and reply.accepted_tokens is None:
            with suppress(InputError):
                logged = self._logged(mark, sent, ended, reply)
        return self._judged(planned, reply, seen, sent, before, after, logged)

    def _logged(
        self, mark: Mark, sent: datetime, ended: datetime, reply: Reply
    ) -> LoggedCommit | None:
        """What the log says of this request; the log is taken to be in this machine's zone."""
        if self._log is None or not reply.output_tokens:
            return None
        if self._server.kind == "vLLM":
            time.sleep(VLLM_INTERVAL.total_seconds() + LATE_S)
        zone = ended.astimezone().tzinfo or UTC
        return commit_from_log(self._log.since(mark), sent, ended, reply.output_tokens, zone)

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
        error = ""
        try:
            steps, source = self._steps(reply)
        except ValueError as impossible:
            steps, source, error = None, None, f"counts that cannot be: {impossible}"
        if logged is not None:
            steps, source = logged.steps, "log"
        found = guards.flags(planned, reply, steps, self._server, self._bounds, seen, before, after)
        if error:
            found = (*found, "error", "refused")
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
                "accepted_tokens": logged.accepted_tokens if logged else reply.accepted_tokens,
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
                "error": error,
            },
        )

    def _steps(self, reply: Reply) -> tuple[int | None, StepsSource | None]:
        if not reply.output_tokens:
            return None, None
        if reply.steps is not None:
            if reply.steps > decoded_tokens(reply.output_tokens):
                raise ValueError(f"{reply.steps} steps for {reply.output_tokens} output tokens")
            return reply.steps, reply.accepted_source
        if reply.accepted_tokens is not None:
            steps = steps_from_accepted(reply.output_tokens, reply.accepted_tokens)
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


def _excerpt(text: Text, excerpt: int, excerpts: int, characters: int) -> str:
    """A piece of a text, from its start or from a later word; repeated text is long enough."""
    if text.repeated:
        return text.at_least(characters + excerpt)[excerpt:]
    content = text.content
    start = len(content) * excerpt // max(PLACES, excerpts)
    if excerpt:
        start = max(start, content.find(" ", start) + 1)
    return content[start : start + characters]


def _sample(planned: Planned, values: dict[str, object]) -> Sample:
    return Sample.model_validate(planned.model_dump() | values)
