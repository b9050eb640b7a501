"""The four chapters on invented runs: they run to their end and say what the run allows."""

import json
import re
from collections.abc import Callable
from pathlib import Path

import pytest

from analysis import paths
from analysis.errors import InputError
from analysis.report import chapter as chapters
from analysis.report.chapter import Chapter, experiment_of

NOTEBOOKS = sorted(paths.NOTEBOOKS.glob("*-measure-*.ipynb"))
EXPERIMENTS = ["two-point", "context-sweep", "output-length", "acceptance"]
TEXTS = {"repeated": 7.0, "prose": 1.0}
FIGURES = {
    "two-point": {"measured-request-times", "measured-two-point"},
    "context-sweep": {"measured-step-lines", "measured-sweep"},
    "output-length": {"measured-output-length"},
    "acceptance": {"measured-acceptance"},
}


@pytest.fixture(autouse=True)
def build(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Cases that are made for a run go below a folder of the test."""
    monkeypatch.setattr(paths, "BUILD", tmp_path / "build")


@pytest.fixture
def read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., str]:
    """Run the cells of a chapter here; everything that it shows, as text."""
    monkeypatch.setenv(paths.STAGE_VARIABLE, str(tmp_path / "stage"))
    (tmp_path / "stage").mkdir()

    def reading(notebook: Path, case: str = "", server: str = "") -> str:
        shown: list[str] = []
        monkeypatch.setattr(
            chapters,
            "display",
            lambda data, raw: shown.append(data.get("text/markdown") or data["text/plain"]),
        )
        names: dict[str, object] = {}
        for cell in json.loads(notebook.read_text())["cells"]:
            if cell["cell_type"] == "code":
                exec("".join(cell["source"]), names)
            if cell["id"] == "parameters":
                names |= {"case": case, "server": server}
        return "\n\n".join(shown)

    return reading


@pytest.fixture
def drawn(tmp_path: Path) -> Callable[[], set[str]]:
    """Names of the figures that were saved."""
    return lambda: {path.stem for path in (tmp_path / "stage").rglob("*.svg")}


def experiment(notebook: Path) -> str:
    return experiment_of(notebook.stem)


def test_each_experiment_has_a_chapter() -> None:
    assert [experiment(notebook) for notebook in NOTEBOOKS] == EXPERIMENTS


@pytest.mark.parametrize("notebook", NOTEBOOKS, ids=experiment)
def test_a_chapter_on_a_speculating_and_a_plain_run_draws_all_its_figures(
    notebook, read, drawn, write_run, case_with
) -> None:
    laws = {"texts": tuple(TEXTS), "commit": TEXTS}
    fast, plain = write_run("fast", **laws), write_run("plain", speculates=False, **laws)
    said = read(notebook, str(case_with(fast, plain).folder))
    assert drawn() == FIGURES[experiment(notebook)]
    assert said.startswith("**")
    assert re.search(r"Of (\d+) requests in \d+ cells, \1 carry no flag", said)
    assert "nan" not in re.findall(r"[a-z]+", said.lower())
    powers = re.findall(r"\S+ \S+ \S*\de[-+]\d+", said)
    assert [text for text in powers if "p = " not in text] == [], "only a p value may be so small"


@pytest.mark.parametrize("notebook", NOTEBOOKS, ids=experiment)
def test_a_chapter_of_a_run_folder_reads_it_and_not_the_case(
    notebook, read, drawn, write_run
) -> None:
    run = write_run("a-run-of-a-user")
    said = read(notebook, case="no such case", server=str(run))
    assert "a-run-of-a-user" in said
    assert drawn() == FIGURES[experiment(notebook)]


def test_a_server_that_is_given_is_measured_with_the_experiment_of_the_chapter(
    write_run, monkeypatch: pytest.MonkeyPatch
) -> None:
    session = pytest.importorskip("analysis.experiments.session")
    asked = []

    def measure(server: str, experiment: str, prompts: str, repeats: int) -> Path:
        asked.append((server, experiment, prompts, repeats))
        return write_run("just-now")

    monkeypatch.setattr(session, "measure_for_notebook", measure)
    url = "http://127.0.0.1:8080"
    chapter = Chapter("07-measure-context-sweep", case="x", server=url, prompts="9,8", repeats=2)
    assert asked == [(url, "context-sweep", "9,8", 2)]
    assert chapter.case.name == "just-now"
    assert chapter.parameters == {"case": "just-now"}


def test_a_chapter_without_an_experiment_cannot_measure() -> None:
    with pytest.raises(InputError, match="03-step-time-model, server: found a chapter without"):
        Chapter("03-step-time-model", case="x", server="http://127.0.0.1:8080")


@pytest.mark.parametrize("notebook", NOTEBOOKS, ids=experiment)
@pytest.mark.parametrize("kind", ["untold", "flagged", "once", "exact", "one context"])
def test_a_chapter_holds_for_a_run_with_little_in_it(
    notebook, kind, read, drawn, write_run, case_with, untold
) -> None:
    laws = {
        "untold": {"each": untold, "server": {"speculates": None}},
        "flagged": {"each": lambda sample: {**sample, "flags": ["host busy"]}},
        "once": {"repeats": 1, "contexts": (100, 500)},
        "exact": {"noise": 0.0, "commit": 1.0},
        "one context": {"contexts": (500, 500)},
    }[kind]
    said = read(notebook, str(case_with(write_run(**laws)).folder))
    assert "Of " in said
    assert "carry no flag" in said
    assert "nan" not in re.findall(r"[a-z]+", said.lower())
    assert "None" not in said.replace("None of", "")
    if kind == "flagged":
        assert drawn() == set()
        assert "0 carry no flag" in said


@pytest.mark.parametrize("notebook", NOTEBOOKS, ids=experiment)
def test_a_case_without_runs_says_so_once_and_is_silent_then(
    notebook, read, drawn, case_with
) -> None:
    assert read(notebook, str(case_with().folder)) == "*This case has no run of ours.*"
    assert drawn() == set()


@pytest.mark.parametrize("notebook", NOTEBOOKS, ids=experiment)
def test_a_run_without_the_experiment_says_so(notebook, read, write_run, case_with) -> None:
    others = [other for other in EXPERIMENTS if other != experiment(notebook)]
    run = write_run(experiments=others)
    assert "No run of this case holds" in read(notebook, str(case_with(run).folder))
