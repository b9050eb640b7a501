"""Whether a restarted server serves a context of the wished length: wait, read back, and probe."""

import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Literal

from analysis.engines.connect import client_of
from analysis.engines.http import (
    Http,
    RefusedError,
    ReportedError,
    RequestError,
    ServerGoneError,
)
from analysis.engines.limits import Limits, read_limits
from analysis.engines.long_prompt import long_prompt
from analysis.engines.readiness import NotReady, Waiting, healthy, wait_until_ready
from analysis.experiments.texts import load_text

Answer = Literal["served", "capped", "not up", "undecided"]

TEXT = "prose"
REPLY_TOKENS = 8
MARGIN_TOKENS = 32
"""A probe's prompt is so much shorter than the wish: the reply, and what a server adds itself."""
SHORT_PCT = 2.0
"""A prompt that the server counts shorter than this was cut."""


@dataclass(frozen=True)
class Probe:
    """One request near the limit. Counts are the server's; ``error`` says why there is none."""

    asked_prompt_tokens: int
    prompt_tokens: int | None = None
    output_tokens: int | None = None
    request_s: float | None = None
    error: str = ""


@dataclass(frozen=True)
class Verified:
    """The answer on ``expect`` tokens, in one sentence ``says``, and what it rests on.

    ``capped_at`` is the longest request that is served, ``None`` where it is not capped or not
    known. ``last_said`` is what the last try met where no server came up.
    """

    answer: Answer
    says: str
    expect: int
    tries: int
    waited_s: float
    capped_at: int | None = None
    capped_by: str = ""
    limits: Limits | None = None
    probe: Probe | None = None
    last_said: str = ""


def verify_context(
    url: str,
    expect: int,
    wait_s: float,
    probe: bool = False,
    timeout_s: float = 300.0,
    waiting: Callable[[Waiting], None] = lambda one: None,
    probing: Callable[[int], None] = lambda tokens: None,
    clock: Callable[[], float] = time.monotonic,
    sleep: Callable[[float], None] = time.sleep,
) -> Verified:
    """Wait for the server at ``url`` and say whether it serves requests of ``expect`` tokens.

    With ``probe`` one request of nearly that many tokens is sent, unless the server itself says
    that it serves fewer; ``probing`` hears of its length first. Raises ``InputError`` for what
    waiting does not mend (``wait_until_ready``).
    """
    http = Http(url, timeout_s)
    try:
        ready = wait_until_ready(
            http, lambda: read_limits(http), wait_s, waiting, clock=clock, sleep=sleep
        )
        if isinstance(ready, NotReady):
            says = f"no server is ready after {ready.tries} tries; it last said: {ready.said}"
            return Verified(
                "not up", says, expect, ready.tries, ready.waited_s, last_said=ready.said
            )
        verified = _by_limits(ready.found, expect, ready.tries, ready.waited_s)
        if not probe or verified.answer == "capped":
            return verified
        return _with_probe(verified, http, ready.found, probing)
    finally:
        http.close()


def _by_limits(limits: Limits, expect: int, tries: int, waited_s: float) -> Verified:
    serves = limits.serves(expect)
    if serves is None or limits.longest is None:
        says = f"{limits.engine} does not tell its context limit: only a probe can show it"
        return Verified("undecided", says, expect, tries, waited_s, limits=limits)
    longest = f"{limits.longest:,} tokens of prompt and output"
    if serves:
        says = f"{limits.engine} serves requests of up to {longest}"
        return Verified("served", says, expect, tries, waited_s, limits=limits)
    says = f"{limits.engine} serves only {longest}; what caps it is {limits.capped_by}"
    return Verified(
        answer="capped",
        says=says,
        expect=expect,
        tries=tries,
        waited_s=waited_s,
        capped_at=limits.longest,
        capped_by=limits.capped_by,
        limits=limits,
    )


def _with_probe(
    verified: Verified, http: Http, limits: Limits, probing: Callable[[int], None]
) -> Verified:
    tokens = max(verified.expect - MARGIN_TOKENS, 1)
    probing(tokens)
    try:
        sent = _sent(http, limits, tokens)
    except (RefusedError, ReportedError) as error:
        return _refused(verified, http, limits, Probe(tokens, error=str(error)))
    except (RequestError, ServerGoneError) as error:
        return _unanswered(verified, http, Probe(tokens, error=str(error)))
    counted = sent.prompt_tokens
    if counted is None:
        says = f"{verified.says}; the probe was answered, but without a count of its prompt"
        return replace(verified, answer="undecided", says=says, probe=sent)
    if counted < sent.asked_prompt_tokens * (1 - SHORT_PCT / 100):
        says = f"the server cut a prompt of {sent.asked_prompt_tokens:,} tokens to {counted:,}"
        return _capped(verified, sent, says, counted + (sent.output_tokens or 0))
    says = f"a prompt of {counted:,} tokens was answered"
    if verified.answer == "served":
        says = f"{verified.says}; {says}"
    return replace(verified, answer="served", says=says, probe=sent)


def _sent(http: Http, limits: Limits, tokens: int) -> Probe:
    """One request, by the client of the server's kind: the length that was made, and the reply."""
    prompt = long_prompt(http, limits, load_text(TEXT).content, tokens)
    reply = client_of(http).ask(prompt, REPLY_TOKENS, cold=True)
    return Probe(prompt.tokens, reply.prompt_tokens, reply.output_tokens, reply.request_s)


def _refused(verified: Verified, http: Http, limits: Limits, probe: Probe) -> Verified:
    """Capped where a prompt of one token is answered: then it was the length that was refused."""
    try:
        _sent(http, limits, 1)
    except (RequestError, ServerGoneError):
        says = f"the server refuses short prompts as well as long ones: {probe.error}"
        return replace(verified, answer="undecided", says=says, probe=probe)
    says = f"the server refused a prompt of {probe.asked_prompt_tokens:,} tokens: {probe.error}"
    return _capped(verified, probe, says, None)


def _unanswered(verified: Verified, http: Http, probe: Probe) -> Verified:
    """Not up where the server is gone since, else undecided."""
    try:
        healthy(http)
    except ServerGoneError as error:
        says = f"the server went away over a prompt of {probe.asked_prompt_tokens:,} tokens"
        return replace(verified, answer="not up", says=says, probe=probe, last_said=str(error))
    except RequestError:
        pass
    says = f"{verified.says}; but the probe was not answered: {probe.error}"
    return replace(verified, answer="undecided", says=says, probe=probe)


def _capped(verified: Verified, probe: Probe, says: str, at: int | None) -> Verified:
    return replace(
        verified, answer="capped", says=says, probe=probe, capped_at=at, capped_by="the probe"
    )
