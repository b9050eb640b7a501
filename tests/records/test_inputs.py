"""What is read is remembered, so that no figure forgets an input."""

import json
from pathlib import Path

import pytest

from analysis import paths
from analysis.records import inputs
from analysis.records.case import load_case

# SHA-256 of "abc": FIPS 180-2, appendix B.1.
ABC = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"


@pytest.fixture(autouse=True)
def _nothing_read_yet(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(inputs, "_read", {})


def test_a_file_that_was_read_is_seen_with_its_digest(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("abc")
    assert inputs.read_text(tmp_path / "a.txt") == "abc"
    assert inputs.seen() == {f"{tmp_path.name}/a.txt": ABC}


def test_a_file_that_could_not_be_read_is_not_seen(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="no such file"):
        inputs.read_bytes(tmp_path / "gone")
    assert inputs.seen() == {}


def test_under_the_runner_each_input_is_logged_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(paths.STAGE_VARIABLE, str(tmp_path))
    (tmp_path / "a.txt").write_text("abc")
    for _ in range(2):
        inputs.read_bytes(tmp_path / "a.txt")
    logged = [json.loads(line) for line in (tmp_path / "inputs.jsonl").read_text().splitlines()]
    assert logged == [{"file": str((tmp_path / "a.txt").resolve()), "sha256": ABC}]


def test_a_file_that_changed_is_logged_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(paths.STAGE_VARIABLE, str(tmp_path))
    for content in ("abc", "abd"):
        (tmp_path / "a.txt").write_text(content)
        inputs.read_bytes(tmp_path / "a.txt")
    assert len((tmp_path / "inputs.jsonl").read_text().splitlines()) == 2
    assert inputs.seen()[f"{tmp_path.name}/a.txt"] != ABC


def test_the_tables_of_a_case_are_inputs_under_their_path_from_the_root() -> None:
    case = load_case("kimi-k26-sglang")
    assert set(inputs.seen()) == {"data/cases/kimi-k26-sglang/case.toml"}
    assert case.sweep
    assert case.plain
    assert set(inputs.seen()) == {
        "data/cases/kimi-k26-sglang/case.toml",
        "data/cases/kimi-k26-sglang/sweep.csv",
        "data/validation/kimi_k26_sglang_plain.csv",
    }
