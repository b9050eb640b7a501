"""``analysis report --run``: the same chapters on a run that was measured, invented here.

Its step is 20 ms + 10 us per token of context, and it commits 4 tokens a step.
"""

import json
import shutil
from pathlib import Path
from typing import Any

import nbformat
import pytest
from tests.invented_run import write_run

NAME = "my-run"


@pytest.fixture(scope="module")
def reported(built, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A built copy in which a run outside it was reported; the folder with the results."""
    root = tmp_path_factory.mktemp("for-a-run") / "project"
    shutil.copytree(built.root, root)
    tree = type(built)(root)
    run = write_run(tmp_path_factory.mktemp("runs") / NAME)
    before = tree.published()
    ended = tree.run("report", "--run", str(run))
    assert (ended.code, ended.err) == (0, "")
    assert tree.published() == before
    again = tree.run("report", "--run", str(run))
    assert (again.code, again.ran) == (0, set())
    return root / "build" / "cases" / NAME


def said(reported: Path, notebook: str) -> str:
    path = reported / "notebooks" / NAME / f"{notebook}.ipynb"
    cells = nbformat.read(path, as_version=4).cells
    outputs = [o for cell in cells if cell.cell_type == "code" for o in cell.outputs]
    return "\n".join(o.data.get("text/markdown", "") for o in outputs if "data" in o)


def test_every_chapter_runs_on_a_run_those_on_measurements_too(reported: Path) -> None:
    stems = {path.stem for path in (reported / "notebooks" / NAME).glob("*.ipynb")}
    every = {path.stem for path in (reported.parents[2] / "notebooks").glob("[0-9]*.ipynb")}
    about_others = {"12-kv-validation", "13-kv-layout-experiment"}
    assert every - stems == {"10-diagnose-log", "11-compare", *about_others}, "nothing of it"


def test_the_values_are_those_of_the_invented_laws(reported: Path) -> None:
    values: dict[str, Any] = json.loads((reported / "figures" / "values.json").read_text())[NAME]
    sweep = values["02-context-sweep"]
    assert sweep["first.commit_length"] == pytest.approx(127 / 32)
    assert sweep["first.tok_per_s"] == pytest.approx(1000 * 127 / 32 / (20 + 0.01 * 192), rel=0.01)
    steps = values["03-step-time-model"]
    assert steps["wished_tokens"] == 8192
    assert steps["far_step_ms"] == pytest.approx(20 + 0.01 * (8192 + 64), rel=0.02)


def test_the_prose_is_that_of_a_measurement(reported: Path) -> None:
    first = said(reported, "00-summary")
    assert "Why is this server this fast, and what will context do to it?" in first
    assert "None of 60 requests carries a flag." in first
    assert f"`make report RUN=runs0/{NAME}`" in first
    assert "were measured by the engine's own timings" in said(reported, "02-context-sweep")
    assert "The two measurements agree: at all 4 points" in said(reported, "01-two-point-decode")
    assert "no slope is held against a limit" in said(reported, "03-step-time-model")
    assert "no observation in case.toml" in said(reported, "04-reconciliation")
    assert "facts of this case's model are not known" in said(reported, "05-mla-memory")


def test_nothing_of_a_published_case_or_of_this_machine_is_in_its_pages(reported: Path) -> None:
    chapters = list((reported / "report").rglob("*.html"))
    assert len(chapters) >= 6
    for page in chapters:
        text = page.read_text()
        assert str(reported.parents[2]) not in text
        assert "Kimi" not in text
    for notebook in (reported / "notebooks" / NAME).glob("*.ipynb"):
        assert "published" not in said(reported, notebook.stem)
    figures = {path.stem for path in (reported / "figures" / NAME).glob("*.svg")}
    assert {"throughput", "sweep", "step-lines", "two-point-steps"} <= figures
    assert not figures & {"needed-commit", "reconciliation", "break-even", "kv-per-gpu"}
