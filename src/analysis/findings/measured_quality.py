"""What every measured figure rests on: how many requests count, and why the others do not."""

from collections import Counter
from dataclasses import dataclass

from analysis.findings.measured_series import Measured, measured
from analysis.findings.missing import Missing
from analysis.records.case import Case
from analysis.records.cells import Cell
from analysis.records.run import Bounds, ExperimentName


@dataclass(frozen=True)
class CellQuality:
    """One cell with the name of its series."""

    series: str
    cell: Cell

    @property
    def flags(self) -> str:
        """The flags of the cell with their counts, the most frequent first."""
        counted = self.cell.flags.most_common()
        return ", ".join(f"{name} {count}" for name, count in counted) or "none"

    @property
    def empty(self) -> bool:
        """Whether no request of the cell counts."""
        return not self.cell.used


@dataclass(frozen=True)
class Quality:
    """The requests of one experiment of a case, counted."""

    series: tuple[Measured, ...]
    cells: tuple[CellQuality, ...]

    @property
    def sent(self) -> int:
        """Requests that were sent, warm-ups apart."""
        return sum(len(row.cell.samples) for row in self.cells)

    @property
    def used(self) -> int:
        """Requests without a flag."""
        return sum(len(row.cell.used) for row in self.cells)

    @property
    def flagged(self) -> Counter[str]:
        """How many requests carry each flag, cells' spread apart."""
        counted: Counter[str] = Counter()
        for row in self.cells:
            counted += Counter(flag for s in row.cell.samples for flag in s.flags)
        return counted

    @property
    def counts(self) -> str:
        """How many requests count, by which flags others do not, and which cells are empty."""
        text = f"Of {self.sent} requests in {len(self.cells)} cells, {self.used} carry no flag"
        if self.flagged:
            text += " (" + ", ".join(f"{f} {n}" for f, n in self.flagged.most_common()) + ")"
        empty = sum(row.empty for row in self.cells)
        spread = sum(row.cell.flags["spread"] > 0 for row in self.cells)
        single = sum(row.cell.spread_pct is None and not row.empty for row in self.cells)
        text += f", and only those count. {_cells(empty)} without a value"
        text += "; the table gives the reason." if empty else "."
        text += f" {_cells(spread)} marked for spread, which drops nothing."
        return text + (
            f" {_cells(single)} without a spread, for want of a second step." if single else ""
        )

    @property
    def rules(self) -> str:
        """What counts as quiet and as enough, as each run wrote it down before its first request.

        One sentence for each set of bounds.
        """
        groups: dict[Bounds, list[str]] = {}
        for series in self.series:
            groups.setdefault(series.run.manifest.bounds, []).append(series.name)
        if len(groups) == 1:
            return _rules(next(iter(groups)))
        return " ".join(f"{' and '.join(of)}: {_rules(bounds)}" for bounds, of in groups.items())


def find(case: Case, experiment: ExperimentName) -> Quality | Missing:
    """The quality of one experiment over all runs of the case."""
    series = measured(case, experiment)
    if isinstance(series, Missing):
        return series
    rows = tuple(CellQuality(one.name, cell) for one in series for cell in one.cells)
    return Quality(series, rows)


def _cells(count: int) -> str:
    return {0: "No cell is", 1: "One cell is"}.get(count, f"{count} cells are")


def _rules(bounds: Bounds) -> str:
    return (
        f"A request counts where the server worked on no other, other programs used at most "
        f"{bounds.busy_cores:g} cores of the client's machine meanwhile, the system clock was not "
        f"set by more than {bounds.clock_step_ms:g} ms, prompt, output and cache were as asked "
        f"for, something was drafted where the server speculates, and at least "
        f"{bounds.few_steps} steps were made. A cell is marked where the steps "
        f"of its repeats lie further apart than {bounds.spread_pct:g} % of their median."
    )
