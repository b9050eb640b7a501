"""The measured context sweep: the line, the identity, the order of sending."""

import hashlib
import json
import random

import pytest

from analysis.findings import measured_sweep
from analysis.findings.missing import Missing

CONTEXTS = (300, 900, 1800, 2700, 3600, 4500)


def bent_law(context: float) -> float:
    return 20 + 1e-5 * context**1.9


@pytest.fixture
def sweep(write_run, case_with):
    """The sweep of an invented run with the given laws."""

    def found(name="fast", **laws):
        laws = {"contexts": CONTEXTS, "experiments": ("context-sweep",)} | laws
        return measured_sweep.find(case_with(write_run(name, **laws)))

    return found


def test_the_line_that_was_put_in_lies_within_both_intervals(sweep) -> None:
    (series,) = sweep(repeats=4, noise=0.004, seed=5).series
    for line, n in ((series.medians, 6), (series.requests, 24)):
        assert line.fit.n == n
        assert line.slope_ci95[0] < 10 < line.slope_ci95[1]
        assert line.intercept_ci95[0] < 20 < line.intercept_ci95[1]
        assert line.straight == "straight"
    assert "It is straight to within 10 %" in series.says


def test_a_bent_law_is_told_as_bent(sweep) -> None:
    found = sweep(step_law=bent_law, noise=0.001)
    assert found.series[0].medians.straight == "bent"
    assert "It is not straight" in found.verdict


def test_commit_over_step_is_tested_where_the_server_times_itself(sweep) -> None:
    found = sweep(noise=0.002)
    assert found.series[0].worst_gap_pct < 0.1
    assert "In 18 requests the client's throughput differs from commit over step by" in (
        found.verdict
    )


def test_a_client_that_sees_tokens_late_breaks_the_identity(sweep) -> None:
    def late(sample):
        return {**sample, "decode_s": 1.2 * sample["decode_s"]}

    found = sweep(noise=0.0, each=late)
    gaps = [point.gap_pct for point in found.series[0].points]
    assert gaps == pytest.approx([100 * (1 / 1.2 - 1)] * 6, abs=0.1)


def test_a_step_by_the_clients_own_clock_tests_nothing_and_says_so(sweep) -> None:
    def no_timings(sample):
        return {k: v for k, v in sample.items() if k != "engine_decode_ms"}

    assert "by construction and tests nothing" in sweep(each=no_timings).verdict


def test_a_rising_order_of_sending_is_told(sweep) -> None:
    (series,) = sweep().series
    assert series.order.rho > 0.9
    assert "the two go together" in series.order_says


def test_a_random_order_is_told_and_its_drift_is_taken_out(write_run, case_with) -> None:
    run = write_run(contexts=CONTEXTS, experiments=("context-sweep",), repeats=5, noise=0.002)
    reorder(run, slower_by=0.10)
    (series,) = measured_sweep.find(case_with(run)).series
    assert series.order.p > measured_sweep.SIGNIFICANT
    assert "nothing speaks against a random order" in series.order_says
    low, high = series.drift.ci95
    assert 0 < low < series.drift.pct < high
    assert series.drift.pct == pytest.approx(10, abs=1.5)


def reorder(run, slower_by: float) -> None:
    """Send the requests in random order on a machine that slows down meanwhile."""
    path, manifest = run / "requests.jsonl", run / "manifest.json"
    samples = [json.loads(line) for line in path.read_text().splitlines()]
    random.Random(1).shuffle(samples)
    for i, sample in enumerate(samples):
        factor = 1 + slower_by * i / (len(samples) - 1)
        sample["engine_decode_ms"] *= factor
        sample["decode_s"] *= factor
    content = "".join(json.dumps(sample) + "\n" for sample in samples)
    path.write_text(content)
    facts = json.loads(manifest.read_text())
    facts["requests_sha256"] = hashlib.sha256(content.encode()).hexdigest()
    manifest.write_text(json.dumps(facts))


def test_speculating_and_plain_runs_stand_beside_each_other(write_run, case_with) -> None:
    laws = {"contexts": CONTEXTS, "experiments": ("context-sweep",), "noise": 0.001}
    plain = write_run("plain", speculates=False, step_law=lambda c: 8 + 0.002 * c, **laws)
    case = case_with(plain, write_run("fast", **laws))
    found = measured_sweep.find(case)
    assert [series.name for series in found.series] == ["speculating", "plain"]
    slopes = [series.medians.slope_us for series in found.series]
    assert slopes == pytest.approx([10, 2], rel=0.02)
    assert set(found.series[1].commits) == {1.0}
    beside = measured_sweep.beside_plain(case)
    assert beside.shortest.break_even == pytest.approx((20 + 3.64) / (8 + 0.728), rel=0.01)


def test_without_a_plain_run_it_is_not_said_whether_speculation_pays(write_run, case_with) -> None:
    found = measured_sweep.beside_plain(case_with(write_run()))
    assert isinstance(found, Missing)
    assert found.reason.endswith("so whether speculation pays is not known.")


def test_two_runs_of_a_kind_are_told_apart_by_their_names(write_run, case_with) -> None:
    runs = [write_run(name, seed=seed) for name, seed in (("monday", 1), ("friday", 2))]
    found = measured_sweep.find(case_with(*runs))
    assert [s.name for s in found.series] == ["speculating (monday)", "speculating (friday)"]


def test_texts_have_lines_of_their_own(sweep) -> None:
    commit = {"repeated": 7.0, "prose": 1.5}
    found = sweep(texts=tuple(commit), commit=commit)
    assert [s.name for s in found.series] == ["speculating, prose", "speculating, repeated"]
    assert max(found.series[0].commits) < min(found.series[1].commits)


def test_flagged_cells_vanish_from_the_line_and_stay_in_the_table(sweep) -> None:
    def busy(sample):
        wrong = {"flags": ["host busy"], "engine_decode_ms": 1e6}
        return {**sample, **wrong} if sample["asked_prompt_tokens"] == 300 else sample

    (series,) = sweep(noise=0.0, commit=1.0, each=busy).series
    assert series.medians.fit.n == 5
    assert series.medians.slope_us == pytest.approx(10)
    assert [p.cell.step_ms is None for p in series.points] == [True, *[False] * 5]


@pytest.mark.parametrize(
    ("contexts", "says"),
    [
        ((500,), "fewer than two contexts have a step, so there is no line"),
        ((500, 900), "Too few contexts to test whether it is straight"),
    ],
)
def test_few_contexts_are_not_stretched(sweep, contexts, says) -> None:
    found = sweep(contexts=contexts, repeats=1)
    assert says in found.verdict
    assert isinstance(measured_sweep.with_lines(found), Missing) is (len(contexts) == 1)


def test_a_sweep_whose_requests_are_all_flagged_says_so(sweep) -> None:
    found = sweep(each=lambda sample: {**sample, "flags": ["host busy"]})
    assert "speculating: every request is flagged, so no cell has a value." in found.verdict
    assert isinstance(measured_sweep.with_values(found), Missing)


def test_a_server_that_tells_no_commit_length_leaves_throughput_alone(sweep, untold) -> None:
    found = sweep(each=untold, server={"speculates": None})
    assert "throughput stands alone" in found.verdict
    assert found.series[0].name == "speculation not known"
    assert measured_sweep.with_values(found) is found
    assert isinstance(measured_sweep.with_steps(found), Missing)
