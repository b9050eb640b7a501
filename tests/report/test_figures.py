"""A figure's short hash, its sidecar, and the four files of every committed figure."""

import json
import re
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import matplotlib as mpl
import pandas as pd
import pytest

from analysis import paths
from analysis.report import figure
from analysis.report.parameters import declared
from analysis.report.style import RC, new_figure

TABLE = pd.DataFrame({"context_tokens": [0, 1000, 2000], "step_ms": [20.0, 30.0, 40.0]})
ENDINGS = {".svg", ".png", ".csv", ".json"}
SIDECARS = sorted(paths.FIGURES.glob("*/*.json"))


def plain(axis: Any, table: pd.DataFrame) -> None:
    axis.plot(table.context_tokens, table.step_ms, "o", color="#123456")
    axis.set_xlabel("context (tokens)")
    axis.set_ylabel("step (ms)")
    axis.set_xlim(0, 2500)


def refactored(axis: Any, table: pd.DataFrame) -> None:
    labels = {"xlabel": "context (tokens)", "ylabel": "step (ms)", "xlim": (0.0, 2500.0)}
    rows = sorted(table.itertuples(index=False), reverse=True)
    axis.set(**labels)
    axis.plot(
        *zip(*reversed(rows), strict=True), linestyle="", marker="o", c=(18 / 255, 52 / 255, 0.3373)
    )
    axis.set(**labels)


def other_label(axis: Any, table: pd.DataFrame) -> None:
    plain(axis, table)
    axis.set_ylabel("step (s)")


def other_limits(axis: Any, table: pd.DataFrame) -> None:
    plain(axis, table)
    axis.set_xlim(0, 3000)


def other_scale(axis: Any, table: pd.DataFrame) -> None:
    plain(axis, table)
    axis.set_yscale("log")


def other_colour(axis: Any, table: pd.DataFrame) -> None:
    plain(axis, table)
    axis.lines[0].set_color("#654321")


def other_text(axis: Any, table: pd.DataFrame) -> None:
    plain(axis, table)
    axis.annotate("here", (0, 20))


@pytest.fixture
def save(tmp_path: Path) -> Callable[..., Any]:
    """Draw and save; the record and the folder with the four files."""

    def saved(
        draw: Callable[..., None] = plain,
        table: pd.DataFrame = TABLE,
        folder: str = "figures",
        parameters: dict[str, Any] | None = None,
        **record: str,
    ) -> tuple[figure.SavedFigure, Path]:
        told = {"notebook": "03-x", "caption": "A line.", "alt": "A line that rises."} | record
        with mpl.rc_context(RC):
            drawn = new_figure()
            draw(drawn.subplots(), table)
            made, _ = figure.save(
                drawn,
                table,
                figure.SavedFigure(id="a-case/steps", hash="", **told),
                parameters or {},
                tmp_path / folder,
            )
        return made, tmp_path / folder / "a-case"

    return saved


def test_a_short_hash_survives_a_refactoring(save) -> None:
    made, _ = save()
    assert re.fullmatch(r"[0-9a-f]{8}", made.hash)
    assert save(refactored)[0].hash == made.hash


def test_a_short_hash_does_not_depend_on_parameters_notebook_or_alt_text(save) -> None:
    other = save(parameters={"case": "x"}, notebook="04-y", alt="Another description.")[0]
    assert other.hash == save()[0].hash


@pytest.mark.parametrize("draw", [other_label, other_limits, other_scale, other_colour, other_text])
def test_a_short_hash_changes_with_what_is_drawn(save, draw) -> None:
    assert save(draw)[0].hash != save()[0].hash


def test_a_short_hash_changes_with_the_caption(save) -> None:
    assert save(caption="Another line.")[0].hash != save()[0].hash


def test_a_short_hash_changes_with_one_datum_that_the_axis_limits_do_not_show(save) -> None:
    table = TABLE.assign(step_ms=[20.0, 30.000001, 40.0])
    assert save(table=table)[0].hash != save()[0].hash


def test_drawn_twice_a_figure_has_the_same_bytes_in_every_format(save) -> None:
    first, second = (save(folder=name)[1] for name in ("first", "second"))
    for ending in ENDINGS:
        assert (first / f"steps{ending}").read_bytes() == (second / f"steps{ending}").read_bytes()
    assert "<dc:date>" not in (first / "steps.svg").read_text()


def test_the_csv_beside_a_figure_is_the_table_that_was_drawn(save) -> None:
    _, folder = save()
    assert (folder / "steps.csv").read_text() == (
        "context_tokens,step_ms\n0,20.0\n1000,30.0\n2000,40.0\n"
    )


@pytest.mark.parametrize("path", SIDECARS, ids=lambda p: f"{p.parent.name}/{p.stem}")
def test_a_sidecar_holds_no_time_no_commit_and_no_absolute_path(path: Path) -> None:
    text = path.read_text()
    sidecar = json.loads(text)
    assert set(sidecar) == {
        *("id", "hash", "notebook", "caption", "alt", "sha256"),
        *("parameters", "drawing", "inputs", "modules", "lock"),
    }
    assert sidecar["id"] == f"{path.parent.name}/{path.stem}"
    assert not re.search(r"\d{4}-\d\d-\d\d|\d\d:\d\d:\d\d", text)
    assert not re.search(r"(?<![0-9a-f])[0-9a-f]{40}(?![0-9a-f])", text)
    names = [*sidecar["inputs"], *sidecar["modules"], *sidecar["sha256"]]
    assert len(names) > 10
    assert not [name for name in names if name.startswith(("/", "..", "~"))]
    assert str(paths.ROOT) not in text


@pytest.mark.parametrize("path", SIDECARS, ids=lambda p: f"{p.parent.name}/{p.stem}")
def test_a_sidecar_names_its_case_its_model_and_the_modules_that_made_it(path: Path) -> None:
    sidecar = json.loads(path.read_text())
    assert f"data/cases/{path.parent.name}/case.toml" in sidecar["inputs"]
    assert sidecar["parameters"]["case"] == path.parent.name
    assert {
        "src/analysis/report/figure.py",
        "src/analysis/report/chapter.py",
        "src/analysis/report/style.py",
        "src/analysis/rounding.py",
    } <= set(sidecar["modules"])


def test_every_committed_figure_has_its_four_files_and_there_are_no_others() -> None:
    found: dict[str, set[str]] = {}
    for path in paths.FIGURES.glob("*/*"):
        found.setdefault(f"{path.parent.name}/{path.stem}", set()).add(path.suffix)
    assert len(found) == len(SIDECARS) > 10
    assert found == dict.fromkeys(found, ENDINGS)
    outside = {path.name for path in paths.FIGURES.iterdir() if path.is_file()}
    assert outside == {"values.json"}


def shown(notebooks: list[Path]) -> Counter[tuple[str, str, str]]:
    """(id, hash, alt) of every figure in the outputs of notebooks."""
    found: Counter[tuple[str, str, str]] = Counter()
    for path in notebooks:
        for cell in json.loads(path.read_text())["cells"]:
            for output in cell.get("outputs", []):
                record = output.get("data", {}).get(figure.MIME)
                if record:
                    found[record["id"], record["hash"], record["alt"]] += 1
                    assert record["notebook"] == path.stem
    return found


def recorded(case: str, figures: Path, in_place: bool) -> Counter[tuple[str, str, str]]:
    """The same of a case's sidecars: those of notebooks that default to it, or the others."""
    sidecars = [json.loads(path.read_text()) for path in (figures / case).glob("*.json")]
    return Counter(
        (s["id"], s["hash"], s["alt"])
        for s in sidecars
        if (own_case(s["notebook"]) == case) == in_place
    )


def own_case(notebook: str) -> str:
    """The case that a committed notebook is executed on."""
    content = json.loads((paths.NOTEBOOKS / f"{notebook}.ipynb").read_text())
    return str(declared(content, notebook)["case"][1])


def test_every_figure_of_a_notebooks_own_case_is_shown_by_its_committed_output() -> None:
    notebooks = sorted(paths.NOTEBOOKS.glob("*.ipynb"))
    cases = {own_case(path.stem) for path in notebooks}
    assert paths.FIRST_CASE in cases
    assert shown(notebooks) == sum(
        (recorded(case, paths.FIGURES, in_place=True) for case in cases), Counter()
    )


def test_every_other_figure_is_shown_by_one_notebook_output(built) -> None:
    cases = [path.name for path in (built.root / "figures").iterdir() if path.is_dir()]
    assert len(cases) >= 3
    for case in cases:
        notebooks = sorted((built.root / "build/notebooks" / case).glob("*.ipynb"))
        assert shown(notebooks) == recorded(case, built.root / "figures", in_place=False)


def significant_digits(number: str) -> int:
    mantissa = re.split("[eE]", number)[0].lstrip("-").replace(".", "").lstrip("0")
    return len(mantissa.rstrip("0"))


@pytest.mark.parametrize("ending", ["csv", "json"])
def test_no_committed_number_has_more_than_nine_significant_digits(ending: str) -> None:
    checked = 0
    for path in sorted(paths.FIGURES.rglob(f"*.{ending}")):
        text = re.sub(r'"[^"]*"', "", path.read_text())
        for number in re.findall(r"(?<![\w.])-?\d+\.\d+(?:[eE]-?\d+)?", text):
            assert significant_digits(number) <= 9, f"{path.name}: {number}"
            checked += 1
    assert checked > 100
