"""Time our context sweep against llama-benchy's on one embedded server, in one run.

Both sweeps ask for the same prompt lengths, output length, text and repeats, greedily; ours goes
first. Prints the seconds of each, and by prompt length what each says: llama-benchy tok/s, ours
step time, commit length and tok/s; a spread is greatest less least, per cent of the median.
llama-benchy puts its prompt into a chat and draws a new passage for every request, so its commit
length differs and its spread holds that of the text. docs/benchmarks.md says how to install it;
without ``--llama-benchy`` only ours is timed. Machines are shared: read the ratio of the seconds.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

from analysis.engines.embedded import Settings, running
from analysis.experiments.texts import load_text, names
from analysis.model.spread import spread_pct
from analysis.records.cells import Cell, cells
from analysis.records.run import load_run

BIN = Path(sys.executable).parent
MODEL = "SmolLM2-135M-Instruct"
USER_TOKENS = 32
"""Of a prompt, what llama-benchy sends as the user's turn (``--pp``); the rest is its depth."""
BOOK_CHARACTERS = 60_000


def main() -> None:
    """Run both sweeps one after the other and print them side by side."""
    options = arguments()
    with tempfile.TemporaryDirectory(prefix="benchmark-") as name:
        folder = Path(name)
        with running(Settings(slots=len(options.prompts)), folder / "server.log") as server:
            began = time.perf_counter()
            ours = measure(server.url, options, folder / "run")
            seconds = {"analysis measure": time.perf_counter() - began}
            theirs = {}
            if options.llama_benchy:
                began = time.perf_counter()
                theirs = llama_benchy(server.url, options, folder)
                seconds["llama-benchy"] = time.perf_counter() - began
    for label, took in seconds.items():
        print(f"{label:<18} {took:7.1f} s   {took / seconds['analysis measure']:6.2f} of ours")
    if not theirs:
        print("llama-benchy       not run: no --llama-benchy; docs/benchmarks.md says how")
    print()
    print(HEAD)
    for cell in ours:
        print(line(cell, theirs.get(cell.asked_prompt_tokens, [])))


def arguments() -> argparse.Namespace:
    """What to sweep; llama-benchy needs a folder with the model's tokenizer.json beside it."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--prompts", type=int, nargs="+", default=[300, 900, 1663, 2500, 3333])
    parser.add_argument("--output", type=int, default=192)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--text", choices=names(), default="repeated")
    parser.add_argument("--llama-benchy", type=Path, metavar="EXECUTABLE")
    parser.add_argument("--tokenizer", type=Path, metavar="FOLDER")
    options = parser.parse_args()
    if (
        options.llama_benchy
        and not (options.tokenizer or Path()).joinpath("tokenizer.json").exists()
    ):
        parser.error("--llama-benchy needs --tokenizer FOLDER with a tokenizer.json in it")
    return options


def measure(url: str, options: argparse.Namespace, folder: Path) -> list[Cell]:
    """Our sweep by the command line, as a user runs it."""
    command = [BIN / "analysis", "measure", "context-sweep", "--server", url, "--out", folder]
    command += ["--prompts", ",".join(map(str, options.prompts)), "--outputs", options.output]
    run([*command, "--repeats", options.repeats, "--texts", options.text])
    return cells(load_run(folder), "context-sweep")


def llama_benchy(url: str, options: argparse.Namespace, folder: Path) -> dict[int, list[float]]:
    """Its sweep: tok/s of every run, by prompt length. It keeps its cache in a home of its own."""
    result = folder / "llama-benchy.json"
    depths = [prompt - USER_TOKENS for prompt in options.prompts]
    text = load_text(options.text)
    with book(text.at_least(BOOK_CHARACTERS) if text.repeated else text.content) as book_url:
        command = [options.llama_benchy, "--base-url", f"{url}/v1", "--model", MODEL]
        command += ["--tokenizer", options.tokenizer, "--book-url", book_url]
        command += ["--pp", USER_TOKENS, "--depth", *depths, "--tg", options.output, "--exact-tg"]
        command += ["--runs", options.repeats, "--extra-body", "temperature=0"]
        command += ["--latency-mode", "none", "--skip-coherence", "--exit-on-first-fail"]
        command += ["--format", "json", "--save-result", result]
        run(command, {"HOME": str(folder), "HF_HUB_OFFLINE": "1", "NO_PROXY": "127.0.0.1"})
    rows = json.loads(result.read_text())["benchmarks"]
    return {row["context_size"] + USER_TOKENS: row["tg_throughput"]["values"] for row in rows}


@contextmanager
def book(text: str) -> Iterator[str]:
    """The address of a text on loopback: llama-benchy loads the book that it cuts prompts from."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            content = text.encode()
            self.send_response(200)
            self.send_header("Content-Type", "text/plain; charset=utf-8")
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)

        def log_message(self, *args: object) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}/book.txt"
        server.shutdown()


def run(command: list[object], environment: dict[str, str] | None = None) -> None:
    """Run a command; what it printed is shown only if it failed."""
    words = [str(word) for word in command]
    done = subprocess.run(
        words, env=os.environ | (environment or {}), capture_output=True, text=True
    )
    if done.returncode:
        sys.exit(f"{words} failed:\n{done.stdout}{done.stderr}")


HEAD = (
    "prompt | llama-benchy tok/s  spread % | ours used  step ms  commit   tok/s  spread %  flags\n"
    "-------+------------------------------+---------------------------------------------------"
)


def line(cell: Cell, theirs: list[float]) -> str:
    """One prompt length; a dash is a figure that is undefined."""
    speeds = [s.tok_per_s for s in cell.used if s.tok_per_s is not None]
    parts = [
        f"{cell.asked_prompt_tokens:6} |",
        number(sum(theirs) / len(theirs) if theirs else None, 18, 1),
        number(spread_pct(theirs), 9, 1),
        f"| {len(cell.used):>7}/{len(cell.samples)}",
        number(cell.step_ms, 8, 2),
        number(cell.commit_length, 7, 2),
        number(cell.tok_per_s, 7, 1),
        number(spread_pct(speeds), 9, 1),
        "",
        ", ".join(f"{flag} {count}" for flag, count in cell.flags.items()),
    ]
    return " ".join(parts).rstrip()


def number(value: float | None, width: int, digits: int) -> str:
    return f"{'-':>{width}}" if value is None else f"{value:{width}.{digits}f}"


if __name__ == "__main__":
    main()
