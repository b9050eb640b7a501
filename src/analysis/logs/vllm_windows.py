"""vLLM's windows: the throughput of an engine together with what was drafted meanwhile.

Both lines are over all the time since the last (``vllm/v1/metrics/loggers.py``: every
``VLLM_LOG_STATS_INTERVAL`` seconds, ten if it is not set), so the counts of drafts and the tokens
that were generated are of the same window: every step commits one token that was not drafted, and
``steps = generated - accepted``. The two throughputs in the line on drafts are not used: their
clock does not restart where nothing was logged. A window in which nothing was drafted has none.

V0 counts since the start of the server, only steps that drafted, and accepted drafts regardless of
position; there ``steps = draft tokens / drafts of a step``, and what was emitted over these is an
acceptance length and, as far as all steps draft, the commit length
(``vllm/spec_decode/metrics.py`` up to 0.9).
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from analysis.logs.scan import Numbers, Places
from analysis.logs.vllm_tables import TOTAL, WINDOW
from analysis.model.decode_steps import FEW_STEPS
from analysis.records.windows import Flag, Note, marked

WINDOW_S = 10.0
"""``VLLM_LOG_STATS_INTERVAL`` if it is not set (``vllm/envs.py``)."""
LATE = 1.5
"""A line that comes this many windows after the last of its engine has idle time before it."""
MOST_GAPS = 8
"""So many gaps between lines tell how long a window is."""
PRINTED_TOK_PER_S = 0.05
PRINTED_LENGTH = 0.005
PRINTED_USAGE = 0.05
"""Half of the last digit of each."""
TIMER = 0.001
"""By how much, relatively, windows are longer than asked for: a timer is never early."""
CONTEXT_PRECISION = 0.1
"""A context is given only if its usage is printed to this relative precision."""


@dataclass(frozen=True)
class Rows:
    """Windows as printed. ``kind`` says what the counts are of, -1 where nothing was drafted.

    Without a throughput line, ``generation`` and what came with it are NaN. ``pool_tokens`` is of
    all engines that the line stands for. ``earlier_s`` and ``earlier_running`` are of the engine's
    line before. The counts of V0 are what was added since the line before; ``whole`` marks those
    that have none before.
    """

    line: Places
    label: Places
    time_s: Numbers
    prompt: Numbers
    generation: Numbers
    running: Numbers
    usage: Numbers
    pool_tokens: Numbers
    earlier_s: Numbers
    earlier_running: Numbers
    kind: Places
    accepted: Numbers
    drafted: Numbers
    emitted: Numbers
    length: Numbers
    positions: Numbers
    whole: NDArray[np.bool_]

    def __len__(self) -> int:
        return len(self.line)

    def at(self, chosen: NDArray[np.bool_]) -> "Rows":
        """The rows that are chosen."""
        return Rows(**{name: column[chosen] for name, column in vars(self).items()})


def columns(
    rows: Rows, window_s: float, assumed: bool, block: int | None = None
) -> dict[str, Numbers | Places]:
    """Figures, flags and notes of each window; ``block`` is the caller's, and counts for all."""
    with np.errstate(divide="ignore", invalid="ignore"):
        return _columns(rows, window_s, assumed, block)


def _columns(
    rows: Rows, window_s: float, assumed: bool, block: int | None
) -> dict[str, Numbers | Places]:
    total, counted = rows.kind == TOTAL, rows.kind == WINDOW
    accepted = np.where(counted, rows.accepted, 0.0)
    generated = rows.generation * window_s
    steps = np.where(total, rows.drafted / rows.positions, generated - accepted)
    steps = np.where(steps > 0, steps, np.nan)
    commit = np.where(total, rows.emitted, generated) / steps
    length = np.where(total, commit, rows.length)
    step_ms = 1000 * commit * rows.running / rows.generation
    rated = np.isfinite(step_ms) & (step_ms > 0) & ~(total & rows.whole)
    tolerance = PRINTED_LENGTH + accepted / steps**2 * (
        PRINTED_TOK_PER_S * window_s + TIMER * generated
    )
    context, from_usage = _context(rows)
    undrafted = counted & ((length - commit > tolerance) | (rows.drafted == 0))
    most = rows.positions + 1 if block is None else np.full(len(rows), float(block))
    above = (length > most + PRINTED_LENGTH) | (commit > most + tolerance)
    notes = marked(undrafted, Note.STEPS_WITHOUT_DRAFT)
    notes |= marked(from_usage, Note.CONTEXT_FROM_USAGE)
    notes |= marked(steps < FEW_STEPS, Note.FEW_STEPS)
    notes |= marked(counted & ~np.isnan(generated) & assumed, Note.LENGTH_ASSUMED)
    return {
        "time_s": rows.time_s,
        "context_tokens": context,
        "running": rows.running,
        "tok_per_s": rows.generation,
        "commit": commit,
        "acceptance_length": length,
        "step_ms": np.where(rated, step_ms, np.nan),
        "notes": notes,
        "flags": _flags(rows, window_s)
        | marked(~rated, Flag.NO_RATE)
        | marked(above, Flag.ABOVE_BLOCK),
    }


def _flags(rows: Rows, window_s: float) -> Places:
    """What the engine did besides decoding one set of requests."""
    spoken = ~np.isnan(rows.generation)
    prefill = rows.prompt > 0
    follows = ~np.isnan(rows.earlier_running)
    changed = follows & (rows.earlier_running != rows.running)
    ended = spoken & (rows.running == 0)
    since = rows.time_s - rows.earlier_s
    idle = ended | (rows.earlier_running == 0) | (since > LATE * window_s)
    return (
        marked(prefill, Flag.PREFILL)
        | marked(prefill & (rows.running > 1), Flag.MIXED)
        | marked(spoken & (changed | (ended & (rows.generation > 0))), Flag.RUNNING_CHANGED)
        | marked(idle, Flag.IDLE)
        | marked(since < 0, Flag.CLOCK_BACK)
    )


def _context(rows: Rows) -> tuple[Numbers, NDArray[np.bool_]]:
    """Tokens of context per running request at the window's end, and where they are known."""
    tokens = rows.usage / 100 * rows.pool_tokens / rows.running
    known = np.isfinite(tokens) & (rows.running > 0)
    known &= CONTEXT_PRECISION * rows.usage >= PRINTED_USAGE
    return np.where(known, tokens, np.nan), known


def window_length(lines: list[tuple[int, float]]) -> tuple[float, bool]:
    """Seconds that a line covers, and whether that is assumed, from the first lines of a log.

    ``lines`` are source and time of throughput lines. Stamps are whole seconds, so successive ones
    of one source differ by a second more or less; idle windows are not printed and leave gaps.
    """
    between = gaps(lines)
    if len(between) < 2:
        return WINDOW_S, True
    value, count = np.unique(between, return_counts=True)
    usual = float(value[np.argmax(count)])
    near = between[np.abs(between - usual) <= 1]
    if len(near) < 2 or 2 * len(near) < len(between):
        return WINDOW_S, True
    mean = float(near.mean())
    return (usual if abs(mean - usual) <= 0.25 else round(mean, 1)), False


def gaps(lines: list[tuple[int, float]]) -> Numbers:
    """Seconds between successive lines of one source, in the order of the log."""
    last: dict[int, float] = {}
    found = []
    for source, time_s in lines:
        if source in last and time_s > last[source]:
            found.append(time_s - last[source])
        if not np.isnan(time_s):
            last[source] = time_s
    return np.array(found[:MOST_GAPS])
