"""Commit length by text at one context, what it makes of throughput, and whether it pays."""

from dataclasses import dataclass
from functools import cached_property

from analysis.findings import measured_sweep
from analysis.findings.measured_series import Measured, measured
from analysis.findings.measured_sweep import Series
from analysis.findings.missing import Missing
from analysis.model.regression import Interval
from analysis.model.speculation import break_even_commit
from analysis.records.case import Case
from analysis.records.cells import Cell
from analysis.records.run import Sample

FILLER = "repeated"
PROSE = "prose"
"""The texts whose commit lengths are set against each other; see ``data/texts``."""

UNDECIDED_PCT = 5.0
"""A gain closer to break-even is not judged: repeats of a step lie that far apart."""


@dataclass(frozen=True)
class TextResult:
    """One text at one prompt length. ``plain_ms`` is the step without speculation there."""

    series: str
    speculates: bool | None
    origin: str
    cell: Cell
    plain_ms: float | None
    plain_source: str

    @property
    def text(self) -> str:
        """Name of the text."""
        return self.cell.text

    @property
    def n(self) -> int:
        """Requests without a flag."""
        return len(self.cell.used)

    @property
    def excerpts(self) -> int:
        """Places of the text that these requests start at; repeats of one are no new text."""
        return len({s.excerpt for s in self.cell.used})

    @property
    def commits(self) -> list[float]:
        """Commit length of each request without a flag."""
        return [s.commit_length for s in self.cell.used if s.commit_length is not None]

    @property
    def commit_range(self) -> Interval | None:
        """Least and greatest commit length of a request: no confidence interval."""
        return (min(self.commits), max(self.commits)) if self.commits else None

    @property
    def drafted_per_step(self) -> float | None:
        """Median of the drafted tokens over all steps: how wide a step is on the average."""
        return self.cell.median(_drafted_per_step)

    @property
    def accepted_pct(self) -> float | None:
        """Median share of the drafted tokens that were accepted."""
        return self.cell.median(_accepted_pct)

    @property
    def break_even(self) -> float | None:
        """Commit length at which plain decoding is as fast."""
        if not self.speculates or self.cell.step_ms is None or self.plain_ms is None:
            return None
        return break_even_commit(self.cell.step_ms, self.plain_ms)

    @property
    def gain(self) -> float | None:
        """Throughput with speculation over that without."""
        if self.break_even is None or self.cell.commit_length is None:
            return None
        return self.cell.commit_length / self.break_even

    @property
    def pays(self) -> str | None:
        """Whether speculation is faster on this text; undecided close to break-even."""
        if self.gain is None:
            return None
        if abs(100 * (self.gain - 1)) <= UNDECIDED_PCT:
            return "undecided"
        return "pays" if self.gain > 1 else "does not pay"


@dataclass(frozen=True)
class Acceptance:
    """Every text of every run of a case; the first run is the one spoken of."""

    texts: tuple[TextResult, ...]

    @property
    def main(self) -> list[TextResult]:
        """The texts of the first run."""
        return [t for t in self.texts if t.series == self.texts[0].series]

    @cached_property
    def ranked(self) -> list[TextResult]:
        """The texts of the first run that have a commit length, the least first."""
        known = [t for t in self.main if t.cell.commit_length is not None]
        return sorted(known, key=lambda t: t.cell.commit_length or 0.0)

    @property
    def verdict(self) -> str:
        """The chapter's answer: how far apart the texts are, and what filler does."""
        parts = [self.commit_says]
        if len(self.ranked) > 1 and self.main[0].speculates is not False:
            parts += [self.inflation_says, self.pays_on]
        return " ".join(parts)

    @property
    def commit_says(self) -> str:
        """The texts with the least and the greatest commit length, or why there are none."""
        if not any(t.n for t in self.main):
            return "Every request is flagged, so no text has a value."
        if self.main[0].speculates is False:
            return "This server does not speculate: every step commits one token on every text."
        if not self.ranked:
            return (
                "The server tells no commit length, so texts can be compared by throughput alone."
            )
        if len(self.ranked) == 1:
            return (
                f"One text has a commit length, {_said(self.ranked[0])}: nothing can be said of "
                "how commit depends on text."
            )
        least, most = self.ranked[0], self.ranked[-1]
        return (
            f"The commit length runs from {_said(least)} to {_said(most)}, at prompts of "
            f"{_prompts(self.ranked)} tokens."
        )

    @property
    def inflation(self) -> float | None:
        """Commit length on filler over that on prose."""
        medians = {t.text: t.cell.commit_length for t in self.ranked}
        filler, prose = medians.get(FILLER), medians.get(PROSE)
        return filler / prose if filler and prose else None

    @property
    def inflation_says(self) -> str:
        """The same as a sentence."""
        if self.inflation is None:
            return "How much filler changes it is not said: it needs both filler and prose."
        verb = "inflates" if self.inflation > 1 else "does not inflate"
        return f"Filler {verb} it: {self.inflation:.2f} times the commit length of prose."

    @property
    def pays_on(self) -> str:
        """On how many texts speculation pays."""
        judged = [t for t in self.main if t.gain is not None]
        if not judged:
            return (
                "Without a plain step of the same server at this context, whether speculation "
                "pays is not known."
            )
        paying = [t.text for t in judged if t.pays == "pays"]
        close = [t.text for t in judged if t.pays == "undecided"]
        named = f" ({', '.join(paying)})" if paying else ""
        text = f"Speculation pays on {len(paying)} of {len(judged)} texts{named}"
        if close:
            text += (
                f"; undecided on {', '.join(close)}: medians within {UNDECIDED_PCT:.0f} % of "
                "break-even, and neither carries an interval"
            )
        return f"{text}."

    @property
    def pays_says(self) -> str:
        """What speculation gains on each text."""
        said = [
            f"{t.text}: {t.gain:.2f} times plain throughput, with a commit length of "
            f"{t.cell.commit_length:.3g} against a break-even of {t.break_even:.2f}"
            for t in self.main
            if t.gain is not None
        ]
        return f"{'; '.join(said)}."

    @property
    def width_says(self) -> str:
        """Whether the step depends on the text, through the drafted tokens that it verifies."""
        known = [t for t in self.main if t.cell.step_ms is not None]
        if len(known) < 2:
            return "Fewer than two texts have a step, so its dependence on text is not known."
        low = min(known, key=lambda t: t.cell.step_ms or 0.0)
        high = max(known, key=lambda t: t.cell.step_ms or 0.0)
        text = (
            f"The step is shortest on {low.text} ({low.cell.step_ms:.3g} ms) and longest on "
            f"{high.text} ({high.cell.step_ms:.3g} ms)"
        )
        if low.drafted_per_step is None or high.drafted_per_step is None:
            return f"{text}; how many tokens a step verified is not told."
        return (
            f"{text}, with {low.drafted_per_step:.2f} and {high.drafted_per_step:.2f} drafted "
            "tokens a step on the average."
        )

    @property
    def origins(self) -> str:
        """Where each text comes from."""
        named = {t.text: t.origin for t in self.main}
        return "\n".join(f"- *{name}*: {origin or 'not said'}" for name, origin in named.items())


def find(case: Case) -> Acceptance | Missing:
    """Commit by text, of all runs of a case."""
    runs = measured(case, "acceptance")
    if isinstance(runs, Missing):
        return runs
    sweep = measured_sweep.find(case)
    swept = () if isinstance(sweep, Missing) else sweep.series
    return Acceptance(tuple(_result(one, cell, runs, swept) for one in runs for cell in one.cells))


def with_commits(found: Acceptance | Missing) -> Acceptance | Missing:
    """The finding, if any text has a commit length to draw."""
    if isinstance(found, Missing) or any(t.commits for t in found.texts):
        return found
    return Missing("No text has a commit length: there is nothing to draw.")


def judged(found: Acceptance | Missing) -> Acceptance | Missing:
    """The finding, if any text can be set against plain decoding."""
    if isinstance(found, Missing) or any(t.gain is not None for t in found.texts):
        return found
    return Missing("No plain run of the same server stands beside these texts.")


def _result(
    one: Measured, cell: Cell, runs: tuple[Measured, ...], swept: tuple[Series, ...]
) -> TextResult:
    plain_ms, source = _plain_step(one, cell, runs, swept) if one.speculates else (None, "")
    origin = one.run.manifest.texts.get(cell.text, "")
    return TextResult(one.name, one.speculates, origin, cell, plain_ms, source)


def _plain_step(
    one: Measured, cell: Cell, runs: tuple[Measured, ...], swept: tuple[Series, ...]
) -> tuple[float | None, str]:
    """The step without speculation: of the same cell, else the plain sweep's line there."""
    wanted = (cell.text, cell.asked_prompt_tokens, cell.asked_output_tokens)
    for other in runs:
        if other.speculates is False:
            for same in other.cells:
                key = (same.text, same.asked_prompt_tokens, same.asked_output_tokens)
                if key == wanted and same.step_ms is not None:
                    return same.step_ms, "the same prompts on the plain server"
    for line in swept:
        if line.speculates is False and line.medians:
            context = cell.context_tokens
            low, high = line.medians.fit.x_range
            if context is not None and low <= context <= high:
                return line.medians.step.step_ms(context), "the plain sweep's line at this context"
    return None, ""


def _said(result: TextResult) -> str:
    text = f"{result.text} {result.cell.commit_length:.3g} tokens per step"
    if result.commit_range is None:
        return text
    low, high = result.commit_range
    places = "one place" if result.excerpts == 1 else f"{result.excerpts} places"
    requests = "one request" if result.n == 1 else f"{result.n} requests"
    return f"{text} ({low:.3g} to {high:.3g} over {requests} from {places} in it)"


def _prompts(results: list[TextResult]) -> str:
    asked = sorted({t.cell.asked_prompt_tokens for t in results})
    return f"{asked[0]:,}" if len(asked) == 1 else f"{asked[0]:,} to {asked[-1]:,}"


def _drafted_per_step(sample: Sample) -> float | None:
    if sample.drafted_tokens is None or not sample.steps:
        return None
    return sample.drafted_tokens / sample.steps


def _accepted_pct(sample: Sample) -> float | None:
    if not sample.drafted_tokens or sample.accepted_tokens is None:
        return None
    return 100 * sample.accepted_tokens / sample.drafted_tokens
