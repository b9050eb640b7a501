"""What servers print of speculation, as typed entries; every other line is passed over.

SGLang's ``accept len`` is a commit length: tokens over decode forwards, bonus token included
(``srt/managers/scheduler_metrics_mixin.py``). vLLM's *Mean acceptance length*
(``vllm/v1/spec_decode/metrics.py``) and llama.cpp's (``tools/server/server-context.cpp``) average
over the steps that drafted only, so the accepted tokens are what counts steps. vLLM's V0 line
(``Speculative metrics:``) counts accepted drafts regardless of position and is passed over.
"""

import re
from collections.abc import Iterable
from dataclasses import dataclass, replace
from datetime import UTC, datetime, tzinfo


@dataclass(frozen=True)
class Prefill:
    """SGLang's line for a batch of prefill; ``rank`` is ``TP0``, ``DP0 TP0`` or empty."""

    time_utc: datetime
    rank: str


@dataclass(frozen=True)
class Decode:
    """SGLang's line for the decode forwards since the last such line of its rank.

    ``commit_length`` is undefined where the server does not speculate.
    """

    time_utc: datetime
    rank: str
    running: int
    commit_length: float | None


@dataclass(frozen=True)
class Throughput:
    """vLLM's line for all that an engine did since its last one, about ten seconds before."""

    time_utc: datetime
    engine: str
    generated_tok_per_s: float
    running: int


@dataclass(frozen=True)
class Drafting:
    """vLLM's counts of drafts over the same time; absent where nothing was drafted.

    ``acceptance_length`` is over drafted steps, not a commit length; early versions leave it out.
    """

    time_utc: datetime
    accepted_tokens: int
    drafted_tokens: int
    acceptance_length: float | None


@dataclass(frozen=True)
class Finished:
    """llama.cpp's lines for one finished request; their clock is the server's age, so no time.

    Drafts are undefined where no line gives them: nothing was drafted, or the build does not say.
    """

    task: str
    output_tokens: int
    accepted_tokens: int | None = None
    drafted_tokens: int | None = None
    acceptance_length: float | None = None


Entry = Prefill | Decode | Throughput | Drafting | Finished

_NUMBER = r"(\d+(?:\.\d+)?)"
_SGLANG = re.compile(
    r"\[(\d{4}-\d\d-\d\d \d\d:\d\d:\d\d)((?: [A-Z]+\d+)*)\] (Prefill|Decode) batch\b(.*)"
)
_RUNNING = re.compile(r"#running-req: (\d+)")
_ACCEPT_LEN = re.compile(rf"(?<!block )accept len: {_NUMBER}")
_VLLM = re.compile(
    r"(?:(\d{4})-)?(\d\d-\d\d \d\d:\d\d:\d\d) \[[\w.]+:\d+\] "
    r"(?:Engine (\d+)|SpecDecoding metrics): (.*)"
)
_GENERATED = re.compile(rf"Avg generation throughput: {_NUMBER} tokens/s, Running: (\d+) reqs")
_ACCEPTED = re.compile(r"\bAccepted: (\d+) tokens, Drafted: (\d+) tokens")
_MEAN = re.compile(rf"Mean acceptance length: {_NUMBER}")
_TASK = re.compile(r"slot +print_timing: id +\d+ \| task (\d+) \|")
_EVAL = re.compile(r"(?<!prompt )\beval time = +\S+ ms / +(\d+) tokens")
_DRAFTS = re.compile(r"draft acceptance(?: rate)? = +\S+ \( *(\d+) accepted / +(\d+) generated\)")
_LENGTH = re.compile(rf"mean (?:acceptance length|len) = +{_NUMBER}")


def parse(lines: Iterable[str], tz: tzinfo, near: datetime) -> list[Entry]:
    """Entries of a log in its order.

    Times stand in the log without a zone and are of the server's, ``tz``; vLLM leaves out the year
    too, which is the one that brings a line closest to ``near``, an aware time.
    """
    entries: list[Entry] = []
    task = ""
    for line in lines:
        if found := _TASK.search(line):
            task = found[1]
        entry = _sglang(line, tz) or _vllm(line, tz, near) or _finished(line, task)
        if entry is not None:
            entries.append(entry)
        elif entries and isinstance(last := entries[-1], Finished) and last.task == task:
            entries[-1] = _with_drafts(last, line)
    return entries


def _sglang(line: str, tz: tzinfo) -> Prefill | Decode | None:
    found = _SGLANG.search(line)
    if found is None or (time_utc := _utc(found[1], tz)) is None:
        return None
    rank, rest = found[2].strip(), found[4]
    if found[3] == "Prefill":
        return Prefill(time_utc, rank)
    running, length = _RUNNING.search(rest), _ACCEPT_LEN.search(rest)
    if running is None:
        return None
    return Decode(time_utc, rank, int(running[1]), float(length[1]) if length else None)


def _vllm(line: str, tz: tzinfo, near: datetime) -> Throughput | Drafting | None:
    found = _VLLM.search(line)
    if found is None:
        return None
    local = near.astimezone(tz).year
    years = [int(found[1])] if found[1] else [local - 1, local, local + 1]
    times = [time for year in years if (time := _utc(f"{year}-{found[2]}", tz))]
    if not times:
        return None
    time_utc = min(times, key=lambda time: abs(time - near))
    engine, rest = found[3], found[4]
    if engine is not None:
        speed = _GENERATED.search(rest)
        return Throughput(time_utc, engine, float(speed[1]), int(speed[2])) if speed else None
    counts, mean = _ACCEPTED.search(rest), _MEAN.search(rest)
    if counts is None:
        return None
    length = float(mean[1]) if mean else None
    return Drafting(time_utc, int(counts[1]), int(counts[2]), length)


def _finished(line: str, task: str) -> Finished | None:
    found = _EVAL.search(line)
    return Finished(task, int(found[1])) if found else None


def _with_drafts(request: Finished, line: str) -> Finished:
    """The request with the drafts that ``line`` gives, if it gives any and none were known."""
    counts, length = _DRAFTS.search(line), _LENGTH.search(line)
    if counts is None or request.accepted_tokens is not None:
        return request
    return replace(
        request,
        accepted_tokens=int(counts[1]),
        drafted_tokens=int(counts[2]),
        acceptance_length=float(length[1]) if length else None,
    )


def _utc(local: str, tz: tzinfo) -> datetime | None:
    """A time of the server's zone, in UTC; ``None`` for a day that its year does not have."""
    try:
        naive = datetime.strptime(local, "%Y-%m-%d %H:%M:%S")
    except ValueError:
        return None
    return naive.replace(tzinfo=tz).astimezone(UTC)
