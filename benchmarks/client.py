"""Time our client against a bare loop on http.client, request by request in turn, in one run.

Both ask a server on loopback that computes nothing: a process of its own that answers a
``/completion`` at once with llama.cpp's stream of 64 tokens. What is left is what the client costs.
Prints milliseconds per request of each, and their difference, whose mark is ``MARK_MS``.
"""

import http.client
import json
import subprocess
import sys
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from statistics import median, quantiles
from urllib.parse import urlsplit

from analysis.engines.client import Client, Prompt
from analysis.engines.connect import connect

TOKENS = 64
PAIRS = 300
WARMUPS = 20
MARK_MS = 2.0
PROMPT = list(range(900))


def main() -> None:
    """Ask in turn, and print both and the difference."""
    with subprocess.Popen(
        [sys.executable, __file__, "--serve"], stdout=subprocess.PIPE, text=True
    ) as server:
        assert server.stdout
        try:
            url = server.stdout.readline().strip()
            client = connect(url)
            prompt = client.prompt("benchmark", "", len(PROMPT))
            pairs = [(ours(client, prompt), bare(url)) for _ in range(WARMUPS + PAIRS)][WARMUPS:]
            client.close()
        finally:
            server.terminate()
    show("analysis client", [mine for mine, _ in pairs])
    show("http.client loop", [other for _, other in pairs])
    difference = [mine - other for mine, other in pairs]
    show("difference", difference)
    verdict = "below" if median(difference) < MARK_MS else "NOT below"
    print(f"median difference {verdict} {MARK_MS:g} ms, over {PAIRS} requests of {TOKENS} tokens")


def ours(client: Client, prompt: Prompt) -> float:
    """Milliseconds of one request by our client."""
    began = time.perf_counter()
    reply = client.ask(prompt, TOKENS, cold=False)
    took = time.perf_counter() - began
    assert reply.output_tokens == TOKENS
    assert reply.chunks == TOKENS
    return 1000 * took


def bare(url: str) -> float:
    """Milliseconds of the least that reads the same: events as JSON, and when each came."""
    body = {"prompt": PROMPT, "n_predict": TOKENS, "ignore_eos": True, "temperature": 0}
    began = time.perf_counter()
    connection = http.client.HTTPConnection(urlsplit(url).netloc)
    connection.request(
        "POST",
        "/completion",
        json.dumps(body | {"stream": True}),
        {"Content-Type": "application/json"},
    )
    response = connection.getresponse()
    events = [
        (json.loads(line[6:]), time.perf_counter()) for line in response if line.startswith(b"data")
    ]
    connection.close()
    took = time.perf_counter() - began
    assert events[-1][0]["timings"]["predicted_n"] == TOKENS
    return 1000 * took


def show(label: str, values: list[float]) -> None:
    low, _, high = quantiles(values, n=4)
    print(f"{label:<18} {median(values):7.2f} ms   half of them {low:.2f} to {high:.2f}")


class Handler(BaseHTTPRequestHandler):
    """The pages of llama.cpp's server that a client reads (``tools/server/README.md``)."""

    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True

    def do_GET(self) -> None:
        pages: dict[str, object] = {
            "/props": {"default_generation_settings": {"n_ctx": 8192}, "total_slots": 1},
            "/slots": [{"id": 0, "speculative": False}],
        }
        self._reply(pages.get(self.path))

    def do_POST(self) -> None:
        self.rfile.read(int(self.headers["Content-Length"]))
        if self.path == "/tokenize":
            self._reply({"tokens": PROMPT})
            return
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()
        for event in EVENTS:
            self.wfile.write(b"%x\r\n%s\r\n" % (len(event), event))
        self.wfile.write(b"0\r\n\r\n")

    def log_message(self, *args: object) -> None:
        pass

    def _reply(self, page: object) -> None:
        content = json.dumps(page).encode()
        self.send_response(404 if page is None else 200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)


def stream() -> list[bytes]:
    """One event a token, and the last with the server's own counts and times."""
    token = {"index": 0, "content": " word", "tokens": [1], "stop": False, "id_slot": 0}
    timings = {"cache_n": len(PROMPT) - 1, "prompt_n": 1, "prompt_ms": 1.0}
    timings |= {"predicted_n": TOKENS, "predicted_ms": float(TOKENS - 1)}
    last = {"index": 0, "content": "", "tokens": [], "stop": True, "id_slot": 0}
    last |= {"tokens_predicted": TOKENS, "tokens_evaluated": len(PROMPT), "timings": timings}
    return [f"data: {json.dumps(event)}\n\n".encode() for event in [*[token] * TOKENS, last]]


EVENTS = stream()


def serve() -> None:
    """Print the address and answer until the process is ended."""
    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        print(f"http://127.0.0.1:{server.server_port}", flush=True)
        server.serve_forever()


if __name__ == "__main__":
    serve() if "--serve" in sys.argv else main()
