"""The runs of a case that hold an experiment, each as the cells that it measured."""

from collections.abc import Sequence
from dataclasses import dataclass

from analysis.findings.missing import Missing
from analysis.records.case import Case
from analysis.records.cells import Cell, cells
from analysis.records.run import ExperimentName, Run, Sample

TITLES: dict[ExperimentName, str] = {
    "two-point": "a two-point decode",
    "context-sweep": "a context sweep",
    "output-length": "a series of output lengths",
    "acceptance": "a comparison of texts",
}
KINDS = {True: "speculating", False: "plain", None: "speculation not known"}


@dataclass(frozen=True)
class Measured:
    """One experiment of one run; ``name`` tells the runs of a case apart."""

    name: str
    run: Run
    experiment: ExperimentName
    cells: tuple[Cell, ...]

    @property
    def speculates(self) -> bool | None:
        """Whether the server drafted; ``None`` where it does not tell."""
        return self.run.manifest.server.speculates

    @property
    def samples(self) -> list[Sample]:
        """All requests that were no warm-up, in the order they were sent."""
        return self.run.of(self.experiment)

    def groups(self) -> list[tuple[Cell, ...]]:
        """Cells that differ only in output length, by text, prompt length and cache state."""
        found: dict[tuple[str, int, bool], list[Cell]] = {}
        for cell in self.cells:
            key = (cell.text, cell.asked_prompt_tokens, cell.cold)
            found.setdefault(key, []).append(cell)
        return [tuple(group) for group in found.values()]


def measured(case: Case, experiment: ExperimentName) -> tuple[Measured, ...] | Missing:
    """Every run of the case that holds the experiment, speculating ones first."""
    if not case.runs:
        return Missing("This case has no run of ours.")
    runs = [run for run in case.runs if run.of(experiment)]
    if not runs:
        return Missing(f"No run of this case holds {TITLES[experiment]}.")
    runs.sort(key=lambda run: run.manifest.server.speculates is False)
    return tuple(
        Measured(_name(run, runs), run, experiment, tuple(cells(run, experiment))) for run in runs
    )


def _name(run: Run, runs: Sequence[Run]) -> str:
    kind = KINDS[run.manifest.server.speculates]
    alike = [other for other in runs if KINDS[other.manifest.server.speculates] == kind]
    return kind if len(alike) == 1 else f"{kind} ({run.name})"
