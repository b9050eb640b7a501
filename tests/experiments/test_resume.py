"""Nothing that was measured is lost: the server dies, the client dies, Ctrl-C, and --resume."""

import os
import signal
import time
from pathlib import Path

import psutil
import pytest

from analysis.engines.embedded import Embedded
from analysis.records.run import REQUESTS, Run

from .conftest import PATIENCE_S, SMALL, Start, samples, server_of, wait_for

ASKED = 18


def completed(start: Start, folder: Path, before: bytes) -> Run:
    """Resume the run; what was there before must be the start of what is there now."""
    process = start("--resume", str(folder))
    _, err = process.communicate(timeout=PATIENCE_S)
    assert process.returncode == 0, err
    content = (folder / REQUESTS).read_bytes()
    assert content.startswith(before[: before.rfind(b"\n") + 1])
    run = Run(folder)
    assert run.ended
    assert run.left() == []
    answered = [s.number for s in run.samples if not s.warmup and not s.error]
    assert sorted(answered) == list(range(ASKED))
    return run


def test_a_killed_server_leaves_a_run_that_resume_completes(start: Start, tmp_path: Path) -> None:
    folder = tmp_path / "run"
    process = start(*SMALL, "--out", str(folder))
    wait_for(5, folder, process)
    server_of(process).kill()
    out, err = process.communicate(timeout=PATIENCE_S)
    assert process.returncode == 2
    assert "the server is gone" in err.splitlines()[-1]
    assert f"analysis measure --resume {folder}` goes on" in err.splitlines()[-1]
    assert out.startswith("experiment")
    before = (folder / REQUESTS).read_bytes()
    assert not Run(folder).ended
    assert Run(folder).left()
    completed(start, folder, before)


def test_a_killed_client_leaves_a_run_and_no_server(start: Start, tmp_path: Path) -> None:
    folder = tmp_path / "run"
    process = start(*SMALL, "--out", str(folder))
    wait_for(5, folder, process)
    server = server_of(process)
    process.kill()
    process.wait()
    assert psutil.wait_procs([server], timeout=10)[1] == [], "the server outlived its client"
    with (folder / REQUESTS).open("ab") as requests:
        requests.write(b'{"number": 17, "experim')  # as a kill in the middle of a write leaves it
    before = (folder / REQUESTS).read_bytes()
    run = completed(start, folder, before)
    assert len(run.samples) >= ASKED


def test_ctrl_c_leaves_a_run_and_says_how_to_go_on(start: Start, tmp_path: Path) -> None:
    folder = tmp_path / "run"
    process = start(*SMALL, "--out", str(folder))
    wait_for(4, folder, process)
    server = server_of(process)
    os.kill(process.pid, signal.SIGINT)
    _, err = process.communicate(timeout=PATIENCE_S)
    assert process.returncode == 130
    assert "--resume" in err
    assert err.splitlines()[-1] == "interrupted"
    assert not server.is_running()
    assert not Run(folder).ended


def test_a_time_limit_stops_and_the_rest_can_be_had_later(start: Start, tmp_path: Path) -> None:
    folder = tmp_path / "run"
    process = start(*SMALL, "--out", str(folder), "--max-minutes", "0.01")
    _, err = process.communicate(timeout=PATIENCE_S)
    assert process.returncode == 0, err
    assert "--max-minutes 0.01 are over" in err
    assert 0 < len(Run(folder).left()) < ASKED
    completed(start, folder, (folder / REQUESTS).read_bytes())


def test_a_finished_run_is_not_resumed(start: Start, tmp_path: Path) -> None:
    folder = tmp_path / "run"
    process = start(*SMALL, "--out", str(folder), "--max-minutes", "0")
    process.communicate(timeout=PATIENCE_S)
    assert len(Run(folder).left()) == ASKED
    completed(start, folder, b"")
    process = start("--resume", str(folder))
    _, err = process.communicate(timeout=PATIENCE_S)
    assert process.returncode == 2
    assert "found a run that has ended" in err.splitlines()[-1]


def test_another_server_cannot_complete_a_run(
    start: Start, tmp_path: Path, two_slots: Embedded
) -> None:
    folder = tmp_path / "run"
    process = start(*SMALL, "--out", str(folder), "--max-minutes", "0")
    process.communicate(timeout=PATIENCE_S)
    process = start("--resume", str(folder), "--server", two_slots.url)
    _, err = process.communicate(timeout=PATIENCE_S)
    assert process.returncode == 2
    assert "as the run began" in err.splitlines()[-1]
    assert samples(folder) == []


@pytest.mark.parametrize("again", [False, True])
def test_a_run_is_never_written_over(start: Start, tmp_path: Path, again: bool) -> None:
    folder = tmp_path / "run"
    folder.mkdir()
    if again:
        process = start(*SMALL, "--out", str(folder), "--max-minutes", "0")
        process.communicate(timeout=PATIENCE_S)
    else:
        (folder / "notes.txt").write_text("mine")
    began = time.monotonic()
    content = sorted(path.read_bytes() for path in folder.iterdir())
    process = start(*SMALL, "--out", str(folder))
    _, err = process.communicate(timeout=PATIENCE_S)
    assert process.returncode == 2, time.monotonic() - began
    assert "expected a new folder, or --resume to go on" in err.splitlines()[-1]
    assert sorted(path.read_bytes() for path in folder.iterdir()) == content
