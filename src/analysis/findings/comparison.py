"""What changed between two sides: the step, the commit, both, or nothing that these data show."""

from dataclasses import dataclass

import numpy as np

from analysis.errors import InputError
from analysis.findings.matching import Matched, match
from analysis.findings.sides import Side
from analysis.model.effective_size import CORRELATION_SHOWS
from analysis.model.log_ratio import LogRatio
from analysis.model.regression import Interval
from analysis.model.same_context import Aligned, align
from analysis.model.split import CLOSE, Split, differs

NO_SPLIT = "no split"
"""The verdict where throughput changed and no commit length tells why."""


@dataclass(frozen=True)
class Comparison:
    """Two sides, as compared, and the change from the first to the second.

    ``aligned`` holds the throughput; ``split`` is ``None`` where a side tells no commit length.
    ``total_ratio`` is of all running requests together, where their number differs.
    """

    before: Side
    after: Side
    aligned: Aligned
    split: Split | None
    total_ratio: float | None
    notes: tuple[str, ...]

    @property
    def throughput(self) -> LogRatio:
        """Throughput of a stream, after over before."""
        return self.aligned.throughput

    @property
    def verdict(self) -> str:
        """``step``, ``commit``, ``both``, ``no difference shown`` or ``no split``."""
        if self.split is not None:
            return self.split.verdict
        return NO_SPLIT if differs(self.throughput) else "no difference shown"

    @property
    def smallest_detectable_pct(self) -> float | None:
        """The change in throughput that such data show with 80 % power at 5 %, per cent."""
        return self.throughput.detectable_pct

    @property
    def sentence(self) -> str:
        """The answer in one or two sentences."""
        if self.split is not None and not any(self.split.changed) and differs(self.throughput):
            return (
                f"{self._throughput_says}. Whether by the step or by the commit is not shown: "
                f"{self._power_of_factors}.{self._moves_says}"
            )
        if self.verdict == "no difference shown":
            said = f"{self._throughput_says}: no difference is shown. {self._power_says}"
            return f"{said}{self._moves_says}"
        if self.split is None:
            return (
                f"{self._throughput_says}. Whether by the step or by the commit is not known: "
                f"{self._lacking}."
            )
        return f"{self._throughput_says}: {self._cause_says}.{self._moves_says}"

    @property
    def details(self) -> tuple[str, ...]:
        """The sentences that follow: each factor, the context, the batch, and what to know."""
        said = [
            *self._factors_say,
            self._shares_say,
            self._context_says,
            self._running_says,
            "" if self._moves_says else self._cells_say,
            self._interval_says,
            *(f"{note[0].upper()}{note[1:]}." for note in self.notes),
        ]
        return tuple(text for text in said if text)

    @property
    def _throughput_says(self) -> str:
        times = three_digits(self.throughput.ratio)
        return f"Throughput per stream is {times} times{_between(self.throughput.interval95)}"

    @property
    def _cause_says(self) -> str:
        assert self.split is not None
        commit = three_digits(self.split.commit.ratio)
        step = three_digits(self.split.step.ratio)
        said = []
        changed = self.split.changed
        if changed[1]:
            slower = three_digits(1 / self.split.step.ratio)
            how = f"takes {slower} times as long"
            if self.split.step.ratio >= 1:
                how = f"is {step} times as fast"
            said.append(f"a step {how}{self._share(self.split.step_share)}")
        if changed[0]:
            said.append(
                f"it commits {commit} times the tokens{self._share(self.split.commit_share)}"
            )
        return " and ".join(said)

    def _share(self, share: float | None) -> str:
        """A share of the change; nothing where the factors work against each other."""
        if share is None or not 0 <= share <= 1:
            return ""
        return f" ({100 * share:.0f} % of the change)"

    @property
    def _factors_say(self) -> list[str]:
        """What is not shown is not called equal."""
        if self.split is None:
            return []
        said = []
        names = ("commit", self.split.commit), ("step", self.split.step)
        for (name, ratio), changed in zip(names, self.split.changed, strict=True):
            is_now = f"The {name} ratio is {three_digits(ratio.ratio)}{_between(ratio.interval95)}"
            if ratio.variance == 0.0:
                said.append(f"The {name} is the same on both sides.")
            elif not changed and ratio.interval95 is not None:
                said.append(f"{is_now}: not shown to differ from 1, nor to be 1.")
            elif not changed:
                said.append(f"{is_now}, within {100 * CLOSE:.0f} % of 1, and has no interval.")
        return said

    @property
    def _shares_say(self) -> str:
        share = None if self.split is None else self.split.commit_share
        if share is None or 0 <= share <= 1:
            return ""
        return "Commit and step work against each other, so their shares lie outside 0 to 100 %."

    @property
    def _power_says(self) -> str:
        found = self.smallest_detectable_pct
        if found is None:
            return "There are no repeats to tell how small a change would have shown."
        return f"These data would have shown a change of {_per_cent(found)} (80 % power at 5 %)."

    @property
    def _power_of_factors(self) -> str:
        """The smallest change that would have shown, of each factor that has an interval."""
        assert self.split is not None
        factors = ("step", self.split.step), ("commit", self.split.commit)
        said = [
            f"{_per_cent(ratio.detectable_pct)} in the {name}"
            for name, ratio in factors
            if ratio.detectable_pct is not None
        ]
        if not said:
            return f"neither is more than {100 * CLOSE:.0f} % from 1, and there are no repeats"
        return f"these data would have shown a change of {' or '.join(said)} (80 % power at 5 %)"

    @property
    def _context_says(self) -> str:
        """At which context, and by what means."""
        found = self.aligned
        before, after = (_tokens(context) for context in found.contexts)
        at = _tokens(found.at_context)
        what, taken = "time per token", ""
        if self.split is not None:
            what, taken = "step", "; commit is taken not to depend on context"
        if found.adjustment == "same contexts":
            return f"Both sides are at the same contexts (mean {at})."
        if found.adjustment in ("common context", "before moved", "after moved"):
            side = {"before moved": "before", "after moved": "after"}.get(found.adjustment)
            whose = f"{side} is" if side else "of each side is"
            return (
                f"Contexts are {before} before and {after} after, in the mean: the {what} {whose} "
                f"that of its line at {at}{taken}."
            )
        if found.adjustment == "none":
            return (
                f"Contexts differ ({before} before, {after} after) and no line over context "
                "reaches from one to the other: the difference in context is not taken out."
            )
        return "The context is not known on both sides: if it differs, that is not taken out."

    @property
    def _running_says(self) -> str:
        if self.total_ratio is None:
            return ""
        before, after = (float(side.running.mean()) for side in (self.before, self.after))
        return (
            f"Running requests differ ({before:.3g} before, {after:.3g} after): throughput is that "
            f"of one stream; that of all together is {self.total_ratio:.3g} times."
        )

    @property
    def _cells_say(self) -> str:
        cells = self.aligned.step_by_context
        if self.split is None or len(cells) < 2:
            return ""
        return (
            f"Over {len(cells)} conditions compared one by one the step ratio is "
            f"{cells[0][1]:.3g} at {_tokens(cells[0][0])} and {cells[-1][1]:.3g} at "
            f"{_tokens(cells[-1][0])}."
        )

    @property
    def _moves_says(self) -> str:
        """An effect that grows with context is more than its mean."""
        if self.split is None or not self.aligned.step_moves:
            return ""
        low, high = self.aligned.step_by_context[0], self.aligned.step_by_context[-1]
        return (
            f" But the step ratio changes with context, from {low[1]:.3g} at {_tokens(low[0])} to "
            f"{high[1]:.3g} at {_tokens(high[0])}, and these figures are means over it."
        )

    @property
    def _interval_says(self) -> str:
        if self.throughput.interval95 is None:
            return (
                "Of the figures as given, no interval: what is more than "
                f"{100 * CLOSE:.0f} % from 1 counts as different."
            )
        text = "Intervals are 95 % confidence intervals by Student's t, for these two sessions"
        if self.split is not None and self.split.commit.interval95 is None:
            return f"{text}; repeats commit the same tokens, so commit has none."
        return f"{text}."

    @property
    def _lacking(self) -> str:
        told = [bool(np.isfinite(side.commit).any()) for side in (self.before, self.after)]
        if told == [False, False]:
            return "neither side tells a commit length"
        return f"the side {'after' if told[0] else 'before'} tells no commit length"


def compare(before: Side, after: Side) -> Comparison:
    """Split the change from ``before`` to ``after``.

    Raises ``InputError`` for several series on one side, and where a throughput is not known.
    """
    for side, option in ((before, "--series-before"), (after, "--series-after")):
        if len(side.series_names) > 1:
            expected = f"{option} with one of: {'; '.join(side.series_names)}"
            raise InputError(side.name, f"{len(side.series_names)} series", expected)
    sides = {"before": before, "after": after}
    notes = [f"{which}: {note}" for which, side in sides.items() for note in side.notes]
    splits = bool(before.splits.any() and after.splits.any())
    kept = []
    for which, side in sides.items():
        known = side.splits if splits else np.isfinite(side.tok_per_s)
        if not known.any():
            raise InputError(side.name, "no throughput", "tok_per_s, or commit_length and step_ms")
        if not known.all():
            what = "a commit and a step" if splits else "a throughput"
            notes.append(f"{which}: {int(known.sum()):,} of {len(side):,} rows have {what}")
        kept.append(side.rows(known))
    matched = match(kept[0], kept[1])
    aligned = align(*matched.observed(splits))
    return Comparison(
        before=matched.before,
        after=matched.after,
        aligned=aligned,
        split=Split(aligned) if splits else None,
        total_ratio=_total(matched, aligned),
        notes=tuple(
            dict.fromkeys(
                [*notes, *matched.notes, *_unused(matched, aligned), *_too_few(matched, aligned)]
            )
        ),
    )


def _total(matched: Matched, aligned: Aligned) -> float | None:
    """The ratio of all running requests together; ``None`` where as many ran on both sides."""
    before, after = (float(side.running.mean()) for side in (matched.before, matched.after))
    return None if before == after else aligned.throughput.ratio * after / before


def _unused(matched: Matched, aligned: Aligned) -> list[str]:
    """Rows that have no partner at the same conditions."""
    counts = (matched.before, aligned.n_before, "before"), (matched.after, aligned.n_after, "after")
    return [
        f"{len(side) - used:,} of {len(side):,} rows {name} have no partner and are left out"
        for side, used, name in counts
        if used < len(side)
    ]


def _too_few(matched: Matched, aligned: Aligned) -> list[str]:
    """Sides of windows that are too few to show that they move together in time."""
    counts = (matched.before, aligned.n_before, "before"), (matched.after, aligned.n_after, "after")
    return [
        f"{name}: fewer than {CORRELATION_SHOWS} windows cannot show a correlation in time and "
        "are taken as independent"
        for side, used, name in counts
        if side.successive and 1 < used < CORRELATION_SHOWS
    ]


def _per_cent(value: float) -> str:
    return f"{value:.2g} %" if value < 100 else f"{value:,.0f} %"


def _between(interval: Interval | None) -> str:
    if interval is None:
        return ""
    return f" ({three_digits(interval[0])} to {three_digits(interval[1])})"


def three_digits(value: float) -> str:
    """Three significant digits, trailing zeros too: 1.00, 12.3, 123."""
    return f"{value:#.3g}".rstrip(".")


def _tokens(context: float | None) -> str:
    return "not known" if context is None else f"{context:,.0f} tokens"
