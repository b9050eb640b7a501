"""A process that looks after another and all that it starts, until standard input closes.

Started by ``cpu_servers``, which keeps the other end of standard input: when that process goes, by
whatever end, the pipe closes and the engine's processes are ended, with what they leave in shared
memory. vLLM and SGLang run as several processes; one that is killed leaves the others.
"""

import json
import os
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import psutil

PAUSE_S = 0.1
SHARED_MEMORY = "/dev/shm/"


def main() -> None:
    """Run the one argument, a JSON object: ``command``, ``cwd``, ``environment``, ``grace_s``.

    ``cwd`` is a folder of the engine's own. It is removed at the end, but not where the engine
    ended by itself: whoever started it is still there, and wants to read why.
    """
    options: dict[str, Any] = json.loads(sys.argv[1])
    done, closed = threading.Event(), threading.Event()
    signal.signal(signal.SIGTERM, lambda *_: done.set())
    process = subprocess.Popen(
        options["command"],
        cwd=options["cwd"],
        env=options["environment"],
        stdin=subprocess.DEVNULL,
        start_new_session=True,
    )
    threading.Thread(target=_after, args=(sys.stdin.buffer.read, closed, done), daemon=True).start()
    threading.Thread(target=_after, args=(process.wait, done), daemon=True).start()
    done.wait()
    end(process, options["grace_s"])
    if closed.is_set():
        shutil.rmtree(options["cwd"], ignore_errors=True)
    code = process.returncode
    os._exit(code if code >= 0 else 128 - code)


def _after(wait: Callable[[], object], *events: threading.Event) -> None:
    wait()
    for event in events:
        event.set()


def end(process: "subprocess.Popen[Any]", grace_s: float) -> None:
    """End a process that leads a group, and all of the group and below it.

    They are asked first, and killed after ``grace_s`` seconds: a killed process frees nothing in
    its own way. What is left then in shared memory, of what they had mapped, is removed.
    """
    family = _family(process.pid)
    mapped = set[str]().union(*(_mapped(one.pid) for one in family))
    if process.poll() is None:
        process.terminate()  # it tells the others in its own way
    else:
        _each(family, psutil.Process.terminate)
    until = time.monotonic() + grace_s
    while family:
        mapped = mapped.union(*(_mapped(one.pid) for one in family))
        if time.monotonic() > until:
            _each(family, psutil.Process.kill)
        time.sleep(PAUSE_S)
        process.poll()  # a child that nobody has waited for still counts as there
        family = [one for one in {*family, *_family(process.pid)} if _alive(one)]
    process.wait()
    for path in mapped:
        Path(path).unlink(missing_ok=True)


def _family(leader: int) -> list[psutil.Process]:
    """The processes of a group, and those below them that may have left it."""
    found: dict[int, psutil.Process] = {}
    for one in psutil.process_iter():
        try:
            if os.getpgid(one.pid) == leader:
                found |= {one.pid: one, **{c.pid: c for c in one.children(recursive=True)}}
        except (psutil.Error, OSError):
            continue
    return list(found.values())


def _alive(process: psutil.Process) -> bool:
    try:
        return bool(process.is_running()) and process.status() != psutil.STATUS_ZOMBIE
    except psutil.Error:
        return False


def _each(family: list[psutil.Process], act: Callable[[psutil.Process], None]) -> None:
    for one in family:
        with suppress(psutil.Error):
            act(one)


def _mapped(pid: int) -> set[str]:
    """Files in shared memory that a process has mapped."""
    try:
        lines = Path(f"/proc/{pid}/maps").read_text().splitlines()
    except OSError:
        return set()
    paths = (line[line.index(SHARED_MEMORY) :] for line in lines if SHARED_MEMORY in line)
    return {path for path in paths if not path.endswith(" (deleted)")}


if __name__ == "__main__":
    main()
