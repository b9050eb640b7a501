"""Rows of a case's tables from the cells of its runs.

A row of the sweep is one cell of the experiment ``context-sweep``; a two-point row is one prompt
length of ``two-point``. Cells without a value give no row, and no other experiment stands in.
"""

from collections.abc import Sequence

from analysis.model.decode_steps import decoded_tokens
from analysis.model.regression import fit_polynomial
from analysis.model.two_point import many_point
from analysis.records.cells import Cell, cells
from analysis.records.run import ExperimentName, Run, Sample
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
        rows += [row for group in groups.values() if (row := _two_point_row(run, group))]
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


def _two_point_row(run: Run, group: list[Cell]) -> TwoPointRow | None:
    """``None`` where fewer than two lengths have a value, or noise hides the decode."""
    used = [
        sample
        for cell in group
        for sample in cell.used
        if sample.request_s and sample.output_tokens and sample.prompt_tokens
    ]
    outputs = [float(sample.output_tokens or 0) for sample in used]
    if len(set(outputs)) < 2:
        return None
    prompt = sum(sample.prompt_tokens or 0 for sample in used) / len(used)
    try:
        estimate = many_point(prompt, outputs, [sample.request_s or 0.0 for sample in used])
    except ValueError:
        return None
    plain = run.manifest.server.speculates is False
    return TwoPointRow(
        series=_series(run, group[0]),
        context_tokens=estimate.context_tokens,
        tok_per_s=estimate.tok_per_s,
        commit_length=1.0 if plain else _commit_of_slope(used),
        standard_error_ms=estimate.standard_error_ms,
        source=f"run {run.name}",
    )


def _commit_of_slope(used: list[Sample]) -> float | None:
    """Commit length of the tokens between the shortest and the longest output."""
    points = [
        (float(s.output_tokens), decoded_tokens(s.output_tokens) / s.commit_length)
        for s in used
        if s.output_tokens and s.commit_length
    ]
    if len({output for output, _ in points}) < 2:
        return None
    line = fit_polynomial([output for output, _ in points], [steps for _, steps in points])
    steps_per_token = line.coefficients[1]
    return max(1.0, 1 / steps_per_token) if steps_per_token > 0 else None
