"""Served, capped or not up: on the embedded server as it is restarted, and on faults of a probe."""

from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from tests.engines.fault_server import Answer, FaultServer, Received, llama_cpp, says, streams

from analysis.engines import embedded
from analysis.engines.embedded import Settings
from analysis.engines.http import KEY_VARIABLE
from analysis.engines.long_prompt import PIECE_CHARACTERS
from analysis.errors import InputError
from analysis.experiments.texts import load_text
from analysis.experiments.verify_context import MARGIN_TOKENS, TEXT, Verified, verify_context

WAIT_S = 120.0
SETTINGS = Settings(speculation="none", slots=1, context_tokens=1024)


@pytest.fixture(autouse=True)
def no_key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(KEY_VARIABLE, raising=False)


class Service:
    """An embedded server on one port, which can be stopped and started with other settings."""

    def __init__(self, port: int, folder: Path) -> None:
        self.url = f"http://127.0.0.1:{port}"
        self._log = folder / "server.log"
        self._running = ExitStack()

    def start(self, settings: Settings) -> None:
        self._running.enter_context(embedded.running(settings, self._log))

    def stop(self) -> None:
        self._running.close()


@pytest.fixture
def service(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Service]:
    port = embedded.free_port()
    monkeypatch.setattr(embedded, "free_port", lambda: port)
    service = Service(port, tmp_path)
    yield service
    service.stop()


class Sleeper:
    """A clock that only sleeping moves; ``then`` happens in the pause of that number."""

    def __init__(self, pause: int = 0, then: Callable[[], None] = lambda: None) -> None:
        self.now = 0.0
        self.pauses = 0
        self._pause, self._then = pause, then

    def clock(self) -> float:
        return self.now

    def sleep(self, seconds: float) -> None:
        self.now += seconds
        self.pauses += 1
        if self.pauses == self._pause:
            self._then()


def verified(url: str, expect: int, sleeper: Sleeper | None = None, **options: Any) -> Verified:
    time = sleeper or Sleeper()
    options = {"wait_s": WAIT_S, "clock": time.clock, "sleep": time.sleep} | options
    return verify_context(url, expect, **options)


def test_restarted_with_another_limit_it_is_capped_before_and_served_after(
    service: Service,
) -> None:
    service.start(SETTINGS)
    before = verified(service.url, 2048)
    assert (before.answer, before.capped_at, before.tries) == ("capped", 1024, 1)
    assert before.capped_by == "the context of a slot"
    assert before.says.startswith("llama.cpp serves only 1,024 tokens")
    service.stop()
    restart = Sleeper(1, lambda: service.start(replace(SETTINGS, context_tokens=2048)))
    after = verified(service.url, 2048, restart)
    assert (after.answer, after.capped_at, after.tries) == ("served", None, 2)
    assert after.limits is not None
    assert (after.limits.limit, after.limits.longest) == (2048, 2048)


def test_slots_share_the_limit_that_llama_cpp_was_given(service: Service) -> None:
    service.start(replace(SETTINGS, slots=2))
    found = verified(service.url, 2 * 1024)
    assert (found.answer, found.capped_at) == ("capped", 1024)
    assert found.capped_by == "the context of a slot, one of 2"


def test_delayed_it_is_waited_for(service: Service) -> None:
    heard: list[str] = []
    late = Sleeper(3, lambda: service.start(SETTINGS))
    found = verified(service.url, 1024, late, waiting=lambda one: heard.append(one.said))
    assert (found.answer, found.tries, found.waited_s) == ("served", 4, late.now)
    assert heard == ["connection refused"] * 3


def test_never_coming_up_it_is_not_up(service: Service) -> None:
    never = Sleeper()
    found = verified(service.url, 1024, never)
    assert (found.answer, found.waited_s, found.tries) == ("not up", WAIT_S, never.pauses + 1)
    assert found.last_said == "connection refused"
    assert found.says.endswith("it last said: connection refused")


def test_a_probe_near_the_limit_is_answered(service: Service) -> None:
    service.start(replace(SETTINGS, context_tokens=256))
    announced: list[int] = []
    found = verified(service.url, 256, probe=True, probing=announced.append)
    assert found.answer == "served"
    assert announced == [256 - MARGIN_TOKENS]
    assert found.probe is not None
    assert found.probe.prompt_tokens == found.probe.asked_prompt_tokens == 256 - MARGIN_TOKENS
    assert found.probe.output_tokens == 8
    assert found.says.endswith("a prompt of 224 tokens was answered")


def test_where_the_server_says_that_it_is_capped_no_probe_is_sent(service: Service) -> None:
    service.start(SETTINGS)
    announced: list[int] = []
    found = verified(service.url, 5000, probe=True, probing=announced.append)
    assert (found.answer, found.probe, announced) == ("capped", None, [])


MODELS = says({"data": [{"id": "folder/m", "owned_by": "somebody"}]})
LIMITED = says({"data": [{"id": "folder/m", "owned_by": "somebody", "max_model_len": 4096}]})
TOO_LONG = says({"error": {"message": "Input is too long"}}, 400)
TOO_LONG_IN_STREAM = streams({"error": {"message": "Input length exceeds", "code": 400}})


def counted(text: str) -> int:
    """A server's count: a special token in front, and one for each word."""
    return 1 + len(text.split())


def reply(prompt_tokens: int) -> Answer:
    usage = {"prompt_tokens": prompt_tokens, "completion_tokens": 8}
    events = [{"choices": [{"text": "a", "finish_reason": None}]}] * 2
    return streams(
        *events, {"choices": [{"text": "", "finish_reason": "length"}]}, {"usage": usage}
    )


class Completing:
    """Counts short prompts, and answers a long one as it is told to."""

    def __init__(self, long: Callable[[str], Answer]) -> None:
        self.longest = 0
        self._long = long

    def __call__(self, received: Received) -> Answer | None:
        if received.path != "/v1/completions":
            return None
        prompt = received.body["prompt"]
        self.longest = max(self.longest, counted(prompt))
        if not received.body.get("stream"):
            return says({"usage": {"prompt_tokens": counted(prompt), "completion_tokens": 1}})
        return self._long(prompt) if counted(prompt) > 1000 else reply(counted(prompt))


def probed(
    completing: Completing, pages: Mapping[str, Any] | None = None, expect: int = 4096
) -> Verified:
    with FaultServer(pages or {"/v1/models": LIMITED}, completing) as server:
        return verified(server.url, expect, probe=True, timeout_s=1.0)


def test_without_a_tokenizer_the_prompt_is_made_by_two_counts() -> None:
    completing = Completing(lambda prompt: reply(counted(prompt)))
    found = probed(completing)
    assert found.answer == "served"
    assert found.probe is not None
    wished = 4096 - MARGIN_TOKENS
    piece = counted(load_text(TEXT).content[:PIECE_CHARACTERS])
    assert wished - piece < found.probe.asked_prompt_tokens <= wished
    assert found.probe.prompt_tokens == pytest.approx(found.probe.asked_prompt_tokens, abs=2)
    assert completing.longest <= wished + 2, "a cold prompt begins with a word of its own"


def test_a_server_that_tells_no_limit_needs_a_probe() -> None:
    with FaultServer({"/v1/models": MODELS}) as server:
        untold = verified(server.url, 4096)
    assert (untold.answer, untold.capped_at) == ("undecided", None)
    assert "only a probe can show it" in untold.says
    shown = probed(Completing(lambda prompt: reply(counted(prompt))), {"/v1/models": MODELS})
    assert shown.answer == "served"
    assert shown.says.startswith("a prompt of 4,0")


def test_a_prompt_that_was_cut_shows_a_cap() -> None:
    """SGLang with ``--allow-auto-truncate`` cuts a prompt and answers."""
    found = probed(Completing(lambda prompt: reply(3000)))
    assert (found.answer, found.capped_at, found.capped_by) == ("capped", 3008, "the probe")
    assert "to 3,000" in found.says


@pytest.mark.parametrize("refusal", [TOO_LONG, TOO_LONG_IN_STREAM])
def test_a_long_prompt_that_is_refused_where_a_short_one_is_answered_shows_a_cap(
    refusal: Answer,
) -> None:
    found = probed(Completing(lambda prompt: refusal))
    assert (found.answer, found.capped_at) == ("capped", None)
    assert found.says.startswith("the server refused a prompt of 4,0")
    assert "Input" in found.says


def test_a_server_that_refuses_every_request_leaves_it_undecided() -> None:
    def refusing(received: Received) -> Answer | None:
        return TOO_LONG if received.path == "/v1/completions" else None

    with FaultServer({"/v1/models": LIMITED}, refusing) as server:
        found = verified(server.url, 4096, probe=True)
    assert found.answer == "undecided"
    assert "refuses short prompts as well" in found.says


@pytest.mark.parametrize(
    ("fault", "why"),
    [
        (Answer(b"data: {", content_type="text/event-stream", ending="hang"), "no answer for 1 s"),
        (Answer(b"data: {", content_type="text/event-stream", ending="broken"), "a reply that bro"),
        (says({"error": {"message": "busy"}}, 503), "HTTP 503 (busy)"),
    ],
)
def test_a_probe_without_an_answer_leaves_it_undecided(fault: Answer, why: str) -> None:
    found = probed(Completing(lambda prompt: fault))
    assert (found.answer, found.capped_at) == ("undecided", None)
    assert found.probe is not None
    assert why in found.probe.error
    assert "but the probe was not answered" in found.says


def test_a_server_that_goes_away_over_the_probe_is_not_up() -> None:
    with FaultServer({"/v1/models": LIMITED}, Completing(lambda prompt: gone())) as server:

        def gone() -> Answer:
            server.stop()
            return Answer(b"data: {", content_type="text/event-stream", ending="broken")

        found = verified(server.url, 4096, probe=True, timeout_s=5.0)
    assert (found.answer, found.last_said) == ("not up", "connection refused")
    assert found.says.startswith("the server went away over a prompt of 4,0")


def test_a_key_that_is_wanted_ends_it_at_once() -> None:
    with (
        FaultServer(llama_cpp([], props=says({}, 401))) as server,
        pytest.raises(InputError, match=f"HTTP 401; expected a valid key in {KEY_VARIABLE}"),
    ):
        verified(server.url, 100)
    assert KEY_VARIABLE == "ANALYSIS_API_KEY"


def test_another_server_ends_it_at_once() -> None:
    sleeper = Sleeper()
    with (
        FaultServer({"/health": says({}), "/": Answer(b"<html>")}) as server,
        pytest.raises(InputError, match="no list of models"),
    ):
        verified(server.url, 100, sleeper)
    assert sleeper.pauses == 0
