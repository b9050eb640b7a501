"""A case whose sweep is two runs of one server: every chapter says what was measured, no more.

The invented server speculates at 20 ms + 10 us per token of context and 4 tokens a step, and
decodes plainly at 12 ms + 4 us.
"""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.invented_run import write_run

from analysis.findings import headline, memory, own_plain, step_time, two_point
from analysis.findings.ledger import Findings
from analysis.findings.missing import Missing
from analysis.records.case import load_case
from analysis.records.run import Run
from analysis.report.tables.facts import facts

CASE = """\
format = 1
title = "An invented server"
summary = "Invented."
source = "made up"
%s
[engine]
name = "llama.cpp"
[layout]
kv_dtype = "fp16"
[references]
runs = ["../spec", "../plain"]
"""
Made = Callable[..., Findings]


def speculating(context: float) -> float:
    return 20 + 0.01 * context


def plain(context: float) -> float:
    return 12 + 0.004 * context


@pytest.fixture
def made(tmp_path: Path) -> Made:
    """Both runs and the case of them; keyword arguments go to the speculating run."""

    def make(facts: str = "", plain_run: dict[str, Any] | None = None, **run: Any) -> Findings:
        write_run(tmp_path / "spec", **{"step_law": speculating} | run)
        write_run(
            tmp_path / "plain",
            **{"speculates": False, "step_law": plain, "seed": 2} | (plain_run or {}),
        )
        (tmp_path / "case").mkdir()
        (tmp_path / "case" / "case.toml").write_text(CASE % facts)
        return Findings(load_case(str(tmp_path / "case")))

    return make


@pytest.fixture
def found(made: Made) -> Findings:
    return made()


def test_the_sweep_says_that_its_steps_were_measured_and_tests_the_identity(found) -> None:
    assert (
        "Of 8 throughputs, 4 come with a commit length that was counted and 4 are plain decoding. "
        "8 step times were measured by the engine's own timings" in found.sweep.verdict
    )
    assert {point.step_kind for point in found.sweep.points} == {"measured"}
    # the client sees half a millisecond more, of 0.7 to 2.6 s: 0.02 to 0.08 %
    identity = found.sweep.identity
    assert identity.n == 2 * 4 * 3
    assert -0.08 < identity.range_pct[0] < identity.range_pct[1] < -0.01
    assert f"{identity.median_pct:+.2f} % (median" in found.sweep.verdict
    assert "engine's counter" not in identity.says


def test_a_second_count_of_steps_is_the_test_of_the_count(made: Made) -> None:
    def recount(sample: dict[str, Any]) -> dict[str, Any]:
        off = sample["asked_prompt_tokens"] == 128 and sample["repeat"] == 0
        return sample | {"counter_steps": sample["steps"] + (1 if off else 0)}

    identity = made(each=recount).sweep.identity
    assert (identity.recounted, identity.same_count) == (12, 11)
    assert "the same number in 11 of 12 requests" in identity.says


def test_without_the_engines_time_nothing_is_called_measured(made: Made) -> None:
    without = {"each": lambda sample: sample | {"engine_decode_ms": None}}
    found = made(**without, plain_run=without)
    assert found.sweep.identity is None
    assert "No step time was measured" in found.sweep.verdict
    assert "(hollow) is derived" in found.sweep.step_is
    assert isinstance(found.own_plain, Missing)


def test_the_lines_of_both_series_are_fitted_without_a_limit(found) -> None:
    first, second = found.steps.series
    assert first.mean.intercept_ms == pytest.approx(20, rel=0.01)
    assert first.mean.slope_us == pytest.approx(10, rel=0.02)
    assert second.mean.intercept_ms == pytest.approx(12, rel=0.01)
    assert second.mean.slope_us == pytest.approx(4, rel=0.02)
    low, high = first.mean.slope_ci95
    assert low < 10 < high
    assert first.bandwidth_us is first.over_bandwidth is first.bytes_per_token is None
    assert (
        found.steps.thread_blocks is found.steps.occupancy_limit is found.steps.unexplained is None
    )
    assert isinstance(step_time.on_gpu(found.steps), Missing)
    verdict = found.steps.verdict
    assert "reading the cache" not in verdict
    assert verdict.count("It is straight to within 10 %") == 2
    assert f"No speculation, repeated: {second.prompt.intercept_ms:.1f} ms + " in verdict


def test_break_even_is_the_step_over_the_plain_step_both_measured(found) -> None:
    own = found.own_plain
    assert len(own.points) == 4
    for point in own.points:
        context = point.context_tokens
        assert point.break_even == pytest.approx(speculating(context) / plain(context), rel=0.01)
        assert point.gain == pytest.approx(127 / 32 / point.break_even)
    assert "speculation pays at all of 4 contexts" in own.verdict
    assert "breaks even at a commit length of 1.7" in own.verdict


def test_where_speculation_does_not_pay_it_says_so(made: Made) -> None:
    own = made(commit=1.9).own_plain
    # break-even rises from 1.72 to 2.01 with context, so 1.9 pays at the shorter ones alone
    paying = [point.context_tokens for point in own.points if point.gain > 1]
    assert paying == [192, 576, 1088]
    assert "speculation pays at 3 of 4 contexts" in own.verdict


def test_a_plain_step_between_two_contexts_is_read_off_the_line_and_never_outside(
    made: Made,
) -> None:
    own = made(contexts=(64, 300, 1500, 4000)).own_plain
    assert [point.context_tokens for point in own.points] == [364, 1564]
    for point in own.points:
        assert point.plain_step_ms == pytest.approx(plain(point.context_tokens), rel=0.01)


def test_one_run_alone_has_no_plain_neighbour(made: Made, tmp_path: Path) -> None:
    case = made().case
    path = case.folder / "case.toml"
    path.write_text(path.read_text().replace(', "../plain"', ""))
    assert "No plain decoding of this server" in own_plain.find(load_case(str(case.folder))).reason


def test_two_point_and_sweep_agree_within_the_prediction_interval(found) -> None:
    points = found.two_points
    assert points.counted
    assert points.verdict.startswith("The two measurements agree: at all 8 points")
    assert points.variants == ()
    assert isinstance(two_point.uncounted(points), Missing)
    for point in points.points:
        law = plain if point.series.startswith("no") else speculating
        assert point.step_ms == pytest.approx(law(point.context_tokens), rel=0.01)
        assert point.sweep_step_ms == pytest.approx(law(point.context_tokens), rel=0.01)


def test_a_two_point_decode_that_is_slower_than_the_sweep_is_seen(made: Made) -> None:
    def slow(sample: dict[str, Any]) -> dict[str, Any]:
        if sample["experiment"] != "two-point":
            return sample
        return sample | {"request_s": 1.2 * sample["request_s"]}

    points = made(each=slow).two_points
    outside = [point for point in points.points if not point.agrees]
    assert {point.series for point in outside} == {"ngram-simple, repeated"}
    assert len(outside) == 4
    for point in outside:
        assert point.gap_pct == pytest.approx(20, abs=1.5)
    assert "agree at 4 of 8 points" in points.verdict


def test_noise_is_not_called_disagreement(made: Made) -> None:
    points = made(noise=0.03, repeats=5, plain_run={"noise": 0.03, "repeats": 5}).two_points
    assert max(abs(point.gap_pct) for point in points.points) > 0.5
    assert "The two measurements agree: at all" in points.verdict


def test_the_headline_answers_in_numbers(found) -> None:
    first = headline.find(found)
    assert first.question == "Why is this server this fast, and what will context do to it?"
    main = found.steps.main.mean
    low, high = main.slope_ci95
    assert (
        f"{main.slope_us:.3g} ({low:.3g} to {high:.3g}) us per token of mean context"
        in first.answer
    )
    assert "commits 3.97 tokens on the text repeated" in first.answer
    ends = found.sweep.first.tok_per_s, found.sweep.last.tok_per_s
    assert f"{ends[0]:.1f} tok/s at a prompt of 128 tokens, {ends[1]:.1f} at 2,048" in first.answer
    point = found.own_plain.longest
    assert f"{point.break_even:.2f} at 2,112" in first.answer
    assert "None of 120 requests carries a flag." in first.answer
    assert "published" not in first.answer + first.scope + first.is_not


def test_the_headline_names_the_flags_that_fell_and_an_open_run(made: Made) -> None:
    def flag(sample: dict[str, Any]) -> dict[str, Any]:
        busy = sample["number"] in (1, 2, 4)
        return sample | ({"flags": ["host busy", "few steps"]} if busy else {})

    found = made(each=flag, plain_run={"ended": False})
    answer = headline.find(found).answer
    assert "3 of 120 requests carry a flag and are left out" in answer
    assert "(host busy 3, few steps 3)" in answer
    assert "Run plain was not brought to its end: 0 of 60 requests are left." in answer


def test_what_the_case_has_no_data_for_is_missing(found) -> None:
    assert "no observation" in found.reconciliation.reason
    assert found.against_plain == Missing("")
    assert "model are not known" in found.memory.reason
    assert "GPUs" not in set(facts(found.case).fact)


def test_a_known_model_gives_bytes_without_a_gpu(made: Made) -> None:
    found = made(facts='model = "HuggingFaceTB/SmolLM2-135M-Instruct"')
    # 30 layers, 3 heads, key and value of 64, 2 bytes
    cell = 30 * 3 * (64 + 64) * 2
    assert found.memory.main.bytes_per_token == cell == 23040
    assert f"{cell:,} B per token in fp16: 8,192 tokens take" in found.memory.verdict
    assert "GPU" not in found.memory.verdict + found.memory.config_says
    assert isinstance(memory.on_gpus(found.memory), Missing)
    assert found.steps.main.bytes_per_token == cell
    assert found.steps.main.over_bandwidth is None


def test_a_run_without_a_sweep_says_so(tmp_path: Path, made: Made) -> None:
    found = made(experiments=["two-point"], plain_run={"experiments": ["two-point"]})
    assert found.sweep == Missing("This case has no context sweep (no run of it).")
    assert isinstance(found.steps, Missing)
    assert Run(tmp_path / "spec").of("two-point")
