"""The context sweep: throughput, commit length and step, and which of them were measured."""

from dataclasses import dataclass

from analysis.findings import identity
from analysis.findings.identity import Identity
from analysis.findings.missing import Missing
from analysis.model.speculation import break_even_commit
from analysis.records.case import Case
from analysis.records.tables import PlainRow, StepKind, SweepRow


@dataclass(frozen=True)
class SweepPoint:
    """One row of a sweep with its step, measured or derived; undefined values are ``None``."""

    series: str
    repeat: str
    prompt_tokens: int
    context_tokens: float | None
    tok_per_s: float
    commit_length: float | None
    commit_kind: str | None
    step_ms: float | None
    step_kind: StepKind | None
    plain_ms_low: float | None
    plain_ms_high: float | None

    @property
    def break_even_low(self) -> float | None:
        """Commit length that would only match the slower published plain token time."""
        return _break_even(self.step_ms, self.plain_ms_high)

    @property
    def break_even_high(self) -> float | None:
        """Commit length that would match the faster published plain token time."""
        return _break_even(self.step_ms, self.plain_ms_low)


@dataclass(frozen=True)
class Sweep:
    """All sweep points of a case, and a summary of its first series."""

    points: tuple[SweepPoint, ...]
    identity: Identity | None = None

    @property
    def measured(self) -> bool:
        """Whether any step was timed by the engine."""
        return any(p.step_kind == "measured" for p in self.points)

    @property
    def verdict(self) -> str:
        """The chapter's answer in one sentence."""
        if self.measured:
            return self._verdict_measured
        exact = sum(p.commit_kind == "exact" for p in self.points)
        read = sum(p.commit_kind == "measured" for p in self.points)
        return (
            f"Of {self.n} throughputs, {read} come with a commit length that was read from the "
            f"server, {exact} with one that is 1 by definition, "
            f"{self.n - read - exact - self.without_commit_count} with a derived one and "
            f"{self.without_commit_count} with none. No step time was measured: each is commit "
            "over throughput, so this sweep cannot test tok/s = commit / step."
        )

    @property
    def _verdict_measured(self) -> str:
        exact = sum(p.commit_kind == "exact" for p in self.points)
        counted = sum(p.commit_kind == "measured" for p in self.points)
        steps = sum(p.step_kind == "measured" for p in self.points)
        derived = sum(p.step_kind == "derived" for p in self.points)
        rest = f", {derived} more are commit over throughput" if derived else ""
        says = f" {self.identity.says}" if self.identity else ""
        return (
            f"Of {self.n} throughputs, {counted} come with a commit length that was counted and "
            f"{exact} are plain decoding. {steps} step times were measured by the engine's own "
            f"timings{rest}: on those, tok/s = commit / step is a test and not a definition.{says}"
        )

    @property
    def step_word(self) -> str:
        """Whether the steps are measured or derived."""
        return "measured" if self.measured else "derived"

    @property
    def step_is(self) -> str:
        """The same, of the figure."""
        return (
            "is the engine's own timing" if self.measured else "(hollow) is derived, not measured"
        )

    @property
    def step_from(self) -> str:
        """The same, of the table."""
        if self.measured:
            return "the engine timed, or that throughput and commit length imply"
        return "throughput and commit length imply"

    @property
    def n(self) -> int:
        """Rows in the whole table."""
        return len(self.points)

    @property
    def main(self) -> tuple[SweepPoint, ...]:
        """The points of the first series."""
        return self.of(self.points[0].series, self.points[0].repeat)

    def of(self, series: str, repeat: str) -> tuple[SweepPoint, ...]:
        """The points of one series and repeat, in their order."""
        return tuple(p for p in self.points if (p.series, p.repeat) == (series, repeat))

    @property
    def without_commit_count(self) -> int:
        """Rows without any commit length: throughput only."""
        return sum(p.commit_length is None for p in self.points)

    @property
    def commits(self) -> list[float]:
        """Commit lengths of the first series, in its order."""
        return [p.commit_length for p in self.main if p.commit_length is not None]

    @property
    def steps(self) -> list[float]:
        """Step times of the first series, ms."""
        return [p.step_ms for p in self.main if p.step_ms is not None]

    @property
    def first(self) -> SweepPoint:
        """The shortest context of the first series."""
        return min(self.main, key=lambda p: p.prompt_tokens)

    @property
    def last(self) -> SweepPoint:
        """The longest context of the first series."""
        return max(self.main, key=lambda p: p.prompt_tokens)


def find(case: Case) -> Sweep | Missing:
    """The sweep of a case."""
    if not case.sweep:
        where = "no run of it" if case.runs else "no sweep.csv"
        return Missing(f"This case has no context sweep ({where}).")
    plain = plain_token_ms(case)
    return Sweep(tuple(_point(row, plain) for row in case.sweep), identity.find(case))


def with_commits(found: Sweep | Missing) -> Sweep | Missing:
    """The sweep, if its first series has commit lengths to speak of."""
    if isinstance(found, Missing) or len(found.commits) == len(found.main):
        return found
    return Missing(f"No commit length was published for the first series, {found.first.series}.")


def measured(found: Sweep | Missing) -> Sweep | Missing:
    """The sweep, if any of its steps was timed by the engine; silent if not."""
    return found if isinstance(found, Missing) or found.measured else Missing("")


def derived(found: Sweep | Missing) -> Sweep | Missing:
    """The sweep, if all of its steps are commit over throughput; silent if not."""
    return Missing("") if isinstance(found, Sweep) and found.measured else found


def plain_token_ms(case: Case) -> tuple[float, float] | None:
    """Least and greatest published time per plain token on this engine at batch 1, ms.

    Where a row gives no time per output token, 1000 / tok_per_s stands, which still holds the
    time to first token and so is an upper bound.
    """
    times = [row.tpot_ms or 1000 / row.tok_per_s for row in plain_rows(case)]
    return (min(times), max(times)) if times else None


def plain_rows(case: Case) -> list[PlainRow]:
    """Published rows of this engine at batch 1 without speculation."""
    engine = case.facts.engine.name.lower()
    alone = [row for row in case.plain if row.batch == 1 and row.spec == "none"]
    return [row for row in alone if engine in row.system.lower()]


def _break_even(step_ms: float | None, plain_ms: float | None) -> float | None:
    if step_ms is None or plain_ms is None:
        return None
    return break_even_commit(step_ms, plain_ms)


def _point(row: SweepRow, plain: tuple[float, float] | None) -> SweepPoint:
    return SweepPoint(
        series=row.series,
        repeat=row.repeat,
        prompt_tokens=row.prompt_tokens,
        context_tokens=row.context_tokens,
        tok_per_s=row.tok_per_s,
        commit_length=row.commit_length,
        commit_kind=row.commit_kind,
        step_ms=row.step_ms,
        step_kind=row.step_kind,
        plain_ms_low=plain[0] if plain and row.speculation != "none" else None,
        plain_ms_high=plain[1] if plain and row.speculation != "none" else None,
    )
