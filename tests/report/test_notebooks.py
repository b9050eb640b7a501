"""The notebooks are thin: load, call, show; no logic, and no number typed into prose."""

import ast
import json
import re
from pathlib import Path
from string import Formatter
from typing import Any

import pytest

from analysis import paths
from analysis.records.case import committed_cases

NOTEBOOKS = sorted(paths.NOTEBOOKS.glob("*.ipynb"))
LINES = 14
"""About twelve; two more for a set-up cell with its imports."""
BRANCHES = (ast.If, ast.For, ast.While, ast.Try, ast.With, ast.FunctionDef, ast.ClassDef)
BRANCHES += (ast.IfExp, ast.ListComp, ast.DictComp, ast.SetComp, ast.GeneratorExp, ast.Match)
DEFINITIONS = {"95 %", "10^9 B", "2^30 B"}
"""The only numbers in prose: a confidence level and two units. No measurement is among them."""


@pytest.fixture(params=NOTEBOOKS, ids=lambda path: path.stem)
def notebook(request: pytest.FixtureRequest) -> Any:
    return json.loads(request.param.read_text())


def source(cell: dict[str, Any]) -> str:
    return "".join(cell["source"])


def code(notebook: dict[str, Any]) -> list[dict[str, Any]]:
    return [cell for cell in notebook["cells"] if cell["cell_type"] == "code"]


def prose(text: str) -> str:
    """Text as a reader sees it: without link targets, equations, code spans and fields."""
    text = re.sub(r"\]\([^)]*\)", "]", text)
    text = re.sub(r"\$\$.*?\$\$|\$[^$]*\$|`[^`]*`|\{[^{}]*\}", "", text, flags=re.DOTALL)
    for allowed in DEFINITIONS:
        text = text.replace(allowed, "")
    return text


def test_there_are_notebooks_in_reading_order() -> None:
    assert [path.stem[:2] for path in NOTEBOOKS] == [f"{n:02}" for n in range(len(NOTEBOOKS))]
    assert len(NOTEBOOKS) >= 6


def test_one_cell_is_tagged_parameters_and_it_is_the_first_code_cell(notebook) -> None:
    tagged = [c["id"] for c in notebook["cells"] if c["metadata"].get("tags") == ["parameters"]]
    assert tagged == ["parameters"]
    assert [c["id"] for c in code(notebook)][:2] == ["parameters", "setup"]


def test_every_cell_has_a_name_of_its_own_for_an_id(notebook) -> None:
    ids = [cell["id"] for cell in notebook["cells"]]
    assert len(set(ids)) == len(ids)
    assert ids[0] == "title"
    for name in ids:
        assert re.fullmatch(r"[a-z]{3,}(-[a-z]+)*", name), name


def test_no_code_cell_is_longer_than_a_screenful(notebook) -> None:
    assert {c["id"]: source(c) for c in code(notebook) if source(c).count("\n") + 1 > LINES} == {}


def test_no_code_cell_branches_loops_or_defines(notebook) -> None:
    for cell in code(notebook):
        found = [type(n).__name__ for n in ast.walk(ast.parse(source(cell)))]
        assert not set(found) & {kind.__name__ for kind in BRANCHES}, cell["id"]


def test_no_code_cell_computes(notebook) -> None:
    for cell in code(notebook):
        operators = [n for n in ast.walk(ast.parse(source(cell))) if isinstance(n, ast.BinOp)]
        assert operators == [], cell["id"]


def test_only_the_parameters_name_the_case(notebook) -> None:
    for case in committed_cases():
        named = [c["id"] for c in notebook["cells"] if case in source(c)]
        assert named in ([], ["parameters"])


def test_no_digit_is_typed_into_markdown(notebook) -> None:
    for cell in notebook["cells"]:
        if cell["cell_type"] == "markdown":
            assert not re.search(r"\d", prose(source(cell))), cell["id"]


def test_no_code_span_in_markdown_is_a_typed_value(notebook) -> None:
    for cell in notebook["cells"]:
        if cell["cell_type"] == "markdown":
            spans = re.findall(r"`([^`]*)`", source(cell))
            assert [span for span in spans if re.search(r"\d", span)] == [], cell["id"]


def test_no_digit_is_typed_into_a_sentence_a_caption_or_an_alt_text(notebook) -> None:
    for cell in code(notebook):
        for node in ast.walk(ast.parse(source(cell))):
            if isinstance(node, ast.Constant) and isinstance(node.value, str) and " " in node.value:
                assert not re.search(r"\d", prose(node.value)), f"{cell['id']}: {node.value}"


def test_the_only_numbers_in_code_are_sizes_and_panels(notebook) -> None:
    for cell in [c for c in code(notebook) if c["id"] != "parameters"]:
        sized = {
            inner
            for node in ast.walk(ast.parse(source(cell)))
            if isinstance(node, ast.keyword) and node.arg in ("size", "panels")
            for inner in (n.value for n in ast.walk(node.value) if isinstance(n, ast.Constant))
        }
        numbers = {
            node.value
            for node in ast.walk(ast.parse(source(cell)))
            if isinstance(node, ast.Constant) and type(node.value) in (int, float)
        }
        assert numbers <= sized, cell["id"]


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_the_numbers_in_its_prose_are_in_the_committed_values(path: Path) -> None:
    every = json.loads((paths.FIGURES / "values.json").read_text()).values()
    kept = [set(case[path.stem]) for case in every if path.stem in case]
    fields = set()
    for cell in code(json.loads(path.read_text())):
        for node in ast.walk(ast.parse(source(cell))):
            if isinstance(node, ast.Constant) and isinstance(node.value, str):
                fields |= {field for _, field, _, _ in Formatter().parse(node.value) if field}
    assert fields
    assert set().union(*kept) == fields, "a sentence that no committed case says, or a stray value"
