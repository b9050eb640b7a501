"""The server of a session: one that is there, or the embedded one, started and stopped."""

import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from analysis.engines import embedded
from analysis.engines.client import Client
from analysis.engines.connect import connect
from analysis.engines.embedded import Embedded, Settings
from analysis.experiments import host
from analysis.records.run import SERVER_LOG, Server

EMBEDDED = "embedded"
FOLDERS = re.compile(r"(?<![\w:/.])/(?:[^\s/'\":]+/)+")
"""Absolute folders: what stays of a path is the name of its file."""
SET_UP_LINES = 60
OF_A_REQUEST = re.compile(r"print_timing:|release:.* stop processing")
"""llama.cpp's lines of a finished request (``tools/server/server-context.cpp``)."""


@dataclass(frozen=True)
class Opened:
    """A client, the server's process where it can be known, and what the server is."""

    client: Client
    pid: int | None
    facts: Server


@contextmanager
def opened(server: str, settings: Settings, folder: Path, timeout_s: float) -> Iterator[Opened]:
    """Connect to the address ``server``, or start the embedded server and connect to that.

    What the embedded server printed is kept in the run's ``folder``, if that was made.
    """
    if server != EMBEDDED:
        client = connect(server, timeout_s)
        try:
            here = client.server.where == "this machine"
            yield Opened(client, host.listener(server) if here else None, client.server)
        finally:
            client.close()
        return
    log = folder.parent / f".{folder.name}.{SERVER_LOG}"
    with embedded.running(settings, log) as started:
        client = connect(started.url, timeout_s)
        try:
            yield Opened(client, started.process.pid, _embedded(client.server, started))
        finally:
            client.close()
            if folder.is_dir():
                _keep_log(log, folder / SERVER_LOG)
            log.unlink(missing_ok=True)


def _embedded(server: Server, started: Embedded) -> Server:
    """The embedded server knows more of itself than it tells over HTTP."""
    return server.model_copy(
        update={
            "version": started.version or server.version,
            "model": embedded.MODEL,
            "model_sha256": started.model_sha256,
            "speculation": started.speculation,
            "where": "embedded",
            "flags": started.flags,
        }
    )


def _keep_log(log: Path, kept: Path) -> None:
    """Append how the server was set up, and every line that it printed of a finished request."""
    lines = [FOLDERS.sub("", line) for line in log.read_text(errors="replace").splitlines()]
    requests = [line for line in lines[SET_UP_LINES:] if OF_A_REQUEST.search(line)]
    with kept.open("a") as file:
        file.write("\n".join([*lines[:SET_UP_LINES], *requests]) + "\n")
