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
NEAR = 0.05
"""Medians whose product is this close to the median throughput multiply."""
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
        of = f"{s.windows_used:,} of {_count(self.total)}"
        if s.step_ms is None or s.tok_per_s is None or s.commit is None:
            return self._incomplete(of)
        where = "" if s.running is None else _requests(s.running.median)
        ranks = self._ranks
        if ranks > 1:
            where += f" on each of {ranks} ranks"
        speed = f"{s.tok_per_s.median:,.1f} tok/s{where}"
        if self.plain:
            return (
                f"{speed}, without speculation: one token per step, and a step of "
                f"{_ms(s.step_ms)} ({of}, {self._medians})."
            )
        return (
            f"{speed}: {s.commit.median:.2f} tokens per step, over steps of {_ms(s.step_ms)} "
            f"({of}, {self._medians})."
        )

    @property
    def _ranks(self) -> int:
        """Ranks or engines that print side by side; slots of llama.cpp share one."""
        return max(
            (len(np.unique(p.source[p.unflagged])) for p in self.rows if p.engine != "llama.cpp"),
            default=1,
        )

    def _incomplete(self, of: str) -> str:
        """What is known, and what the log does not tell."""
        s = self.summary
        parts = [
            (s.tok_per_s, "throughput {:,.1f} tok/s", "throughput"),
            (s.step_ms, "step {:,.1f} ms", "step"),
            (s.commit or s.acceptance_length, "", "commit length"),
        ]
        known = [form.format(middle.median) for middle, form, _ in parts[:2] if middle]
        if s.commit is not None:
            known.append(f"commit length {s.commit.median:.2f}")
        elif s.acceptance_length is not None:
            known.append(f"acceptance length {s.acceptance_length.median:.2f}")
        missing = [name for middle, _, name in parts if middle is None]
        lacks = f"; {' and '.join(missing)} not told" if missing else ""
        text = ", ".join(known) or "nothing that can be used"
        return f"{text[0].upper()}{text[1:]} ({of}, medians){lacks}: not enough for a split."

    def _without_clean_windows(self) -> str:
        """What flagged windows still tell: a prefill or a pause makes steps look longer only."""
        commit, length, step, flags = (
            np.concatenate([getattr(part, name) for part in self.rows])
            for name in ("commit", "acceptance_length", "step_ms", "flags")
        )
        drafting = np.isfinite(length)
        if drafting.any():  # a window in which nothing was drafted tells nothing of the drafts
            commit, step, flags = commit[drafting], step[drafting], flags[drafting]
        tells = _span("commit length is", commit[np.isfinite(commit)])
        tells = tells or _span("acceptance length is", length[drafting])
        longer = int(Flag.PREFILL | Flag.MIXED | Flag.IDLE)
        step = step[np.isfinite(step) & ((flags & ~longer) == 0)]
        flagged = f"all flagged: {self._reasons()}"
        if not np.isfinite(np.concatenate([part.step_ms for part in self.rows])).any():
            return (
                f"No rate, so the step stays unknown: {tells or 'nothing is told of drafts'} "
                f"({_count(self.total)}, {flagged})."
            )
        text = f"No window shows decoding alone ({_count(self.total)}, {flagged})."
        if tells:
            text += f" All the same {tells}."
        if len(step):
            text += (
                f" Steps look {float(np.median(step)):,.1f} ms long (median), rather too long than "
                "too short, since these windows hold other work too."
            )
        return text

    @property
    def _medians(self) -> str:
        """Medians of unlike windows do not multiply: then it is said, and why."""
        s = self.summary
        assert s.commit is not None
        assert s.step_ms is not None
        assert s.tok_per_s is not None
        running = s.running.median if s.running else 1.0
        product = 1000 * s.commit.median * running / s.step_ms.median
        if abs(product / s.tok_per_s.median - 1) <= NEAR:
            return "medians"
        contexts = self._used("context_tokens")
        contexts = contexts[np.isfinite(contexts)]
        low, high = (contexts.min(), contexts.max()) if len(contexts) else (0.0, 0.0)
        why = (
            f"contexts run from {low:,.0f} to {high:,.0f} tokens" if high > 2 * low else "they vary"
        )
        return f"medians each on its own: {why}"

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
            self._pooled(),
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
        much = f"{100 * part:.0f} % of the variance of its logarithm"
        if part > 1:
            much = f"the {other} moves against it"
        return (
            f"From window to window throughput per stream moves between {1000 * least:,.1f} and "
            f"{1000 * most:,.1f} tok/s, and it is the {what} that moves it: {much}."
        )

    def _growth(self) -> str:
        fit = self.fit
        if fit is None:
            return ""
        low, high = fit.context_range
        sign = "-" if fit.slope_us_per_token < 0 else "+"
        text = (
            f"Against context the step is {fit.intercept_ms:,.1f} ms{_range(fit.intercept_ci95)} "
            f"{sign} {abs(fit.slope_us_per_token):,.2f} µs{_range(fit.slope_ci95)} per token, from "
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
        """The plain step at which speculation breaks even: a window's step over its commit."""
        commit, step = self._used("commit"), self._used("step_ms")
        if self.plain or not len(commit):
            return ""
        even = float(np.median(step / commit))
        mixed = " in the median window" if len(commit) > 1 else ""
        return (
            f"Speculation pays here only if a plain step takes more than {even:,.1f} ms{mixed} "
            f"(plain decoding below {1000 / even:,.1f} tok/s per stream); measure one with it off."
        )

    def _block(self) -> str:
        s, block, verified = self.summary, self.seen.block, self.seen.verified_tokens
        if s.commit is None or self.plain:
            return ""
        if block is None:
            if verified is None:
                return ""
            return (
                f"A step verifies {verified} tokens ({self.seen.verified_tokens_from}) and commits "
                f"{s.commit.median:.2f} of them."
            )
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
        text = "Some steps drafted nothing." if self._undrafted else ""
        if text and s.commit is not None and s.acceptance_length is not None:
            both = [f"{middle.median:.2f}" for middle in (s.commit, s.acceptance_length)]
            if both[0] != both[1]:
                text = (
                    f"Some steps drafted nothing: commit length over all steps is {both[0]}, "
                    f"acceptance length over the steps that drafted {both[1]}."
                )
        if any(bool((part.notes & Note.OLD_ACCEPT_RATE).any()) for part in self.rows):
            text += " `accept rate` here is accept len over verified tokens (0.5.6 to 0.5.9)."
        return text.strip()

    def _left_out(self) -> str:
        s = self.summary
        if not s.windows_flagged or not s.windows_used:
            return ""
        are = "is" if s.windows_flagged == 1 else "are"
        return f"{_count(s.windows_flagged)} {are} left out: {self._reasons()}."

    def _pooled(self) -> str:
        """Windows of several servers in one median: it is said, since it is seldom meant."""
        engines = {part.engine for part in self.rows}
        files = {part.file for part in self.rows}
        if len(engines) > 1:
            return f"Windows of {len(engines)} engines are taken together: diagnose them apart."
        if len(files) > 1:
            return f"Windows of {len(files)} files are taken together, as of one server."
        return ""

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


def _count(windows: int) -> str:
    return "1 window" if windows == 1 else f"{windows:,} windows"


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
