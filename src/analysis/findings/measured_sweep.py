"""Our own context sweep: step, commit length and throughput, each measured on its own."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

from analysis.findings import identity, own_plain
from analysis.findings.identity import Identity
from analysis.findings.measured_series import Measured, measured
from analysis.findings.missing import Missing
from analysis.findings.own_plain import OwnPlain
from analysis.findings.series import LineFit
from analysis.model.order import Drift, RankCorrelation, drift, rank_correlation
from analysis.model.regression import Interval
from analysis.model.step_time import throughput
from analysis.records.case import Case
from analysis.records.cells import Cell
from analysis.records.run import Run, Sample

SIGNIFICANT = 0.05


@dataclass(frozen=True)
class Point:
    """One cell of a series, and whether its own commit over step gives its throughput."""

    cell: Cell

    @property
    def predicted_tok_per_s(self) -> float | None:
        """Median commit length over median step."""
        if self.cell.commit_length is None or self.cell.step_ms is None:
            return None
        return throughput(self.cell.commit_length, self.cell.step_ms)

    @property
    def client_tok_per_s(self) -> float | None:
        """Median throughput from first to last token, by the client's clock alone."""
        return self.cell.client_tok_per_s

    @property
    def gap_pct(self) -> float | None:
        """The client's over the predicted throughput, less one."""
        if self.predicted_tok_per_s is None or self.client_tok_per_s is None:
            return None
        return 100 * (self.client_tok_per_s / self.predicted_tok_per_s - 1)


@dataclass(frozen=True)
class Series:
    """The sweep of one run on one text, its cells in rising context."""

    name: str
    speculates: bool | None
    run: Run
    text: str
    points: tuple[Point, ...]
    samples: tuple[Sample, ...]

    @property
    def used(self) -> list[Sample]:
        """The requests without a flag, in the order they were sent."""
        return [sample for sample in self.samples if not sample.flags]

    @cached_property
    def medians(self) -> LineFit | None:
        """The line through cell medians, over the mean context; ``None`` below two contexts."""
        return _line([(p.cell.context_tokens, p.cell.step_ms) for p in self.points])

    @cached_property
    def requests(self) -> LineFit | None:
        """The line through every request without a flag."""
        return _line([(s.context_tokens, s.step_ms) for s in self.used])

    @property
    def commits(self) -> list[float]:
        """Median commit lengths, in rising context."""
        return [p.cell.commit_length for p in self.points if p.cell.commit_length is not None]

    @property
    def worst_gap_pct(self) -> float | None:
        """The largest gap between predicted and measured throughput, without sign."""
        return max((abs(p.gap_pct) for p in self.points if p.gap_pct is not None), default=None)

    @cached_property
    def order(self) -> RankCorrelation | None:
        """Rank correlation of the place in the order of sending with the context asked for."""
        asked = [float(s.asked_prompt_tokens) for s in self.samples]
        return rank_correlation(list(range(len(asked))), asked)

    @cached_property
    def drift(self) -> Drift | None:
        """What the step drifted by from the first to the last request."""
        known = _known([(s.context_tokens, s.step_ms) for s in self.used])
        return drift([c for c, _ in known], [step for _, step in known])

    @property
    def says(self) -> str:
        """The line with its evidence, or why there is none."""
        if not self.used:
            return f"{self.name}: every request is flagged, so no cell has a value."
        if not self.commits:
            return (
                f"{self.name}: the server tells no commit length, so throughput stands alone and "
                "no step follows."
            )
        if self.medians is None:
            return f"{self.name}: fewer than two contexts have a step, so there is no line."
        line = self.medians
        slope = f"{line.slope_us:.3g}{_between(line.slope_ci95)} us per token of mean context"
        kind = ", 95 % confidence by t" if line.slope_ci95 else ""
        return (
            f"{self.name}: step = {line.intercept_ms:.3g} ms + {slope}, on {line.fit.n} cell "
            f"medians{kind}. {line.straightness}"
        )

    @property
    def order_says(self) -> str:
        """Whether the order of sending lets drift pose as a slope, and what drift there was."""
        found = self.order
        if found is None:
            return f"{self.name}: too few requests or contexts to judge the order of sending."
        random = found.p >= SIGNIFICANT
        text = (
            f"{self.name}: the place in the order of sending and the context have a rank "
            f"correlation of {found.rho:.2f} (p = {found.p:.2g}, {found.n} requests): "
            + (
                "nothing speaks against a random order."
                if random
                else "the two go together, so what drifts with time can pose as a slope."
            )
        )
        if self.drift is None:
            return f"{text} No drift can be fitted beside the slope here."
        low, high = self.drift.ci95 or (None, None)
        between = "" if low is None else f" ({low:+.1f} to {high:+.1f}, 95 % confidence by t)"
        return (
            f"{text} At a fixed context the step drifted by {self.drift.pct:+.1f} %"
            f"{between} from the first request to the last, which leaves a "
            f"slope of {1000 * self.drift.slope:.3g} us per token."
        )


@dataclass(frozen=True)
class Sweep:
    """The sweeps of a case."""

    series: tuple[Series, ...]
    identity: Identity | None

    @property
    def verdict(self) -> str:
        """The chapter's answer: each line, commit, and whether the identity holds."""
        return " ".join([*(s.says for s in self.series), self.identity_says])

    @property
    def slopes_say(self) -> str:
        """The slope of every line, for a caption."""
        said = [
            f"{s.name} {s.medians.slope_us:.3g}{_between(s.medians.slope_ci95)} us per token"
            for s in self.series
            if s.medians is not None
        ]
        return "; ".join(said) or "no series has a line"

    @property
    def identity_says(self) -> str:
        """Whether commit over step gives the throughput that the client saw."""
        if self.identity is not None:
            return self.identity.says
        if any(s.worst_gap_pct is not None for s in self.series):
            return (
                "The steps are by the client's own clock here, so commit over step is its "
                "throughput by construction and tests nothing."
            )
        return "Commit over step cannot be set against the client's throughput here."

    @property
    def commit_says(self) -> str:
        """How much commit length varies over the contexts, for each series that drafts."""
        said = [_commits(s) for s in self.series if s.speculates is not False and s.commits]
        if said:
            return " ".join(said)
        if any(s.speculates is not False for s in self.series):
            return "No commit length is known."
        return "No series speculates, so every step commits one token."

    @property
    def order_says(self) -> str:
        """The order of sending, for each series."""
        return " ".join(one.order_says for one in self.series)


def find(case: Case) -> Sweep | Missing:
    """The sweeps of all runs of a case."""
    runs = measured(case, "context-sweep")
    if isinstance(runs, Missing):
        return runs
    series = tuple(series for one in runs for series in _by_text(one))
    return Sweep(series, identity.find(case))


def beside_plain(case: Case) -> OwnPlain | Missing:
    """The speculating sweep against the plain one of the same server, if there are both."""
    found = own_plain.find(case)
    if isinstance(found, Missing) and case.runs:
        return Missing(
            "No sweep with speculation stands beside a plain one of the same server, so whether "
            "speculation pays is not known."
        )
    return found


def with_values(found: Sweep | Missing) -> Sweep | Missing:
    """The finding, if any cell has a value to draw."""
    if isinstance(found, Missing) or any(s.used for s in found.series):
        return found
    return Missing("Every request of the sweep is flagged, so there is nothing to draw.")


def with_steps(found: Sweep | Missing) -> Sweep | Missing:
    """The finding, if any cell has a step."""
    found = with_values(found)
    if isinstance(found, Missing) or any(
        p.cell.step_ms is not None for s in found.series for p in s.points
    ):
        return found
    return Missing("No cell of the sweep has a step, since no commit length is known.")


def with_lines(found: Sweep | Missing) -> Sweep | Missing:
    """The finding, if any series has a line."""
    found = with_steps(found)
    if isinstance(found, Missing) or any(s.medians is not None for s in found.series):
        return found
    return Missing("No series of the sweep has steps at two contexts, so none has a line.")


def _commits(one: Series) -> str:
    low, high = min(one.commits), max(one.commits)
    between = f"{low:.3g}" if low == high else f"{low:.3g} to {high:.3g}"
    where = f"at {len(one.commits)} contexts" if len(one.commits) > 1 else "at one context"
    return f"{one.name}: {between} tokens per step on the text {one.text}, {where}."


def _by_text(one: Measured) -> list[Series]:
    texts = list(dict.fromkeys(cell.text for cell in one.cells))
    found = []
    for text in texts:
        cells = [cell for cell in one.cells if cell.text == text]
        cells.sort(key=lambda cell: cell.context_tokens or cell.asked_prompt_tokens)
        found.append(
            Series(
                name=one.name if len(texts) == 1 else f"{one.name}, {text}",
                speculates=one.speculates,
                run=one.run,
                text=text,
                points=tuple(Point(cell) for cell in cells),
                samples=tuple(s for s in one.samples if s.text == text),
            )
        )
    return found


def _known(points: Sequence[tuple[float | None, float | None]]) -> list[tuple[float, float]]:
    return [(x, y) for x, y in points if x is not None and y is not None]


def _line(points: Sequence[tuple[float | None, float | None]]) -> LineFit | None:
    known = _known(points)
    if len({x for x, _ in known}) < 2:
        return None
    return LineFit("mean", "none", tuple(x for x, _ in known), tuple(y for _, y in known))


def _between(interval: Interval | None) -> str:
    return "" if interval is None else f" ({interval[0]:.3g} to {interval[1]:.3g})"
