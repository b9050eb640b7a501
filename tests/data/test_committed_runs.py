"""What the project measured itself: the runs of the case ``smollm2-llamacpp``."""

import pytest

from analysis import paths
from analysis.findings import measured_acceptance, measured_two_point
from analysis.findings.missing import Missing
from analysis.records.case import load_case
from analysis.records.cells import Cell, cells
from analysis.records.run import EXPERIMENTS, Run, Sample, committed_runs, load_run

CASE = "smollm2-llamacpp"
BLOCK = 8
"""Tokens that a step can commit at most: seven drafts and the bonus token."""


@pytest.fixture(scope="module")
def speculating() -> Run:
    return load_run("smollm2-ngram")


@pytest.fixture(scope="module")
def plain() -> Run:
    return load_run("smollm2-plain")


def sweep(run: Run) -> list[Cell]:
    """The cells of the context sweep, contexts rising; every one has a value."""
    found = cells(run, "context-sweep")
    contexts = [cell.asked_prompt_tokens for cell in found]
    assert contexts == sorted(set(contexts))
    assert all(cell.step_ms is not None for cell in found)
    return found


def used(run: Run) -> list[Sample]:
    return [s for name in EXPERIMENTS for cell in cells(run, name) for s in cell.used]


def test_every_committed_run_is_of_the_case_and_was_brought_to_its_end() -> None:
    case = load_case(CASE)
    told = {run.name for run in case.runs} | {log.parent.name for log in case.logs}
    assert sorted(told) == committed_runs()
    assert all(load_run(name).ended and not load_run(name).left() for name in committed_runs())


def test_the_speculating_run_has_all_experiments(speculating: Run) -> None:
    assert set(speculating.manifest.experiments) == set(EXPERIMENTS)


def test_the_step_by_two_point_by_the_engine_and_by_the_client_agree_within_5_percent() -> None:
    found = measured_two_point.find(load_case(CASE))
    assert not isinstance(found, Missing)
    assert len(found.compared) == len(found.points) >= 2
    assert found.worst_pct is not None
    assert found.worst_pct < 5


def test_the_clients_step_is_within_2_percent_of_the_engines_own(
    speculating: Run, plain: Run
) -> None:
    compared = [s for run in (speculating, plain) for s in used(run)]
    assert len(compared) > 100
    for sample in compared:
        assert sample.client_step_ms == pytest.approx(sample.step_ms, rel=0.02), sample.number


def test_the_steps_that_timings_give_are_those_that_the_server_counted(
    speculating: Run, plain: Run
) -> None:
    counted = [s for run in (speculating, plain) for s in used(run) if s.counter_steps is not None]
    assert len(counted) > 100
    assert [s.number for s in counted if s.steps != s.counter_steps] == []


@pytest.mark.parametrize("name", ["smollm2-ngram", "smollm2-plain"])
def test_the_step_rises_with_every_context(name: str) -> None:
    steps = [cell.step_ms for cell in sweep(load_run(name))]
    assert len(steps) >= 6
    assert steps == sorted(set(steps))  # type: ignore[type-var]


def test_the_commit_length_of_repeated_text_is_stable_from_900_tokens_up(speculating: Run) -> None:
    commits = [
        cell.commit_length
        for cell in sweep(speculating)
        if cell.text == "repeated" and cell.asked_prompt_tokens >= 900
    ]
    assert len(commits) >= 5
    known = [commit for commit in commits if commit is not None]
    assert len(known) == len(commits)
    assert max(known) / min(known) < 1.1
    assert max(known) <= BLOCK


def test_prose_commits_less_than_repeated_text(speculating: Run) -> None:
    by_text = {cell.text: cell.commit_length for cell in cells(speculating, "acceptance")}
    assert {"repeated", "prose", "code", "question"} <= by_text.keys()
    prose, repeated = by_text["prose"], by_text["repeated"]
    assert prose is not None
    assert repeated is not None
    assert prose < repeated
    assert not isinstance(measured_acceptance.find(load_case(CASE)), Missing)


def test_a_plain_step_commits_one_token(plain: Run) -> None:
    assert plain.manifest.server.speculates is False
    assert {s.commit_length for s in used(plain)} == {1.0}


def test_no_folder_of_the_measuring_machine_is_kept() -> None:
    for name in committed_runs():
        for path in (paths.RUNS / name).iterdir():
            text = path.read_text()
            assert "/root" not in text, path.name
            assert "/home" not in text, path.name
            assert "site-packages" not in text, path.name
