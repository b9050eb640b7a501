"""Plain decoding beside a speculating line, and the reverse: measured or published."""

from dataclasses import dataclass
from math import sqrt
from statistics import fmean

import numpy as np

from analysis.findings.series import Axis, LineFit, SeriesFit, fit_series
from analysis.findings.sweep import plain_rows, plain_token_ms
from analysis.model.fieller import Estimates
from analysis.model.regression import Interval, PolynomialFit
from analysis.records.case import Case
from analysis.records.tables import SweepRow


@dataclass(frozen=True)
class PlainStep:
    """The time of a plain step: a line that was measured here, or a published range, ms."""

    line: PolynomialFit | None
    published_ms: Interval | None
    bounds_are: str
    note: str

    def step_ms(self, context: float) -> float:
        """The line there, or the geometric mean of the published range."""
        if self.line is not None:
            return self.line.at(context)
        assert self.published_ms is not None
        return sqrt(self.published_ms[0] * self.published_ms[1])

    def worth(
        self, speculating: PolynomialFit, commit: float, context: float
    ) -> tuple[float, Interval | None]:
        """Plain throughput over speculating throughput, with an interval.

        Both lines measured: by Fieller, the lines independent, at the fewer degrees of freedom.
        Published: from the fastest to the slowest figure, the speculating line as it is.
        """
        step = speculating.at(context) / commit
        if self.line is not None:
            row = np.array([1.0, context])
            found = Estimates(
                step,
                self.line.at(context),
                float(row @ speculating.covariance @ row) / commit**2,
                float(row @ self.line.covariance @ row),
                0.0,
                min(speculating.dof, self.line.dof),
            )
            return found.ratio, found.interval95
        assert self.published_ms is not None
        fast, slow = self.published_ms
        return step / self.step_ms(context), (step / slow, step / fast)


@dataclass(frozen=True)
class OnOverOff:
    """Throughput with speculation over that without, by context, one table a published run."""

    runs: tuple[tuple[tuple[float, ...], tuple[float, ...]], ...]
    note: str

    def at(self, context: float) -> list[float]:
        """The ratio of each run at a context, between its points; the end ones beyond them."""
        return [float(np.interp(context, *run)) for run in self.runs]


def plain_step(case: Case, main: SeriesFit, axis: Axis) -> PlainStep | None:
    """Measured plain decoding of the same text if there is any, else the published range."""
    fits = [fit for fit in fit_series(case) if fit.speculation == "none" and fit.measured]
    text = main.series.rpartition(", ")[2]
    same = [fit for fit in fits if fit.series.rpartition(", ")[2] == text]
    if same:
        line: LineFit = same[0].line(axis)
        note = f"measured here: {same[0].law}; outside its contexts the line is extended"
        return PlainStep(line.fit, None, "95 % confidence, both lines", note)
    published = plain_token_ms(case)
    if published is None:
        return None
    rows = plain_rows(case)
    prompts = sorted({row.prompt_tokens for row in rows})
    note = (
        f"{1000 / published[1]:.0f} to {1000 / published[0]:.0f} tok/s published for "
        f"{rows[0].hardware} on {case.facts.engine.name}, another install, at "
        f"{' and '.join(f'{p:,}' for p in prompts)} tokens of prompt; taken as flat over context"
    )
    return PlainStep(None, published, "range of published figures", note)


def with_speculation(case: Case, main: SeriesFit) -> OnOverOff | None:
    """Speculating throughput over plain throughput in each repeat that measured both alike."""
    runs = []
    for repeat in dict.fromkeys(row.repeat for row in case.sweep):
        here = [r for r in case.sweep if r.repeat == repeat and r.dcp == main.dcp]
        plain = _by_prompt([row for row in here if row.speculation == "none"])
        spec = _by_prompt([row for row in here if row.speculation != "none"])
        both = sorted(plain.keys() & spec.keys())
        if both:
            runs.append((tuple(map(float, both)), tuple(spec[p] / plain[p] for p in both)))
    if not runs:
        return None
    kinds = {r.speculation.partition(" (")[0]: 0 for r in case.sweep if r.speculation != "none"}
    note = (
        f"{' or '.join(kinds)}: throughput over throughput in {len(runs)} published run"
        f"{'s' if len(runs) > 1 else ''} of the same tables; between their contexts by "
        "interpolation"
    )
    return OnOverOff(tuple(runs), note)


def _by_prompt(rows: list[SweepRow]) -> dict[int, float]:
    found: dict[int, list[float]] = {}
    for row in rows:
        found.setdefault(row.prompt_tokens, []).append(row.tok_per_s)
    return {prompt: fmean(values) for prompt, values in found.items()}
