"""Invented runs whose laws are known, and cases made of them."""

import importlib.util
import json
from collections.abc import Callable
from pathlib import Path
from types import ModuleType

import pytest

from analysis.records.case import Case, load_case
from analysis.records.run import Run
from analysis.records.run_case import case_toml

TESTS = Path(__file__).resolve().parents[1]


@pytest.fixture(scope="session")
def invented() -> ModuleType:
    """The builder of invented runs."""
    spec = importlib.util.spec_from_file_location("invented_run", TESTS / "invented_run.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture
def write_run(invented: ModuleType, tmp_path: Path) -> Callable[..., Path]:
    """Write an invented run by its name."""
    return lambda name="fast", **laws: invented.write_run(tmp_path / name, **laws)


@pytest.fixture
def case_with(tmp_path: Path) -> Callable[..., Case]:
    """A case whose only data are the given runs."""

    def made(*runs: Path) -> Case:
        folder = tmp_path / f"case-{len(list(tmp_path.glob('case-*')))}"
        folder.mkdir()
        text = case_toml(Run(runs[0]), folder) if runs else BARE
        head = text.partition("[references]")[0]
        references = f"[references]\nruns = {json.dumps([str(run) for run in runs])}\n"
        (folder / "case.toml").write_text(head + (references if runs else ""))
        return load_case(str(folder))

    return made


BARE = """\
format = 1
title = "A server that nobody measured"
summary = "Invented."
source = "made up"
[engine]
name = "Toy"
"""


@pytest.fixture
def untold() -> Callable[[dict[str, object]], dict[str, object]]:
    """Take everything out of a sample that a server may not tell."""
    told = ("steps", "steps_source", "drafted_tokens", "accepted_tokens", "engine_decode_ms")
    return lambda sample: {name: value for name, value in sample.items() if name not in told}
