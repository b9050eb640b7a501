"""A small HTTP server whose answers are scripted, faults among them.

It stands in for what no real server does on demand: refusing, breaking off, hanging, or saying
what cannot be. Nothing is measured with it.
"""

import json
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Literal

PROMPT_TOKENS = 60
"""Length of the prompts that the scripted llama.cpp replies are about."""


@dataclass(frozen=True)
class Answer:
    """One answer. ``broken`` closes the connection before the promised end, ``hang`` never ends."""

    body: bytes = b"{}"
    status: int = 200
    content_type: str = "application/json"
    headers: Mapping[str, str] = field(default_factory=dict)
    ending: Literal["whole", "broken", "hang"] = "whole"


@dataclass(frozen=True)
class Received:
    """What was asked for."""

    path: str
    headers: Mapping[str, str]
    body: dict[str, Any]


NOT_FOUND = Answer(b"<html>no such page</html>", 404, "text/html")
Script = Mapping[str, Answer | Sequence[Answer]]


class FaultServer:
    """Answers by path: always the same, or one after the other, the last for all that follow.

    ``before`` is called with every request first; where it returns an answer, that is the one.
    """

    def __init__(
        self, script: Script, before: Callable[[Received], Answer | None] = lambda received: None
    ) -> None:
        self.received: list[Received] = []
        self._script = script
        self._before = before
        self._asked: dict[str, int] = {}
        self._ended = threading.Event()
        self._http = ThreadingHTTPServer(("127.0.0.1", 0), self._handler())
        self._http.daemon_threads = True
        self.url = f"http://127.0.0.1:{self._http.server_port}"

    def __enter__(self) -> "FaultServer":
        threading.Thread(target=self._http.serve_forever, args=(0.02,), daemon=True).start()
        return self

    def __exit__(self, *ending: object) -> None:
        self.stop()

    def stop(self) -> None:
        """Answer nothing any more: the port is closed."""
        if not self._ended.is_set():
            self._ended.set()
            self._http.shutdown()
            self._http.socket.close()

    def answer(self, received: Received) -> Answer:
        """The next answer of the script."""
        self.received.append(received)
        first = self._before(received)
        if first is not None:
            return first
        planned = self._script.get(received.path, NOT_FOUND)
        if isinstance(planned, Answer):
            return planned
        asked = self._asked.get(received.path, 0)
        self._asked[received.path] = asked + 1
        return planned[min(asked, len(planned) - 1)]

    def _handler(self) -> type[BaseHTTPRequestHandler]:
        server = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                self._send({})

            def do_POST(self) -> None:
                self._send(json.loads(self.rfile.read(int(self.headers["Content-Length"]))))

            def _send(self, body: dict[str, Any]) -> None:
                answer = server.answer(Received(self.path, dict(self.headers), body))
                self.send_response(answer.status)
                self.send_header("Content-Type", answer.content_type)
                for name, value in answer.headers.items():
                    self.send_header(name, value)
                if answer.ending == "broken":
                    self.send_header("Content-Length", str(len(answer.body) + 1))
                self.end_headers()
                self.wfile.write(answer.body)
                self.wfile.flush()
                if answer.ending == "hang":
                    server._ended.wait(30)

            def log_message(self, format: str, *arguments: Any) -> None:
                pass

        return Handler


def says(content: Any, status: int = 200, **headers: str) -> Answer:
    """An answer in JSON."""
    return Answer(json.dumps(content).encode(), status, headers=headers)


def streams(*events: Any, ending: Literal["whole", "broken", "hang"] = "whole") -> Answer:
    """An event stream; what is no text becomes JSON."""
    lines = [event if isinstance(event, str) else json.dumps(event) for event in events]
    body = "".join(f"data: {line}\n\n" for line in lines).encode()
    return Answer(body, content_type="text/event-stream", ending=ending)


def last_event(output_tokens: int, **timings: Any) -> dict[str, Any]:
    """The final event of llama.cpp's ``/completion``, less what is not read."""
    return {
        "content": "",
        "tokens": [],
        "stop": True,
        "tokens_evaluated": PROMPT_TOKENS,
        "timings": {
            "cache_n": PROMPT_TOKENS - 1,
            "prompt_ms": 10.0,
            "predicted_n": output_tokens,
            "predicted_ms": 500.0,
        }
        | timings,
    }


TOKEN = {"content": " a", "tokens": [1], "stop": False}
DESCRIBED = says({"generation_settings": {"speculative.types": "ngram-simple"}})
"""What llama.cpp answers to the one token that is asked for while connecting."""


def llama_cpp(completions: Sequence[Answer], **replaced: Answer) -> dict[str, Any]:
    """A script for a llama.cpp server with one slot; ``replaced`` by name of the page."""
    pages: dict[str, Any] = {
        "/props": says(
            {
                "default_generation_settings": {"n_ctx": 4096},
                "total_slots": 1,
                "model_alias": "scripted.gguf",
                "build_info": "b1-scripted",
            }
        ),
        "/slots": says([{"id": 0, "speculative": True}]),
        "/tokenize": says({"tokens": list(range(5000))}),
        "/completion": [DESCRIBED, *completions],
    }
    return pages | {f"/{name}": answer for name, answer in replaced.items()}
