"""llama.cpp's server log as windows: one finished request each.

``eval time`` begins when the first token was sampled (``t_start_generation``, set where one token
is decoded: ``tools/server/server-context.cpp``, ``examples/server/server.cpp`` before), so in all
builds it is the time of the tokens after it, though the line counts it, and builds differ in what
they divide by. Accepted drafts leave out the bonus token: ``steps = tokens - 1 - accepted``.

A request's rate is its own. Where others ran beside it, so many share the steps that it waited for.
"""

from dataclasses import replace

import numpy as np

from analysis.logs.llama_cpp_events import (
    DRAFTS,
    EVAL,
    HEAD,
    STATISTICS,
    TOTAL,
    Events,
    Mask,
    joined,
)
from analysis.logs.llama_cpp_lines import Parsed, parse
from analysis.logs.llama_cpp_requests import Requests, requests
from analysis.logs.scan import Numbers, Places
from analysis.model.decode_steps import FEW_STEPS
from analysis.records.seen import Seen
from analysis.records.windows import Flag, Note, Windows, windows

__all__ = ["Parsed", "Reader", "parse"]

REQUESTS = 4096
"""Requests are put together with so many before and after them; a later one ran beside none."""
PRINTED_LENGTH = 0.005
"""Half of the last digit of a mean acceptance length."""


class Reader:
    """Windows of one file; what is open at the end of a block is carried to the next."""

    def __init__(self, file: str, seen: Seen) -> None:
        self._file, self._seen = file, seen
        self._sources: list[str] = []
        self._drafters: list[str] = []
        self._labels: list[str] = []
        self._events: Events | None = None
        self._heads: dict[int, tuple[float, float]] = {}
        self._times: dict[int, tuple[float, float]] = {}
        self._limit_lines = [0]
        self._limits = [float("nan")]
        self._told_by = [""]
        self._processes: set[str] = set()
        self._last_eval = -1
        self._done = 0

    def feed(self, parsed: Parsed, first_line: int) -> list[Windows]:
        """The windows that a block completes; ``first_line`` counts from 1."""
        self._note(parsed, first_line)
        if not len(parsed.events.line):
            return []
        events = self._owned(self._placed(parsed, first_line))
        self._events = events if self._events is None else joined(self._events, events)
        return self._emit(final=False)

    def finish(self) -> list[Windows]:
        """The windows that were waiting for a later line."""
        return self._emit(final=True)

    def _note(self, parsed: Parsed, first_line: int) -> None:
        seen = self._seen
        if "llama.cpp" not in seen.engines and (parsed.events.kind == EVAL).any():
            seen.engines.append("llama.cpp")
        for build in parsed.builds:
            if f"llama.cpp b{build}" not in seen.version_hints:
                seen.version_hints.append(f"llama.cpp b{build}")
        self._limit(parsed, first_line)

    def _limit(self, parsed: Parsed, first_line: int) -> None:
        """The most drafts of a step from each line that tells it.

        Of what a server says when it starts, the greatest counts. After requests it was started
        anew, unless it is one of several in the file.
        """
        events = parsed.events
        evals = events.line[events.kind == EVAL]
        for limit in parsed.limits:
            before = evals[evals < limit.line]
            last_eval = int(before[-1]) + first_line if len(before) else self._last_eval
            named = np.unique(events.source[events.line < limit.line]).tolist()
            processes = self._processes | {parsed.sources[source] for source in named}
            anew = last_eval > self._limit_lines[-1] and len(processes) == 1
            most, told_by = (float("nan"), "") if anew else (self._limits[-1], self._told_by[-1])
            if not limit.drafts <= most:
                most, told_by = float(limit.drafts), limit.told_by
            self._limit_lines.append(limit.line + first_line)
            self._limits.append(most)
            self._told_by.append(told_by)
        if len(evals):
            self._last_eval = int(evals[-1]) + first_line
        self._processes |= {parsed.sources[source] for source in np.unique(events.source).tolist()}

    def _placed(self, parsed: Parsed, first_line: int) -> Events:
        """The events with line numbers of the file, and names of all its blocks."""
        source = _codes(self._sources, parsed.sources)[parsed.events.source]
        drafter = _codes(self._drafters, parsed.drafters)[parsed.events.drafter]
        line = parsed.events.line + first_line
        return replace(parsed.events, line=line, source=source, drafter=drafter)

    def _owned(self, events: Events) -> Events:
        """Lines without slot and task get those of the head or the times that they stand under."""
        slot, task = events.slot.copy(), events.task.copy()
        for source in np.unique(events.source).tolist():
            own = events.source == source
            timed = np.isin(events.kind, (EVAL, TOTAL, DRAFTS)) & np.isnan(slot)
            _fill(slot, task, own & (events.kind == HEAD), own & timed, self._heads, source)
            after = own & (events.kind == STATISTICS)
            _fill(slot, task, own & (events.kind == EVAL), after, self._times, source)
        return replace(events, slot=slot, task=task)

    def _emit(self, final: bool) -> list[Windows]:
        found: list[Windows] = []
        while (events := self._events) is not None:
            times = events.line[events.kind == EVAL]
            if len(times) <= self._done:
                break
            stop = self._done + REQUESTS
            if not final and len(times) <= stop + REQUESTS:
                break
            until = times[stop + REQUESTS] if len(times) > stop + REQUESTS else events.line[-1] + 1
            made = requests(events.at(events.line < until))
            found.append(self._windows(made, slice(self._done, min(stop, len(times)))))
            if len(times) <= stop:
                self._events = None
                break
            begin = times[max(stop - REQUESTS, 0)]
            self._events = events.at(events.line >= begin)
            self._done = min(stop, REQUESTS)
        return found

    def _windows(self, made: Requests, chosen: slice) -> Windows:
        one = Requests(**{name: column[chosen] for name, column in vars(made).items()})
        at = np.searchsorted(self._limit_lines, one.line, "right") - 1
        told = at[one.drafting & (at > 0)]
        for index in told[np.sort(np.unique(told, return_index=True)[1])].tolist():
            self._seen.tell_block(int(self._limits[index]) + 1, self._told_by[index])
        block = np.array(self._limits)[at] + 1
        if self._seen.given_block is not None:
            block = np.full(len(at), float(self._seen.given_block))
        decoded = one.output - 1
        accepted = np.where(one.plain, 0.0, one.accepted)
        steps = np.where(decoded > accepted, decoded - accepted, np.nan)
        with np.errstate(divide="ignore", invalid="ignore"):
            commit = decoded / steps
            step_ms = np.where(one.eval_ms > 0, one.eval_ms, np.nan) / steps
            tok_per_s = np.where(one.eval_ms > 0, 1000 * decoded / one.eval_ms, np.nan)
            shortest = one.length - 1 - np.where(one.printed, PRINTED_LENGTH, 0.0)
            drafted_steps = one.accepted / shortest
        above = (one.length > block + PRINTED_LENGTH) | (commit > block)
        undrafted = one.drafting & (shortest > 0) & (steps > drafted_steps + 1e-6)
        alone = one.running == 1
        flags = np.where(np.isfinite(step_ms), 0, int(Flag.NO_RATE))
        flags |= np.where(alone, 0, int(Flag.MIXED)) | np.where(above, int(Flag.ABOVE_BLOCK), 0)
        notes = np.where(undrafted, int(Note.STEPS_WITHOUT_DRAFT), 0)
        notes |= np.where(steps < FEW_STEPS, int(Note.FEW_STEPS), 0)
        return windows(
            "llama.cpp",
            self._file,
            "since start" if bool(np.isfinite(made.time_s).any()) else "none",
            self._labels,
            line=one.line,
            source=self._labelled(one),
            flags=flags,
            notes=notes,
            time_s=one.time_s,
            context_tokens=one.held + 1 - one.output / 2,
            running=one.running,
            tok_per_s=tok_per_s,
            commit=commit,
            acceptance_length=one.length,
            step_ms=step_ms,
        )

    def _labelled(self, one: Requests) -> Places:
        """An index into the labels for each request: its process, if named, and its slot."""
        slot = np.nan_to_num(one.slot, nan=-1.0).astype(np.int64)
        pair, first, back = np.unique(
            (one.source << 32) + slot + 1, return_index=True, return_inverse=True
        )
        codes = np.zeros(len(pair), dtype=np.int64)
        for index in np.argsort(first).tolist():
            at = first[index]
            name = self._sources[one.source[at]]
            parts = (name, f"slot {slot[at]}" if slot[at] >= 0 else "")
            codes[index] = _index(self._labels, " ".join(part for part in parts if part))
        return codes[back]


def _fill(
    slot: Numbers,
    task: Numbers,
    heads: Mask,
    lines: Mask,
    carried: dict[int, tuple[float, float]],
    source: int,
) -> None:
    """Give lines the slot and task of the last head before them, ``carried`` before the first."""
    head, line = np.flatnonzero(heads), np.flatnonzero(lines)
    before = np.searchsorted(head, line) - 1
    first = carried.get(source, (float("nan"), float("nan")))
    for column, value in zip((slot, task), first, strict=True):
        values = np.concatenate([[value], column[head]])
        column[line] = values[before + 1]
    if len(head):
        carried[source] = (float(slot[head[-1]]), float(task[head[-1]]))


def _codes(names: list[str], some: list[str]) -> Places:
    """An index into ``names``, which grows, for each of some names."""
    return np.array([_index(names, name) for name in some], dtype=np.int64)


def _index(names: list[str], name: str) -> int:
    if name not in names:
        names.append(name)
    return names.index(name)
