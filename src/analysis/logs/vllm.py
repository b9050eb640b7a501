"""vLLM's log as windows, block by block: which line on drafts belongs to which throughput."""

from dataclasses import replace
from datetime import date

import numpy as np

from analysis.logs.scan import Numbers, Places
from analysis.logs.vllm_facts import Fact
from analysis.logs.vllm_lines import YEAR, Parsed, parse
from analysis.logs.vllm_rows import FAR, NEAR_LINES, at, earlier, pairs
from analysis.logs.vllm_tables import (
    TOTAL,
    Drafts,
    Mask,
    Source,
    Speeds,
    joined,
    kept,
    placed,
)
from analysis.logs.vllm_windows import MOST_GAPS, Rows, columns, gaps, window_length
from analysis.records.seen import Seen
from analysis.records.windows import Windows, windows

__all__ = ["Parsed", "Reader", "parse"]

LEARN_FROM = 64
"""Throughput lines from which the length of a window is learned."""
_HALF_A_YEAR = 183 * 86400.0


class Reader:
    """Windows of one file; what is open at the end of a block is carried to the next."""

    def __init__(self, file: str, seen: Seen) -> None:
        self._file, self._seen = file, seen
        self._sources: list[Source] = []
        self._processes: list[str] = []
        self._labels: list[str] = []
        self._first: list[tuple[int, float]] = []
        self._window: tuple[float, bool] | None = None
        self._speeds: Speeds | None = None
        self._drafts: Drafts | None = None
        self._pools = np.zeros(0)
        self._pool = self._positions = self._clock = float("nan")
        self._years = 0
        self._last_line = 0
        self._before: dict[int, tuple[float, float]] = {}
        self._totals: dict[int, tuple[float, float]] = {}

    def feed(self, parsed: Parsed, first_line: int) -> list[Windows]:
        """The windows that a block completes; ``first_line`` counts from 1."""
        spoken = len(parsed.speeds.line) + len(parsed.drafts.line)
        if spoken and "vLLM" not in self._seen.engines:
            self._seen.engines.append("vLLM")
        for hint in parsed.hints:
            self._hint(hint)
        codes = np.array([self._source(one) for one in parsed.sources], dtype=np.int64)
        speeds = placed(parsed.speeds, codes, first_line)
        drafts = placed(parsed.drafts, codes, first_line)
        speeds, drafts = self._dated(speeds, drafts)
        pools, positions = self._told(parsed.facts, first_line, speeds.line, drafts.line)
        own = np.where(np.isnan(drafts.positions), positions, drafts.positions)
        self._tell(own, own == positions)
        drafts = replace(drafts, positions=own)
        if len(self._first) < LEARN_FROM:
            self._first += zip(speeds.source.tolist(), speeds.time_s.tolist(), strict=True)
            del self._first[LEARN_FROM:]
        self._speeds = speeds if self._speeds is None else joined(self._speeds, speeds)
        self._drafts = drafts if self._drafts is None else joined(self._drafts, drafts)
        self._pools = np.concatenate([self._pools, pools])
        for lines in (speeds.line, drafts.line):
            self._last_line = max(self._last_line, int(lines.max(initial=0)))
        if self._window is None:
            if len(gaps(self._first)) < MOST_GAPS and len(self._first) < LEARN_FROM:
                return []
            self._learn()
        return self._emit(final=False)

    def finish(self) -> list[Windows]:
        """The windows that were waiting for a later line."""
        if self._window is None:
            self._learn()
        return self._emit(final=True)

    def _learn(self) -> None:
        self._window = window_length(self._first)
        if self._first:
            self._seen.window_s, self._seen.window_s_assumed = self._window

    def _hint(self, hint: str) -> None:
        if hint not in self._seen.version_hints:
            self._seen.version_hints.append(hint)

    def _tell(self, positions: Numbers, configured: Mask) -> None:
        """The block of each server that drafted, in the order of the log."""
        first = np.unique(positions, return_index=True)[1]
        for index in np.sort(first).tolist():
            if positions[index] > 0:
                told_by = (
                    "the server's configuration" if configured[index] else "the lines on drafts"
                )
                self._seen.tell_block(int(positions[index]) + 1, told_by)

    def _source(self, source: Source) -> int:
        if source not in self._sources:
            self._sources.append(source)
        if source.process not in self._processes:
            self._processes.append(source.process)
        return self._sources.index(source)

    def _told(
        self, facts: list[Fact], first_line: int, speed_lines: Places, draft_lines: Places
    ) -> tuple[Numbers, Numbers]:
        """The pool at each throughput line, and the drafts of a step at each line on drafts."""
        pools, pool_lines = [self._pool], [0]
        positions, position_lines = [self._positions], [0]
        for fact in facts:
            if fact.what == "version":
                self._hint(f"vLLM {fact.value}")
            elif fact.what == "pool":
                pools.append(float(fact.value))
                pool_lines.append(fact.line + first_line)
            else:
                positions.append(float(fact.value))
                position_lines.append(fact.line + first_line)
        self._pool, self._positions = pools[-1], positions[-1]
        by = np.searchsorted(pool_lines, speed_lines, "right") - 1
        of = np.searchsorted(position_lines, draft_lines, "right") - 1
        return np.array(pools)[by], np.array(positions)[of]

    def _dated(self, speeds: Speeds, drafts: Drafts) -> tuple[Speeds, Drafts]:
        """Times that go on over New Year."""
        line = np.concatenate([speeds.line, drafts.line])
        time_s = np.concatenate([speeds.time_s, drafts.time_s])
        order = np.argsort(line, kind="stable")
        order = order[~np.isnan(time_s[order])]
        if len(order):
            steps = np.diff(time_s[order], prepend=self._clock)
            turned = (steps < -_HALF_A_YEAR).astype(np.int64) - (steps > _HALF_A_YEAR)
            years = self._years + np.cumsum(turned)
            self._clock, self._years = float(time_s[order[-1]]), int(years[-1])
            if years.any():
                time_s[order] += _since_the_year(years, time_s[order])
        n = len(speeds.line)
        return replace(speeds, time_s=time_s[:n]), replace(drafts, time_s=time_s[n:])

    def _emit(self, final: bool) -> list[Windows]:
        speeds, drafts = self._speeds, self._drafts
        if speeds is None or drafts is None or self._window is None:
            return []
        process = np.array(
            [self._processes.index(one.process) for one in self._sources], dtype=np.int64
        )
        pair = pairs(speeds, drafts, process)
        until = FAR if final else self._open_from(speeds, pair, process)
        ready = speeds.line < until
        own = np.where(pair < 0, drafts.line, speeds.line[pair] if len(speeds.line) else -1) < until
        rows = self._rows(speeds, drafts, pair, ready, own, process)
        self._speeds, self._drafts = kept(speeds, ~ready), kept(drafts, ~own)
        self._pools = self._pools[~ready]
        rows = rows.at(~np.isnan(rows.generation) | ~np.isnan(rows.accepted))
        if not len(rows):
            return []
        found = columns(rows, *self._window, self._seen.given_block)
        return [
            windows(
                "vllm",
                self._file,
                "none" if np.isnan(self._clock) else "month and day",
                self._labels,
                line=rows.line,
                source=rows.label,
                **found,  # type: ignore[arg-type]
            )
        ]

    def _open_from(self, speeds: Speeds, pair: Places, process: Places) -> int:
        """The first throughput line that a line on drafts may still follow."""
        taken = np.zeros(len(speeds.line), dtype=bool)
        taken[pair[pair >= 0]] = True
        last: dict[int, int] = {}
        for index, of in enumerate(process[speeds.source].tolist()):
            last[of] = index
        waiting = [
            int(speeds.line[index])
            for index in last.values()
            if not taken[index] and speeds.line[index] + NEAR_LINES >= self._last_line
        ]
        return min(waiting, default=self._last_line + 1)

    def _rows(
        self,
        speeds: Speeds,
        drafts: Drafts,
        pair: Places,
        ready: Mask,
        own: Mask,
        process: Places,
    ) -> Rows:
        """Throughput lines with their drafts, and drafts without, in the order of the log."""
        alone = np.flatnonzero(own & (pair < 0))
        spoken = np.flatnonzero(ready)
        with_drafts = np.full(len(speeds.line), -1, dtype=np.int64)
        with_drafts[pair[pair >= 0]] = np.flatnonzero(pair >= 0)
        speed = np.concatenate([spoken, np.full(len(alone), -1)])
        draft = np.concatenate([with_drafts[spoken], alone])
        line = np.concatenate([speeds.line[spoken], drafts.line[alone]])
        order = np.argsort(line, kind="stable")
        speed, draft, line = speed[order], draft[order], line[order]
        source = np.where(speed >= 0, at(speeds.source, speed), at(drafts.source, draft))
        engines = np.array([one.engines for one in self._sources], dtype=np.float64)
        time_s, running = at(speeds.time_s, speed), at(speeds.running, speed)
        earlier_s, earlier_running = earlier(self._before, source, speed >= 0, time_s, running)
        kind = np.where(draft >= 0, at(drafts.kind, draft), -1)
        drafted, emitted = at(drafts.drafted, draft), at(drafts.emitted, draft)
        total = kind == TOTAL
        base = earlier(self._totals, process[source], total, drafted, emitted)
        whole = ~(base[0] <= drafted)  # no line before, or counters that begin anew
        return Rows(
            line=line,
            label=self._labelled(source),
            time_s=np.where(speed >= 0, time_s, at(drafts.time_s, draft)),
            prompt=at(speeds.prompt, speed),
            generation=at(speeds.generation, speed),
            running=running,
            usage=at(speeds.usage, speed),
            pool_tokens=at(self._pools, speed) * engines[source],
            earlier_s=earlier_s,
            earlier_running=earlier_running,
            kind=kind,
            accepted=at(drafts.accepted, draft),
            drafted=drafted - np.where(total & ~whole, base[0], 0.0),
            emitted=emitted - np.where(total & ~whole, base[1], 0.0),
            length=at(drafts.length, draft),
            positions=at(drafts.positions, draft),
            whole=whole,
        )

    def _labelled(self, source: Places) -> Places:
        codes = np.zeros(len(self._sources), dtype=np.int64)
        first = np.unique(source, return_index=True)[1]
        for of in source[np.sort(first)].tolist():
            label = self._sources[of].label
            if label not in self._labels:
                self._labels.append(label)
            codes[of] = self._labels.index(label)
        return codes[source]


def _since_the_year(years: Places, time_s: Numbers) -> Numbers:
    """Seconds to add for the years that went by since the first, whose 29 February not all have."""
    march = (date(YEAR, 3, 1) - date(1970, 1, 1)).days * 86400.0
    later = np.zeros(len(years))
    for year in np.unique(years).tolist():
        for month, behind in ((1, time_s < march), (3, time_s >= march)):
            days = (date(YEAR + year, month, 1) - date(YEAR, month, 1)).days
            later[(years == year) & behind] = days * 86400.0
    return later
