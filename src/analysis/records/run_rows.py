"""Rows of a case's tables from the cells of its runs.

A row of the sweep is one cell of the experiment ``context-sweep``; a two-point row is one prompt
length of ``two-point``. Cells without a value give no row, and no other experiment stands in.
"""

from collections.abc import Sequence
from math import sqrt
from statistics import variance

from analysis.model.two_point import many_point
from analysis.records.cells import Cell, cells
from analysis.records.run import ExperimentName, Run
from analysis.records.tables import SweepRow, TwoPointRow

NO_SPECULATION = "no speculation"


def speculation_of(run: Run) -> str:
    """The drafting method that the run's server names, in words where it names none."""
    server = run.manifest.server
    if server.speculates is False:
        return NO_SPECULATION
    return server.speculation or ("speculation" if server.speculates else "speculation not known")


def method_of(run: Run) -> str:
    """The same without its settings, which follow a comma: ``ngram-simple, 7 drafts``."""
    return speculation_of(run).split(",")[0]


def sweep_rows(runs: Sequence[Run]) -> list[SweepRow]:
    """The context sweeps of the runs; a series that an earlier run has is a repeat of it."""
    return [
        _sweep_row(run, cell, _repeat(runs, run, "context-sweep"))
        for run in runs
        for cell in cells(run, "context-sweep")
        if _has_value(cell)
    ]


def two_point_rows(runs: Sequence[Run]) -> list[TwoPointRow]:
    """The two-point decodes of the runs: one for each text and prompt length."""
    rows = []
    for run in runs:
        groups: dict[tuple[str, int, bool], list[Cell]] = {}
        for cell in cells(run, "two-point"):
            if cell.request_s is not None and cell.output_tokens is not None:
                key = cell.text, cell.asked_prompt_tokens, cell.cold
                groups.setdefault(key, []).append(cell)
        for group in groups.values():
            if len({cell.output_tokens for cell in group}) >= 2:
                rows.append(_two_point_row(run, group))
    return rows


def _repeat(runs: Sequence[Run], run: Run, experiment: ExperimentName) -> str:
    """Nothing, or the run's name if an earlier one measured the same series."""
    texts = {sample.text for sample in run.of(experiment)}
    earlier = runs[: list(runs).index(run)]
    same = [r for r in earlier if method_of(r) == method_of(run)]
    return run.name if any(s.text in texts for r in same for s in r.of(experiment)) else ""


def _has_value(cell: Cell) -> bool:
    return cell.tok_per_s is not None and cell.prompt_tokens is not None


def _sweep_row(run: Run, cell: Cell, repeat: str) -> SweepRow:
    plain = run.manifest.server.speculates is False
    commit = 1.0 if plain else cell.commit_length
    throughput = cell.client_tok_per_s or cell.tok_per_s
    assert throughput is not None
    return SweepRow(
        series=_series(run, cell),
        repeat=repeat,
        speculation="none" if plain else speculation_of(run),
        prompt_tokens=round(cell.prompt_tokens or 0),
        output_tokens=round(cell.output_tokens or cell.asked_output_tokens),
        tok_per_s=throughput,
        commit_length=commit,
        commit_kind=None if commit is None else "exact" if plain else "measured",
        measured_step_ms=cell.engine_step_ms,
        source=f"run {run.name}",
    )


def _series(run: Run, cell: Cell) -> str:
    return f"{method_of(run)}, {cell.text}"


def _two_point_row(run: Run, group: list[Cell]) -> TwoPointRow:
    plain = run.manifest.server.speculates is False
    outputs = [cell.output_tokens or 0.0 for cell in group]
    estimate = many_point(
        sum(cell.prompt_tokens or 0.0 for cell in group) / len(group),
        outputs,
        [cell.request_s or 0.0 for cell in group],
        _request_sd(group),
        min(len(cell.used) for cell in group),
    )
    return TwoPointRow(
        series=_series(run, group[0]),
        context_tokens=estimate.context_tokens,
        tok_per_s=estimate.tok_per_s,
        commit_length=1.0 if plain else _commit_between(group),
        standard_error_ms=estimate.standard_error_ms,
        source=f"run {run.name}",
    )


def _commit_between(group: list[Cell]) -> float | None:
    """Tokens over steps between the shortest and the longest output: what the difference sees."""
    ends = sorted(group, key=lambda cell: cell.output_tokens or 0.0)
    steps = [cell.median(lambda s: None if s.steps is None else float(s.steps)) for cell in ends]
    if steps[0] is None or steps[-1] is None or steps[-1] <= steps[0]:
        return None
    tokens = (ends[-1].output_tokens or 0.0) - (ends[0].output_tokens or 0.0)
    return max(1.0, tokens / (steps[-1] - steps[0]))


def _request_sd(group: list[Cell]) -> float | None:
    """Scatter of one request's total time within its cell, pooled over the cells, seconds."""
    repeats = [[s.request_s for s in cell.used if s.request_s is not None] for cell in group]
    known = [times for times in repeats if len(times) >= 2]
    if not known:
        return None
    dof = sum(len(times) - 1 for times in known)
    return sqrt(sum((len(times) - 1) * variance(times) for times in known) / dof)
