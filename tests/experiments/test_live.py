"""The embedded server, measured: what it must show on any machine."""

from pathlib import Path

import pytest

from analysis.experiments.designs import checked
from analysis.experiments.session import Request, measure
from analysis.records.cells import Cell, cells

SHORT, LONG = 900, 3300
RATIO = 1.3
"""Step at the long context over step at the short one; about 1.8 was seen on two quiet cores."""
REPEATS = 5


@pytest.mark.slow
@pytest.mark.xdist_group("live")
def test_a_longer_context_makes_a_longer_step(tmp_path: Path) -> None:
    """The fastest steps are compared: other load on the machine only makes a step longer."""
    lengths = {"prompt_tokens": (SHORT, LONG), "repeats": REPEATS}
    request = Request("embedded", {"context-sweep": checked("context-sweep", lengths)})
    outcome = measure(request, tmp_path / "run")
    assert outcome.stopped == ""
    short, long = cells(outcome.run, "context-sweep")
    assert_counts(short)
    assert_counts(long)
    assert fastest_ms(long) / fastest_ms(short) > RATIO


def fastest_ms(cell: Cell) -> float:
    steps = [sample.step_ms for sample in cell.samples if sample.step_ms is not None]
    assert len(steps) == REPEATS
    return min(steps)


def assert_counts(cell: Cell) -> None:
    """What does not depend on how busy the machine is: lengths, steps and commit."""
    for sample in cell.samples:
        assert sample.prompt_tokens == cell.asked_prompt_tokens
        assert sample.output_tokens == cell.asked_output_tokens
        assert sample.cached_tokens is not None
        assert sample.cached_tokens >= cell.asked_prompt_tokens - 1
        assert sample.steps == sample.counter_steps, "timings and the server's counter disagree"
        assert sample.commit_length == pytest.approx(8, rel=0.05), "repeated text fills the block"
