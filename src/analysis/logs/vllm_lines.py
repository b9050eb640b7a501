"""vLLM's log lines, many at once: throughput of an engine, and what was drafted meanwhile.

The throughput line is ``vllm/v1/metrics/loggers.py`` (``Engine 000: ``, or ``2 Engines
Aggregated: `` with ``--aggregate-engine-logging``; ``Deferred``, ``Preemptions`` and more hit rates
come and go) and ``vllm/engine/metrics.py`` before V1 (no engine; ``Swapped``, ``Pending``). The
line on drafts follows it and is

- ``vllm/v1/spec_decode/metrics.py``: since 2025-09 ``Mean acceptance length`` first and ``Avg Draft
  acceptance rate`` last, before ``Draft acceptance rate`` first; the first versions print the rate
  and the counts only, the very first as ``Speculative metrics``. Counts are of one window.
- ``vllm/engine/metrics.py`` of V0, with ``Number of emitted tokens``: counts since the start, of
  ``vllm/model_executor/layers/spec_decode_base_sampler.py``, which nothing resets.

A line that quotes a prompt (``--enable-log-requests``) can hold any text and is not read.
"""

import re
from dataclasses import dataclass

import numpy as np

from analysis.logs.prefixes import NAMED, prefixes
from analysis.logs.scan import Field, Numbers, Places, Scan, whole
from analysis.logs.vllm_facts import Fact, facts_of
from analysis.logs.vllm_tables import TOTAL, WINDOW, Drafts, Mask, Source, Speeds, blanked

YEAR = 1972
"""vLLM prints no year; this one has a 29 February, and its seconds are small."""
_SPEED, _DRAFTS = b"Avg prompt throughput: ", b"SpecDecoding metrics: "
_EARLY_DRAFTS = b"Speculative metrics: "
MARKS = (b"Avg prompt", b"metrics: ", b"vLLM ", b"KV cache size: ", b"LLM engine")
"""One of them stands on every line that is read, or on one near it."""
_REQUESTS = b"ed request "
"""``Received request``, ``Added request``: what they quote can be anything."""
_PREFIX = re.compile(
    NAMED + rb"(?:\((?P<process>[^()]*\bpid=\d+[^()]*)\) +)?(?:[A-Z]+ +)?"
    rb"(?:(?:\d{4}-)?(?P<time>\d\d-\d\d \d\d:\d\d:\d\d)(?:[.,]\d+)? +)?(?:\[?[\w./-]+:\d+\] +)?"
    rb"(?:Engine (?P<engine>\d+): |(?P<engines>\d+) Engines Aggregated: )?$"
)
_PID = re.compile(r"pid=\d+")
_RATES = re.compile(
    r"metrics: Draft acceptance rate: .*"
    r"Per-position acceptance rate: (\d\.\d{3}(?:, \d\.\d{3})*)(?!\d|, \d)"
)


@dataclass(frozen=True)
class Parsed:
    """What the lines of one block say; lines are indices within it."""

    speeds: Speeds
    drafts: Drafts
    sources: list[Source]
    facts: list[Fact]
    hints: list[str]
    recognised: Places
    malformed: Places


def parse(scan: Scan) -> Parsed | None:
    """The lines of vLLM in a block; ``None`` where there is none."""
    if not any(mark in scan.text for mark in MARKS):
        return None
    at = scan.find(_REQUESTS)
    known = scan.starts_with(at - len(b"Receiv"), b"Receiv") | scan.starts_with(at - 3, b"Add")
    requests = scan.lines_of(at[known])
    quoted = scan.mask(requests)
    speeds, speed_at, bad_speeds = _speeds(scan, quoted)
    drafts, draft_at, bad_drafts = _drafts(scan, quoted)
    both = scan.mask(speeds.line) & scan.mask(drafts.line)  # two lines that ran into one
    bad_speeds |= both[speeds.line]
    bad_drafts |= both[drafts.line]
    bad = scan.mask(speeds.line[bad_speeds], drafts.line[bad_drafts])
    speeds, drafts = blanked(speeds, bad_speeds), blanked(drafts, bad_drafts)
    speeds, drafts, sources = _with_sources(scan, speeds, speed_at, drafts, draft_at)
    others = ~scan.mask(speeds.line, drafts.line, requests)
    facts = facts_of(scan, others) if others.any() else []
    fact_lines = np.array([fact.line for fact in facts], dtype=np.int64)
    good = scan.mask(speeds.line, drafts.line, fact_lines, requests) & ~bad
    if not (good.any() or bad.any()):
        return None
    return Parsed(
        speeds=speeds,
        drafts=drafts,
        sources=sources,
        facts=facts,
        hints=_hints(scan, drafts, draft_at),
        recognised=np.flatnonzero(good),
        malformed=np.flatnonzero(bad),
    )


def _speeds(scan: Scan, quoted: Mask) -> tuple[Speeds, Places, Mask]:
    """Throughput lines, where the message of each begins, and which are not whole."""
    if _SPEED not in scan.text:
        nowhere = np.zeros(0, dtype=np.int64)
        empty = Speeds(nowhere, nowhere, *(np.zeros(0) for _ in range(5)))
        return empty, nowhere, nowhere.astype(bool)
    prompt = scan.field(_SPEED, b" ")
    lines, at = _first_on_each(prompt, quoted)
    field = scan.field(b"KV cache usage: ", b"%")  # keys of eight or sixteen bytes are quick
    usage = field.on(lines)
    if (np.diff(field.line) == 0).any():  # V0 gives that of swap space too
        gpu = scan.field(b"GPU KV cache usage: ", b"%").on(lines)
        usage = np.where(np.isnan(usage), gpu, usage)
    speeds = Speeds(
        line=lines,
        source=np.zeros(len(lines), dtype=np.int64),
        time_s=np.full(len(lines), np.nan),
        prompt=prompt.on(lines),
        generation=scan.field(b"ion throughput: ", b" ").on(lines),
        running=scan.field(b"unning: ", b" ").on(lines),
        usage=usage,
    )
    bad = np.isnan(speeds.prompt) | np.isnan(speeds.generation) | np.isnan(speeds.running)
    return speeds, at, bad


def _drafts(scan: Scan, quoted: Mask) -> tuple[Drafts, Places, Mask]:
    """Lines on drafts, where the message of each begins, and which are not whole."""
    fields = [scan.field(_DRAFTS)] if _DRAFTS in scan.text else []
    early = _EARLY_DRAFTS in scan.text
    fields += [scan.field(_EARLY_DRAFTS)] if early else []
    if not fields:
        nowhere = np.zeros(0, dtype=np.int64)
        zero = np.zeros(0)
        empty = Drafts(nowhere, nowhere, zero, nowhere, zero, zero, zero, zero, zero)
        return empty, nowhere, nowhere.astype(bool)
    marks = fields[0] if len(fields) == 1 else _merged(*fields)
    lines, at = _first_on_each(marks, quoted)
    twice = np.diff(np.searchsorted(marks.line, np.append(lines, len(scan)))) > 1
    mean = scan.field(b"ceptance length: ", b",")
    values = {
        "accepted": whole(scan.field(b"cepted: ", b" ").on(lines)),
        "drafted": whole(scan.field(b"rafted: ", b" ").on(lines)),
        "length": mean.on(lines),
        "positions": _positions(scan, lines),
        "emitted": np.full(len(lines), np.nan),
    }
    bad = twice | (
        np.isnan(values["length"]) & scan.mask(mean.line)[lines] & (values["drafted"] > 0)
    )
    kind = np.full(len(lines), WINDOW)
    if early:
        kind, broken = _early(scan, lines, scan.mask(fields[-1].line)[lines], values)
        bad |= broken
    bad |= np.isnan(values["accepted"]) | np.isnan(values["drafted"])
    undefined = np.full(len(lines), np.nan)
    drafts = Drafts(lines, np.zeros(len(lines), dtype=np.int64), undefined, kind, **values)
    return drafts, at, bad


def _early(
    scan: Scan, lines: Places, early: Mask, values: dict[str, Numbers]
) -> tuple[Places, Mask]:
    """Fill in what ``Speculative metrics`` lines say; which of them are of V0, and which broken."""
    keys = (b"tokens: ", b"tokens tokens: ")
    emitted = _merged(*(scan.field(b"emitted " + key, b".") for key in keys))
    drafted = _merged(*(scan.field(b"draft " + key) for key in keys))
    for name, field in (
        ("accepted", scan.field(b"Number of accepted tokens: ")),
        ("drafted", drafted),
        ("emitted", emitted),
        ("positions", scan.field(b"Number of speculative tokens: ")),
    ):
        values[name] = np.where(early, field.on(lines), values[name])
    total = early & scan.mask(emitted.line, scan.field(b"System efficiency: ").line)[lines]
    broken = total & (np.isnan(values["emitted"]) | ~(values["positions"] >= 1))
    return np.where(total, TOTAL, WINDOW), broken


def _merged(one: Field, other: Field) -> Field:
    line = np.concatenate([one.line, other.line])
    order = np.argsort(line, kind="stable")
    value = np.concatenate([one.value, other.value])
    return Field(line[order], value[order], np.concatenate([one.place, other.place])[order])


def _positions(scan: Scan, lines: Places) -> Numbers:
    """How many rates by position a line gives; each is ``0.821, ``, seven bytes."""
    rates = scan.field(b"eptance rate: ")
    first = np.searchsorted(rates.line, lines, "left")
    two = np.searchsorted(rates.line, lines, "right") - first == 2
    count = np.full(len(lines), np.nan)
    place = rates.place[first[two]]
    ordered = scan.starts_with(place - len("Per-position acc"), b"Per-posi")
    between = rates.place[first[two] + 1] - place - len("eptance rate: ") - len("Avg Draft acc")
    count[two] = np.where(ordered & (between > 0) & (between % 7 == 0), between / 7, np.nan)
    older = np.flatnonzero(two)[~ordered]
    for index in older:  # they end with the rates
        if found := _RATES.search(scan.line(int(lines[index]))):
            count[index] = found[1].count(",") + 1
    return count


def _with_sources(
    scan: Scan, speeds: Speeds, speed_at: Places, drafts: Drafts, draft_at: Places
) -> tuple[Speeds, Drafts, list[Source]]:
    """Who printed each line, and when."""
    places = np.concatenate([speed_at, draft_at])
    found = prefixes(scan, places, _PREFIX)
    sources: list[Source] = []
    codes = np.zeros(len(found.shapes), dtype=np.int64)
    for index, shape in enumerate(found.shapes):
        source = _source(shape)
        if source not in sources:
            sources.append(source)
        codes[index] = sources.index(source)
    time_s = np.full(len(places), np.nan)
    timed = found.time >= 0
    time_s[timed] = scan.months_and_days(found.time[timed], YEAR)
    of = codes[found.code] if len(places) else np.zeros(0, dtype=np.int64)
    n = len(speed_at)
    given = vars(speeds) | {"source": of[:n], "time_s": time_s[:n]}
    drawn = vars(drafts) | {"source": of[n:], "time_s": time_s[n:]}
    return Speeds(**given), Drafts(**drawn), sources


def _source(shape: dict[str, str]) -> Source:
    pid = _PID.search(shape["process"])
    process = " ".join(p for p in (shape["name"] or shape["tag"], pid[0] if pid else "") if p)
    if shape["engines"]:
        return Source(process, f"{shape['engines']} engines", int(shape["engines"]))
    return Source(process, f"engine {shape['engine']}" if shape["engine"] else "")


def _hints(scan: Scan, drafts: Drafts, at: Places) -> list[str]:
    """What the order of the fields says of the version."""
    mean = scan.starts_with(at + len(_DRAFTS), b"Mean acc")
    early = scan.starts_with(at, _EARLY_DRAFTS[:8])
    total = drafts.kind == TOTAL
    told = {
        "vLLM V0": total,
        "vLLM V1 of 2025-03": early & ~total & ~np.isnan(drafts.accepted),
        "vLLM V1 of 2025-04 to 2025-09": ~early & ~mean,
        "vLLM V1 since 2025-09": ~early & mean,
    }
    return [hint for hint, lines in told.items() if bool(lines.any())]


def _first_on_each(found: Field, quoted: Mask) -> tuple[Places, Places]:
    """Lines with a key, and where it first stands on each."""
    lines, first = np.unique(found.line, return_index=True)
    free = ~quoted[lines]
    return lines[free], found.place[first][free]
