"""Is output length a cause? Invented servers on which it is, and on which it is not."""

import pytest

from analysis.findings import measured_output_length as output_length
from analysis.findings.missing import Missing

LAWS = {"contexts": (300, 900, 1800, 2700), "commit": 1.0, "noise": 0.001}


@pytest.fixture
def rising(write_run, case_with):
    """The one series of output lengths of an invented run."""

    def found(**laws):
        (one,) = output_length.find(case_with(write_run(**LAWS | laws))).series
        return one

    return found


def longer_is_slower(sample):
    """A step that takes 10 % more for every 64 tokens of output, whatever the context."""
    if sample["experiment"] != "output-length":
        return sample
    factor = {64: 1.0, 128: 1.1, 256: 1.3}[sample["asked_output_tokens"]]
    return {**sample, "engine_decode_ms": factor * sample["engine_decode_ms"]}


def longer_commits_more(sample):
    """A text that comes to repeat itself: 1, 1.5 and 2.5 tokens per step, each step as long."""
    if sample["experiment"] != "output-length":
        return sample
    commit = {64: 1.0, 128: 1.5, 256: 2.5}[sample["asked_output_tokens"]]
    decode_ms = sample["engine_decode_ms"] / sample["steps"]
    steps = round((sample["output_tokens"] - 1) / commit)
    return {**sample, "steps": steps, "engine_decode_ms": steps * decode_ms}


def test_a_step_that_grows_with_context_alone_makes_output_length_no_cause(rising) -> None:
    found = rising()
    assert (found.step.word, found.commit.word, found.word) == ("no cause",) * 3
    assert found.lengths[-1].cell.step_ms > found.lengths[0].cell.step_ms
    assert max(abs(x.residual_pct) for x in found.lengths) < 0.5
    assert "Output length is no cause of its own. From 64 to 256 output tokens" in found.verdict


def test_a_step_that_leaves_the_line_of_the_sweep_makes_it_a_cause(rising) -> None:
    found = rising(each=longer_is_slower)
    assert (found.step.word, found.commit.word, found.word) == ("a cause", "no cause", "a cause")
    assert [x.residual_pct for x in found.lengths] == pytest.approx([0, 10, 30], abs=0.5)


def test_a_commit_length_that_grows_with_output_makes_it_a_cause(rising) -> None:
    found = rising(each=longer_commits_more)
    assert found.commit.change_pct == pytest.approx(100 * 1.5 / ((1 + 1.5 + 2.5) / 3), rel=0.01)
    assert (found.commit.word, found.step.word, found.word) == ("a cause", "no cause", "a cause")
    added = [x.added_commit for x in found.lengths]
    assert added[0] is None
    assert added[1:] == pytest.approx([64 / (85 - 63), 128 / (102 - 85)])


def test_without_a_sweep_the_step_cannot_be_judged(rising) -> None:
    found = rising(experiments=("output-length",))
    assert found.sweep is None
    assert found.step is None
    assert found.word == "undecided"
    assert "The run holds no sweep with a line" in found.verdict


def test_the_sweep_of_another_run_does_not_stand_in(write_run, case_with) -> None:
    sweep = write_run("sweep", **LAWS, experiments=("context-sweep",))
    lengths = write_run("lengths", **LAWS, experiments=("output-length",))
    (found,) = output_length.find(case_with(sweep, lengths)).series
    assert found.sweep is None


def test_one_length_two_lengths_and_no_commit_are_told(rising, untold) -> None:
    def only(*wanted):
        def each(sample):
            used = sample["asked_output_tokens"] in wanted or sample["experiment"] != (
                "output-length"
            )
            return sample if used else {**sample, "flags": ["host busy"]}

        return each

    assert "fewer than two of 3 output lengths" in rising(name="one", each=only(64)).verdict
    two = rising(name="two", each=only(64, 256))
    assert (two.commit.n, two.step.ci95, two.word) == (2, None, "undecided")
    assert "no interval on 2 cells" in two.verdict
    unknown = rising(name="untold", each=untold)
    assert "commit and step are undefined" in unknown.verdict


def test_a_case_without_the_experiment_says_so(write_run, case_with) -> None:
    found = output_length.find(case_with(write_run(experiments=("two-point",))))
    assert found == Missing("No run of this case holds a series of output lengths.")
