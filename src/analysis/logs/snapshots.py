"""Pages of ``/metrics`` in Prometheus' text format: what counters grew by is one window.

Two pages of one server, in the order in which they were taken, tell of the time between; one page
alone tells of all since the server's start. Counters are summed over labels, gauges are not; vLLM's
engines are apart.

- vLLM (``vllm/v1/metrics/stats.py``, ``loggers.py``): a request has a gap between tokens
  (``inter_token_latency_seconds``, before 0.11 ``time_per_output_token_seconds``) in each decode
  step, whether it drafted or not: so many gaps are so many steps, and their sum is the time.
  ``request_decode_time_seconds`` is the same time, of finished requests.
  ``iteration_tokens_total_count`` counts forwards with an output: if it is gaps and first tokens
  together, one request ran at a time. The old engine (V0) counted otherwise: only a note.
- SGLang (``srt/observability/metrics_collector.py``, ``observe_one_finished_request``):
  ``generation_tokens_total``, ``spec_verify_calls_total`` (in 0.5.15 and later, not in 0.5.12) and
  the requests are counted as each finishes. ``inter_token_latency_seconds`` sums the time from the
  first *output* on: without streaming that holds fifty tokens, so it is the decode time only if it
  counts all tokens but the first. The gauge ``spec_num_draft_tokens`` is 0 without speculation.
- llama.cpp (``tools/server/server-task.cpp``, ``to_metrics``): drafts and accepted tokens, so an
  acceptance length. Requests are not counted and their first tokens take no time, so neither steps
  nor a rate follow.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

from prometheus_client.parser import text_string_to_metric_families

from analysis.errors import InputError
from analysis.logs.documents import NAMES, NAN, add, lines_of, ratio
from analysis.model.decode_steps import FEW_STEPS
from analysis.records.seen import Seen
from analysis.records.windows import Engine, Flag, Note, Windows, windows

PREFIXES: dict[Engine, str] = {"vllm": "vllm:", "sglang": "sglang:", "llama.cpp": "llamacpp:"}
"""How the names of an engine's metrics begin."""
SINCE_START = "one page of /metrics: figures are of all since the server's start"

Counts = dict[str, float]


@dataclass(frozen=True)
class Page:
    """One page: ``sums`` over labels by source and metric name, ``most`` of one set of labels.

    A source is one of vLLM's engines, or the server. Names are without the engine's prefix.
    """

    engine: Engine
    file: str
    sums: dict[str, Counts]
    most: Counts
    gauges: frozenset[str] = frozenset()


@dataclass(frozen=True)
class Growth:
    """How much counters grew between two pages, and whether no request ran at either."""

    counts: Counts
    idle: bool

    def of(self, *names: str) -> float:
        """By how much the first of these that the page has grew; ``NaN`` for none."""
        return next((self.counts[name] for name in names if name in self.counts), NAN)


def looks_like(head: bytes) -> bool:
    """Whether a file that begins with ``head`` (64 KiB do) is a page of metrics of an engine."""
    starts = tuple(
        start + prefix.encode() for prefix in PREFIXES.values() for start in (b"", b"# TYPE ")
    )
    return any(line.startswith(starts) for line in head.splitlines()[:2000])


def read(texts: Sequence[tuple[str, str]], seen: Seen) -> list[Windows]:
    """A window for each pair of pages that follow one another, (file, text) in order of time.

    Of one page alone, the window since the server's start. Raises ``InputError`` for a page that
    cannot be read or has no engine's metrics, and for a counter that went down.
    """
    pages = [page(text, file) for file, text in texts]
    for (_, text), one in zip(texts, pages, strict=True):
        seen.lines += lines_of(text)
        add(seen.engines, NAMES[one.engine])
        _facts(one, seen)
    if len(pages) == 1:
        add(seen.notes, SINCE_START)
        start = Page(pages[0].engine, "the server's start", {}, {})
        return [_window(start, pages[0], seen)]
    return [_window(before, after, seen) for before, after in pairwise(pages)]


def page(text: str, file: str) -> Page:
    """One page of metrics. Raises ``InputError`` with the line that cannot be read.

    A last line that nothing ends may have been cut within its number, and is left out.
    """
    text = text[: text.rfind("\n") + 1]
    try:
        families = list(text_string_to_metric_families(text))
    except (ValueError, KeyError, IndexError):
        place = f"{file}:{_bad_line(text)}"
        raise InputError(place, "no metric", "Prometheus' text format") from None
    samples = [sample for family in families for sample in family.samples]
    engine = next(
        (e for e, start in PREFIXES.items() if any(s.name.startswith(start) for s in samples)), None
    )
    if engine is None:
        raise InputError(file, "no engine's metrics", "vllm:, sglang: or llamacpp: names")
    sums: dict[str, Counts] = {}
    most: Counts = {}
    for sample in samples:
        source = sample.labels.get("engine", "") if engine == "vllm" else ""
        if sample.name.startswith(PREFIXES[engine]) and math.isfinite(sample.value):
            name = sample.name.removeprefix(PREFIXES[engine])
            counts = sums.setdefault(source, {})
            counts[name] = counts.get(name, 0.0) + sample.value
            most[name] = max(most.get(name, -math.inf), sample.value)
        elif sample.name == "process_start_time_seconds":
            most[sample.name] = max(most.get(sample.name, -math.inf), sample.value)
    start = PREFIXES[engine]
    gauges = frozenset(f.name.removeprefix(start) for f in families if f.type == "gauge")
    return Page(engine, file, sums, most, gauges)


def _bad_line(text: str) -> int:
    """The first line that is no metric by itself."""
    for count, line in enumerate(text.splitlines(), 1):
        try:
            list(text_string_to_metric_families(line + "\n"))
        except (ValueError, KeyError, IndexError):
            return count
    return 1


def _facts(one: Page, seen: Seen) -> None:
    """SGLang's gauges tell its pool and its block."""
    if one.engine == "sglang":
        pool, width = (
            one.most.get(n, 0) for n in ("max_total_num_tokens", "spec_num_draft_tokens")
        )
        if pool > 0:
            seen.pool_tokens = int(pool)
        if width > 0 and seen.block is None:
            seen.block, seen.block_from = int(width), "sglang:spec_num_draft_tokens"


_RUNNING = {"vllm": "num_requests_running", "sglang": "num_running_reqs"}
_COUNTERS = ("_total", "_count", "_sum")


def _grown(before: Page, after: Page, source: str) -> Growth:
    """How much each counter of a source grew.

    One that the first page lacks began at zero in SGLang, which shows a counter when it first
    counts. vLLM and llama.cpp show all of theirs from the start, so there the page is not whole.
    """
    old, new = before.sums.get(source, {}), after.sums.get(source, {})
    counts: Counts = {}
    for name in new:
        counter = name.endswith(_COUNTERS) and name not in after.gauges
        if counter and (name in old or not before.sums or after.engine == "sglang"):
            counts[name] = new[name] - old.get(name, 0.0)
            if counts[name] < 0:
                found = f"{PREFIXES[after.engine]}{name} at {new[name]:g} after {old[name]:g}"
                raise InputError(after.file, found, f"counters no lower than in {before.file}")
    running = _RUNNING.get(after.engine, "requests_processing")
    idle = new.get(running) == 0 and old.get(running, 0 if not old else NAN) == 0
    return Growth(counts, idle)


def _window(before: Page, after: Page, seen: Seen) -> Windows:
    """The windows between two pages, one for each source."""
    if before.engine != after.engine:
        raise InputError(after.file, f"metrics of {NAMES[after.engine]}", NAMES[before.engine])
    starts = [page.most.get("process_start_time_seconds", NAN) for page in (before, after)]
    if abs(starts[0] - starts[1]) > 1:
        raise InputError(after.file, "another start of the process", f"that of {before.file}")
    read_one = {"vllm": _vllm, "sglang": _sglang, "llama.cpp": _llama}[after.engine]
    every = sorted(after.sums)
    sources = [s for s in every if "generation_tokens_total" in after.sums[s]] or every
    rows = [read_one(_grown(before, after, source), after, seen) for source in sources]

    def column(name: str) -> list[float]:
        return [row.get(name, NAN) for row in rows]

    return windows(
        after.engine,
        after.file,
        "none",
        [f"engine {source}" if source else "" for source in sources],
        line=[1] * len(rows),
        source=list(range(len(rows))),
        context_tokens=column("context"),
        running=column("running"),
        tok_per_s=column("tok_per_s"),
        commit=column("commit"),
        acceptance_length=column("acceptance"),
        step_ms=column("step_ms"),
        flags=[_flags(row, seen) for row in rows],
        notes=[_notes(row) for row in rows],
    )


def _notes(row: Counts) -> int:
    undrafted = Note.STEPS_WITHOUT_DRAFT if row.get("undrafted", 0) > 0 else Note(0)
    return int(undrafted | (Note.FEW_STEPS if row.get("steps", NAN) < FEW_STEPS else Note(0)))


def _flags(row: Counts, seen: Seen) -> int:
    flags = Flag.MIXED if row.get("mixed", 0) > 0 else Flag(0)
    if math.isnan(row.get("step_ms", NAN)):
        flags |= Flag.NO_RATE
    if seen.block is not None and row.get("commit", NAN) > seen.block:
        flags |= Flag.ABOVE_BLOCK
    return int(flags)


def _acceptance(accepted: float, drafts: float) -> float:
    """Tokens per step that drafted, bonus token included."""
    return 1 + accepted / drafts if drafts > 0 else NAN


def _rate(row: Counts) -> float:
    """Tokens per second of one request at a time."""
    return 1000 * ratio(row["commit"], row["step_ms"]) * row["running"]


def _vllm(grown: Growth, after: Page, seen: Seen) -> Counts:
    gaps = grown.of("inter_token_latency_seconds_count", "time_per_output_token_seconds_count")
    seconds = grown.of("inter_token_latency_seconds_sum", "time_per_output_token_seconds_sum")
    firsts = grown.of("time_to_first_token_seconds_count")
    if grown.idle:
        if math.isnan(firsts):
            firsts = grown.of("request_decode_time_seconds_count")
        if math.isnan(seconds):
            seconds = grown.of("request_decode_time_seconds_sum")
    tokens, prompts = grown.of("generation_tokens_total"), grown.of("prompt_tokens_total")
    forwards = grown.of("iteration_tokens_total_count")
    drafts = grown.of("spec_decode_num_drafts_total")
    if not math.isnan(grown.of("spec_decode_num_emitted_tokens_total")):
        add(seen.notes, "vLLM's old engine (V0) counts drafts and gaps otherwise: no steps")
        gaps = NAN
    alone = forwards == gaps + firsts and gaps > 0
    row = {
        "steps": gaps,
        "commit": ratio(tokens - firsts, gaps),
        "acceptance": _acceptance(grown.of("spec_decode_num_accepted_tokens_total"), drafts),
        "step_ms": 1000 * ratio(seconds, gaps),
        "context": ratio(prompts + tokens / 2, firsts) if grown.idle else NAN,
        "running": 1.0 if alone else NAN,
        "mixed": float(not alone and forwards > 0 and firsts > 0),
        "undrafted": gaps - drafts if drafts > 0 else NAN,
    }
    return row | {"tok_per_s": _rate(row)}


def _sglang(grown: Growth, after: Page, seen: Seen) -> Counts:
    tokens, prompts = grown.of("generation_tokens_total"), grown.of("prompt_tokens_total")
    requests = grown.of("num_requests_total", "e2e_request_latency_seconds_count")
    verified = grown.of("spec_verify_calls_total")
    plain = after.most.get("spec_num_draft_tokens") == 0 and not verified > 0
    decoded = tokens - requests
    gaps = grown.of("inter_token_latency_seconds_count")
    seconds = grown.of("inter_token_latency_seconds_sum")
    if math.isnan(requests):
        add(seen.notes, "sglang:num_requests_total is missing: first tokens cannot be told apart")
    if not plain and (not grown.idle or gaps != decoded):
        add(seen.notes, "sglang:inter_token_latency_seconds does not cover all decoding: no step")
        seconds = NAN
    add(seen.notes, "" if requests == 1 else "SGLang's counters do not tell how many ran at once")
    commit = 1.0 if plain and tokens > 0 else ratio(decoded, verified)
    row = {
        "steps": decoded if plain else verified,
        "commit": commit,
        "step_ms": 1000 * ratio(seconds, gaps) * commit,
        "context": ratio(prompts + tokens / 2, requests),
        "running": 1.0 if requests == 1 and grown.idle else NAN,
    }
    return row | {"tok_per_s": _rate(row)}


def _llama(grown: Growth, after: Page, seen: Seen) -> Counts:
    tokens, accepted = (
        grown.of("tokens_predicted_total"),
        grown.of("spec_decode_num_accepted_tokens_total"),
    )
    if tokens >= accepted:
        together = f"{tokens - accepted:.0f}"
        add(seen.notes, f"llama.cpp counts no requests: decode steps and requests are {together}")
    drafts = grown.of("spec_decode_num_drafts_total")
    return {"acceptance": _acceptance(accepted, drafts)}
