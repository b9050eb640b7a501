"""What would make a server faster, ranked at a context, and where the ranking changes."""

from dataclasses import dataclass
from functools import cached_property
from itertools import combinations
from statistics import median

from analysis.errors import InputError
from analysis.findings.lever_list import DRAFTER, KERNEL, Lever, Worth, levers
from analysis.findings.missing import Missing
from analysis.findings.series import Axis, SeriesFit, fit_series
from analysis.model.fieller import Estimates
from analysis.model.levers import crossover, crossover_with_step
from analysis.model.regression import Interval
from analysis.model.speculation import break_even_commit
from analysis.records.case import Case
from analysis.records.tables import ClaimRow

TOP = 3


@dataclass(frozen=True)
class Ranked:
    """A lever with what it is worth at the context of the ranking."""

    lever: Lever
    worth: Worth


@dataclass(frozen=True)
class Turn:
    """The context at which two levers are worth the same: below it the first leads."""

    below: str
    above: str
    context_tokens: float
    interval95: Interval | None
    inside: bool


@dataclass(frozen=True)
class Together:
    """Two levers at once, beside the product of what each is worth alone."""

    names: str
    gain: float
    product: float


@dataclass(frozen=True)
class Levers:
    """The finding: every lever of a case at one context, on one axis, at one commit length."""

    case: str
    series: SeriesFit
    axis: Axis
    context_tokens: float
    commit_length: float
    all: tuple[Lever, ...]
    account: tuple[ClaimRow, ...]

    @cached_property
    def ranked(self) -> tuple[Ranked, ...]:
        """All levers, best first; those that help no single stream last."""
        return self.at(self.context_tokens)

    def at(self, context: float) -> tuple[Ranked, ...]:
        """The ranking at another context."""
        rows = [Ranked(lever, lever.worth(context)) for lever in self.all]
        return tuple(sorted(rows, key=lambda row: (not row.lever.alone, -row.worth.gain)))

    @property
    def best(self) -> tuple[Ranked, ...]:
        """The first few for one stream, the best of each kind."""
        return self._best_at(self.context_tokens)

    @property
    def longest_context(self) -> float:
        """The longest context that the line was fitted to."""
        return self.series.line(self.axis).fit.x_range[1]

    @property
    def axis_words(self) -> str:
        """The axis in words."""
        return "mean context" if self.axis == "mean" else "prompt"

    @property
    def verdict(self) -> str:
        """The chapter's answer."""
        listed = "; ".join(
            f"{row.lever.name} {row.worth.gain:.2f} times{_between(row.worth.bounds)}"
            for row in self.best
        )
        return (
            f"At {self.context_tokens:,.0f} tokens of {self.axis_words} and "
            f"{self.commit_length:.3g} tokens per step, the most is in: {listed}. {self.turn_says}"
        )

    @property
    def main_turn(self) -> Turn | None:
        """Where a vanished slope overtakes a drafter twice as good, or another leading pair."""
        named = {lever.name: lever for lever in self.all}
        if DRAFTER in named and KERNEL in named:
            return self._turn(named[DRAFTER], named[KERNEL])
        return self.turns[0] if self.turns else None

    @property
    def turn_says(self) -> str:
        """The context at which the order of drafter and kernel changes."""
        turn = self.main_turn
        if turn is None:
            return "No two of the leading levers change places."
        ends = turn.interval95
        where = f" ({ends[0]:,.0f} to {ends[1]:,.0f})" if ends else ""
        outside = "" if turn.inside else ", beyond the contexts measured"
        return (
            f"Below {turn.context_tokens:,.0f}{where} tokens "
            f"“{turn.below}” is worth more than “{turn.above}”, above that less{outside}."
        )

    @cached_property
    def turns(self) -> tuple[Turn, ...]:
        """Where leading levers change places: any that is among the best at some context."""
        low, high = self.series.line(self.axis).fit.x_range
        leading: dict[str, Lever] = {}
        for context in (low, self.context_tokens, high):
            leading |= {row.lever.name: row.lever for row in self._best_at(context)}
        found = [self._turn(*pair) for pair in combinations(leading.values(), 2)]
        turns = [turn for turn in found if turn is not None]
        return tuple(sorted(turns, key=lambda turn: turn.context_tokens))

    @cached_property
    def together(self) -> tuple[Together, ...]:
        """Pairs of the best levers that change different factors of the line."""
        line = self.series.line(self.axis).fit
        rows = [row for row in self.ranked if row.lever.change is not None and row.lever.alone]
        found = []
        for one, two in combinations(rows, 2):
            if one.lever.kind == two.lever.kind:
                continue
            assert one.lever.change is not None
            assert two.lever.change is not None
            both = (one.lever.change * two.lever.change).gain(line, self.context_tokens)
            names = f"{one.lever.name} + {two.lever.name}"
            found.append(Together(names, both.ratio, one.worth.gain * two.worth.gain))
        return tuple(sorted(found, key=lambda row: -row.gain)[: 2 * TOP])

    @property
    def account_says(self) -> str:
        """How an account that ranks levers ranks them, beside the ranking here."""
        ranks = "; ".join(claim.claim for claim in self.account)
        ours = ", then ".join(row.lever.name for row in self.best)
        return (
            f"The account's order: {ranks}. Here, at {self.context_tokens:,.0f} tokens: {ours}. "
            f"{self.turn_says}"
        )

    @property
    def notes(self) -> tuple[str, ...]:
        """What a reader must know before acting on the ranking."""
        notes = [
            "each lever is taken alone, everything else as it is; a gain above 1 is faster",
            f"the commit length of {self.commit_length:.3g} carries no interval",
        ]
        if self.context_tokens > self.longest_context:
            notes.append(
                f"{self.context_tokens:,.0f} tokens lie beyond the longest measured "
                f"({self.longest_context:,.0f}): the line is extended"
            )
        off = next((lever for lever in self.all if lever.plain is not None), None)
        if off is not None and off.plain is not None:
            notes.append(f"speculation off: {self._break_even_says(off)}")
            notes.append(f"speculation off: {off.note}")
            if off.plain.published_ms is not None and self.turns:
                notes.append(
                    "where speculation off changes places with another lever, its step is the "
                    "middle of the published range, and the interval is that of the line alone"
                )
        if any(not lever.alone for lever in self.all):
            notes.append(
                "a batch “for all streams” makes no single stream faster: those rows come last"
            )
        return tuple(notes)

    @property
    def notes_say(self) -> str:
        """The notes as sentences."""
        return " ".join(f"{note[0].upper()}{note[1:]}." for note in self.notes)

    @property
    def undecided_says(self) -> str:
        """What the data cannot decide about the leading levers."""
        named = {lever.name for lever in self.all}
        split = any(lever.plain and lever.plain.line for lever in self.all)
        open_questions = []
        if KERNEL in named and self.series.speculation != "none" and not split:
            open_questions.append(
                "how much of the slope is the target's and how much the drafter's: a sweep of the "
                "same server with speculation off, over the same contexts, would tell"
            )
        if any("verify width" in name or "drafts" in name for name in named):
            open_questions.append(
                "how the step grows with the verify width: the same sweep at two widths would tell"
            )
        if DRAFTER in named:
            open_questions.append(
                "whether a better drafter exists for this text: another one on the same text "
                "would tell"
            )
        if not open_questions:
            return "Nothing that these levers rest on is left open, within the contexts measured."
        return f"Not decided by these data: {'; '.join(open_questions)}."

    def _best_at(self, context: float) -> tuple[Ranked, ...]:
        """The first of each kind, best first, of those that help one stream."""
        first: dict[str, Ranked] = {}
        for row in self.at(context):
            if row.lever.alone:
                first.setdefault(row.lever.kind, row)
        return tuple(first.values())[:TOP]

    def _break_even_says(self, off: Lever) -> str:
        assert off.plain is not None
        step = self.series.line(self.axis).fit.at(self.context_tokens)
        even = break_even_commit(step, off.plain.step_ms(self.context_tokens))
        between = ""
        if off.plain.published_ms is not None:
            fast, slow = off.plain.published_ms
            ends = break_even_commit(step, slow), break_even_commit(step, fast)
            between = f" ({ends[0]:.1f} to {ends[1]:.1f})"
        return f"break-even at {self.context_tokens:,.0f} tokens is a commit of {even:.1f}{between}"

    def _turn(self, one: Lever, two: Lever) -> Turn | None:
        """Which is worth more below the context at which both are worth the same."""
        found = self._equal_at(one, two)
        if found is None:
            return None
        at = found.ratio
        first = one.worth(at / 2).gain > two.worth(at / 2).gain
        below, above = (one, two) if first else (two, one)
        low, high = self.series.line(self.axis).fit.x_range
        return Turn(below.name, above.name, at, _above_zero(found.interval95), low <= at <= high)

    def _equal_at(self, one: Lever, two: Lever) -> Estimates | None:
        line = self.series.line(self.axis).fit
        if one.change is not None and two.change is not None:
            return crossover(line, one.change, two.change)
        for plain, other in ((one.plain, two.change), (two.plain, one.change)):
            if plain is not None and plain.published_ms is not None and other is not None:
                step = plain.step_ms(0.0)
                return crossover_with_step(line, other, self.commit_length, step)
        return None


def find(
    case: Case,
    context: float | None = None,
    axis: Axis | None = None,
    commit: float | None = None,
) -> Levers | Missing:
    """Rank the levers of a case for its first series with a line.

    Without an axis: the mean context where it is known. Without a context: that of the
    observation, else the longest measured. Without a commit length: that of the observation, else
    the median of the series. Raises ``InputError`` for an axis that the series does not have, or
    a context at which its line gives no positive step.
    """
    fits = fit_series(case)
    if not fits:
        return Missing(
            "This case has no series of three or more contexts with a commit length, so there is "
            "no line to weigh a lever on."
        )
    main, seen = fits[0], case.facts.observation
    if axis == "mean" and not main.has_mean_axis:
        found = "no output lengths beside the prompts"
        raise InputError(f"levers, {case.name}, axis mean", found, "axis prompt")
    axis = axis or ("mean" if main.has_mean_axis else "prompt")
    line = main.line(axis)
    if context is None:
        context = float(seen.context_tokens) if seen else line.fit.x_range[1]
    if line.fit.at(context) <= 0 or line.intercept_ms <= 0:
        found = f"a step of {min(line.fit.at(context), line.intercept_ms):.3g} ms on the line"
        raise InputError(f"levers, {case.name}", found, "a positive step at 0 and at the context")
    if commit is None:
        commits = [row.commit_length for row in main.rows if row.commit_length]
        commit = seen.commit_length if seen else median(commits)
    return Levers(
        case=case.name,
        series=main,
        axis=axis,
        context_tokens=context,
        commit_length=commit,
        all=tuple(levers(case, main, axis, commit)),
        account=tuple(claim for claim in case.claims if claim.topic == "levers"),
    )


def with_account(found: Levers | Missing) -> Levers | Missing:
    """The finding, if the case is an account that ranks levers itself; silent if not."""
    return found if isinstance(found, Missing) or found.account else Missing("")


def with_turns(found: Levers | Missing) -> Levers | Missing:
    """The finding, if any leading levers change places; silent if not."""
    return found if isinstance(found, Missing) or found.turns else Missing("")


def with_pairs(found: Levers | Missing) -> Levers | Missing:
    """The finding, if any two levers can be taken together; silent if not."""
    return found if isinstance(found, Missing) or found.together else Missing("")


def _above_zero(interval: Interval | None) -> Interval | None:
    return None if interval is None else (max(0.0, interval[0]), interval[1])


def _between(interval: Interval | None) -> str:
    return "" if interval is None else f" ({interval[0]:.2f} to {interval[1]:.2f})"
