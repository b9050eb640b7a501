"""The how-to page works as printed: its files make a case that every finding can read."""

import re
from pathlib import Path

import pytest

from analysis import paths
from analysis.findings import headline, memory, reconciliation, step_time, sweep
from analysis.findings.ledger import Findings
from analysis.records.case import Case, load_case

PAGE = (paths.ROOT / "docs" / "your-own-case.md").read_text()


def block(language: str) -> str:
    """The only code block of that language on the page."""
    found = re.findall(rf"```{language}\n(.*?)```", PAGE, re.DOTALL)
    assert len(found) == 1, f"{len(found)} blocks of {language}"
    return str(found[0])


@pytest.fixture
def case(tmp_path: Path) -> Case:
    folder = tmp_path / "my-server"
    folder.mkdir()
    (folder / "case.toml").write_text(block("toml"))
    (folder / "sweep.csv").write_text(block("csv"))
    return load_case(str(folder))


def test_the_example_gives_a_step_time_line_through_its_own_points(case: Case) -> None:
    found = step_time.find(case)
    assert isinstance(found, step_time.StepTimes)
    rows = [line.split(",") for line in block("csv").splitlines()[1:]]
    steps = [1000 * float(row[5]) / float(row[4]) for row in rows]
    contexts = [float(row[2]) for row in rows]
    assert found.main.prompt.steps == pytest.approx(steps)
    assert found.main.mean.contexts == pytest.approx([c + 200 for c in contexts])


def test_the_example_is_reconciled_and_says_what_it_has_no_data_for(case: Case) -> None:
    result = reconciliation.find(case)
    assert isinstance(result, reconciliation.Reconciliation)
    assert result.account_tok_per_s == pytest.approx(1000 * 3.1 / 80)
    assert result.plain is None
    assert isinstance(sweep.find(case), sweep.Sweep)
    assert isinstance(memory.find(case), memory.Memory)
    assert "40" in headline.find(Findings(case)).question
    assert "no two-point" in Findings(case).two_points.reason  # type: ignore[union-attr]
