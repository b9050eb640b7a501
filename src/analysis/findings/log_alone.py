"""What a case's log says alone, and how near that comes to what was measured beside it."""

from dataclasses import dataclass
from pathlib import Path

import numpy as np

from analysis import paths
from analysis.findings.diagnosis import diagnose
from analysis.findings.diagnosis_types import Diagnosis
from analysis.findings.missing import Missing
from analysis.model.regression import Interval
from analysis.records.case import Case
from analysis.records.inputs import digest_of
from analysis.records.run import Run, Sample, is_run, load_run
from analysis.records.windows import FLAG_MEANINGS, FLAG_NAMES, NOTE_NAMES, Windows


@dataclass(frozen=True)
class Cell:
    """Requests of one text and length: medians by the log, and of the live samples."""

    text: str
    prompt_tokens: int
    requests: int
    log_step_ms: float
    live_step_ms: float
    log_commit: float
    live_commit: float

    @property
    def step_gap_pct(self) -> float:
        """Step by the log over the live one, less 1, per cent."""
        return 100 * (self.log_step_ms / self.live_step_ms - 1)

    @property
    def commit_gap_pct(self) -> float:
        """The same of the commit length."""
        return 100 * (self.log_commit / self.live_commit - 1)


@dataclass(frozen=True)
class LogAlone:
    """A diagnosis from a log, and its sentences. ``cells`` are empty without a run beside it."""

    path: Path
    diagnosis: Diagnosis
    cells: tuple[Cell, ...]

    @property
    def verdict(self) -> str:
        """The answer in one sentence."""
        return self.diagnosis.verdict

    @property
    def details(self) -> str:
        """What follows from it, as a list in Markdown."""
        return "\n".join(f"- {text}" for text in self.diagnosis.details)

    @property
    def read(self) -> str:
        """What was read, and what was passed over."""
        seen, found = self.diagnosis.seen, self.diagnosis
        engine = found.version_hint or found.engine
        return (
            f"`{paths.relative(self.path)}`: {seen.lines:,} lines of {engine}; "
            f"{found.windows_total:,} windows, {seen.unparsed:,} lines that report on no decoding, "
            f"{seen.malformed:,} of those broken."
        )

    @property
    def windows_used(self) -> int:
        """Windows without a flag."""
        return self.diagnosis.summary.windows_used

    @property
    def windows_total(self) -> int:
        """All windows."""
        return self.diagnosis.windows_total

    @property
    def flagged(self) -> str:
        """Every flag that occurs, with its meaning."""
        if not self.diagnosis.flags:
            return "No window is flagged."
        said = [
            f"*{FLAG_NAMES[flag]}* ({count:,}): {FLAG_MEANINGS[flag]}"
            for flag, count in self.diagnosis.flags.items()
        ]
        return "Left out, and shown hollow: " + "; ".join(said) + "."

    @property
    def noted(self) -> str:
        """Every note that occurs."""
        kinds = [
            name
            for note, name in NOTE_NAMES.items()
            if any(bool((part.notes & note).any()) for part in self.diagnosis.windows)
        ]
        return f"Noted, and counted all the same: {', '.join(kinds)}." if kinds else ""

    @property
    def worst_gap_pct(self) -> float:
        """The largest gap of any cell, step or commit."""
        return max(max(abs(cell.step_gap_pct), abs(cell.commit_gap_pct)) for cell in self.cells)

    @property
    def agreement(self) -> str:
        """How near log and live measurement are."""
        return (
            f"Over {len(self.cells)} cells, {sum(c.requests for c in self.cells)} requests, step "
            f"and commit from the log are within {self.worst_gap_pct:.2g} % of the live figures."
        )

    @property
    def context_range(self) -> Interval:
        """Least and greatest context of the fitted windows, tokens."""
        assert self.diagnosis.fit is not None
        return self.diagnosis.fit.context_range


def find(case: Case, log: str = "") -> LogAlone | Missing:
    """Diagnose ``log``, or the first log that the case refers to."""
    if log:
        path = Path(log) if Path(log).is_absolute() else paths.ROOT / log
    elif case.logs:
        path = case.logs[0]
    else:
        return Missing("This case refers to no log of its server.")
    diagnosis = diagnose([path])
    digest_of(path)
    beside = path.parent
    cells = cells_beside(diagnosis, load_run(beside)) if is_run(beside) else ()
    return LogAlone(path, diagnosis, cells)


def with_live(found: LogAlone | Missing) -> LogAlone | Missing:
    """The same, where the log lies in a run's folder; silent otherwise."""
    if isinstance(found, Missing) or not found.cells:
        return Missing("")
    return found


def with_fit(found: LogAlone | Missing) -> LogAlone | Missing:
    """The same, where contexts vary enough for a line."""
    if isinstance(found, Missing):
        return Missing("")
    if found.diagnosis.fit is None:
        return Missing("The contexts in this log vary too little for a line.")
    return found


def cells_beside(diagnosis: Diagnosis, run: Run) -> tuple[Cell, ...]:
    """Cells of a run, for the requests that are found in its log.

    A request and a window are the same where throughput and context are, to the digits that the
    log prints; those found twice or not at all are left out. So it is the commit length that is
    put to the test, and with it the step, which is commit over throughput.
    """
    windows = [part.rows(part.unflagged) for part in diagnosis.windows]
    groups: dict[tuple[str, int, int], list[tuple[Sample, float, float]]] = {}
    for sample in run.samples:
        if sample.flags or sample.step_ms is None or sample.commit_length is None:
            continue
        match = [
            (float(part.step_ms[i]), float(part.commit[i]))
            for part in windows
            for i in _same(part, sample)
        ]
        if len(match) == 1:
            key = (sample.text, sample.asked_prompt_tokens, sample.asked_output_tokens)
            groups.setdefault(key, []).append((sample, *match[0]))
    return tuple(
        Cell(
            text=text,
            prompt_tokens=prompt,
            requests=len(found),
            log_step_ms=float(np.median([step for _, step, _ in found])),
            live_step_ms=float(np.median([s.step_ms for s, _, _ in found if s.step_ms])),
            log_commit=float(np.median([commit for _, _, commit in found])),
            live_commit=float(np.median([s.commit_length for s, _, _ in found if s.commit_length])),
        )
        for (text, prompt, _), found in sorted(groups.items())
    )


SAME_RATE = 2e-4
"""Relative: llama.cpp prints milliseconds with two decimals."""
SAME_CONTEXT = 1.5
"""Tokens."""


def _same(part: Windows, sample: Sample) -> list[int]:
    rate = sample.tok_per_s
    if rate is None:
        return []
    near = np.abs(part.tok_per_s / rate - 1) <= SAME_RATE
    context = sample.context_tokens
    if context is not None:
        near &= ~(np.abs(part.context_tokens - context) > SAME_CONTEXT)
    return [int(i) for i in np.flatnonzero(near)]
