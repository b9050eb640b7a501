"""Waiting for a server: how long, how often, what it says meanwhile, and what ends it at once."""

import socket
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import pytest
from tests.engines.fault_server import NOT_FOUND, Answer, FaultServer, says

from analysis.engines.http import KEY_VARIABLE, Http, RequestError, ServerGoneError
from analysis.engines.readiness import (
    FIRST_PAUSE_S,
    LONGEST_PAUSE_S,
    NotReady,
    Ready,
    Waiting,
    wait_until_ready,
)
from analysis.errors import InputError

LOADING = says({"error": {"code": 503, "message": "Loading model"}}, 503)
UP = says({"status": "ok"})


@dataclass
class Time:
    """A clock that only sleeping moves."""

    now: float = 0.0
    pauses: list[float] = field(default_factory=list)

    def clock(self) -> float:
        return self.now

    def sleep(self, seconds: float) -> None:
        assert seconds > 0
        self.pauses.append(seconds)
        self.now += seconds


@pytest.fixture
def time() -> Time:
    return Time()


@pytest.fixture
def nobody() -> Iterator[str]:
    """An address at which nobody listens."""
    with socket.socket() as bound:
        bound.bind(("127.0.0.1", 0))
        yield f"http://127.0.0.1:{bound.getsockname()[1]}"


def waited(
    url: str,
    time: Time,
    wait_s: float,
    look: Callable[[], Any] = lambda: "found",
    told: Callable[[Waiting], None] = lambda one: None,
    timeout_s: float = 5.0,
) -> Ready[Any] | NotReady:
    http = Http(url, timeout_s)
    try:
        return wait_until_ready(http, look, wait_s, told, time.clock, time.sleep)
    finally:
        http.close()


def test_a_server_that_is_up_is_not_waited_for(time: Time) -> None:
    with FaultServer({"/health": UP}) as server:
        assert waited(server.url, time, 60) == Ready("found", 0.0, 1)
    assert time.pauses == []


def test_one_that_loads_its_model_is_waited_for_and_its_words_are_passed_on(time: Time) -> None:
    heard: list[Waiting] = []
    with FaultServer({"/health": [LOADING, LOADING, UP]}) as server:
        ready = waited(server.url, time, 60, told=heard.append)
    assert ready == Ready("found", sum(time.pauses), 3)
    assert [one.said for one in heard] == ["HTTP 503 (Loading model) at /health"] * 2
    assert [one.pause_s for one in heard] == time.pauses
    assert [one.elapsed_s for one in heard] == [0.0, time.pauses[0]]


def test_pauses_grow_and_never_pass_the_bound(nobody: str, time: Time) -> None:
    wait_s = 100.0
    ended = waited(nobody, time, wait_s)
    assert ended == NotReady("connection refused", wait_s, len(time.pauses) + 1)
    assert time.pauses[0] == FIRST_PAUSE_S
    growing = time.pauses[:-1]
    assert growing == sorted(growing)
    assert max(time.pauses) == LONGEST_PAUSE_S
    assert sum(time.pauses) == pytest.approx(wait_s)


def test_without_a_wait_there_is_one_try(nobody: str, time: Time) -> None:
    assert waited(nobody, time, 0) == NotReady("connection refused", 0.0, 1)
    assert time.pauses == []


def test_a_server_that_goes_and_comes_back_is_waited_for(time: Time) -> None:
    """It is healthy at first, gone while it is asked, then busy, and answers in the end."""
    faults = iter([ServerGoneError("connection refused"), RequestError("no answer for 10 s")])

    def look() -> str:
        fault = next(faults, None)
        if fault:
            raise fault
        return "found"

    heard: list[str] = []
    with FaultServer({"/health": UP}) as server:
        ready = waited(server.url, time, 60, look, lambda one: heard.append(one.said))
    assert ready == Ready("found", sum(time.pauses), 3)
    assert heard == ["connection refused", "no answer for 10 s"]


@pytest.mark.parametrize(
    ("answer", "said"),
    [
        (Answer(b"{", ending="hang"), "no answer for 0.3 s"),
        (Answer(b"{", ending="broken"), "a reply that broke off, or is not HTTP"),
        (Answer(b"<html>Bad Gateway</html>", 502, "text/html"), "HTTP 502 at /health"),
        (says({}, 429, **{"Retry-After": "7"}), "HTTP 429; Retry-After: 7 at /health"),
    ],
)
def test_what_may_pass_is_waited_for(answer: Answer, said: str, time: Time) -> None:
    with FaultServer({"/health": answer}) as server:
        ended = waited(server.url, time, 1.0, timeout_s=0.3)
    assert isinstance(ended, NotReady)
    assert ended.said == said


def test_a_server_without_a_page_of_health_is_asked_itself(time: Time) -> None:
    with FaultServer({"/health": NOT_FOUND}) as server:
        assert waited(server.url, time, 60) == Ready("found", 0.0, 1)


@pytest.mark.parametrize("status", [401, 403])
def test_a_key_ends_the_wait_at_once(status: int, time: Time) -> None:
    with FaultServer({"/health": says({}, status)}) as server, pytest.raises(InputError) as raised:
        waited(server.url, time, 60)
    assert f"HTTP {status}; expected a valid key in {KEY_VARIABLE}" in str(raised.value)
    assert time.pauses == []


def _no_such_name(*_: Any) -> Any:
    raise socket.gaierror(socket.EAI_NONAME, "Name or service not known")


def _no_resolver(*_: Any) -> Any:
    raise socket.gaierror(socket.EAI_AGAIN, "Temporary failure in name resolution")


def test_a_name_that_does_not_exist_ends_the_wait_at_once(
    time: Time, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(socket, "getaddrinfo", _no_such_name)
    with pytest.raises(InputError, match=r"no host named 'nowhere\.example'"):
        waited("http://nowhere.example:8000", time, 60)
    assert time.pauses == []


def test_a_resolver_that_fails_is_waited_for(time: Time, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(socket, "getaddrinfo", _no_resolver)
    ended = waited("http://somewhere.example:8000", time, 5)
    assert isinstance(ended, NotReady)
    assert "temporary failure in name resolution" in ended.said


def test_a_name_that_is_lost_later_is_waited_for(
    time: Time, monkeypatch: pytest.MonkeyPatch
) -> None:
    def look() -> str:
        monkeypatch.setattr(socket, "getaddrinfo", _no_such_name)
        raise ServerGoneError("no connection")

    with FaultServer({"/health": UP}) as server:
        url = server.url.replace("127.0.0.1", "localhost")
        ended = waited(url, time, 5, look)
    assert isinstance(ended, NotReady)
    assert ended.tries > 1


def test_an_interrupt_ends_the_wait(nobody: str, time: Time) -> None:
    def interrupted(seconds: float) -> None:
        raise KeyboardInterrupt

    time.sleep = interrupted  # type: ignore[method-assign]
    with pytest.raises(KeyboardInterrupt):
        waited(nobody, time, 60)
