"""``analysis measure kv-layout``: what is said and refused before any server is started."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from tests import fake_engine
from tests.conftest import Ended

from analysis import paths
from analysis.engines import cpu_servers
from analysis.experiments import kv_layout

Analysis = Callable[..., Ended]


@pytest.fixture
def out(tmp_path: Path) -> Path:
    return tmp_path / "kv-layout"


@pytest.fixture
def fake(tmp_path: Path, out: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, Path]:
    root = tmp_path / "engines"
    monkeypatch.setattr(paths, "ENGINE_ENVIRONMENTS", root)
    monkeypatch.setattr(kv_layout, "refuse_small_machine", lambda engine: None)
    monkeypatch.setattr(cpu_servers, "PAUSE_S", 0.05)
    return {
        key: fake_engine.environment(root, key, "9.9", paths.KV_LAYOUTS / key, out / key)
        for key in ("vllm", "sglang")
    }


def test_a_dry_run_prints_the_predictions_of_both_and_needs_neither(
    analysis: Analysis, out: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(paths, "ENGINE_ENVIRONMENTS", tmp_path / "none")
    ended = analysis("measure", "kv-layout", "--dry-run", "--out", str(out))
    assert (ended.code, ended.err) == (0, "")
    # The figures: tokens of vLLM for 1 GiB, GiB of SGLang for 16,384 tokens.
    for figure in ("233,008", "262,144", "524,288", "0.070317", "0.062504", "0.031252"):
        assert figure in ended.out
    rows = analysis("measure", "kv-layout", "--dry-run", "--json").json["predictions"]
    assert [row["server"] for row in rows] == 2 * ["mla-tp1", "mla-tp2", "gqa-tp1", "gqa-tp2"]
    assert not out.exists()


def test_both_engines_are_read_and_compared(
    analysis: Analysis, fake: dict[str, Path], out: Path
) -> None:
    ended = analysis("measure", "kv-layout", "--out", str(out))
    assert ended.code == 0
    assert [line.endswith("  as predicted") for line in ended.out.splitlines()[1:9]] == 8 * [True]
    assert "8 of 8 servers printed the pool that was predicted" in " ".join(ended.out.split())
    assert "vLLM mla-tp1:" in ended.err
    again = analysis("measure", "kv-layout", "--out", str(out), "--json")
    found = json.loads(again.out)
    assert {row["verdict"] for row in found["servers"]} == {"as predicted"}
    assert {key: len(fake_engine.starts(one)) for key, one in fake.items()} == {
        "vllm": 4,
        "sglang": 4,
    }


def test_one_engine_alone(analysis: Analysis, fake: dict[str, Path], out: Path) -> None:
    ended = analysis("measure", "kv-layout", "--engine", "sglang", "--out", str(out))
    assert ended.code == 0
    assert "vLLM" not in ended.out
    assert [one.name for one in out.iterdir()] == ["sglang"]


def test_an_engine_that_is_not_installed_is_one_line_before_anything_starts(
    analysis: Analysis, fake: dict[str, Path], out: Path
) -> None:
    (fake["sglang"] / "ready").unlink()
    error = analysis("measure", "kv-layout", "--out", str(out)).error
    assert "--engine sglang: found no SGLang in" in error
    assert "expected `make engines` first" in error
    assert not out.exists()
    assert fake_engine.starts(fake["vllm"]) == []


@pytest.mark.parametrize(
    ("arguments", "found"),
    [
        (("kv-layout", "two-point"), "EXPERIMENT: found kv-layout and others; expected kv-layout"),
        (("kv-layout", "--repeats", "3"), "--repeats: found an option of other experiments"),
        (("kv-layout", "--server", "embedded"), "--server: found an option of other experiments"),
        (("two-point", "--engine", "vllm"), "--engine: found no kv-layout; expected it beside"),
        (("kv-layout", "--engine", "llama"), "'llama' is not one of 'vllm', 'sglang', 'all'"),
    ],
)
def test_what_does_not_go_together_is_refused(
    analysis: Analysis, arguments: tuple[str, ...], found: str
) -> None:
    assert found in analysis("measure", *arguments).error
