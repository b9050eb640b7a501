"""Why a server is this fast, from its log alone: the split of throughput into commit and step."""

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import replace
from math import inf, sqrt
from pathlib import Path

import numpy as np

from analysis.findings.diagnosis_types import SUMMARISED, Diagnosis, Middle, StepFit, Summary
from analysis.findings.diagnosis_words import Words
from analysis.logs.read import Progress, nothing_found, read
from analysis.model.linearity import linearity
from analysis.model.median_interval import MedianStream, independent_of
from analysis.model.regression import Interval, PolynomialFit, fit_polynomial, t_quantile
from analysis.records.bins import MOST_ROWS, Binner, joined
from analysis.records.seen import CALLER, Seen
from analysis.records.windows import Flag, Integers, Windows

__all__ = ["Diagnosis", "Middle", "StepFit", "Summary", "diagnose"]


BINS = MOST_ROWS
LEAST_SPREAD = 0.25
"""Contexts vary where the least is this much below the greatest; else no line is fitted."""
FEWEST_FOR_FIT = 4
MOST_SOURCES = 1 << 20
"""Ranks, engines or slots of one file."""
CHOSEN = ("context_tokens", "running")
"""What the clients decide: a median describes it, an interval would say nothing."""


def diagnose(
    given: Sequence[str | Path],
    processes: int = 1,
    progress: Progress | None = None,
    each: Callable[[Windows], None] | None = None,
    block: int | None = None,
) -> Diagnosis:
    """What logs, recorded answers or metric snapshots say of a server, taken together.

    ``each`` is called with every batch of windows as it is read. ``block`` is the most tokens that
    a step can commit, where the log does not tell. Raises ``InputError`` where a file cannot be
    read or nothing in it tells of decoding.
    """
    seen = Seen()
    if block is not None:
        seen.block, seen.block_from = block, CALLER
    plain, speculating, untold = _Gathered(), _Gathered(), _Gathered()
    for batch in read(given, seen, processes, progress):
        if each is not None:
            each(batch)
        one_token, drafting = batch.plain, batch.speculating
        plain.add(batch.rows(one_token))
        speculating.add(batch.rows(drafting))
        untold.add(batch.rows(~one_token & ~drafting))
    kinds = [kind for kind in (speculating, plain, untold) if kind.windows.total]
    if not kinds:
        raise nothing_found(given, seen)
    main, off = kinds[0], plain if speculating.windows.total else _Gathered()
    if main is not untold:
        main.join(untold)
    return _diagnosis(main, off, seen)


class _Gathered:
    """Windows of one kind: rows to show, and streams to take medians of."""

    def __init__(self) -> None:
        self.windows = Binner(BINS)
        self.streams = {name: MedianStream() for name in SUMMARISED}
        self.used = 0
        self.flags: Counter[Flag] = Counter()
        self.others: list[_Gathered] = []
        self._numbers: dict[tuple[str, str], int] = {}

    def add(self, batch: Windows) -> None:
        if len(batch) == 0:
            return
        self.windows.add(batch)
        counted = batch.rows(batch.unflagged)
        self.used += len(counted)
        number = self._numbers.setdefault((batch.file, batch.engine), len(self._numbers))
        sources = _sources(counted, number)
        for name, stream in self.streams.items():
            stream.add(getattr(counted, name), sources)
        for flag in Flag:
            flagged = int(((batch.flags & flag) != 0).sum())
            if flagged:
                self.flags[flag] += flagged

    def join(self, other: "_Gathered") -> None:
        """Count windows of another kind too."""
        self.others.append(other)
        self.used += other.used
        self.flags += other.flags
        for name, stream in self.streams.items():
            stream.join(other.streams[name])

    @property
    def total(self) -> int:
        return self.windows.total + sum(other.total for other in self.others)

    def result(self) -> tuple[tuple[Windows, ...], bool]:
        rows, binned = self.windows.result()
        for other in self.others:
            more, more_binned = other.result()
            rows, binned = _together(rows, more), binned or more_binned
        return rows, binned


def _diagnosis(main: _Gathered, off: _Gathered, seen: Seen) -> Diagnosis:
    """All windows together; ``off`` are plain ones of a log that speculates elsewhere."""
    rows, binned = main.result()
    flags = Counter(main.flags)
    other = off.total
    if other:
        odd, odd_binned = off.result()
        rows = _together(rows, tuple(switched_off(part) for part in odd))
        binned = binned or odd_binned
        flags += off.flags + Counter({Flag.SPECULATION_OFF: other})
    total = main.total + other
    middles = {name: _middle(stream, name, seen) for name, stream in main.streams.items()}
    summary = Summary(main.used, total - main.used, **middles)
    fit = fit_steps(rows, binned)
    words = Words(summary, fit, flags, seen, total, rows)
    return Diagnosis(
        engine=", ".join(seen.engines),
        version_hint="; ".join(seen.version_hints),
        windows_total=total,
        windows=rows,
        binned=binned,
        summary=summary,
        fit=fit,
        flags=dict(sorted(flags.items())),
        seen=seen,
        verdict=words.verdict(),
        details=words.details(),
    )


def _sources(part: Windows, number: int) -> Integers:
    """Who printed each window, over all files; llama.cpp's slots take turns in one row of time."""
    own = part.source * (part.engine != "llama.cpp")
    sources: Integers = own + MOST_SOURCES * number
    return sources


def switched_off(rows: Windows) -> Windows:
    """Plain windows of a server that speculates elsewhere in the log: flagged."""
    return replace(
        rows, flags=rows.flags | int(Flag.SPECULATION_OFF), used=np.zeros_like(rows.used)
    )


def _together(some: tuple[Windows, ...], others: tuple[Windows, ...]) -> tuple[Windows, ...]:
    merged = {(part.file, part.engine): [part] for part in some}
    for part in others:
        merged.setdefault((part.file, part.engine), []).append(part)
    return tuple(joined(parts) for parts in merged.values())


def _middle(stream: MedianStream, name: str, seen: Seen) -> Middle | None:
    """A median, with an interval where one means something: not of what the clients chose."""
    if not stream.n:
        return None
    interval = None if name in CHOSEN else stream.interval()
    if interval is None:
        return Middle(stream.median())
    low, high = interval.low, interval.high
    if name in ("commit", "acceptance_length"):
        low, high = max(1.0, low), min(high, seen.block or seen.verified_tokens or inf)
    return Middle(stream.median(), low, max(high, low), interval.kind)


def fit_steps(rows: Sequence[Windows], binned: bool) -> StepFit | None:
    """The step against the context, at the running count that most windows have.

    ``None`` for fewer than four windows, or where the contexts do not vary by a quarter.
    """
    used = [part.rows(part.unflagged) for part in rows]
    context, step, running = (
        np.concatenate([getattr(part, name) for part in used])
        for name in ("context_tokens", "step_ms", "running")
    )
    known = np.isfinite(context) & np.isfinite(step) & np.isfinite(running)
    if not known.any():
        return None
    counts, frequency = np.unique(running[known], return_counts=True)
    most = float(counts[np.argmax(frequency)])
    known &= running == most
    x, y = context[known], step[known]
    varies = len(x) >= FEWEST_FOR_FIT and len(np.unique(x)) >= 3
    if not varies or x.min() > (1 - LEAST_SPREAD) * x.max():
        return None
    line = fit_polynomial(x.tolist(), y.tolist(), 1)
    residuals = y - (line.coefficients[0] + line.coefficients[1] * x)
    sources = np.concatenate([_sources(part, number) for number, part in enumerate(used)])
    independent = independent_of(residuals, sources[known])
    intervals = [_widened(line, power, independent) for power in (0, 1)]
    slope = intervals[1]
    return StepFit(
        intercept_ms=line.coefficients[0],
        intercept_ci95=intervals[0],
        slope_us_per_token=1000 * line.coefficients[1],
        slope_ci95=None if slope is None else (1000 * slope[0], 1000 * slope[1]),
        n=len(x),
        running=most,
        context_range=(float(x.min()), float(x.max())),
        linearity=linearity(x.tolist(), y.tolist()),
        of_bins=binned,
    )


def _widened(line: PolynomialFit, power: int, independent: float) -> Interval | None:
    """The coefficient's interval for as many independent residuals as their correlation leaves."""
    dof = int(independent) - 2
    if dof < 1:
        return None
    variance = float(line.covariance[power, power]) * line.n / independent
    half = t_quantile(dof) * sqrt(variance)
    value = line.coefficients[power]
    return value - half, value + half
