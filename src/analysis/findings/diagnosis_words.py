"""A diagnosis in sentences."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from analysis.findings.diagnosis_types import Middle, StepFit, Summary
from analysis.model.linearity import Linearity
from analysis.records.seen import Seen
from analysis.records.windows import FLAG_NAMES, Flag, Note, Windows

STEADY = 0.02
"""A standard deviation of the logarithm below which a figure is called steady."""
STRAIGHT_PCT = 10.0


@dataclass(frozen=True)
class Words:
    """All that the sentences are made from."""

    summary: Summary
    fit: StepFit | None
    flags: Mapping[Flag, int]
    seen: Seen
    total: int
    rows: Sequence[Windows]

    def verdict(self) -> str:
        """The answer in one sentence."""
        s = self.summary
        if s.windows_used == 0:
            return self._without_clean_windows()
        of = f"{s.windows_used:,} of {self.total:,} windows"
        if s.step_ms is None or s.tok_per_s is None or s.commit is None:
            return f"The log tells an acceptance, but no rate, in {of}: the step stays unknown."
        streams = "" if s.running is None else _requests(s.running.median)
        if self.plain:
            return (
                f"{s.tok_per_s.median:,.1f} tok/s{streams}, without speculation: one token per "
                f"step, and a step of {_ms(s.step_ms)} ({of}, medians)."
            )
        return (
            f"{s.tok_per_s.median:,.1f} tok/s{streams}: {s.commit.median:.2f} tokens per step, "
            f"over steps of {_ms(s.step_ms)} ({of}, medians)."
        )

    def _without_clean_windows(self) -> str:
        """What flagged windows still tell: other work only makes a step look longer."""
        known = [part for part in self.rows if part.used.sum() == 0]
        commit, length, step = (
            np.concatenate([getattr(part, name) for part in known])
            for name in ("commit", "acceptance_length", "step_ms")
        )
        drafting = np.isfinite(length)
        if drafting.any():  # a window in which nothing was drafted tells nothing of the drafts
            commit, step = commit[drafting], step[drafting]
        commit = commit[np.isfinite(commit)]
        step = step[np.isfinite(step)]
        tells = _span("commit length is", commit) or _span("acceptance length is", length[drafting])
        tells = tells or "nothing is told of drafts either"
        if not len(step):
            return (
                f"No rate, so the step stays unknown: {tells} "
                f"({self.total:,} windows, all flagged: {self._reasons()})."
            )
        return (
            f"No window shows decoding alone: all {self.total:,} are flagged ({self._reasons()}). "
            f"All the same {tells}, and a step takes at most {np.median(step):,.1f} ms: these "
            "windows hold other work too."
        )

    @property
    def plain(self) -> bool:
        """Whether nothing in the log speculates."""
        return self.summary.acceptance_length is None and (
            self.summary.commit is None or self.summary.commit.median == 1.0
        )

    def details(self) -> tuple[str, ...]:
        """The sentences that follow."""
        said = [
            self._moves(),
            self._growth(),
            self._needs(),
            self._block(),
            self._definitions(),
            self._left_out(),
            self._assumed(),
            *self.seen.notes,
        ]
        return tuple(text for text in said if text)

    def _reasons(self) -> str:
        counts = sorted(self.flags.items(), key=lambda item: -item[1])
        return ", ".join(f"{FLAG_NAMES[flag]} {count:,}" for flag, count in counts)

    def _moves(self) -> str:
        """Which of the two the throughput of a stream follows from window to window."""
        commit, step = self._used("commit"), self._used("step_ms")
        if len(commit) < 4 or self.plain:
            return ""
        rate = np.log(commit / step)
        spread = float(np.std(rate))
        least, most = float(np.min(commit / step)), float(np.max(commit / step))
        if spread < STEADY:
            return (
                f"Throughput per stream is steady: {1000 * least:,.1f} to {1000 * most:,.1f} tok/s."
            )
        share = float(np.cov(np.log(commit), rate)[0, 1] / np.var(rate, ddof=1))
        what, part = ("commit", share) if share >= 0.5 else ("step", 1 - share)
        other = "step" if what == "commit" else "commit"
        much = f"{100 * part:.0f} % of" if part <= 1 else f"all of (the {other} moves against it)"
        return (
            f"From window to window throughput per stream moves between {1000 * least:,.1f} and "
            f"{1000 * most:,.1f} tok/s, and it is the {what} that moves it: {much} the variance of "
            "its logarithm."
        )

    def _growth(self) -> str:
        fit = self.fit
        if fit is None:
            return ""
        low, high = fit.context_range
        sign = "-" if fit.slope_us_per_token < 0 else "+"
        text = (
            f"Against context the step is {fit.intercept_ms:,.1f} ms{_range(fit.intercept_ci95)} "
            f"{sign} {abs(fit.slope_us_per_token):,.2f} us{_range(fit.slope_ci95)} per token, from "
            f"{low:,.0f} to {high:,.0f} tokens at {fit.running:g} running (95 % confidence)"
        )
        if fit.slope_ci95 is None or fit.slope_ci95[0] <= 0 <= fit.slope_ci95[1]:
            return f"{text}: growth with context is not shown."
        share = fit.slope_us_per_token * high / 1000
        share /= fit.intercept_ms + share
        much = f"{100 * share:.0f} %" if share < 1 else "all"
        mixed = "; steps of different widths are mixed in it" if self._undrafted else ""
        return (
            f"{text}: at {high:,.0f} tokens {much} of it grows with context"
            f"{_straight(fit.linearity)}{mixed}."
        )

    def _needs(self) -> str:
        s = self.summary
        if self.plain or s.commit is None or s.step_ms is None:
            return ""
        even = s.step_ms.median / s.commit.median
        return (
            f"Speculation pays here only if a plain step takes more than {even:,.1f} ms "
            f"(plain decoding below {1000 / even:,.1f} tok/s per stream); measure one with it off."
        )

    def _block(self) -> str:
        s, block = self.summary, self.seen.block
        if block is None or s.commit is None or self.plain:
            return ""
        return (
            f"A step can commit {block} tokens at most ({self.seen.block_from}); it commits "
            f"{s.commit.median:.2f}, {100 * s.commit.median / block:.0f} % of that."
        )

    @property
    def _undrafted(self) -> bool:
        """Whether some steps drafted nothing: they verify one token, the others several."""
        return any(bool((part.notes & Note.STEPS_WITHOUT_DRAFT).any()) for part in self.rows)

    def _definitions(self) -> str:
        """Where commit and acceptance length differ, both under their own names."""
        s = self.summary
        text = ""
        if self._undrafted and s.commit is not None and s.acceptance_length is not None:
            text = (
                f"Some steps drafted nothing: commit length over all steps is "
                f"{s.commit.median:.2f}, acceptance length over the steps that drafted "
                f"{s.acceptance_length.median:.2f}."
            )
        if any(bool((part.notes & Note.OLD_ACCEPT_RATE).any()) for part in self.rows):
            text += " `accept rate` here is accept len over verified tokens (0.5.6 to 0.5.9)."
        return text.strip()

    def _left_out(self) -> str:
        s = self.summary
        if not s.windows_flagged or not s.windows_used:
            return ""
        counted = "1 window is" if s.windows_flagged == 1 else f"{s.windows_flagged:,} windows are"
        return f"{counted} left out: {self._reasons()}."

    def _assumed(self) -> str:
        seen, said = self.seen, []
        if seen.window_s is not None and seen.window_s_assumed:
            said.append(f"that a line covers {seen.window_s:g} s")
        if any(bool((part.notes & Note.CONTEXT_FROM_USAGE).any()) for part in self.rows):
            said.append("that a request's context is the KV cache in use over the running count")
        return f"Assumed: {', and '.join(said)}." if said else ""

    def _used(self, name: str) -> np.ndarray:
        parts = []
        for part in self.rows:
            used = part.rows(part.unflagged)
            good = np.isfinite(used.commit) & np.isfinite(used.step_ms) & (used.step_ms > 0)
            parts.append(getattr(used, name)[good])
        return np.concatenate(parts) if parts else np.zeros(0)


def _span(what: str, values: np.ndarray) -> str:
    if not len(values):
        return ""
    low, high = float(np.min(values)), float(np.max(values))
    return f"{what} {low:.2f}" + (f" to {high:.2f}" if high - low >= 0.005 else "")


def _requests(running: float) -> str:
    return " at one request" if running == 1 else f" over {running:g} requests"


def _ms(step: Middle) -> str:
    digits = 1 if step.median >= 1 else 3
    return f"{step.median:,.{digits}f} ms"


def _range(interval: tuple[float, float] | None) -> str:
    return "" if interval is None else f" ({interval[0]:,.2f} to {interval[1]:,.2f})"


def _straight(found: Linearity | None) -> str:
    if found is None or found.bend_ci95 is None:
        return ""
    low, high = found.bend_ci95
    if max(abs(low), abs(high)) <= STRAIGHT_PCT:
        return ", in a straight line"
    return "" if low <= 0 <= high else ", but not in a straight line"
