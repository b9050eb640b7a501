"""A KV layout measurement is read as it was written, or refused with file and field."""

import hashlib
import json
import shutil
from pathlib import Path

import pytest

from analysis import paths
from analysis.errors import InputError
from analysis.records.kv_layout import PREDICTIONS, KvLayout, load_kv_layouts


@pytest.fixture
def copy(tmp_path: Path) -> Path:
    """A copy of the committed measurement of vLLM."""
    return Path(shutil.copytree(paths.KV_LAYOUTS / "vllm", tmp_path / "vllm"))


def change(path: Path, **values: object) -> None:
    content = json.loads(path.read_text())
    path.write_text(json.dumps(content | values))


@pytest.mark.parametrize("engine", ["vllm", "sglang"])
def test_the_committed_runs_are_whole_and_were_predicted_first(engine: str) -> None:
    layout = KvLayout(paths.KV_LAYOUTS / engine)
    assert layout.predictions.engine.lower() == engine
    assert layout.left == []
    starts = [reading.started_utc for reading in layout.readings.values()]
    assert layout.predictions.written_utc <= min(starts)
    assert starts == sorted(starts)


def test_the_configs_of_the_committed_runs_are_those_of_the_project() -> None:
    for layout in load_kv_layouts(paths.KV_LAYOUTS):
        for one in layout.predictions.servers:
            config = paths.ENGINES / "tiny-configs" / f"{one.model}.json"
            assert hashlib.sha256(config.read_bytes()).hexdigest() == one.config_sha256


def test_nothing_in_the_committed_runs_tells_whose_machine_it_was() -> None:
    text = "\n".join(path.read_text() for path in paths.KV_LAYOUTS.rglob("*.json"))
    for mark in ("/root", "/home", "/work", "/tmp", "127.0.0.1", "192.0.2.", "localhost"):
        assert mark not in text


def test_a_folder_of_folders_is_read_by_name() -> None:
    found = [one.predictions.engine for one in load_kv_layouts(paths.KV_LAYOUTS)]
    assert found == ["SGLang", "vLLM"]


def test_a_half_read_folder_says_what_is_left(copy: Path) -> None:
    (copy / "servers/gqa-tp1.json").unlink()
    assert [one.server for one in KvLayout(copy).left] == ["gqa-tp1"]


def test_a_prediction_that_was_edited_is_refused(copy: Path) -> None:
    content = json.loads((copy / PREDICTIONS).read_text())
    content["servers"][0]["tokens"] += 16
    (copy / PREDICTIONS).write_text(json.dumps(content))
    with pytest.raises(InputError, match=r"mla-tp1.json, predictions_sha256: found predictions"):
        KvLayout(copy)


def test_a_server_that_started_before_its_prediction_is_refused(copy: Path) -> None:
    change(copy / "servers/mla-tp2.json", started_utc="2020-01-01T00:00:00Z")
    with pytest.raises(InputError, match=r"mla-tp2.json, started_utc: found a start before"):
        KvLayout(copy)


def test_a_reading_under_another_name_is_refused(copy: Path) -> None:
    shutil.copy(copy / "servers/mla-tp1.json", copy / "servers/gqa-tp2.json")
    with pytest.raises(InputError, match=r"gqa-tp2.json, server: found 'mla-tp1'; expected 'gqa"):
        KvLayout(copy)


@pytest.mark.parametrize(
    ("name", "text", "found"),
    [
        (PREDICTIONS, "{", "predictions.json: found Expecting property name"),
        (PREDICTIONS, "[]", "predictions.json: found a JSON list; expected an object"),
        (PREDICTIONS, '{"format": 2}', "predictions.json, format: found 2; expected 1"),
        (PREDICTIONS, '{"format": 1}', "predictions.json, engine: found nothing; expected a value"),
        ("servers/mla-tp1.json", "{}", "mla-tp1.json, server: found nothing; expected a value"),
        ("servers/mla-tp1.json", "null", "mla-tp1.json: found a JSON NoneType; expected an object"),
    ],
)
def test_a_broken_file_is_named(copy: Path, name: str, text: str, found: str) -> None:
    (copy / name).write_text(text)
    with pytest.raises(InputError) as error:
        KvLayout(copy)
    assert found in str(error.value)


def test_a_folder_without_a_measurement_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"kv-layout: found .*; expected a folder with a predic"):
        load_kv_layouts(tmp_path)
    with pytest.raises(InputError, match="expected a folder with a predictions"):
        load_kv_layouts(tmp_path / "none")
