"""SGLang's log lines, many at once: what they say, before it is told which of them count.

One ``Decode batch`` line covers the decode forwards since the last one of its rank, forty if
``--decode-log-interval`` is not given (``srt/managers/scheduler_metrics_mixin.py``; in 0.5.18 and
later ``srt/observability/scheduler_metrics_mixin.py``). Its head is ``Decode batch.`` up to 0.5.2,
``Decode batch,`` later and ``Decode batch [n],`` with iteration logging; fields come and go.
"""

import re
from dataclasses import dataclass, field
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from analysis.logs.scan import Field, Numbers, Places, Scan, whole

DECODE, PREFILL = 1, 0
HEADS = {b".": "SGLang up to 0.5.2", b",": "SGLang 0.5.3 or later", b" ": "SGLang, iteration log"}
_START = b"ServerArgs("
_FACT_MARKS = (b"max_total_num_tokens=", _START)
MARKS = (b"Decode batch", b"Prefill batch", *_FACT_MARKS)
"""One of them stands on every line that is read."""
_DATE = 19
RATES = 2000
"""Accept rates that are read of a server in a block: they only tell what they mean."""
_RATE = b"accept rate: "
_LONGEST_STAMP = 60
_COMMA = b","
_CUT = re.compile(rb"Decode batch(?:[.,]?$|[.,] | \[)")
_FACTS = {
    "steps_per_line": re.compile(r"\bdecode_log_interval=(\d+)"),
    "draft_tokens": re.compile(r"\bspeculative_num_draft_tokens=(\d+)"),
    "draft_steps": re.compile(r"\bspeculative_num_steps=(\d+)"),
}
_ALGORITHM = re.compile(r"\bspeculative_algorithm='(\w+)'")
AT_ONCE = ("NGRAM", "DFLASH", "DSPARK")
"""Algorithms whose drafts do not take a step each: any of them can be committed."""


@dataclass(frozen=True)
class Arguments:
    """What a server said of itself when it started; ``None`` where it did not.

    ``line`` is an index in the block. A step verifies ``draft_tokens``. Drafts of several branches
    are more than a step can commit: that is one branch, of ``draft_steps``, and the bonus token.
    """

    line: int = 0
    steps_per_line: int | None = None
    draft_tokens: int | None = None
    draft_steps: int | None = None
    algorithm: str = ""

    @property
    def block(self) -> int | None:
        """The most tokens that one step can commit."""
        steps = None if self.algorithm in AT_ONCE else self.draft_steps
        limits = [self.draft_tokens, steps + 1 if steps else None]
        return min((limit for limit in limits if limit), default=None)


@dataclass(frozen=True)
class Parsed:
    """The decode and prefill lines of one block, in its order; NaN where a line says nothing.

    ``line`` is an index in the block, ``rank`` one in ``ranks``. ``tokens`` are of all running
    requests, ``commit`` is ``accept len``, ``rate`` is ``accept rate``, ``tok_per_s`` is
    ``gen throughput``. ``heads`` counts decode lines by the character after ``Decode batch``.
    ``servers`` are the starts of servers.
    """

    line: Places
    kind: Places
    time_s: Numbers
    rank: Places
    ranks: list[str]
    running: Numbers
    tokens: Numbers
    commit: Numbers
    rate: Numbers
    tok_per_s: Numbers
    recognised: Places
    malformed: Places
    heads: dict[str, int] = field(default_factory=dict)
    servers: list[Arguments] = field(default_factory=list)


def parse(scan: Scan) -> Parsed | None:
    """The lines of SGLang in a block; ``None`` where there is none."""
    running = scan.field(b"#running-req: ", _COMMA)
    rate = scan.field(b"gen throughput (token/s): ", _COMMA)
    decode, decode_marks = _marked(scan, b"Decode batch", running.line, running.place, rate.line)
    new, new_at = scan.keys(b"#new-seq: ")
    prefill, prefill_marks = _marked(scan, b"Prefill batch", new, new_at, new)
    accept = scan.field(b", accept len: ", _COMMA)
    tokens = scan.field(b"#token: ", _COMMA)
    full = scan.field(b"#full token: ", _COMMA)
    servers, fact_lines, lost = _facts(scan, ~scan.mask(decode, prefill))
    values = {
        "running": whole(running.on(decode)),
        "tok_per_s": rate.on(decode),
        "commit": accept.on(decode),
        "tokens": np.where(scan.mask(full.line)[decode], full.on(decode), tokens.on(decode)),
        "rate": _rates(scan, servers).on(decode),
    }
    cut = np.isnan(values["running"]) | np.isnan(values["tok_per_s"])
    cut |= np.isnan(values["commit"]) & scan.mask(accept.line)[decode]
    cut |= np.diff(decode, append=-1) == 0
    cut |= np.diff(decode, prepend=-1) == 0
    if not (len(decode) or len(prefill) or len(fact_lines) or len(lost)):
        return None
    malformed = scan.mask(rate.line, lost) & ~scan.mask(decode[~cut])
    malformed[decode[cut]] = True
    heads = _heads(scan, decode_marks[~cut])
    good, marks = decode[~cut], decode_marks[~cut]
    lines = np.concatenate([good, prefill])
    order = np.argsort(lines, kind="stable")
    time_s, rank, ranks = _stamps(scan, np.concatenate([marks, prefill_marks])[order])
    undefined = np.full(len(prefill), np.nan)
    columns = {name: np.concatenate([v[~cut], undefined])[order] for name, v in values.items()}
    columns["running"] = np.concatenate([values["running"][~cut], running.on(prefill)])[order]
    return Parsed(
        line=lines[order],
        kind=np.concatenate([np.full(len(good), DECODE), np.full(len(prefill), PREFILL)])[order],
        time_s=time_s,
        rank=rank,
        ranks=ranks,
        **columns,
        recognised=np.flatnonzero(scan.mask(lines, fact_lines)),
        malformed=np.flatnonzero(malformed),
        heads=heads,
        servers=servers,
    )


def _rates(scan: Scan, servers: list[Arguments]) -> Field:
    """The first accept rates of each server."""
    line, place = scan.keys(_RATE)
    edges = [0, *np.searchsorted(line, [one.line for one in servers]).tolist(), len(line)]
    first = [np.arange(begin, min(begin + RATES, end)) for begin, end in pairwise(edges)]
    chosen = np.concatenate(first)
    line, place = line[chosen], place[chosen]
    return Field(line, scan.numbers(place + len(_RATE), _COMMA), place)


def _marked(
    scan: Scan, mark: bytes, line: Places, place: Places, expected: Places
) -> tuple[Places, Places]:
    """Lines with a mark, and where it stands.

    It is looked for two characters before the keys at ``place``, its usual distance, and everywhere
    only if that does not find it on the ``expected`` lines.
    """
    usual = place - len(mark) - 2
    hit = scan.starts_with(usual, mark)
    if np.array_equal(line[hit], expected):
        return line[hit], usual[hit]
    places = scan.find(mark)
    after = places + len(mark)
    quoted = np.ones(len(places), dtype=bool)  # a comment, or what somebody said of such a line
    for head in (b". ", b", ", b" [", b".\n", b",\n", b"\n"):
        quoted &= ~scan.starts_with(after, head)
    places = places[~quoted]
    return scan.lines_of(places), places


def _heads(scan: Scan, marks: Places) -> dict[str, int]:
    after = marks + len(b"Decode batch")
    counts = {name: int(scan.starts_with(after, char).sum()) for char, name in HEADS.items()}
    return {name: count for name, count in counts.items() if count}


def _stamps(scan: Scan, marks: Places) -> tuple[Numbers, Places, list[str]]:
    """Time and rank of ``[2025-05-31 18:31:21 DP0 TP0] `` before each mark; else NaN and ""."""
    if not len(marks):
        return np.zeros(0), np.zeros(0, dtype=np.int64), [""]
    start, near = _brackets(scan, marks)
    time_s = scan.dates(start)
    dated = ~np.isnan(time_s)
    if not near:
        dated &= scan.lines_of(start) == scan.lines_of(marks)
    time_s[~dated] = np.nan
    label = np.where(dated, start + _DATE, marks)
    stop = np.where(dated, marks - 2, marks)
    codes, texts = scan.labels(label, stop)
    names = [text.strip() for text in texts]
    ranks = sorted(set(names))
    renumbered = np.array([ranks.index(name) for name in names], dtype=np.int64)
    return time_s, renumbered[codes], ranks


def _brackets(scan: Scan, marks: Places) -> tuple[Places, bool]:
    """Behind the last opening bracket before each mark, and whether all are at one distance.

    They are in most logs; within a stamp and a rank there is then no end of a line.
    """
    nearest = scan.text.rfind(b"[", 0, int(marks[0]))
    distance = int(marks[0]) - nearest
    if nearest >= 0 and b"\n" not in scan.text[nearest : int(marks[0])]:
        usual = marks - distance
        if distance <= _LONGEST_STAMP and bool(scan.starts_with(usual, b"[").all()):
            return usual + 1, True
    opening = scan.find_one(b"[")
    before = np.searchsorted(opening, marks) - 1
    found = np.where(before >= 0, opening[np.maximum(before, 0)], 0) if len(opening) else marks * 0
    return found + 1, False


def _facts(scan: Scan, others: NDArray[np.bool_]) -> tuple[list[Arguments], Places, Places]:
    """Starts of servers, lines on which one tells of itself, and decode lines that were cut."""
    servers: list[Arguments] = []
    lines = scan.lines(others)
    text = b"\n".join(line for _, line in lines)
    told, lost = [], []
    if any(mark in text for mark in _FACT_MARKS):
        told = [index for index, line in lines if any(mark in line for mark in _FACT_MARKS)]
        servers = [_arguments(index, line) for index, line in lines if _START in line]
    if b"Decode batch" in text:
        lost = [index for index, line in lines if _CUT.search(line)]
    return servers, np.array(told, dtype=np.int64), np.array(lost, dtype=np.int64)


def _arguments(index: int, line: bytes) -> Arguments:
    text = line.decode(errors="replace")
    found = {name: pattern.search(text) for name, pattern in _FACTS.items()}
    algorithm = _ALGORITHM.search(text)
    return Arguments(
        index,
        algorithm=algorithm[1] if algorithm else "",
        **{name: int(one[1]) for name, one in found.items() if one},
    )
