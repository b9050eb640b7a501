"""The commit length of one request, from what its server logged meanwhile; or nothing.

Nothing is said where the log leaves room: another request in the same lines, lines that are not
wholly the request's own, an engine that prints only an average over drafted steps.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta, tzinfo
from itertools import pairwise
from statistics import fmean

from analysis.logs.acceptance import Decode, Drafting, Finished, Prefill, Throughput, parse
from analysis.model.decode_steps import commit_length, steps_from_accepted

RESOLUTION = timedelta(seconds=1)
"""SGLang and vLLM print whole seconds, rounded down."""

VLLM_INTERVAL = timedelta(seconds=10)
"""Between two of vLLM's lines (``VLLM_LOG_STATS_INTERVAL``); the last one of a request is up to so
much late, so a log is to be read no sooner than this after the reply."""

PRINTED_TOK_PER_S = 0.1
"""vLLM prints its throughput to one decimal."""

INTERVAL_JITTER = 0.001
"""How far vLLM's interval may be off, relative; foreign tokens below that cannot be seen."""


@dataclass(frozen=True)
class LoggedCommit:
    """Tokens committed per step over all steps, bonus token included, and how that is known.

    ``accepted_tokens`` and ``steps`` are undefined where the log gives the length itself.
    """

    commit_length: float
    how: str
    accepted_tokens: int | None = None
    steps: int | None = None


def commit_from_log(
    lines: Sequence[str], sent: datetime, ended: datetime, output_tokens: int, tz: tzinfo
) -> LoggedCommit | None:
    """What the log tells of a request that was ``sent`` and ``ended`` at these aware times.

    ``lines`` are those that came from before it was sent until after it ended; ``tz`` is the zone
    of the server's host. ``None`` where the log does not tell.

    SGLang: the mean ``accept len`` of the lines whose forwards were all the request's; each covers
    as many forwards as the next (``--decode-log-interval``). llama.cpp: the accepted drafts of the
    one request that finished. vLLM: the accepted drafts of all lines that may hold some of the
    request's, provided that all they generated is its output. The last two count steps by
    ``model.decode_steps``.
    """
    entries = parse(lines, tz, sent)
    batches = [e for e in entries if isinstance(e, Prefill | Decode)]
    finished = [e for e in entries if isinstance(e, Finished)]
    intervals = [e for e in entries if isinstance(e, Throughput | Drafting)]
    if sum(map(bool, (batches, finished, intervals))) != 1:
        return None
    if batches:
        return _sglang(batches, sent, ended)
    if finished:
        return _llama_cpp(finished, output_tokens)
    return _vllm(intervals, sent, ended, output_tokens)


def _sglang(
    entries: Sequence[Prefill | Decode], sent: datetime, ended: datetime
) -> LoggedCommit | None:
    """A line's forwards all lie between the line before it and itself.

    What came before the last prefill may be another request's, which this one waited for.
    """
    during = [e for e in entries if e.time_utc + RESOLUTION > sent and e.time_utc <= ended]
    crowded = any(e.running > 1 for e in during if isinstance(e, Decode))
    prefills = [number for number, e in enumerate(during) if isinstance(e, Prefill)]
    if crowded or not prefills or len({e.rank for e in during}) > 1:
        return None
    own = [e for e in during[prefills[-1] :] if isinstance(e, Decode)]
    lengths = [
        line.commit_length
        for before, line in pairwise(own)
        if line.commit_length is not None
        and before.time_utc >= sent
        and line.time_utc + RESOLUTION <= ended
    ]
    if not lengths:
        return None
    return LoggedCommit(fmean(lengths), f"accept len of {len(lengths)} SGLang log lines")


def _llama_cpp(entries: Sequence[Finished], output_tokens: int) -> LoggedCommit | None:
    if len(entries) != 1 or entries[0].output_tokens != output_tokens:
        return None
    accepted = entries[0].accepted_tokens
    return None if accepted is None else _counted(output_tokens, accepted, "llama.cpp")


def _vllm(
    entries: Sequence[Throughput | Drafting], sent: datetime, ended: datetime, output_tokens: int
) -> LoggedCommit | None:
    """Other traffic shows as tokens that are not the request's.

    A line's time reaches back over one interval, and by the printed second's width to either side.
    """
    near = [
        e
        for e in entries
        if e.time_utc + RESOLUTION > sent and e.time_utc - VLLM_INTERVAL - RESOLUTION < ended
    ]
    speeds = [e for e in near if isinstance(e, Throughput)]
    drafting = [e for e in near if isinstance(e, Drafting)]
    crowded = any(e.running > 1 for e in speeds)
    if crowded or not drafting or len({e.engine for e in speeds}) != 1:
        return None
    interval_s = VLLM_INTERVAL.total_seconds()
    generated = sum(e.generated_tok_per_s * interval_s for e in speeds)
    rounding = sum(e.generated_tok_per_s > 0 for e in speeds) * PRINTED_TOK_PER_S / 2 * interval_s
    if abs(generated - output_tokens) > rounding + INTERVAL_JITTER * output_tokens:
        return None
    return _counted(output_tokens, sum(e.accepted_tokens for e in drafting), "vLLM")


def _counted(output_tokens: int, accepted: int, engine: str) -> LoggedCommit | None:
    try:
        steps = steps_from_accepted(output_tokens, accepted)
        length = commit_length(output_tokens, steps)
    except ValueError:
        return None
    return LoggedCommit(length, f"accepted drafts in the {engine} log", accepted, steps)
