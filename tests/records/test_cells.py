"""Cells: medians over the repeats that carry no flag, and nothing where all do."""

from pathlib import Path
from statistics import median
from typing import Any

import pytest
from tests.invented_run import write_run

from analysis.records.cells import cells
from analysis.records.run import Run


def test_a_cell_is_one_text_prompt_and_output_without_its_warm_up(tmp_path: Path) -> None:
    run = Run(write_run(tmp_path / "run", contexts=(100, 200), texts=("a", "b"), repeats=5))
    found = [(c.text, c.asked_prompt_tokens, len(c.samples)) for c in cells(run, "context-sweep")]
    assert found == [("a", 100, 5), ("a", 200, 5), ("b", 100, 5), ("b", 200, 5)]


def test_a_figure_is_the_median_of_the_repeats(tmp_path: Path) -> None:
    run = Run(write_run(tmp_path / "run", repeats=5, noise=0.05))
    for cell in cells(run, "context-sweep"):
        assert cell.step_ms == median(sample.step_ms for sample in cell.samples)
        assert cell.engine_step_ms == cell.step_ms
        assert cell.tok_per_s == median(sample.tok_per_s for sample in cell.samples)
        assert cell.client_tok_per_s < cell.tok_per_s
        assert cell.context_tokens == cell.asked_prompt_tokens + 128 / 2


def test_a_flagged_repeat_is_left_out_of_the_median_and_counted(tmp_path: Path) -> None:
    def disturb(sample: dict[str, Any]) -> dict[str, Any]:
        if sample["repeat"] != 1:
            return sample
        slow = {"engine_decode_ms": 10 * sample["engine_decode_ms"], "flags": ["host busy"]}
        return sample | slow

    quiet = cells(Run(write_run(tmp_path / "quiet")), "context-sweep")
    busy = cells(Run(write_run(tmp_path / "busy", each=disturb)), "context-sweep")
    for a, b in zip(quiet, busy, strict=True):
        assert b.flags == {"host busy": 1}
        assert len(b.used) == 2
        assert b.step_ms == pytest.approx(a.step_ms, rel=0.01)


def test_a_cell_whose_repeats_are_all_flagged_has_no_value(tmp_path: Path) -> None:
    folder = write_run(tmp_path / "run", each=lambda s: s | {"flags": ["few steps"]})
    for cell in cells(Run(folder), "two-point"):
        assert cell.used == ()
        assert cell.flags == {"few steps": 3}
        figures = (cell.step_ms, cell.commit_length, cell.tok_per_s, cell.request_s)
        assert figures == (None, None, None, None)
        assert cell.spread_pct is None


def test_a_spread_above_the_bound_is_a_flag_of_the_cell_and_keeps_its_value(tmp_path: Path) -> None:
    def spread(sample: dict[str, Any]) -> dict[str, Any]:
        factor = {0: 0.95, 1: 1.0, 2: 1.05}[sample["repeat"]]
        return sample | {"engine_decode_ms": factor * sample["steps"] * 20}

    cell = cells(Run(write_run(tmp_path / "run", each=spread)), "acceptance")[0]
    assert cell.spread_pct == pytest.approx(10)
    assert cell.flags == {"spread": 3}
    assert cell.step_ms == pytest.approx(20)


def test_one_repeat_is_not_a_spread(tmp_path: Path) -> None:
    cell = cells(Run(write_run(tmp_path / "run", repeats=1)), "acceptance")[0]
    assert cell.spread_pct is None
    assert not cell.flags


def test_without_the_engines_time_the_step_is_the_clients(tmp_path: Path) -> None:
    folder = write_run(tmp_path / "run", each=lambda s: s | {"engine_decode_ms": None})
    cell = cells(Run(folder), "context-sweep")[0]
    assert cell.engine_step_ms is None
    assert cell.step_ms == cell.client_step_ms
