"""``analysis verify-context``: its exit codes, its one JSON object, and an interrupt."""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.conftest import START, Ended
from tests.engines.fault_server import FaultServer, llama_cpp, says

from analysis.cli.verify_context import EXIT_CODES
from analysis.engines.embedded import free_port
from analysis.engines.http import KEY_VARIABLE

Analysis = Callable[..., Ended]
SECRET = "not-to-be-published-5c1f"
DATA = Path(__file__).parents[1] / "engines" / "data" / "limits"


@pytest.fixture(autouse=True)
def no_key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(KEY_VARIABLE, raising=False)


@pytest.fixture
def slot() -> Iterator[str]:
    """A scripted llama.cpp server with one slot of 4,096 tokens."""
    with FaultServer(llama_cpp([], health=says({"status": "ok"}))) as server:
        yield server.url


@pytest.fixture
def nobody() -> str:
    return f"http://127.0.0.1:{free_port()}"


def answered(ended: Ended) -> dict[str, Any]:
    """The one JSON object, whatever the exit code."""
    found = json.loads(ended.out)
    assert ended.code == EXIT_CODES[found["answer"]]
    assert isinstance(found, dict)
    return found


def test_served_is_0_and_one_object(analysis: Analysis, slot: str) -> None:
    found = analysis("verify-context", slot, "--expect", "4096", "--json").json
    assert (found["answer"], found["capped_at_tokens"]) == ("served", None)
    assert (found["engine"], found["context_limit_tokens"]) == ("llama.cpp", 4096)
    assert (found["model"], found["slots"], found["probe"]) == ("scripted.gguf", 1, None)


def test_capped_is_3(analysis: Analysis, slot: str) -> None:
    ended = analysis("verify-context", slot, "--expect", "4097", "--json")
    found = answered(ended)
    assert (ended.code, found["answer"], found["capped_at_tokens"]) == (3, "capped", 4096)
    spoken = analysis("verify-context", slot, "--expect", "4097")
    assert spoken.code == 3
    first, second = spoken.out.splitlines()[:2]
    assert first.split() == ["answer", "capped"]
    assert second.endswith("what caps it is the context of a slot")
    assert "undefined" not in spoken.out


def test_not_up_is_4_and_says_why_meanwhile(analysis: Analysis, nobody: str) -> None:
    once = ("verify-context", nobody, "--expect", "10", "--wait-minutes", "0")
    ended = analysis(*once, "--json")
    found = answered(ended)
    assert (ended.code, ended.err, found["tries"]) == (4, "", 1)
    assert (found["answer"], found["last_said"]) == ("not up", "connection refused")
    waiting = analysis(*once[:-1], "0.01")
    assert waiting.code == 4
    assert waiting.err == "waiting, 0 of 1 s: connection refused\n"


def test_undecided_is_5(analysis: Analysis) -> None:
    models = says({"data": [{"id": "m", "owned_by": "somebody"}]})
    with FaultServer({"/v1/models": models}) as server:
        ended = analysis("verify-context", server.url, "--expect", "10", "--json")
    assert (ended.code, answered(ended)["answer"]) == (5, "undecided")


def test_sglang_with_a_small_pool_is_capped_below_its_limit(analysis: Analysis) -> None:
    pages = {
        "/v1/models": says(json.loads((DATA / "sglang-0.5.23-4096-models.json").read_text())),
        "/server_info": says(
            json.loads((DATA / "sglang-0.5.23-4096-server-info.json").read_text())
        ),
    }
    with FaultServer(pages) as server:
        found = answered(analysis("verify-context", server.url, "--expect", "8192", "--json"))
    assert (found["capped_at_tokens"], found["pool_tokens"]) == (4095, 4096)
    assert found["capped_by"] == "the KV pool of 4,096 tokens, less 1"


@pytest.mark.parametrize(
    ("url", "found"),
    [
        ("localhost:8000", "URL: found 'localhost:8000'; expected http://HOST:PORT"),
        ("embedded", "URL: found 'embedded'; expected http://HOST:PORT"),
        (f"http://me:{SECRET}@localhost:8000", "URL: found more than an address (a user,"),
    ],
)
def test_what_is_no_address_is_refused_in_one_line(
    analysis: Analysis, url: str, found: str
) -> None:
    error = analysis("verify-context", url, "--expect", "10").error
    assert error.startswith(f"error: {found}")
    assert SECRET not in error
    assert not error.endswith("embedded")


@pytest.mark.parametrize(
    ("arguments", "found"),
    [
        (("http://127.0.0.1:1",), "Missing option '--expect'"),
        (("http://127.0.0.1:1", "--expect", "0"), "0 is not in the range x>=1"),
        (("http://127.0.0.1:1", "--expect", "200k"), "'200k' is not a valid integer"),
        (("http://127.0.0.1:1", "--expect", "9", "--wait-minutes", "-1"), "x>=0"),
        (("--expect", "9"), "Missing argument 'URL'"),
    ],
)
def test_bad_input_is_one_line(analysis: Analysis, arguments: tuple[str, ...], found: str) -> None:
    assert found in analysis("verify-context", *arguments).error


def test_a_key_that_is_wanted_is_named_and_one_that_is_wrong_is_not_shown(
    analysis: Analysis, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(KEY_VARIABLE, SECRET)
    with FaultServer(llama_cpp([], props=says({"error": SECRET}, 401))) as server:
        error = analysis("verify-context", server.url, "--expect", "10").error
    sent = {request.headers["Authorization"] for request in server.received}
    assert sent == {f"Bearer {SECRET}"}
    assert error == (
        f"error: URL {server.url}: found HTTP 401; expected a valid key in ANALYSIS_API_KEY"
    )


def test_an_interrupt_ends_the_wait(nobody: str) -> None:
    process = subprocess.Popen(
        [sys.executable, "-c", START, "verify-context", nobody, "--expect", "10", "--json"],
        env=os.environ | {"PYTHONUNBUFFERED": "1"},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert process.stderr is not None
    try:
        assert process.stderr.readline().endswith("connection refused\n")
        process.send_signal(signal.SIGINT)
        out, err = process.communicate()
    finally:
        process.kill()
    assert (process.returncode, out, err.strip()) == (130, "", "interrupted")
