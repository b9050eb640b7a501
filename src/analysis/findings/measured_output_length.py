"""Is output length a cause? One prompt, rising output, against the sweep's line and commit."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Literal

from analysis.findings import measured_sweep
from analysis.findings.measured_series import measured
from analysis.findings.measured_sweep import Series
from analysis.findings.missing import Missing
from analysis.findings.series import LineFit
from analysis.model.decode_steps import decoded_tokens
from analysis.model.regression import Interval, fit_polynomial
from analysis.records.case import Case
from analysis.records.cells import Cell

NEGLIGIBLE_PCT = 5.0
"""An effect whose whole interval is smaller is none; the bound of the spread within a cell."""
Word = Literal["no cause", "a cause", "undecided"]


@dataclass(frozen=True)
class Effect:
    """Change of a figure from the shortest to the longest output, by a line through cell medians.

    ``change_pct`` is in per cent of the figure's mean, ``ci95`` its 95 % confidence interval by t,
    ``per_1000`` the slope per 1000 output tokens in the figure's own unit.
    """

    change_pct: float
    ci95: Interval | None
    per_1000: float
    n: int

    @property
    def word(self) -> Word:
        """Whether the interval is negligible, apart from zero, or neither."""
        if self.ci95 is None:
            return "undecided"
        low, high = self.ci95
        if low > -NEGLIGIBLE_PCT and high < NEGLIGIBLE_PCT:
            return "no cause"
        return "a cause" if low > 0 or high < 0 else "undecided"

    @property
    def says(self) -> str:
        """The change with its interval."""
        if self.change_pct == 0 and self.ci95 is not None:
            return f"nothing (the same in all {self.n} cells)"
        if self.ci95 is None:
            return f"{self.change_pct:+.1f} % (no interval on {self.n} cells)"
        low, high = self.ci95
        return (
            f"{self.change_pct:+.1f} % ({low:+.1f} to {high:+.1f}, 95 % confidence by t, "
            f"{self.n} cells)"
        )


@dataclass(frozen=True)
class Length:
    """One output length. ``added_commit`` is that of the tokens beyond the length before."""

    cell: Cell
    line_ms: float | None
    line_ci95: Interval | None
    added_commit: float | None

    @property
    def residual_ms(self) -> float | None:
        """The step less the sweep's line at the same mean context."""
        if self.cell.step_ms is None or self.line_ms is None:
            return None
        return self.cell.step_ms - self.line_ms

    @property
    def residual_pct(self) -> float | None:
        """The same in per cent of the line."""
        if self.residual_ms is None or self.line_ms is None:
            return None
        return 100 * self.residual_ms / self.line_ms


@dataclass(frozen=True)
class Rising:
    """One prompt with rising output, and the sweep of the same run, if it has one."""

    series: str
    text: str
    lengths: tuple[Length, ...]
    sweep: Series | None

    @cached_property
    def commit(self) -> Effect | None:
        """Effect of output length on commit length; ``None`` below two lengths."""
        return _effect([(x.cell.output_tokens, x.cell.commit_length) for x in self.lengths])

    @cached_property
    def step(self) -> Effect | None:
        """Effect on what the sweep's line leaves of the step, the line taken as known."""
        steps = [x.cell.step_ms for x in self.lengths if x.residual_ms is not None]
        known = [s for s in steps if s is not None]
        mean = sum(known) / len(known) if known else None
        return _effect([(x.cell.output_tokens, x.residual_ms) for x in self.lengths], mean)

    @property
    def word(self) -> Word:
        """No cause if of neither, a cause if of one, else undecided."""
        words = [effect.word if effect else "undecided" for effect in (self.commit, self.step)]
        if "a cause" in words:
            return "a cause"
        return "undecided" if "undecided" in words else "no cause"

    @property
    def verdict(self) -> str:
        """Whether output length is a cause of its own, with the numbers."""
        valued = [x for x in self.lengths if x.cell.tok_per_s is not None]
        if len(valued) < 2:
            return (
                f"{self.series}: fewer than two of {len(self.lengths)} output lengths have a "
                "value, so nothing can be said of output length."
            )
        if self.commit is None:
            return (
                f"{self.series}: the server tells no commit length, so commit and step are "
                "undefined, and throughput alone cannot say what output length does."
            )
        start, end = valued[0].cell.asked_output_tokens, valued[-1].cell.asked_output_tokens
        answer = {
            "no cause": "Output length is no cause of its own",
            "a cause": "Output length is a cause of its own",
            "undecided": "Whether output length is a cause of its own is undecided",
        }[self.word]
        return (
            f"{self.series}: {answer}. From {start:,} to {end:,} output tokens the commit length "
            f"changes by {self.commit.says}. {self._step_says()}"
        )

    @property
    def changes_say(self) -> str:
        """The changes alone, for a caption."""
        parts = [
            f"{what} {effect.says}"
            for what, effect in (("commit length", self.commit), ("step less the line", self.step))
            if effect is not None
        ]
        return f"{self.series}: {', '.join(parts)}"

    def _step_says(self) -> str:
        if self.step is None:
            return (
                "The run holds no sweep with a line, so a longer output and the longer context "
                "that comes with it cannot be told apart in the step."
            )
        return (
            "What the sweep's line at the mean context leaves of the step changes by "
            f"{self.step.says}, the line taken as known."
        )


@dataclass(frozen=True)
class OutputLengths:
    """Every such prompt of a case."""

    series: tuple[Rising, ...]

    @property
    def verdict(self) -> str:
        """The chapter's answer, one part a prompt."""
        return " ".join(one.verdict for one in self.series)

    @property
    def changes_say(self) -> str:
        """The changes over all prompts, for a caption."""
        said = [one.changes_say for one in self.series if one.commit or one.step]
        return "; ".join(said) or "no change can be given"


def find(case: Case) -> OutputLengths | Missing:
    """The series of output lengths of all runs of a case."""
    runs = measured(case, "output-length")
    if isinstance(runs, Missing):
        return runs
    sweep = measured_sweep.find(case)
    swept = () if isinstance(sweep, Missing) else sweep.series
    found = []
    for one in runs:
        for group in one.groups():
            own = [s for s in swept if s.run is one.run and s.medians is not None]
            own.sort(key=lambda series: series.text != group[0].text)
            line = own[0] if own else None
            named = one.name if len(one.groups()) == 1 else f"{one.name}, {_name(group[0])}"
            found.append(Rising(named, group[0].text, _lengths(group, line), line))
    return OutputLengths(tuple(found))


def with_commits(found: OutputLengths | Missing) -> OutputLengths | Missing:
    """The finding, if any cell has a commit length, so a step, to draw."""
    if isinstance(found, Missing) or any(
        x.cell.commit_length is not None for one in found.series for x in one.lengths
    ):
        return found
    return Missing("No cell has a commit length: there is nothing to draw.")


def _name(cell: Cell) -> str:
    return f"{cell.text}, {cell.asked_prompt_tokens:,} tokens"


def _lengths(group: Sequence[Cell], sweep: Series | None) -> tuple[Length, ...]:
    line: LineFit | None = sweep.medians if sweep else None
    low, high = line.fit.x_range if line else (0.0, 0.0)
    found = []
    before: tuple[float, float] | None = None
    for cell in group:
        now = _decoded_and_steps(cell)
        context = cell.context_tokens
        inside = line is not None and context is not None and low <= context <= high
        found.append(
            Length(
                cell,
                line.step.step_ms(context) if line and context and inside else None,
                line.fit.confidence_interval(context) if line and context and inside else None,
                _commit_between(before, now),
            )
        )
        before = now or before
    return tuple(found)


def _decoded_and_steps(cell: Cell) -> tuple[float, float] | None:
    if cell.output_tokens is None or cell.commit_length is None:
        return None
    decoded = float(decoded_tokens(round(cell.output_tokens)))
    return decoded, decoded / cell.commit_length


def _commit_between(
    before: tuple[float, float] | None, now: tuple[float, float] | None
) -> float | None:
    if now is None or before is None:
        return None
    steps = now[1] - before[1]
    return (now[0] - before[0]) / steps if steps > 0 else None


def _effect(
    points: Sequence[tuple[float | None, float | None]], scale: float | None = None
) -> Effect | None:
    known = [(x, y) for x, y in points if x is not None and y is not None]
    x, y = [float(p[0]) for p in known], [p[1] for p in known]
    if len(set(x)) < 2:
        return None
    if len(set(y)) == 1:  # as plain decoding commits: no rounding error shall look like a slope
        return Effect(0.0, (0.0, 0.0) if len(y) > 2 else None, 0.0, len(y))
    fit = fit_polynomial(x, y)
    share = 100 * (max(x) - min(x)) / (scale or sum(y) / len(y))
    ci95 = fit.coefficient_interval(1)
    return Effect(
        change_pct=share * fit.coefficients[1],
        ci95=None if ci95 is None else (share * ci95[0], share * ci95[1]),
        per_1000=1000 * fit.coefficients[1],
        n=fit.n,
    )
