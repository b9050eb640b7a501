"""SGLang's decode lines as windows: step time, context, and which lines are a decode rate.

``gen throughput`` is over all the time since the rank's last decode line, idle time and prefills
too, so a line says how fast decoding is only if nothing else happened in between. With one set of
requests, ``#token`` grows by what was committed: that tells requests apart where their prefill
lines are missing, and it tells how many forwards a line covers.
"""

from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from analysis.logs.scan import Numbers, Places
from analysis.logs.sglang import DECODE, PREFILL, Arguments, Parsed
from analysis.records.seen import Seen
from analysis.records.windows import Flag, Note, Windows, marked, windows

STEPS_PER_LINE = 40
"""``--decode-log-interval`` if it is not given (``srt/server_args.py``)."""
LEARN_FROM = 2000
"""Decode lines from which the interval and the meaning of the accept rate are learned."""
PAGE = 64
"""Tokens per request by which ``#token`` may be off: it counts whole pages."""
STAMP_S = 1.0
"""Times are printed in whole seconds."""
PRINTED = 0.005
"""``accept len`` and ``accept rate`` are printed with two decimals."""
OLD_RATE, NEW_RATE = "old", "new"
ARGUMENTS = "the server's arguments"


class Reader:
    """Windows of one file; what is open at the end of a block is carried to the next.

    A server that is started anew may have other arguments: nothing of the one before it counts.
    """

    def __init__(self, file: str, seen: Seen) -> None:
        self._file, self._seen = file, seen
        self._ranks: list[str] = []
        self._server = _Server(file, seen, self._ranks, Arguments())

    def feed(self, parsed: Parsed, first_line: int) -> list[Windows]:
        """The windows that a block completes; ``first_line`` counts from 1."""
        self._note(parsed)
        rows = self._rows(parsed, first_line) if len(parsed.line) else None
        found, begin = [], 0
        for arguments in parsed.servers:
            end = int(np.searchsorted(parsed.line, arguments.line))
            if rows is not None and end > begin:
                found += self._server.feed(rows.at(slice(begin, end)))
            found += self._server.finish()
            self._server = _Server(self._file, self._seen, self._ranks, arguments)
            begin = end
        if rows is not None and len(parsed.line) > begin:
            found += self._server.feed(rows.at(slice(begin, None)))
        return found

    def finish(self) -> list[Windows]:
        """The windows that were waiting for a later line."""
        return self._server.finish()

    def _note(self, parsed: Parsed) -> None:
        seen = self._seen
        if "SGLang" not in seen.engines and len(parsed.line):
            seen.engines.append("SGLang")
        for hint in parsed.heads:
            if hint not in seen.version_hints:
                seen.version_hints.append(hint)

    def _rows(self, parsed: Parsed, first_line: int) -> "_Rows":
        for rank in parsed.ranks:
            if rank not in self._ranks:
                self._ranks.append(rank)
        codes = np.array([self._ranks.index(rank) for rank in parsed.ranks], dtype=np.int64)
        return _Rows(
            line=parsed.line + first_line,
            kind=parsed.kind,
            time_s=parsed.time_s,
            rank=codes[parsed.rank],
            running=parsed.running,
            tokens=parsed.tokens,
            commit=parsed.commit,
            rate=parsed.rate,
            tok_per_s=parsed.tok_per_s,
            done=np.zeros(len(parsed.line), dtype=bool),
        )


class _Server:
    """Windows of one server, from its start to the next or to the end of the file."""

    def __init__(self, file: str, seen: Seen, ranks: list[str], arguments: Arguments) -> None:
        self._file, self._seen, self._ranks, self._arguments = file, seen, ranks, arguments
        self._pending: list[_Rows] = []
        self._waiting = 0
        self._learned = False
        self._interval = STEPS_PER_LINE
        self._limit: int | None = None
        self._rate_meaning = ""

    def feed(self, rows: "_Rows") -> list[Windows]:
        """The windows that further lines complete."""
        self._pending.append(rows)
        self._waiting += int((rows.kind == DECODE).sum())
        if not self._learned and self._waiting < LEARN_FROM:
            return []
        return self._emit(final=False)

    def finish(self) -> list[Windows]:
        """The windows that were waiting for a later line."""
        return self._emit(final=True) if self._pending else []

    def _emit(self, final: bool) -> list[Windows]:
        rows = _joined(self._pending)
        if len(self._ranks) > 1 or bool((np.diff(rows.line) < 0).any()):
            rows = rows.at(np.lexsort((rows.line, rows.rank)))
        if not self._learned:
            self._learn(rows)
        view = _View(rows)
        emit = (rows.kind == DECODE) & ~rows.done
        if not final:
            emit &= ~view.last_decode
        made = self._windows(view, emit)
        carried = rows.at(view.carried)
        self._pending = [replace(carried, done=carried.done | emit[view.carried])]
        self._waiting = 0
        return [made] if len(made) else []

    def _learn(self, rows: "_Rows") -> None:
        """The interval, and what the accept rate means, from the first lines of the server."""
        said, seen = self._arguments, self._seen
        first = np.sort(rows.line[rows.kind == DECODE])[:LEARN_FROM]
        view = _View(rows.at(rows.line <= first[-1])) if len(first) else _View(rows)
        interval = said.steps_per_line or view.steps_per_line()
        self._interval = interval or STEPS_PER_LINE
        verified, told_by = said.draft_tokens, ARGUMENTS
        meaning = rate_meaning(view.rows.commit, view.rows.rate)
        if meaning is not None:
            self._rate_meaning = meaning[0]
            if not verified:
                verified, told_by = meaning[1], "accept len and accept rate"
        self._limit = said.block or verified
        if len(first):
            seen.tell_interval(self._interval, assumed=interval is None)
        if bool(np.isfinite(view.rows.commit).any()):
            if said.block:
                seen.tell_block(said.block, ARGUMENTS)
            if verified:
                seen.tell_verified(verified, told_by)
        self._learned = True

    def _windows(self, view: "_View", emit: NDArray[np.bool_]) -> Windows:
        rows = view.rows
        commit = np.where(np.isnan(rows.commit), 1.0, rows.commit)
        with np.errstate(divide="ignore", invalid="ignore"):
            step_ms = 1000 * commit * rows.running / rows.tok_per_s
            context = np.where(rows.tokens > 0, rows.tokens / rows.running, np.nan)
        rated = np.isfinite(step_ms) & (step_ms > 0)
        step_ms = np.where(rated, step_ms, np.nan)
        flags = view.flags(step_ms, commit, self._interval)
        flags |= marked(~rated, Flag.NO_RATE)
        limit = self._seen.given_block or self._limit
        if limit is not None:
            flags |= marked(commit > limit + PRINTED, Flag.ABOVE_BLOCK)
        old = self._rate_meaning == OLD_RATE
        notes = marked(~np.isnan(rows.commit) & old, Note.OLD_ACCEPT_RATE)
        order = np.flatnonzero(emit)[np.argsort(rows.line[emit], kind="stable")]
        return windows(
            "sglang",
            self._file,
            "date" if bool(np.isfinite(rows.time_s).any()) else "none",
            self._ranks,
            line=rows.line[order],
            source=rows.rank[order],
            flags=flags[order],
            notes=notes[order],
            time_s=rows.time_s[order],
            context_tokens=context[order],
            running=rows.running[order],
            tok_per_s=rows.tok_per_s[order],
            commit=commit[order],
            acceptance_length=rows.commit[order],
            step_ms=step_ms[order],
        )


def rate_meaning(commit: Numbers, rate: Numbers) -> tuple[str, int] | None:
    """What ``accept rate`` is, and how many tokens a step verifies; ``None`` where neither fits.

    0.5.6 to 0.5.9: accept len / verified tokens. Later: correct drafts / drafts, that is
    (accept len - 1) / (verified tokens - 1). Only one of the two gives a whole number on all lines.
    Where drafts are trees, a step can commit less than it verifies.
    """
    known = (rate > 2 * PRINTED) & (commit > 1 + 2 * PRINTED)
    if not known.any():
        return None
    length, share = commit[known], rate[known]
    fits = []
    for meaning, less in ((OLD_RATE, 0.0), (NEW_RATE, 1.0)):
        verified = int(np.rint(np.median((length - less) / share) + less))
        expected = (length - less) / max(verified - less, 1.0)
        slack = PRINTED * (1 + 1 / max(verified - less, 1.0)) + 1e-9
        if verified >= 2 and bool((np.abs(expected - share) <= slack).mean() > 0.95):
            fits.append((meaning, verified))
    return fits[0] if len(fits) == 1 else None


@dataclass(frozen=True)
class _Rows:
    """Decode and prefill lines; ``done`` marks windows that were given out before."""

    line: Places
    kind: Places
    time_s: Numbers
    rank: Places
    running: Numbers
    tokens: Numbers
    commit: Numbers
    rate: Numbers
    tok_per_s: Numbers
    done: NDArray[np.bool_]

    def at(self, chosen: NDArray[np.bool_] | Places | slice) -> "_Rows":
        return _Rows(**{name: column[chosen] for name, column in vars(self).items()})


def _joined(parts: list[_Rows]) -> _Rows:
    return _Rows(
        **{name: np.concatenate([vars(part)[name] for part in parts]) for name in vars(parts[0])}
    )


class _View:
    """Rows by rank and line, and what lies between each decode line and the last of its rank."""

    def __init__(self, rows: _Rows) -> None:
        self.rows = rows
        n = len(rows.line)
        self.decode = np.flatnonzero(rows.kind == DECODE)
        rank = rows.rank[self.decode]
        same = rank[1:] == rank[:-1]
        self.before = np.full(n, -1)
        self.after = np.full(n, -1)
        self.before[self.decode[1:][same]] = self.decode[:-1][same]
        self.after[self.decode[:-1][same]] = self.decode[1:][same]
        self.has_before = self.before >= 0
        start = np.searchsorted(rows.rank, rows.rank)  # where the rank's rows begin
        self.opening = np.where(self.has_before, self.before + 1, start)
        own = np.arange(n)
        self.prefills = np.where(rows.kind == DECODE, own - self.opening, 0)
        mixed = np.concatenate([[0], np.cumsum((rows.kind == PREFILL) & (rows.running > 0))])
        self.mixed = mixed[own] - mixed[np.minimum(self.opening, own)] > 0

    @property
    def last_decode(self) -> NDArray[np.bool_]:
        """The last decode line of each rank, whose successor is not known yet."""
        last = np.zeros(len(self.rows.line), dtype=bool)
        last[self.decode] = self.after[self.decode] < 0
        return last

    @property
    def carried(self) -> Places:
        """Rows that later lines still need: of each rank from its last decode line but one on.

        Of many prefills in a row the first, and the first beside running requests, say all.
        """
        rows, keep = self.rows, []
        for rank in np.flatnonzero(np.bincount(rows.rank)):
            own = np.flatnonzero(rows.rank == rank)
            decode = own[rows.kind[own] == DECODE]
            if len(decode):
                own = own[own >= decode[-2:][0]]
            chosen = set(own[rows.kind[own] == DECODE].tolist())
            bounds = [int(own[0]), *sorted(chosen), int(own[-1]) + 1]
            for begin, end in pairwise(bounds):
                between = np.arange(begin, end)
                between = between[rows.kind[between] == PREFILL]
                beside = between[rows.running[between] > 0]
                chosen |= set(between[:1].tolist()) | set(beside[:1].tolist())
            keep += sorted(chosen)
        return np.array(keep, dtype=np.int64)

    def steps_per_line(self) -> int | None:
        """Forwards per line, from the growth of ``#token``; ``None`` where lines do not agree."""
        rows, before = self.rows, np.maximum(self.before, 0)
        commit = np.where(np.isnan(rows.commit), 1.0, rows.commit)
        pairs = self.has_before & (self.prefills == 0) & (rows.running == rows.running[before])
        pairs &= (rows.tokens > rows.tokens[before]) & (rows.running > 0)
        if not pairs.any():
            return None
        grown = (rows.tokens - rows.tokens[before])[pairs]
        steps = np.rint(grown / (commit * rows.running)[pairs])
        value, count = np.unique(steps[steps > 0], return_counts=True)
        if not len(value) or count.max() * 2 < len(steps):
            return None
        return int(value[np.argmax(count)])

    def flags(self, step_ms: Numbers, commit: Numbers, interval: int) -> Places:
        """Everything but a missing rate and the block, for each row."""
        rows, before, after = self.rows, np.maximum(self.before, 0), np.maximum(self.after, 0)
        changed = self.has_before & (rows.running != rows.running[before])
        ended = rows.tokens <= 0
        expected = commit * rows.running * interval
        grown = rows.tokens - rows.tokens[before]
        slack = PAGE * rows.running
        foreign = (grown < 0.5 * expected - slack) | (grown > 1.5 * expected + slack)
        foreign &= self.has_before & (self.prefills == 0) & ~ended & ~changed
        back = self.has_before & (rows.time_s < rows.time_s[before])
        opened = ~self.has_before | (self.prefills > 0) | changed | foreign
        follows = (self.after >= 0) & (self.prefills[after] == 0)
        follows &= rows.running[after] == rows.running
        opened &= follows | (self.prefills > 0)
        idle = opened & self._idle(step_ms, after, follows, interval)
        return (
            marked(self.prefills > 0, Flag.PREFILL)
            | marked(self.mixed & (self.prefills > 0), Flag.MIXED)
            | marked(changed | ended | foreign, Flag.RUNNING_CHANGED)
            | marked(back, Flag.CLOCK_BACK)
            | marked(idle, Flag.IDLE)
        )

    def _idle(
        self, step_ms: Numbers, after: Places, follows: NDArray[np.bool_], interval: int
    ) -> NDArray[np.bool_]:
        """Whether a line's rate spreads over more time than its prefills and forwards account for.

        Its forwards take as long as those of the next line, where that is of the same requests.
        """
        rows = self.rows
        length_s = interval * step_ms / 1000
        forwards_s = np.where(follows, interval * step_ms[after] / 1000, 0.0)
        since_prefill = rows.time_s - rows.time_s[np.minimum(self.opening, len(step_ms) - 1)]
        known = np.where(self.prefills > 0, np.nan_to_num(since_prefill) + STAMP_S, forwards_s)
        return length_s - known > np.maximum(STAMP_S, forwards_s)
