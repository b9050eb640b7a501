"""Requests of a llama.cpp server, put together from their lines, and how many ran beside each."""

from dataclasses import dataclass

import numpy as np

from analysis.logs.llama_cpp_events import (
    DRAFTS,
    EVAL,
    LAUNCH,
    RELEASE,
    STATISTICS,
    TOTAL,
    Events,
    Mask,
)
from analysis.logs.scan import Numbers, Places

FAR = np.int64(1) << 40
"""More lines than a log has."""
NEAR_LINES = 1000
"""A slot is released at once before or after its times are printed; other slots print between."""
CLOCK_S = 0.005
"""Two requests, one after the other, may seem to overlap by this: a stamp is of its printing."""
RESTART_S = 1.0
"""A stamp that is earlier by this than the one before is of another run of the server."""
RUN_S = 1e9
"""Longer than a server runs: keeps the stamps of its runs apart."""


@dataclass(frozen=True)
class Requests:
    """Finished requests. Undefined is NaN; ``accepted`` of what was drafted.

    ``drafting`` have a line on drafts; ``plain`` have none, and are followed so far that it would
    have come. Of others, in a log with gaps, it is not known.
    ``length`` is the mean acceptance length, printed or counted; ``printed`` says which.
    ``held`` are the tokens in the slot at the end: prompt and answer but for its last token.
    """

    line: Places
    source: Places
    slot: Numbers
    time_s: Numbers
    eval_ms: Numbers
    output: Numbers
    drafting: Mask
    plain: Mask
    accepted: Numbers
    length: Numbers
    printed: Mask
    held: Numbers
    running: Numbers


def requests(events: Events) -> Requests:
    """The requests whose ``eval time`` is among the events."""
    key = _keys(events)
    times = np.flatnonzero(events.kind == EVAL)
    total = _first_after(events, key, times, TOTAL)
    drafts = _first_after(events, key, times, DRAFTS)
    release = _nearest(events, key, times, RELEASE)
    accepted, drafted, length = (
        _at(column, drafts) for column in (events.one, events.two, events.three)
    )
    counted = _counted(events, key, times, accepted, drafted)
    printed = ~np.isnan(length)
    lasted_ms = np.where(total >= 0, _at(events.one, total), events.one[times])
    return Requests(
        line=events.line[times],
        source=events.source[times],
        slot=events.slot[times],
        time_s=events.time_s[times],
        eval_ms=events.one[times],
        output=events.two[times],
        drafting=drafts >= 0,
        plain=(drafts < 0) & ((release >= 0) | ~(drafts >= 0).any()),
        accepted=accepted,
        length=np.where(printed, length, counted),
        printed=printed,
        held=_at(events.one, release),
        running=_running(events, key, times, lasted_ms),
    )


def _keys(events: Events) -> Places:
    """A number for each process, slot and task; times that no line gives a task to share one."""
    return _codes(events.source, events.slot, events.task)


def _codes(source: Places, slot: Numbers, other: Numbers | Places) -> Places:
    """Small numbers that are equal where all three are; a slot or task has less than 32 bits."""
    whole = [np.nan_to_num(column, nan=-1.0).astype(np.int64) + 1 for column in (slot, other)]
    return np.unique((source << 52) + (whole[0] << 34) + whole[1], return_inverse=True)[1]


def _last_before(of: Places, place: Places, wanted: Places, at: Places) -> Places:
    """The index in ``of`` (sorted by key and line) of the last of the same key before ``at``."""
    order = np.lexsort((place, of))
    sorted_key = of[order] * FAR + place[order]
    before = np.searchsorted(sorted_key, wanted * FAR + at, "right") - 1
    index = order[np.maximum(before, 0)] if len(order) else before
    if not len(order):
        return np.full(len(wanted), -1, dtype=np.int64)
    return np.where((before >= 0) & (of[index] == wanted), index, -1)


def _first_after(events: Events, key: Places, times: Places, kind: int) -> Places:
    """For each request the first line of a kind that follows its times, as an index of events."""
    lines = np.flatnonzero(events.kind == kind)
    of = _last_before(key[times], events.line[times], key[lines], events.line[lines])
    found = np.full(len(times), -1, dtype=np.int64)
    own = np.flatnonzero(of >= 0)[::-1]  # the first is written last
    found[of[own]] = lines[own]
    return found


def _nearest(events: Events, key: Places, times: Places, kind: int) -> Places:
    """For each request the nearest line of a kind; older builds release a slot before its times."""
    lines = np.flatnonzero(events.kind == kind)
    at, place = events.line[times], events.line[lines]
    before = _last_before(key[lines], place, key[times], at)
    after = _last_before(key[lines], -place, key[times], -at)
    far = np.where(before >= 0, at - _at(place, before), FAR)
    ahead = np.where(after >= 0, _at(place, after) - at, FAR)
    index = np.where(ahead < far, after, before)
    index = np.where(np.minimum(ahead, far) <= NEAR_LINES, index, -1)
    return np.where(index >= 0, lines[np.maximum(index, 0)] if len(lines) else -1, -1)


def _counted(
    events: Events, key: Places, times: Places, accepted: Numbers, drafted: Numbers
) -> Numbers:
    """Mean acceptance length from ``statistics``: 1 + accepted drafts over drafts.

    Those counts are since the start, of all slots or of one, by version, so a difference counts
    only where its tokens are those of the request.
    """
    lines = np.flatnonzero(events.kind == STATISTICS)
    of = _last_before(key[times], events.line[times], key[lines], events.line[lines])
    length = np.full(len(times), np.nan)
    now = np.column_stack([events.one, events.two, events.three])[lines]
    by_drafter = events.source[lines] * 1000 + events.drafter[lines]
    by_slot = _codes(events.source[lines], events.slot[lines], events.drafter[lines])
    for base in (np.zeros_like(now), _shifted(now, by_slot), _shifted(now, by_drafter)):
        added = np.zeros((len(times), 3))
        np.add.at(added, of[of >= 0], (now - base)[of >= 0])
        fits = (added[:, 0] == accepted) & (added[:, 1] == drafted) & (added[:, 2] > 0)
        fits &= np.isnan(length)
        length[fits] = 1 + added[fits, 0] / added[fits, 2]
    return length


def _shifted(values: Numbers, group: Places) -> Numbers:
    """The row before of the same group; zero for the first."""
    order = np.argsort(group, kind="stable")
    shifted = np.zeros_like(values)
    same = group[order][1:] == group[order][:-1]
    shifted[order[1:][same]] = values[order[:-1][same]]
    return shifted


def _running(events: Events, key: Places, times: Places, lasted_ms: Numbers) -> Numbers:
    """Requests that ran at once, in the mean over each request; NaN where that is not known.

    A request lasts from its total time before its stamp; one without times from its launch to its
    release. Without stamps, lines stand for the time, from launch to times.
    """
    running = np.full(len(times), np.nan)
    launches = np.flatnonzero(events.kind == LAUNCH)
    launch = _last_before(key[launches], events.line[launches], key[times], events.line[times])
    run = _runs(events)
    clock = events.time_s + RUN_S * run
    line = events.line.astype(np.float64)
    for source in np.unique(events.source[times]):
        own = np.flatnonzero(events.source[times] == source)
        end, begin = clock[times[own]], clock[times[own]] - lasted_ms[own] / 1000
        unit, at = CLOCK_S, clock
        if np.isnan(begin).any():
            started = np.where(launch[own] >= 0, _at(line[launches], launch[own]), np.nan)
            if len(np.unique(events.slot[times[own]])) == 1:
                started = line[times[own]]
            begin, end, unit, at = started, line[times[own]], 0.0, line
        others = launches[events.source[launches] == source]
        others = others[~np.isin(others, launches[launch[launch >= 0]])]
        until = _until(events, key, others, at, run)
        running[own] = _mean_at_once(
            begin, end, np.append(begin, at[others]), np.append(end, until), unit
        )
    return running


def _runs(events: Events) -> Numbers:
    """How often the server had been started before each line, as far as stamps show."""
    runs = np.zeros(len(events.line))
    for source in np.unique(events.source):
        own = np.flatnonzero((events.source == source) & ~np.isnan(events.time_s))
        runs[own] = np.cumsum(np.diff(events.time_s[own], prepend=0.0) < -RESTART_S)
    return runs


def _until(events: Events, key: Places, launches: Places, at: Numbers, run: Numbers) -> Numbers:
    """When tasks without times were over: released, another in their slot, or the server's run."""
    lines = np.flatnonzero(events.kind == RELEASE)
    begun = np.flatnonzero(events.kind == LAUNCH)
    of_slot = _codes(events.source, events.slot, np.zeros(len(events.slot)))
    line = events.line
    released = _last_before(key[lines], -line[lines], key[launches], -line[launches])
    replaced = _last_before(of_slot[begun], -line[begun], of_slot[launches], -line[launches] - 1)
    last = {one: np.nanmax(at[run == one], initial=0.0) for one in np.unique(run).tolist()}
    ended = np.array([last[one] for one in run[launches].tolist()])
    until: Numbers = np.fmin(np.fmin(_at(at[lines], released), _at(at[begun], replaced)), ended)
    return until


def _mean_at_once(
    begin: Numbers, end: Numbers, begins: Numbers, ends: Numbers, unit: float
) -> Numbers:
    """How many spans hold at once, in the mean over each given span, rounded up; 1 for its own."""
    known = (ends > begins) & np.isfinite(begins) & np.isfinite(ends)
    edges = np.concatenate([begins[known], ends[known]])
    change = np.repeat([1.0, -1.0], int(known.sum()))
    order = np.argsort(edges, kind="stable")
    edges, count = edges[order], np.cumsum(change[order])
    if not len(edges):
        return np.where(np.isnan(begin), np.nan, 1.0)
    area = np.concatenate([[0.0], np.cumsum(count[:-1] * np.diff(edges))])
    span = end - begin
    with np.errstate(divide="ignore", invalid="ignore"):
        beside = np.interp(end, edges, area) - np.interp(begin, edges, area) - span
        mean = np.where(beside > unit + 1e-6 * span, np.ceil(1 + beside / span - 1e-9), 1.0)
    return np.where(np.isnan(begin), np.nan, np.where(span > 0, mean, 1.0))


def _at(column: Numbers | Places, index: Places) -> Numbers:
    """The values at these places; NaN where one is negative."""
    if not len(column):
        return np.full(len(index), np.nan)
    return np.where(index >= 0, column[np.maximum(index, 0)].astype(np.float64), np.nan)
