"""``analysis status`` and ``analysis cite``: which figures stand, and how to point at one."""

import json

import pytest

from analysis import paths
from analysis.report.cite import snippets

FIGURE = "kimi-k26-sglang/throughput"
COUNT = len(list(paths.FIGURES.glob("*/*.json")))


def sidecar(figure: str) -> dict:
    return json.loads((paths.FIGURES / f"{figure}.json").read_text())


@pytest.mark.slow  # after a change it takes a new report
def test_every_committed_figure_is_up_to_date(analysis) -> None:
    assert analysis("status", "--json").json == {"figures": COUNT, "stale": {}}
    ended = analysis("status")
    assert (ended.code, ended.out) == (0, f"{COUNT} of {COUNT} figures are up to date\n")


def test_status_names_the_changed_input_module_lock_and_file(tree) -> None:
    assert tree.run("status", "--json").json["stale"] == {}
    table = "data/cases/kimi-k26-sglang/two_point.csv"
    module = "src/analysis/report/plots/memory.py"
    tree.edit(table, "5120,67,", "5120,68,")
    (tree.root / module).write_text((tree.root / module).read_text() + "\n# refactored\n")
    (tree.root / "figures/kimi-k26-vllm/sweep.svg").write_text("<svg/>")
    (tree.root / "figures/kimi-k26-vllm/levers.csv").unlink()
    assert tree.run("status", "--json").json["stale"] == {
        "kimi-k26-sglang/kv-per-gpu": [f"{module} changed"],
        "kimi-k26-sglang/needed-commit": [f"{table} changed"],
        "kimi-k26-sglang/throughput": [f"{table} changed"],
        "kimi-k26-vllm/kv-per-gpu": [f"{module} changed"],
        "kimi-k26-vllm/levers": ["figures/kimi-k26-vllm/levers.csv was edited or is gone"],
        "kimi-k26-vllm/sweep": ["figures/kimi-k26-vllm/sweep.svg was edited or is gone"],
    }
    ended = tree.run("status")
    assert f"stale  kimi-k26-sglang/needed-commit: {table} changed" in ended.out.splitlines()
    assert ended.out.splitlines()[-1] == f"{COUNT - 6} of {COUNT} figures are up to date"
    lock = tree.root / "requirements/report.lock"
    lock.write_text(lock.read_text() + "\n# touched\n")
    stale = tree.run("status", "--json").json["stale"]
    assert len(stale) == COUNT
    assert all("requirements/report.lock changed" in why for why in stale.values())


@pytest.mark.parametrize("notation", ["markdown", "latex", "plain"])
def test_a_snippet_has_id_short_hash_and_relative_path(analysis, notation: str) -> None:
    found = analysis("cite", FIGURE, "--json").json
    known = sidecar(FIGURE)
    assert (found["id"], found["hash"]) == (FIGURE, known["hash"])
    assert found["path"] == f"figures/{FIGURE}.svg"
    assert (paths.ROOT / found["path"]).is_file()
    text = found[notation]
    assert f"{FIGURE}@{known['hash']}" in text
    assert f"figures/{FIGURE}." in text
    assert str(paths.ROOT) not in text
    assert "/figures/" not in text


def test_markdown_shows_the_picture_with_its_alt_text(analysis) -> None:
    found = analysis("cite", FIGURE, "--json").json
    assert f"![{sidecar(FIGURE)['alt']}](figures/{FIGURE}.svg)" in found["markdown"]
    assert sidecar(FIGURE)["caption"] in found["markdown"]


def test_latex_escapes_what_it_would_read_as_a_command() -> None:
    record = {"id": "a/b", "hash": "0123abcd", "alt": "x", "caption": "95 % of R&D: #1, a_b, $5"}
    latex = snippets(record, "figures/a/b.svg").latex
    assert r"95 \% of R\&D: \#1, a\_b, \$5" in latex
    assert r"\includegraphics[width=\linewidth]{figures/a/b.png}" in latex
    assert r"\label{fig:a/b}" in latex


def test_people_read_the_three_notations_under_headings(analysis) -> None:
    ended = analysis("cite", FIGURE)
    assert (ended.code, ended.err) == (0, "")
    found = analysis("cite", FIGURE, "--json").json
    for heading, notation in (("Markdown", "markdown"), ("LaTeX", "latex"), ("Plain", "plain")):
        assert f"--- {heading}\n{found[notation]}\n" in ended.out


def test_every_figure_can_be_cited(analysis) -> None:
    for path in paths.FIGURES.glob("*/*.json"):
        figure = f"{path.parent.name}/{path.stem}"
        assert analysis("cite", figure, "--json").json["id"] == figure


def test_an_unknown_figure_lists_those_that_are_known(analysis) -> None:
    error = analysis("cite", "kimi-k26-sglang/thruput").error
    assert "'kimi-k26-sglang/thruput'" in error
    for path in paths.FIGURES.glob("*/*.json"):
        assert f"{path.parent.name}/{path.stem}" in error
