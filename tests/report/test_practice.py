"""What breaks with notebooks, row by row, and that it does not break here."""

import ast
import json
import math
import re
import xml.etree.ElementTree as ET
from pathlib import Path
from typing import Any

import nbformat
import numpy as np
import pytest
from nbformat.v4 import new_code_cell, new_notebook

from analysis import paths
from analysis.errors import InputError
from analysis.records.case import committed_cases, load_case
from analysis.report import execute, runner
from analysis.report.parameters import SECRET, check, declared, parse
from analysis.report.runner import NEEDS

NOTEBOOKS = sorted(paths.NOTEBOOKS.glob("*.ipynb"))
KNOWN = {
    "case": ("str", "a"),
    "share": ("float", 0.5),
    "tokens": ("int", 1),
    "cold": ("bool", True),
}
PARAMETERS = "tokens: int = 1  # how many\nshare: float = 0.5  # of them"
FOREIGN = {
    "kernelspec": {"display_name": "Julia 1.9", "language": "julia", "name": "julia-1.9"},
    "language_info": {"name": "julia"},
    "toc": {"number_sections": True},
}


@pytest.fixture
def ran(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """Run a small notebook of the given cells; its faults and its stage folder."""
    for name in (paths.STAGE_VARIABLE, "PYTHONHASHSEED", "MPLBACKEND"):
        monkeypatch.setenv(name, "set again by the run, and restored after it")

    def execute_cells(*sources: str, stage: str = "stage", **parameters: Any) -> Any:
        cells = [new_code_cell(PARAMETERS, metadata={"tags": ["parameters"], "scrolled": True})]
        cells += [new_code_cell(source, metadata={"collapsed": True}) for source in sources]
        notebook = tmp_path / "small.ipynb"
        nbformat.write(new_notebook(cells=cells, metadata=FOREIGN), notebook)
        return execute.run(notebook, parameters, tmp_path / stage), tmp_path / stage

    return execute_cells


def result(stage: Path) -> dict[str, Any]:
    return json.loads((stage / execute.EXECUTED).read_text())


# --- kernels, paths, ids and timings


def test_a_kernel_that_is_not_here_is_replaced_in_the_run_and_in_what_is_kept(ran) -> None:
    faults, stage = ran("tokens + 1")
    assert faults == []
    assert result(stage)["metadata"] == {
        "kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"},
        "language_info": {"name": "python"},
    }


def test_two_runs_give_the_same_bytes_though_papermill_gives_new_ids_and_timings(ran) -> None:
    cells = ("print(tokens, share)", "from IPython.display import HTML\nHTML('<b>x</b>')")
    first, second = (
        ran(*cells, stage=stage, tokens=7, share=0.25)[1] / execute.EXECUTED
        for stage in ("first", "second")
    )
    ids = [cell["id"] for cell in json.loads(first.read_text())["cells"]]
    assert ids[1] == "injected-parameters"
    kept = [json.loads(path.read_text()) for path in (first, second)]
    for notebook in kept:  # the small notebook is written anew, with ids of its own
        for cell in notebook["cells"]:
            cell["id"] = cell["id"] if cell["id"] == "injected-parameters" else "its own"
    assert kept[0] == kept[1]
    assert kept[0]["cells"][2]["outputs"][0]["text"] in ("7 0.25\n", ["7 0.25\n"])


def test_no_absolute_path_and_no_timing_is_kept_of_a_run(ran) -> None:
    _, stage = ran("tokens", tokens=7)
    text = (stage / execute.EXECUTED).read_text()
    assert str(stage) not in text
    assert str(stage.parent) not in text
    assert not re.search(r"papermill|iopub|duration|\d{4}-\d\d-\d\dT", text)
    assert [cell["metadata"] for cell in result(stage)["cells"]] == [
        {"tags": ["parameters"]},
        {"tags": ["injected-parameters"]},
        {},
    ]


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_a_committed_notebook_holds_no_absolute_path_and_no_timing(path: Path) -> None:
    notebook = json.loads(path.read_text())
    for cell in notebook["cells"]:
        for output in cell.get("outputs", []):
            output.get("data", {}).pop("image/png", None)
    text = json.dumps(notebook)
    assert not re.search(r"papermill|iopub|start_time|\d{4}-\d\d-\d\dT", text)
    assert not re.search(r"(?<![\w.:/])/(home|tmp|root|Users|work|usr|var)/", text)
    assert str(paths.ROOT) not in text
    assert set(notebook["metadata"]) == {"kernelspec", "language_info"}
    assert notebook["metadata"]["kernelspec"]["name"] == "python3"


def test_the_working_folder_of_a_run_is_the_project_wherever_it_was_started(
    ran, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    faults, stage = ran(f"import os\nos.getcwd() == {str(paths.ROOT)!r}")
    assert faults == []
    assert result(stage)["cells"][-1]["outputs"][0]["data"]["text/plain"] in ("True", ["True"])


# --- runs that fail


def test_a_failed_run_is_told_by_cell_and_error_and_leaves_no_result(ran) -> None:
    faults, stage = ran("1 / 0", "tokens", tokens=2)
    failed = json.loads((stage / execute.PARTIAL).read_text())
    ids = [c["id"] for c in failed["cells"] if c["cell_type"] == "code" and "1 / 0" in c["source"]]
    assert faults[0] == f"cell {ids[0]}: ZeroDivisionError: division by zero"
    assert not (stage / execute.EXECUTED).exists()


def test_sys_exit_in_a_cell_is_a_failed_run_though_papermill_calls_it_a_success(ran) -> None:
    faults, stage = ran("import sys\nsys.exit(0)", "tokens")
    assert any("did not run" in fault for fault in faults)
    assert not (stage / execute.EXECUTED).exists()
    assert (stage / execute.PARTIAL).exists()


def test_a_killed_kernel_is_a_failed_run(ran) -> None:
    faults, stage = ran("import os, signal\nos.kill(os.getpid(), signal.SIGKILL)", "tokens")
    assert "DeadKernelError" in faults[0]
    assert not (stage / execute.EXECUTED).exists()


# --- parameters


@pytest.mark.parametrize(
    ("text", "value"),
    [('"007"', "007"), ('"nan"', "nan"), ('"no"', "no"), ("1e3", 1000.0), ("true", True)],
)
def test_parameters_are_json_and_keep_their_type(text: str, value: object) -> None:
    (parsed,) = parse((f"name={text}",)).values()
    assert parsed == value
    assert type(parsed) is type(value)


@pytest.mark.parametrize("text", ["007", "nan", "no", "word", "", "'word'", "None", "1 2", "0x10"])
def test_a_bare_word_is_refused_and_not_guessed_at(text: str) -> None:
    with pytest.raises(InputError, match="NAME=JSON"):
        parse((f"name={text}",))


@pytest.mark.parametrize("option", ["name", "7", "true"])
def test_a_parameter_without_a_value_is_refused(option: str) -> None:
    with pytest.raises(InputError, match="NAME=JSON"):
        parse((option,))


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("tokens", np.int64(7)),
        ("share", np.float64(0.5)),
        ("share", np.float32(0.5)),
        ("cold", np.True_),
        ("case", np.str_("x")),
        ("case", ("x",)),
        ("case", ["x"]),
        ("case", Path("x")),
        ("case", None),
        ("tokens", 7.0),
        ("tokens", "7"),
        ("tokens", True),
        ("cold", 1),
    ],
    ids=repr,
)
def test_what_is_not_a_native_value_of_the_declared_type_is_refused(name: str, value: Any) -> None:
    with pytest.raises(InputError, match=f"a value of type {KNOWN[name][0]}"):
        check({name: value}, KNOWN, "notebook")


def test_a_whole_number_is_taken_where_a_float_is_declared() -> None:
    assert check({"share": 1, "tokens": 2, "cold": False}, KNOWN, "n") == {
        "share": 1,
        "tokens": 2,
        "cold": False,
    }


def test_an_unknown_parameter_fails_and_names_those_that_exist() -> None:
    with pytest.raises(InputError) as failed:
        check({"cass": "x"}, KNOWN, "00-summary")
    assert str(failed.value) == (
        "00-summary, parameter cass: found an unknown parameter; "
        "expected one of case, share, tokens, cold"
    )


@pytest.mark.parametrize("text", ["NaN", "Infinity", "-Infinity", "1e999"])
def test_a_parameter_that_is_not_finite_is_refused(text: str) -> None:
    given = parse((f"share={text}",))
    assert not math.isfinite(given["share"])
    with pytest.raises(InputError, match="a finite number"):
        check(given, KNOWN, "notebook")


@pytest.mark.parametrize(
    "name",
    [
        "token",
        "hf_token",
        "API_KEY",
        "apikey",
        "openai_key",
        "password",
        "db_passwd",
        "client_secret",
        "auth_header",
        "bearer",
        "credentials",
        "key",
    ],
)
def test_a_parameter_that_names_a_secret_is_refused_even_if_declared(name: str) -> None:
    with pytest.raises(InputError, match="in the environment") as failed:
        check({name: "s3cr3t"}, {name: ("str", "")}, "notebook")
    assert "s3cr3t" not in str(failed.value)


@pytest.mark.parametrize("name", ["wished_context_tokens", "tokens", "output_tokens", "keys"])
def test_a_count_of_tokens_is_no_secret(name: str) -> None:
    assert check({name: 1}, {name: ("int", 0)}, "notebook") == {name: 1}


def one_cell(source: str) -> dict[str, Any]:
    return {"cells": [{"metadata": {"tags": ["parameters"]}, "source": source}]}


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("tokens: int = 1\nhalf: float = tokens / 2", "line 2.*a literal"),
        ("import os", "name: type = literal"),
        ("tokens = 1", "name: type = literal"),
        ("tokens: int", "name: type = literal"),
        ("case: str = f'x'", "a literal"),
        ("share: float = float('nan')", "a literal"),
        ("share: float = 1e999", "a finite number"),
        ("tokens: int = 'seven'", "a value of type int"),
        ("when: datetime = 1", "one of str, int, float, bool"),
        ("tokens: int = = 1", "line 1.*name: type = literal"),
    ],
)
def test_only_typed_literals_stand_in_a_parameters_cell(source: str, expected: str) -> None:
    with pytest.raises(InputError, match=expected):
        declared(one_cell(source), "notebook")


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_the_parameters_of_every_committed_notebook_are_typed_literals(path: Path) -> None:
    found = declared(json.loads(path.read_text()), path.stem)
    kind, case = found["case"]
    assert kind == "str"
    assert case in committed_cases()
    fields = {field for name, (field, _) in NEEDS.items() if name in found}
    assert all(getattr(load_case(case), field) for field in fields)
    assert bool(fields & {"runs", "logs"}) == bool(load_case(case).runs)
    assert not [name for name in found if SECRET.search(name)]


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_every_parameter_says_in_a_comment_what_it_means(path: Path) -> None:
    cells = json.loads(path.read_text())["cells"]
    (cell,) = [c for c in cells if "parameters" in c["metadata"].get("tags", [])]
    for line in "".join(cell["source"]).splitlines():
        assert re.search(r"\S  # \w.{5,}", line), line


def test_other_parameters_make_a_run_stale(tmp_path: Path) -> None:
    target = runner.Target(*(tmp_path / name for name in ("n", "f", "s", "p")))
    notebook = NOTEBOOKS[0]

    def task(**parameters: Any) -> runner.Task:
        return runner.Task(notebook, "a-case", target, False, parameters)

    assert task(case="x").reasons() == ["never made"]
    runner.state.write_stamp(task(case="x").stamp, task(case="x").made_from())
    assert task(case="x").reasons() == []
    assert task(case="x", tokens=2).reasons() == ["parameters"]


# --- outputs


@pytest.mark.slow  # it reads the report on every case
@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_a_committed_notebook_keeps_the_outputs_and_counts_of_every_cell(path: Path) -> None:
    cells = [c for c in json.loads(path.read_text())["cells"] if c["cell_type"] == "code"]
    assert [cell["execution_count"] for cell in cells] == list(range(1, len(cells) + 1))
    silent = [cell["id"] for cell in cells if not cell["outputs"]]
    assert silent[:2] == ["parameters", "setup"]
    assert set(silent[2:]) <= spoken(path.name), "silent on every committed case"


def spoken(name: str) -> set[str]:
    """Cells of a notebook that say something on a case that it is not committed with."""
    every = [json.loads(path.read_text()) for path in paths.BUILD.glob(f"notebooks/*/{name}")]
    return {c["id"] for notebook in every for c in notebook["cells"] if c.get("outputs")}


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_no_output_holds_an_address_in_memory_or_an_error(path: Path) -> None:
    for cell in json.loads(path.read_text())["cells"]:
        for output in cell.get("outputs", []):
            assert output["output_type"] == "display_data"
            assert " at 0x" not in json.dumps(output["data"]["text/plain"])


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_every_table_has_a_caption_and_a_heading_for_every_column(path: Path) -> None:
    outputs = [o for c in json.loads(path.read_text())["cells"] for o in c.get("outputs", [])]
    tables = ["".join(o["data"]["text/html"]) for o in outputs if "text/html" in o["data"]]
    assert len(tables) >= 2
    for text in tables:
        table = ET.fromstring(text)
        headings = ["".join(cell.itertext()).strip() for cell in table.iter("th")]
        assert headings
        assert all(headings)
        widths = {len(row) for row in table.iter("tr")}
        assert widths == {len(headings)}
        assert (table.findtext("caption") or "").strip()


def test_no_plot_lets_seaborn_draw_a_random_band() -> None:
    """Bars, lines and points of seaborn resample for their intervals unless told not to."""
    random = {"barplot", "lineplot", "pointplot", "regplot", "lmplot", "catplot", "relplot"}
    found = 0
    for path in sorted((paths.SOURCE / "analysis" / "report" / "plots").glob("*.py")):
        for node in ast.walk(ast.parse(path.read_text())):
            if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Attribute):
                continue
            if ast.unparse(node.func.value) == "sns" and node.func.attr in random:
                found += 1
                given = {k.arg: ast.unparse(k.value) for k in node.keywords}
                fixed = (given.get("errorbar"), given.get("estimator"))
                assert "None" in fixed, f"{path.name}:{node.lineno}"
    assert found > 0
