"""The machine while a request runs: who else was busy, and whether a clock was stepped."""

import platform
import socket
import time
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

import psutil

from analysis.records.run import Host

GIB = 2**30


def describe() -> Host:
    """The machine that this process runs on, without its name."""
    return Host(
        system=f"{platform.system()} {platform.machine()}",
        processor=_processor(),
        cores=psutil.cpu_count() or 1,
        memory_gib=round(psutil.virtual_memory().total / GIB, 1),
        python=platform.python_version(),
    )


@dataclass(frozen=True)
class Seen:
    """What happened on the machine between two moments."""

    busy_cores: float | None
    clock_step_ms: float


class Watch:
    """Watches the machine; processor time of the server and of this process is no disturbance.

    ``server_pid`` is ``None`` where the server runs elsewhere or cannot be found: on this machine
    nothing can then be said of the others.
    """

    def __init__(self, server_pid: int | None, server_is_here: bool) -> None:
        self._own = [psutil.Process()]
        if server_pid is not None:
            try:
                server = psutil.Process(server_pid)
                self._own += [server, *server.children(recursive=True)]
            except psutil.Error:  # it is gone already, or another user's
                server_pid = None
        self._knows = server_pid is not None or not server_is_here
        self.start()

    def start(self) -> None:
        """Begin a new span."""
        self._began = time.perf_counter()
        self._offset = time.time() - self._began
        self._others = self._busy_elsewhere()

    def stop(self) -> Seen:
        """What happened since ``start``."""
        ended = time.perf_counter()
        others = self._busy_elsewhere()
        busy = None
        if self._others is not None and others is not None:
            busy = max(0.0, (others - self._others) / max(ended - self._began, 1e-3))
        step = abs(time.time() - ended - self._offset)
        return Seen(None if busy is None else round(busy, 3), round(1000 * step, 3))

    def _busy_elsewhere(self) -> float | None:
        """Seconds of processor time that others have used so far, time stolen by a host included.

        Guests are part of user time, and waiting is no work.
        """
        if not self._knows:
            return None
        times = psutil.cpu_times()
        parts = ("user", "nice", "system", "irq", "softirq", "steal")
        busy = sum(getattr(times, part, 0.0) for part in parts)
        try:
            for process in self._own:
                used = process.cpu_times()
                busy -= used.user + used.system
        except psutil.Error:
            return None
        return busy


def listener(url: str) -> int | None:
    """The process that listens at a local address, where this user may see it."""
    parts = urlsplit(url)
    port = parts.port or socket.getservbyname(parts.scheme)
    try:
        for connection in psutil.net_connections("tcp"):
            here = connection.laddr
            if connection.status == psutil.CONN_LISTEN and here and here.port == port:
                return connection.pid
    except psutil.Error:
        return None
    return None


def _processor() -> str:
    try:
        with Path("/proc/cpuinfo").open() as lines:
            for line in lines:
                if line.startswith("model name"):
                    return line.partition(":")[2].strip()
    except OSError:
        pass
    return platform.processor() or "unknown"
