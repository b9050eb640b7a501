"""The chapter that compares a case's run without speculation with its run with it."""

import pytest

from analysis.findings import before_after
from analysis.findings.missing import Missing
from analysis.records.case import load_case
from analysis.records.cells import cells
from analysis.records.run import load_run


@pytest.fixture(scope="module")
def found() -> before_after.BeforeAfter:
    result = before_after.find(load_case("smollm2-llamacpp"))
    assert not isinstance(result, Missing)
    return result


def test_plain_stands_before_and_speculation_after(found: before_after.BeforeAfter) -> None:
    assert "smollm2-plain" in found.comparison.before.name
    assert "smollm2-ngram" in found.comparison.after.name


def test_the_step_ratio_is_that_of_the_cells(found: before_after.BeforeAfter) -> None:
    """By another road: medians of the two sweeps, context by context."""
    medians = [
        {cell.asked_prompt_tokens: cell.step_ms for cell in cells(load_run(name), "context-sweep")}
        for name in ("smollm2-plain", "smollm2-ngram")
    ]
    ratios = [plain / medians[1][prompt] for prompt, plain in medians[0].items() if plain]
    split = found.comparison.split
    assert split is not None
    assert min(ratios) <= split.step.ratio <= max(ratios)
    assert split.commit.ratio == pytest.approx(191 / 24, rel=0.001)


def test_every_factor_is_said(found: before_after.BeforeAfter) -> None:
    assert [name for name, _ in found.factors] == ["throughput", "commit", "step"]
    assert found.said.count("times") == 3


def test_two_sources_can_be_given() -> None:
    result = before_after.find(
        load_case("kimi-k26-vllm"), "data/runs/smollm2-plain", "data/runs/smollm2-logged"
    )
    assert not isinstance(result, Missing)
    assert "smollm2-logged" in result.comparison.after.name


def test_a_case_without_both_is_told() -> None:
    result = before_after.find(load_case("kimi-k26-sglang"))
    assert isinstance(result, Missing)
