"""The claims ledger: every claim of a case with its verdict, evidence and deciding cell."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Literal, TypeVar

from analysis.errors import InputError
from analysis.findings import memory, own_plain, reconciliation, step_time, sweep, two_point
from analysis.findings.missing import Missing
from analysis.model.regression import Interval
from analysis.records.case import Case
from analysis.records.tables import ClaimRow

Word = Literal[
    "given", "reproduced", "consistent", "contradicted", "undecided", "not testable here"
]
WORDS: dict[Word, str] = {
    "given": "an observation that we take as it is",
    "reproduced": "the same number comes out of the data or the config",
    "consistent": "the data agree, but could not have told much else apart",
    "contradicted": "the data or the engine's own rules say otherwise",
    "undecided": "the data allow both; what would decide it is named",
    "not testable here": "no data of this kind exist in the case",
}


@dataclass(frozen=True)
class Judgement:
    """What a check says of a claim. ``cell`` is ``notebook#cell``, the cell that decides it."""

    verdict: Word
    evidence: str
    cell: str
    condition: str = ""
    n: int | None = None
    interval: Interval | None = None
    interval_kind: str = ""


@dataclass(frozen=True)
class Verdict:
    """A claim and its judgement."""

    claim: ClaimRow
    judgement: Judgement


class Findings:
    """All chapters of one case, each worked out when it is first asked for."""

    def __init__(self, case: Case) -> None:
        self.case = case

    @cached_property
    def sweep(self) -> sweep.Sweep | Missing:
        """Chapter 02."""
        return sweep.find(self.case)

    @cached_property
    def steps(self) -> step_time.StepTimes | Missing:
        """Chapter 03."""
        return step_time.find(self.case)

    @cached_property
    def two_points(self) -> two_point.TwoPoints | Missing:
        """Chapter 01."""
        return two_point.find(self.case)

    @cached_property
    def reconciliation(self) -> reconciliation.Reconciliation | Missing:
        """Chapter 04."""
        return reconciliation.find(self.case)

    @cached_property
    def memory(self) -> memory.Memory | Missing:
        """Chapter 05."""
        return memory.find(self.case)

    @cached_property
    def own_plain(self) -> own_plain.OwnPlain | Missing:
        """Speculation against measured plain decoding of the same server; silent without."""
        return own_plain.find(self.case)

    @property
    def throughputs(self) -> "Findings | Missing":
        """All of them, if the case has a sweep to draw."""
        return self.sweep if isinstance(self.sweep, Missing) else self

    @property
    def caption_of_throughputs(self) -> str:
        """The finding of the first figure."""
        result, points = self.reconciliation, needed(self.sweep)
        if isinstance(result, Missing):
            shown = points.main
            if not isinstance(self.steps, Missing):
                main = self.steps.main
                shown = points.of(main.series, main.repeat)
            first, last = shown[0], shown[-1]
            hollow = (
                "" if points.measured else "; hollow points have no commit length that was read"
            )
            goes = "falls" if last.tok_per_s < first.tok_per_s else "goes"
            return (
                f"{first.series} {goes} from {first.tok_per_s:.1f} to {last.tok_per_s:.1f} tok/s "
                f"between {first.prompt_tokens:,} and {last.prompt_tokens:,} tokens{hollow}."
            )
        named = [context.tokens for context in result.observation.contexts]
        where = " to ".join(f"{end:,}" for end in sorted({min(named), max(named)}))
        text = (
            f"At {result.observation.commit_length:g} tokens per step (solid line) this server "
            f"passes {result.observed_tok_per_s:g} tok/s at a mean context of "
            f"{result.mean_axis.context_for_observed or 0:,.0f} tokens; the observation was made "
            f"at {where}"
        )
        plain = ""
        if result.plain and result.plain.context_that_pays:
            low, high = result.plain.context_that_pays
            plain = (
                f"; above {low:,.0f} to {high:,.0f} tokens the plain decoding published for this "
                "engine (square) is faster"
            )
        return f"{text}{plain}. Dashed: equal commit on the fitted step."

    @property
    def alt_of_throughputs(self) -> str:
        """What the first figure shows."""
        points = needed(self.sweep)
        text = (
            f"{points.n} throughputs between {min(p.tok_per_s for p in points.points):.0f} and "
            f"{max(p.tok_per_s for p in points.points):.0f} tok/s over context"
        )
        if isinstance(self.reconciliation, Missing):
            return f"{text}."
        return (
            f"{text}; a bar at the observed {self.reconciliation.observed_tok_per_s:g} tok/s, and "
            "lines of equal commit length"
            + (", beside published plain decoding." if self.reconciliation.plain else ".")
        )

    @property
    def against_plain(self) -> "Findings | Missing":
        """All of them, if speculation can be set against published plain decoding."""
        result = self.reconciliation
        if self.case.runs and not self.case.plain:
            return Missing("")
        if isinstance(result, Missing):
            return result
        if result.plain is None:
            return Missing("No plain decoding on the same hardware is known for this case.")
        return self


T = TypeVar("T")


class UnavailableError(Exception):
    """A check needs a chapter that the case has no data for."""


def needed(finding: T | Missing) -> T:
    """The finding, or ``UnavailableError`` with the reason why there is none."""
    if isinstance(finding, Missing):
        raise UnavailableError(finding.reason)
    return finding


Check = Callable[[ClaimRow, Findings], Judgement]


@dataclass(frozen=True)
class Ledger:
    """All verdicts of a case, in the order of its claims."""

    verdicts: tuple[Verdict, ...]

    @property
    def counts(self) -> dict[str, int]:
        """How many claims got each word."""
        return {w: sum(v.judgement.verdict == w for v in self.verdicts) for w in WORDS}

    @property
    def n(self) -> int:
        """Claims in all."""
        return len(self.verdicts)

    @property
    def summary(self) -> str:
        """The counts in a sentence."""
        return ", ".join(f"{count} {word}" for word, count in self.counts.items() if count)

    def of(self, claim_id: str) -> Verdict:
        """The verdict on one claim."""
        return next(v for v in self.verdicts if v.claim.id == claim_id)


def find(case: Case, checks: dict[str, Check]) -> Ledger | Missing:
    """Judge every claim of a case by the check that it names."""
    if not case.claims:
        return Missing("This case makes no claims (no claims.csv), so there is no ledger.")
    findings = Findings(case)
    return Ledger(tuple(_judge(claim, findings, checks) for claim in case.claims))


def only(ledger: Ledger | Missing, claims: tuple[str, ...]) -> Ledger | Missing:
    """The ledger with those claims alone, in the order given; silent where there is none."""
    if isinstance(ledger, Missing):
        return Missing("")
    return Ledger(tuple(ledger.of(claim) for claim in claims))


def _judge(claim: ClaimRow, findings: Findings, checks: dict[str, Check]) -> Verdict:
    if claim.check not in checks:
        place = f"{findings.case.name}/claims.csv, {claim.id}, check"
        raise InputError(place, repr(claim.check), f"one of {', '.join(sorted(checks))}")
    try:
        judgement = checks[claim.check](claim, findings)
    except UnavailableError as reason:
        judgement = Judgement("not testable here", str(reason), "00-summary#ledger")
    return Verdict(claim, judgement)
