"""Who else was busy on this machine, and whether a clock was set, seen on the real machine."""

import os
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager

import psutil
import pytest
from tests.engines.fault_server import FaultServer

from analysis.experiments import host
from analysis.experiments.host import Seen, Watch

SPAN_S = 0.5
SHARE = 0.3
"""Of a core, what a loop must get at least: this machine may be busy with more."""
BUSY = "import os; os.write(1, b'.')\nwhile True: pass"


@contextmanager
def busy_process() -> Iterator[int]:
    """Another process that does nothing but work."""
    process = subprocess.Popen([sys.executable, "-c", BUSY], stdout=subprocess.PIPE)
    assert process.stdout is not None
    process.stdout.read(1)
    yield process.pid
    process.kill()
    process.communicate()


def seen_while_asleep(watch: Watch) -> Seen:
    watch.start()
    time.sleep(SPAN_S)
    return watch.stop()


def test_a_loop_in_another_process_is_a_disturbance_unless_it_is_the_server() -> None:
    """Both watch the same span, so that whatever else runs here is in both."""
    with busy_process() as pid:
        stranger, server = Watch(None, server_is_here=False), Watch(pid, server_is_here=True)
        time.sleep(SPAN_S)
        as_stranger, as_server = stranger.stop(), server.stop()
    assert as_stranger.busy_cores is not None
    assert as_server.busy_cores is not None
    assert as_stranger.busy_cores > SHARE
    assert as_stranger.busy_cores - as_server.busy_cores > SHARE


def test_a_child_of_the_server_is_the_server() -> None:
    code = f"import subprocess, sys; subprocess.run([sys.executable, '-c', {BUSY!r}])"
    parent = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE)
    assert parent.stdout is not None
    parent.stdout.read(1)
    (child,) = psutil.Process(parent.pid).children()
    try:
        with_child, without = Watch(parent.pid, True), Watch(None, False)
        time.sleep(SPAN_S)
        served, foreign = with_child.stop().busy_cores, without.stop().busy_cores
    finally:
        child.kill()
        parent.communicate()
    assert served is not None
    assert foreign is not None
    assert foreign - served > SHARE


def test_what_this_process_does_is_no_disturbance() -> None:
    """Of the time that a loop of our own takes, next to nothing is put down to others."""
    watch = Watch(None, server_is_here=False)
    began, machine, used = time.perf_counter(), busy_seconds(), time.process_time()
    while time.perf_counter() < began + SPAN_S:
        pass
    seen = watch.stop()
    span = time.perf_counter() - began
    used = time.process_time() - used
    others = busy_seconds() - machine - used
    assert used > SHARE * SPAN_S
    assert seen.busy_cores == pytest.approx(max(0, others) / span, abs=0.1)


def busy_seconds() -> float:
    """What all processes have used of all processors."""
    times = psutil.cpu_times()
    return sum(getattr(times, part) for part in ("user", "nice", "system", "steal"))


def test_of_a_server_here_that_cannot_be_found_nothing_is_said() -> None:
    assert seen_while_asleep(Watch(None, server_is_here=True)).busy_cores is None


def test_of_a_server_that_ended_nothing_is_said() -> None:
    with busy_process() as pid:
        watch = Watch(pid, server_is_here=True)
    assert watch.stop().busy_cores is None


def test_a_clock_that_is_set_is_seen_and_one_that_runs_is_not(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The clock of the machine is not for a test to set, so its reading is shifted."""
    read = time.time
    watch = Watch(None, server_is_here=False)
    quiet = watch.stop().clock_step_ms
    for step_s in (0.4, -0.4):
        watch.start()
        with monkeypatch.context() as shifted:
            shifted.setattr(time, "time", lambda step_s=step_s: read() + step_s)
            assert watch.stop().clock_step_ms == pytest.approx(400, abs=20)
    assert quiet < 20


def test_the_process_that_listens_is_found() -> None:
    with FaultServer({}) as server:
        assert host.listener(server.url) == os.getpid()
        assert host.listener(f"{server.url}/v1") == os.getpid()
    assert host.listener("http://127.0.0.1:1") is None


def test_the_machine_is_described_without_its_name() -> None:
    found = host.describe()
    assert found.cores == os.cpu_count()
    assert found.memory_gib == pytest.approx(psutil.virtual_memory().total / 2**30, abs=0.1)
    node = os.uname().nodename
    assert node not in found.model_dump_json()
