"""The measured two-point decode: three clocks, one law."""

import pytest

from analysis.findings import measured_two_point as two_point
from analysis.findings.missing import Missing

COMMIT = 4.0


def step_law(context: float) -> float:
    return 20 + 0.01 * context


def busy(sample):
    return {**sample, "flags": ["host busy"]}


def test_without_noise_the_step_is_the_law_at_the_context_that_the_slope_speaks_for(
    write_run, case_with
) -> None:
    # 63, 127 and 191 decoded tokens at 1 a step: no rounding of the number of steps.
    found = two_point.find(case_with(write_run(noise=0.0, commit=1.0)))
    assert not isinstance(found, Missing)
    assert len(found.points) == 4
    for point in found.points:
        assert point.commit_length == pytest.approx(1)
        assert point.token_ms == pytest.approx(point.step_ms)
        # The builder takes n - 1 steps at the mean context p + n / 2: half a step's growth less.
        assert point.step_ms == pytest.approx(step_law(point.context_tokens), rel=5e-4)
        assert point.engine_gap_pct == pytest.approx(0, abs=0.01)
        assert point.client_gap_pct == pytest.approx(0, abs=0.01)


def test_with_noise_the_law_lies_within_the_interval(write_run, case_with) -> None:
    run = write_run(noise=0.003, repeats=5, commit=1.0, seed=11)
    for point in two_point.find(case_with(run)).points:
        low, high = point.step_ci95
        assert low < step_law(point.context_tokens) < high
        assert high - low < 0.1 * point.step_ms


def test_the_commit_length_is_that_of_the_difference(write_run, case_with) -> None:
    # 63, 127 and 191 tokens in 9, 18 and 27 steps at 7 a step, near enough: 64 over 9 more each.
    found = two_point.find(case_with(write_run(commit=7.0, noise=0.0)))
    assert {round(p.commit_length, 9) for p in found.points} == {round(128 / 18, 9)}


def test_a_prefill_that_costs_more_changes_nothing(write_run, case_with) -> None:
    def slow(sample):
        return {**sample, "request_s": sample["request_s"] + 5}

    found = two_point.find(case_with(write_run(noise=0.0, each=slow)))
    assert max(p.worst_gap_pct for p in found.points) < 0.01
    assert "agrees with the server's timings (by at most 0.0" in found.verdict
    assert "agrees with the client's clock (by at most 0.0" in found.verdict


def test_a_request_that_pays_for_every_token_outside_the_server_is_seen(
    write_run, case_with
) -> None:
    def slow(sample):
        paid = 0.002 * sample["output_tokens"]
        return {**sample, "request_s": sample["request_s"] + paid}

    found = two_point.find(case_with(write_run(noise=0.0, each=slow)))
    assert min(p.engine_gap_pct for p in found.points) > two_point.AGREES_PCT
    assert "differs from the server's timings" in found.verdict
    assert "differs from the client's clock" in found.verdict


def test_the_middle_length_shows_a_bend_that_was_put_in(write_run, case_with) -> None:
    def bent(sample):
        late = 0.4 if sample["asked_output_tokens"] == 128 else 0.0
        return {**sample, "request_s": sample["request_s"] + late}

    straight = two_point.find(case_with(write_run("straight", noise=0.001))).points[0].bend
    found = two_point.find(case_with(write_run("bent", noise=0.001, each=bent))).points[0].bend
    assert abs(straight.bend_pct) < 3
    assert found.bend_pct > 10
    assert found.p < 1e-6


def test_flagged_requests_are_not_in_any_line(write_run, case_with) -> None:
    def ruined(sample):
        if sample["repeat"] == 0 and not sample["warmup"]:
            return {**sample, "flags": ["host busy"], "request_s": 100.0}
        return sample

    found = two_point.find(case_with(write_run(each=ruined)))
    assert {p.n for p in found.points} == {6}
    assert {p.flags["host busy"] for p in found.points} == {3}
    assert max(p.worst_gap_pct for p in found.points) < 1


def test_a_machine_that_slows_some_requests_does_not_part_the_clocks(write_run, case_with) -> None:
    clocks = ("request_s", "decode_s", "engine_decode_ms")

    def unsteady(sample):
        factor = 1 + 0.2 * (sample["repeat"] == 1)
        return sample | {clock: factor * sample[clock] for clock in clocks}

    found = two_point.find(case_with(write_run(noise=0.0, each=unsteady)))
    assert all(p.flags["spread"] for p in found.points)
    assert len(found.compared) == 4
    assert found.worst_pct < 0.1


def test_each_clock_is_judged_by_itself(write_run, case_with) -> None:
    def fast(sample):
        return {**sample, "engine_decode_ms": 0.8 * sample["engine_decode_ms"]}

    said = two_point.find(case_with(write_run(noise=0.0, each=fast))).verdict
    assert "differs from the server's timings (by at most 25" in said
    assert "agrees with the client's clock" in said


def test_a_server_that_tells_no_commit_length_has_a_time_per_token_and_no_step(
    write_run, case_with, untold
) -> None:
    found = two_point.find(case_with(write_run(each=untold)))
    assert {p.step_ms for p in found.points} == {None}
    assert min(p.token_ms for p in found.points) > 0
    assert found.verdict.endswith(
        "The server tells no commit length, so no step follows from a time per token."
    )
    assert isinstance(two_point.stepped(found), Missing)
    assert two_point.timed(found) is found


def test_where_all_is_flagged_nothing_is_said_but_that(write_run, case_with) -> None:
    found = two_point.find(case_with(write_run(each=busy)))
    assert found.verdict == (
        "None of 4 prompts has requests without a flag at two output lengths, so no time per "
        "token follows."
    )
    assert isinstance(two_point.timed(found), Missing)


def test_a_commit_length_from_the_log_serves_as_well(write_run, case_with) -> None:
    def logged(sample):
        told = {k: v for k, v in sample.items() if k not in ("steps", "steps_source")}
        return {**told, "logged_commit_length": COMMIT}

    found = two_point.find(case_with(write_run(noise=0.0, each=logged)))
    assert [p.commit_length for p in found.points] == pytest.approx([COMMIT] * 4)


def test_runs_and_experiments_that_are_not_there_are_missing(write_run, case_with) -> None:
    other = case_with(write_run(experiments=("acceptance",)))
    assert two_point.find(other) == Missing("No run of this case holds a two-point decode.")


def test_a_case_without_runs_says_so(case_with) -> None:
    assert two_point.find(case_with()) == Missing("This case has no run of ours.")
