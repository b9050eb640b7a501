"""Finding out what answers at an address, and saying in one line what is wrong with it."""

import socket
import threading
from collections.abc import Iterator
from typing import Any

import pytest
from tests.engines.fault_server import NOT_FOUND, Answer, FaultServer, llama_cpp, says

from analysis.engines.connect import connect
from analysis.engines.embedded import Embedded
from analysis.engines.http import KEY_VARIABLE
from analysis.engines.llama_cpp import LlamaCpp
from analysis.engines.openai import OpenAi
from analysis.engines.vllm import Vllm
from analysis.errors import InputError

SECRET = "not-to-be-published-5c1f"
MODELS = says({"data": [{"id": "folder/some-model", "owned_by": "somebody"}]})
VLLM = says({"data": [{"id": "m", "owned_by": "vllm", "max_model_len": 100}]})


@pytest.fixture
def closed_port() -> Iterator[int]:
    """A port that is taken and at which nobody listens."""
    with socket.socket() as bound:
        bound.bind(("127.0.0.1", 0))
        yield bound.getsockname()[1]


def refused(url: str, timeout_s: float = 5.0) -> str:
    """The one line that ``connect`` refuses an address with."""
    with pytest.raises(InputError) as raised:
        connect(url, timeout_s)
    line = str(raised.value)
    assert "\n" not in line
    return line


def test_each_kind_is_told_from_the_others(speculating: Embedded) -> None:
    assert isinstance(connect(speculating.url), LlamaCpp)
    assert isinstance(connect(f"{speculating.url}/v1/"), LlamaCpp), "as the OpenAI SDK has it"
    with FaultServer({"/v1/models": VLLM, "/version": says({"version": "0.9"})}) as server:
        assert isinstance(connect(server.url), Vllm)
    with FaultServer({"/v1/models": MODELS}) as server:
        client = connect(server.url)
    assert type(client) is OpenAi
    assert client.server.model == "some-model"


PAGE = Answer(b"<html>welcome</html>", content_type="text/html")
DEEP = Answer(b"[" * 100_000)
FAULTS: dict[str, tuple[dict[str, Any], str]] = {
    "no inference server": ({}, "no list of models at /v1/models; expected llama.cpp, vLLM"),
    "a page for every path": ({"/props": PAGE, "/v1/models": PAGE}, "no list of models"),
    "a list": ({"/props": says([1]), "/v1/models": says([1])}, "no list of models"),
    "no models": ({"/v1/models": says({"data": []})}, "no list of models"),
    "a model without id": ({"/v1/models": says({"data": [{}]})}, "no list of models"),
    "models of the wrong kind": ({"/v1/models": says({"data": "x"})}, "no list of models"),
    "nested without end": ({"/v1/models": DEEP}, "no list of models"),
    "moved": ({"/v1/models": Answer(b"", 301)}, "no list of models"),
    "401": ({"/props": says({}, 401)}, f"HTTP 401; expected a valid key in {KEY_VARIABLE}"),
    "403": ({"/v1/models": says({}, 403)}, f"HTTP 403; expected a valid key in {KEY_VARIABLE}"),
    "429": ({"/props": says({}, 429, **{"Retry-After": "7"})}, "HTTP 429; Retry-After: 7 at /prop"),
    "500": ({"/props": says({"error": {"message": "bad\nday"}}, 500)}, "HTTP 500 (bad day)"),
    "loading": ({"/props": says({"error": {"message": "Loading model"}}, 503)}, "(Loading model)"),
    "closed": ({"/props": Answer(b"{", ending="broken")}, "a reply that broke off"),
    "hanging": ({"/props": Answer(b"{", ending="hang")}, "no answer for 0.5 s"),
    "slots no JSON": (llama_cpp([], slots=PAGE), "a page of slots that is not JSON"),
    "a slot that is none": (
        llama_cpp([], slots=says([1]), completion=Answer(b"<html>")),
        "a reply that is not JSON ('<html>')",
    ),
    "a context that is none": (
        llama_cpp([], props=says({"default_generation_settings": {"n_ctx": "long"}})),
        "a reply whose n_ctx is 'long'",
    ),
    "metrics that are none": (
        {"/v1/models": VLLM, "/version": says({"version": "1"}), "/metrics": PAGE},
        "a metrics page that cannot be read",
    ),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_a_fault_while_connecting_is_one_line(fault: str) -> None:
    script, expected = FAULTS[fault]
    with FaultServer(script) as server:
        line = refused(server.url, 0.5)
    assert line.startswith(f"--server {server.url}: found ")
    assert expected in line


def test_nothing_listens(closed_port: int) -> None:
    line = refused(f"http://127.0.0.1:{closed_port}")
    assert f":{closed_port}: found connection refused; expected " in line


def test_a_server_that_is_no_http_server() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listening:
        listening.settimeout(5)
        url = f"http://127.0.0.1:{listening.getsockname()[1]}"

        def greet() -> None:
            connection, _ = listening.accept()
            with connection:
                connection.recv(1000)
                connection.sendall(b"SSH-2.0-OpenSSH_9.9\r\n")

        threading.Thread(target=greet, daemon=True).start()
        assert "a reply that broke off, or is not HTTP" in refused(url)


@pytest.mark.parametrize(
    "url",
    [
        "localhost:8000",
        "ftp://localhost",
        "http://",
        "http://localhost:0",
        "http://localhost:99999",
        "http://localhost:port",
        "http://[::1",
        "http://local\x00host",
        "embeded",
        "",
    ],
)
def test_what_is_no_address_is_repeated(url: str) -> None:
    assert refused(url) == f"--server: found {url!r}; expected http://HOST:PORT, or embedded"


@pytest.mark.parametrize(
    "url",
    [
        f"http://user:{SECRET}@localhost:8000",
        f"http://{SECRET}@localhost:8000",
        f"user:{SECRET}@localhost:8000",
        f"ftp://user:{SECRET}@localhost",
        f"http://user:{SECRET}@localhost:99999",
        f"http://localhost:8000/v1?key={SECRET}",
        f"localhost?key={SECRET}",
        f"http://localhost:8000/#{SECRET}",
    ],
)
def test_a_credential_in_the_address_is_refused_and_not_repeated(url: str) -> None:
    line = refused(url)
    assert SECRET not in line
    assert line.endswith(f"expected http://HOST:PORT, and a key in {KEY_VARIABLE}")


def test_the_key_goes_along_as_a_bearer_token(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(KEY_VARIABLE, f"{SECRET}\n")
    with FaultServer({"/v1/models": MODELS}) as server:
        connect(server.url)
    assert server.received
    assert {r.headers["Authorization"] for r in server.received} == {f"Bearer {SECRET}"}
    monkeypatch.delenv(KEY_VARIABLE)
    with FaultServer({"/v1/models": MODELS}) as server:
        connect(server.url)
    assert not any("Authorization" in r.headers for r in server.received)


@pytest.mark.parametrize("key", ["schl\u00fcssel", "two\nlines"])
def test_a_key_that_no_header_can_hold_is_refused_unseen(
    key: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(KEY_VARIABLE, key)
    line = refused("http://127.0.0.1:1")
    assert line.startswith(f"{KEY_VARIABLE}: found a character")
    assert key not in line
    assert key.split()[0] not in line


@pytest.mark.parametrize(
    ("types", "speculates"), [("none", False), ("draft-simple,ngram-simple", True), ("", None)]
)
def test_without_slots_the_drafting_methods_say_whether_it_speculates(
    types: str, speculates: bool | None
) -> None:
    described = says({"generation_settings": {"speculative.types": types}})
    script = llama_cpp([], slots=says({"error": "closed"}, 501), completion=described)
    with FaultServer(script) as server:
        facts = connect(server.url).server
    assert (facts.speculates, facts.speculation) == (speculates, types)


def test_a_server_without_a_page_of_metrics_has_no_counters() -> None:
    with FaultServer(llama_cpp([], metrics=NOT_FOUND)) as server:
        assert connect(server.url).counters() is None


def test_a_counter_that_is_no_number_is_unknown() -> None:
    page = Answer(b"llamacpp:n_decode_total NaN\nllamacpp:requests_processing 2\n")
    with FaultServer(llama_cpp([], metrics=page)) as server:
        counters = connect(server.url).counters()
    assert counters is not None
    assert (counters.decodes, counters.running, counters.generated_tokens) == (None, 2, None)
