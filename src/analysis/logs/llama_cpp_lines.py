"""llama.cpp's server log, many lines at once: how long each request took, and what was drafted.

``tools/server/server-context.cpp`` prints for a finished request, under ``slot print_timing: id  1
| task 0 | ``, ``prompt eval time``, ``eval time`` and ``total time``, then ``draft acceptance``
(older: ``draft acceptance rate``; with ``mean acceptance length`` since ggml-org/llama.cpp#24536,
later ``mean len``), then ``common/speculative.cpp`` prints a ``statistics`` line for each drafter,
and ``release`` says how many tokens the slot holds (older: ``n_past``; before the times). In older
builds the times stand on lines of their own under one line that names the slot. Progress lines
(``n_gen = …, tg = …``, ``prompt processing``) tell nothing that the end does not.

Stamps are minutes, seconds, milliseconds and microseconds since the start (``common/log.cpp``).
"""

from dataclasses import dataclass

import numpy as np

from analysis.logs.llama_cpp_events import (
    DRAFTS,
    EVAL,
    HEAD,
    LAUNCH,
    RELEASE,
    STATISTICS,
    TOTAL,
    Events,
    Mask,
)
from analysis.logs.llama_cpp_facts import Limit, builds_of, limits_of
from analysis.logs.llama_cpp_prefixes import printed
from analysis.logs.scan import Numbers, Places, Scan, whole

MARKS = (b" | task ", b"srv  ", b" / ", b"#gen drafts", b"llama-server")
"""One of them stands on every line that is read, or on one near it."""
_FUNCTION = 12
"""Characters of ``slot %12.*s: id`` and ``srv  %12.*s: `` that name a function."""
_TOOL = b"print: "
"""Ends the head of ``llama_perf_context_print``, whose times are of no request."""


@dataclass(frozen=True)
class Parsed:
    """What the lines of one block say; lines are indices within it."""

    events: Events
    sources: list[str]
    drafters: list[str]
    limits: list[Limit]
    builds: list[str]
    recognised: Places
    malformed: Places


def parse(scan: Scan) -> Parsed | None:
    """The lines of llama.cpp's server in a block; ``None`` where there is none."""
    if not any(mark in scan.text for mark in MARKS):
        return None
    slots = _slots(scan)
    found = [_heads(scan, slots), _times(scan), _totals(scan), _drafts(scan)]
    found += [_statistics(scan), _releases(scan)]
    events, sources, drafters = _assembled(scan, slots, found)
    bad = scan.mask(*(one.line[one.broken] for one in found))
    prompts = scan.field(b"prompt eval time = ")
    prompts_here = prompts.line[~_of_tool(scan, prompts.place)]
    good = scan.mask(slots.spoken, events.line, prompts_here) & ~bad
    others = len(slots.other) > 0 or not (good | bad).all()
    limits = limits_of(scan) if others else []
    if not (good.any() or bad.any() or limits):
        return None
    return Parsed(
        events=events,
        sources=sources,
        drafters=drafters,
        limits=limits,
        builds=builds_of(scan) if others else [],
        recognised=np.flatnonzero(good),
        malformed=np.flatnonzero(bad),
    )


@dataclass(frozen=True)
class _Slots:
    """Lines under ``slot …: id  1 | task 0 | ``: where they begin and go on, and whose they are.

    ``other`` are lines of the server on no slot; ``spoken`` are all of both.
    """

    line: Places
    place: Places
    message: Places
    slot: Numbers
    task: Numbers
    timing: Mask
    launch: Mask
    other: Places
    spoken: Places


@dataclass(frozen=True)
class _Found:
    """Lines of one kind; where the message of each begins, and which are doubled or cut."""

    kind: int
    line: Places
    place: Places
    one: Numbers
    two: Numbers
    three: Numbers
    broken: Mask


def _slots(scan: Scan) -> _Slots:
    colons = scan.pairs(b": ")
    begin = colons - _FUNCTION - len(b"slot ")
    spoken = scan.starts_with(begin, b"srv  ")
    of_slot = scan.starts_with(begin, b"slot ") & scan.starts_with(colons, b": id ")
    at, start = colons[of_slot], begin[of_slot]
    line, other = scan.lines_of(at), scan.lines_of(colons[spoken])
    whole = scan.lines_of(start) == line  # else the head of a line that was cut
    at, start, line = at[whole], start[whole], line[whole]
    bars = np.append(scan.pairs(b"| "), [len(scan.text)] * 2)
    first = np.searchsorted(bars, at)
    named = bars[first] < scan.ends[line]
    task_at = np.where(named, bars[first] + 2, at)
    named &= scan.starts_with(task_at, b"task ")
    slot = scan.numbers(at + len(b": id "), b" ")
    task = scan.numbers(np.where(named, task_at + len(b"task "), at), b" ")
    message = np.minimum(bars[first + 1] + 2, scan.ends[line])
    known = named & ~np.isnan(slot) & ~np.isnan(task)
    return _Slots(
        line=line[known],
        place=start[known],
        message=message[known],
        slot=slot[known],
        task=task[known],
        timing=scan.starts_with(at - _FUNCTION, b"print_timing")[known],
        launch=scan.starts_with(at - _FUNCTION, b"launch_slot_")[known],
        other=other,
        spoken=np.concatenate([line, other]),
    )


def _heads(scan: Scan, slots: _Slots) -> _Found:
    """Lines that begin a task, and lines that say whose times follow."""
    end = scan.starts_with(slots.message, b"\n") | scan.starts_with(slots.message, b"\r")
    end |= scan.starts_with(slots.message, b"\\")
    head = slots.launch | (slots.timing & end)
    one = slots.launch[head].astype(np.float64)
    nothing = np.full(len(one), np.nan)
    whole = np.zeros(len(one), dtype=bool)
    return _Found(HEAD, slots.line[head], slots.place[head], one, nothing, nothing, whole)


def _times(scan: Scan) -> _Found:
    field = scan.field(b"eval time = ", b" ")
    own = ~scan.starts_with(field.place - len(b"prompt "), b"prompt ")
    own &= ~_of_tool(scan, field.place)
    place = field.place[own]
    ms, ends = field.value[own], scan.behind(place + len(b"eval time = "))
    tokens, ends = _next(scan, ends, b" ms / ")
    named = scan.starts_with(ends, b" tokens") | scan.starts_with(ends, b" runs")
    tokens[~named] = np.nan
    nothing = np.full(len(place), np.nan)
    return _found(EVAL, field.line[own], place, ms, tokens, nothing, np.isnan(ms + tokens))


def _totals(scan: Scan) -> _Found:
    field = scan.field(b"total time = ", b" ")
    own = ~_of_tool(scan, field.place)
    ms = field.value[own]
    nothing = np.full(len(ms), np.nan)
    return _found(TOTAL, field.line[own], field.place[own], ms, nothing, nothing, np.isnan(ms))


def _of_tool(scan: Scan, places: Places) -> Mask:
    """Whether ``llama_perf_context_print: `` stands before; times are set flush right behind it."""
    tool = scan.starts_with(places - len(_TOOL), _TOOL)
    for spaces in (6, 7):
        tool |= scan.starts_with(places - len(_TOOL) - spaces, _TOOL)
    return tool


def _drafts(scan: Scan) -> _Found:
    keys = (b"draft acceptance = ", b"draft acceptance rate = ")
    now, before = (scan.field(key) for key in keys)
    line = np.concatenate([now.line, before.line])
    place = np.concatenate([now.place, before.place])
    value = np.concatenate([now.place + len(b"draft acceptance = "), before.place + 24])
    order = np.argsort(line, kind="stable")
    line, place, value = line[order], place[order], value[order]
    opened = scan.starts_with(value + len(b"0.64479"), b" (")
    accepted = whole(scan.numbers(np.where(opened, value + len(b"0.64479 ("), value), b" "))
    accepted[~opened] = np.nan
    drafted, ends = _next(scan, scan.behind(value + len(b"0.64479 (")), b" accepted / ")
    drafted[~scan.starts_with(ends, b" generated)")] = np.nan
    length = np.full(len(line), np.nan)
    said = np.zeros(len(line), dtype=bool)
    for key in (b"mean acceptance length = ", b"mean len = "):
        field = scan.field(key)
        said |= scan.mask(field.line)[line]
        length = np.where(np.isnan(length), field.on(line), length)
    broken = np.isnan(accepted + drafted) | (said & np.isnan(length)) | _doubled(line)
    accepted[broken] = drafted[broken] = length[broken] = np.nan
    return _found(DRAFTS, line, place, accepted, drafted, length, broken)


def _statistics(scan: Scan) -> _Found:
    drafts = scan.field(b"#gen drafts = ", b",")
    colons = scan.pairs(b": ")
    calls = colons[scan.starts_with(colons, b": #calls")]
    line = np.unique(drafts.line)
    at = np.searchsorted(calls, np.append(0, scan.ends)[line])
    place = np.append(calls, 0)[at]
    here = (place > 0) & (scan.lines_of(place) == line)
    line, place = line[here], place[here]
    count = drafts.on(line)
    accepted, drafted = (scan.field(k).on(line) for k in (b"#acc tokens = ", b"#gen tokens = "))
    broken = np.isnan(count + accepted + drafted)
    return _found(STATISTICS, line, place, accepted, drafted, count, broken)


def _releases(scan: Scan) -> _Found:
    fields = [scan.field(b"processing: n_" + key, b",") for key in (b"tokens = ", b"past = ")]
    line = np.concatenate([field.line for field in fields])
    order = np.argsort(line, kind="stable")
    line = line[order]
    place = np.concatenate([field.place for field in fields])[order]
    tokens = np.concatenate([field.value for field in fields])[order]
    shifted = scan.field(b"truncated = ").on(line)
    held = np.where(shifted == 0, tokens, np.nan)  # a shifted context is not prompt and answer
    nothing = np.full(len(line), np.nan)
    return _found(RELEASE, line, place, held, nothing, nothing, np.isnan(tokens + shifted))


def _next(scan: Scan, ends: Places, between: bytes) -> tuple[Numbers, Places]:
    """The count that only ``between`` parts from one that ends there, NaN for none; its end."""
    there = scan.starts_with(ends, between)
    at = np.where(there, ends + len(between), ends)
    return np.where(there, whole(scan.numbers(at, b" ")), np.nan), scan.behind(at)


def _found(
    kind: int, line: Places, place: Places, one: Numbers, two: Numbers, three: Numbers, bad: Mask
) -> _Found:
    """A line that has its marker twice is broken too."""
    return _Found(kind, line, place, one, two, three, bad | _doubled(line))


def _doubled(line: Places) -> Mask:
    doubled: Mask = (np.diff(line, append=-1) == 0) | (np.diff(line, prepend=-1) == 0)
    return doubled


def _assembled(
    scan: Scan, slots: _Slots, found: list[_Found]
) -> tuple[Events, list[str], list[str]]:
    """All kinds in the order of the log, with who printed them, when, and for which task.

    Of lines that are not whole those on drafts too, without numbers: it is known that there were.
    """
    sound = [~one.broken | (one.kind == DRAFTS) for one in found]
    both = list(zip(found, sound, strict=True))
    line = np.concatenate([one.line[good] for one, good in both])
    kind = np.concatenate([np.full(int(good.sum()), one.kind) for one, good in both])
    one, two, three = (
        np.concatenate([getattr(part, name)[good] for part, good in both])
        for name in ("one", "two", "three")
    )
    place = np.concatenate([part.place[good] for part, good in both])
    under = np.searchsorted(slots.line, line)
    under = np.minimum(under, max(len(slots.line) - 1, 0))
    named = (slots.line[under] == line) if len(slots.line) else np.zeros(len(line), dtype=bool)
    slot, task = np.full(len(line), np.nan), np.full(len(line), np.nan)
    slot[named], task[named] = slots.slot[under[named]], slots.task[under[named]]
    place = np.where(named, slots.place[under] if len(slots.place) else place, place)
    kind = np.where((kind == HEAD) & (one == 1), LAUNCH, kind)
    sources, drafters, source, drafter, time_s = printed(scan, place, kind == STATISTICS)
    order = np.argsort(line, kind="stable")
    events = Events(line, kind, source, time_s, slot, task, one, two, three, drafter)
    return events.at(order), sources, drafters
