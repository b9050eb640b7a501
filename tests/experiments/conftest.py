"""The command line in a process of its own, measuring the embedded server."""

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import psutil
import pytest

from analysis.engines import embedded
from analysis.engines.embedded import Embedded, Settings
from analysis.records.run import REQUESTS

START = "from analysis.cli.main import run; run()"
SMALL = ("context-sweep", "--prompts", "60,90,120", "--outputs", "48", "--repeats", "6")
PATIENCE_S = 300.0
"""On a busy machine the server's threads wait for each other, and a request takes seconds."""

Start = Callable[..., "subprocess.Popen[str]"]


@pytest.fixture
def start() -> Iterator[Start]:
    """Start ``analysis measure ARGUMENTS``; what still runs at the end is killed."""
    started: list[subprocess.Popen[str]] = []

    def begin(*arguments: str, **environment: str) -> "subprocess.Popen[str]":
        process = subprocess.Popen(
            [sys.executable, "-c", START, "measure", *arguments],
            env=os.environ | environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        started.append(process)
        return process

    yield begin
    for process in started:
        process.kill()
        process.communicate()


@pytest.fixture(scope="module")
def two_slots(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Embedded]:
    """An embedded server that is somebody else's, as far as the client knows."""
    log = tmp_path_factory.mktemp("server") / "server.log"
    with embedded.running(Settings(slots=2), log) as server:
        yield server


def samples(folder: Path) -> list[dict[str, Any]]:
    """The whole lines of a run that may still be written."""
    path = folder / REQUESTS
    content = path.read_bytes() if path.exists() else b""
    return [json.loads(line) for line in content.split(b"\n")[:-1]]


def wait_for(samples_wanted: int, folder: Path, process: "subprocess.Popen[str]") -> None:
    """Wait until so many samples are on disk."""
    until = time.monotonic() + PATIENCE_S
    while len(samples(folder)) < samples_wanted:
        assert process.poll() is None, process.communicate()
        assert time.monotonic() < until, "no samples in time"
        time.sleep(0.02)


def server_of(process: "subprocess.Popen[str]") -> psutil.Process:
    """The server that a measuring process has started."""
    (server,) = [
        child
        for child in psutil.Process(process.pid).children()
        if "analysis.engines.serve" in child.cmdline()
    ]
    return server
