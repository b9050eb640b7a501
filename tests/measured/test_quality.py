"""Which requests count, in words and numbers."""

from analysis.findings import measured_quality
from analysis.findings.missing import Missing


def test_flags_are_counted_by_request_and_by_cell(write_run, case_with) -> None:
    def flagged(sample):
        if sample["asked_prompt_tokens"] == 128:
            return {**sample, "flags": ["host busy"]}
        if (sample["asked_prompt_tokens"], sample["repeat"]) == (512, 0):
            return {**sample, "flags": ["few steps", "clock step"]}
        return sample

    run = write_run(experiments=("context-sweep",), each=flagged)
    found = measured_quality.find(case_with(run), "context-sweep")
    assert (found.sent, found.used) == (12, 8)
    assert found.flagged == {"host busy": 3, "few steps": 1, "clock step": 1}
    assert found.counts == (
        "Of 12 requests in 4 cells, 8 carry no flag (host busy 3, few steps 1, clock step 1), and "
        "only those count. One cell is without a value; the table gives the reason. No cell is "
        "marked for spread, which drops nothing."
    )
    assert [row.flags for row in found.cells] == [
        *("host busy 3", "few steps 1, clock step 1", "none", "none")
    ]


def test_the_rules_are_those_that_the_run_wrote_down(write_run, case_with) -> None:
    case = case_with(write_run())
    bounds = case.runs[0].manifest.bounds
    rules = measured_quality.find(case, "two-point").rules
    assert f"at most {bounds.busy_cores:g} cores" in rules
    assert f"at least {bounds.few_steps} steps" in rules
    assert f"than {bounds.spread_pct:g} % of their median" in rules


def test_single_repeats_have_no_spread_and_wide_ones_are_marked(write_run, case_with) -> None:
    once = write_run("once", repeats=1, experiments=("context-sweep",))
    found = measured_quality.find(case_with(once), "context-sweep")
    assert "4 cells are without a spread, for want of a second step." in found.counts
    noisy = write_run("noisy", noise=0.2, experiments=("context-sweep",))
    found = measured_quality.find(case_with(noisy), "context-sweep")
    marked = [row for row in found.cells if "spread" in row.flags]
    assert len(marked) >= 3
    assert f"{len(marked)} cells are marked for spread" in found.counts
    assert found.used == found.sent


def test_a_case_without_runs_has_no_quality(case_with) -> None:
    found = measured_quality.find(case_with(), "acceptance")
    assert found == Missing("This case has no run of ours.")
