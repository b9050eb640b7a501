"""What benchmark programs print or save of a whole run: a run is one window.

- ``vllm bench serve`` (``vllm/benchmarks/serve.py``) and SGLang's ``bench_serving``
  (``sglang/bench_serving.py``, in 0.5.23 ``sglang/benchmark/serving.py``): the block under
  ``Serving Benchmark Result`` and the JSON. *TPOT* is, of a request, (latency - time to first
  token) / (output tokens - 1), seen by the client; the mean of requests is taken, since with equal
  lengths it is the time of all over the tokens of all. The printed output throughput holds prefill
  and idle time and is not used. Without streaming no time to first token is known (0), and what is
  printed as TPOT holds the prefill: no rate.
- vLLM's section ``Speculative Decoding`` (2026-01 on) is the difference of the server's counters
  over the run. Its acceptance length is over drafted steps; steps are tokens - requests - accepted
  drafts, no fewer than drafts (a cut last block counts as accepted).
- SGLang's ``Accept length`` is the server's ``avg_spec_accept_length``: over all verify steps since
  the server's start, not of the run alone, of one rank.
- SGLang's ``bench_one_batch_server`` (``sglang/benchmark/one_batch_server.py``), JSON Lines: all
  requests at once. Its output throughput counts first tokens but not their time;
  ``steady_state_output_throughput``, where it is, does not.
- SGLang's ``scripts/playground/bench_speculative.py``, JSON Lines: ``step_time`` is the 20th
  percentile of the batch's steps, so it is no mean and no rate follows.
- ``llama-bench`` (``tools/llama-bench/llama-bench.cpp``), JSON: tests that only generate; it never
  speculates, so a token is a step.

Requests that run beside others wait for their prefills too: such a window is flagged as mixed.
``running`` is 1 for one request at a time, else SGLang's ``Concurrency`` (requests in flight, mean
over the run) or the batch; a bare maximum says nothing.
"""

import json
import math
import re
from collections.abc import Iterator
from typing import Any

from analysis.logs.documents import (
    NAMES,
    NAN,
    MalformedError,
    add,
    lines_of,
    malformed,
    number,
    opens_with_object,
    ratio,
    unknown,
    values,
)
from analysis.model.decode_steps import FEW_STEPS
from analysis.records.seen import Seen
from analysis.records.windows import Engine, Flag, Note, Windows, windows

_TITLE = "Serving Benchmark Result"
_LINE = re.compile(r"\s*([A-Za-z][A-Za-z0-9 .()/%-]*):\s+(\S.*?)\s*$")
_POSITION = re.compile(r"Position \d+")
_FIELDS = {
    "Backend": "backend",
    "Maximum request concurrency": "max_concurrency",
    "Max request concurrency": "max_concurrency",
    "Max reqeuest concurrency": "max_concurrency",  # SGLang up to 0.4.x
    "Successful requests": "completed",
    "Failed requests": "failed",
    "Total input tokens": "total_input_tokens",
    "Total generated tokens": "total_output_tokens",
    "Total generated tokens (retokenized)": "total_output_tokens_retokenized",
    "Concurrency": "concurrency",
    "Accept length": "accept_length",
    "Mean TTFT (ms)": "mean_ttft_ms",
    "Mean TPOT (ms)": "mean_tpot_ms",
    "Acceptance length": "spec_decode_acceptance_length",
    "Drafts": "spec_decode_num_drafts",
    "Accepted tokens": "spec_decode_accepted_tokens",
}
_KINDS = (
    {"completed", "total_output_tokens"},
    {"batch_size", "output_len", "output_throughput"},
    {"batch_size", "acc_length", "step_time"},
    {"n_gen", "n_prompt", "avg_ts"},
)
_CUMULATIVE = "accept length of a benchmark: all requests since the server's start, one rank's"
_UNNAMED = "vllm bench serve does not name the server that it asked: taken for vLLM"
_PERCENTILE = "step_time of bench_speculative: the 20th percentile of steps, not their mean"

Row = dict[str, float]


def looks_like(head: bytes) -> bool:
    """Whether a file that begins with ``head`` (64 KiB do) holds results of a benchmark."""
    if _TITLE.encode() in head or b'"mean_tpot_ms"' in head:
        return True
    keys = (b'"request_throughput"', b'"step_time"', b'"n_gen"', b'"acc_length"')
    return opens_with_object(head) and any(key in head for key in keys)


def read(text: str, file: str, seen: Seen) -> list[Windows]:
    """A window for each benchmark in the order of the file, one table for each engine.

    JSON, JSON Lines, or a text with blocks and JSON lines between other lines. Raises
    ``InputError`` where a file that begins as JSON is broken.
    """
    seen.lines += lines_of(text)
    whole = _TITLE not in text and opens_with_object(text[:65536].encode())
    rows: dict[Engine, list[Row]] = {engine: [] for engine in NAMES}
    for line, value in values(text, file) if whole else _records(text, seen):
        kind = _kind(value)
        if kind is None:
            unknown(seen, line, value)
            continue
        try:
            found = (_serving, _one_batch, _speculative, _llama_bench)[kind](value, seen)
        except MalformedError as error:
            malformed(seen, line, str(error))
            continue
        if found is None:
            seen.unparsed += 1
            continue
        engine, row = found
        rows[engine].append(row | {"line": line})
    return [_windows(engine, file, of, seen) for engine, of in rows.items() if of]


def _kind(value: Any) -> int | None:
    """Which of the known programs wrote this, as an index into ``_KINDS``."""
    keys = value.keys() if isinstance(value, dict) else set()
    return next((i for i, needed in enumerate(_KINDS) if needed <= keys), None)


def _records(text: str, seen: Seen) -> Iterator[tuple[int, dict[str, Any]]]:
    """The blocks and JSON lines of a text; the fields of a block under the names of the JSON."""
    block: dict[str, Any] | None = None
    begun = 0
    for count, line in enumerate(text.splitlines(keepends=True), 1):
        ends = line.strip().strip("=") == "" and line.strip() != ""
        if block is not None and (ends or _TITLE in line or line.startswith("```")):
            yield begun, block
            block = None
            if _TITLE not in line:
                continue
        if _TITLE in line:
            block, begun = {"completed": None, "total_output_tokens": None}, count
        elif block is not None:
            # A last line that nothing ends may have been cut within its number.
            field = _LINE.match(line) if line.endswith("\n") else None
            if field and field[1] in _FIELDS:
                name = _FIELDS[field[1]]
                if name == "backend":  # only SGLang's program prints it
                    block["accept_length"] = None
                if block.get(name) is None:
                    block[name] = field[2] if name == "backend" else _printed(field[2])
            elif field and _POSITION.fullmatch(field[1]):
                block["positions"] = block.get("positions", 0) + 1
        elif line.startswith("{") and line.rstrip().endswith("}"):
            try:
                value = json.loads(line)
            except ValueError:
                malformed(seen, count, "a line in braces that is no JSON")
                continue
            yield count, value
        elif line.strip():
            seen.unparsed += 1
    if block is not None:
        yield begun, block


def _printed(text: str) -> float | None:
    """A number as printed; ``None`` for "not set", "N/A" and the like."""
    try:
        return float(text)
    except ValueError:
        return None


def _serving(data: dict[str, Any], seen: Seen) -> tuple[Engine, Row] | None:
    """A run of ``vllm bench serve`` or of SGLang's ``bench_serving``."""
    sglang = "accept_length" in data or "total_output_tokens_retokenized" in data
    backend = str(data.get("backend", ""))
    engine: Engine = "sglang" if sglang and backend.startswith("sglang") else "vllm"
    if sglang and not backend.startswith(("sglang", "vllm")):
        return None
    requests, failed = number(data, "completed"), number(data, "failed")
    if not requests >= 1:
        raise MalformedError("no count of successful requests")
    limit, beside = number(data, "max_concurrency"), number(data, "concurrency")
    alone = limit == 1 or (requests == 1 and not failed > 0)
    tokens, tpot = number(data, "total_output_tokens"), number(data, "mean_tpot_ms")
    streamed = number(data, "mean_ttft_ms") > 0
    tpot = tpot if streamed and tpot > 0 else NAN
    commit = accept = number(data, "accept_length")
    undrafted = False
    if sglang:
        add(seen.notes, _CUMULATIVE if commit > 0 else "")
    else:
        add(seen.notes, "" if "spec_decode_num_drafts" in data else _UNNAMED)
        commit, accept, undrafted = _by_counters(data, tokens - requests, failed)
        _block(data, seen)
    running = 1.0 if alone else beside if sglang and beside > 0 else NAN
    return engine, {
        "context_tokens": ratio(number(data, "total_input_tokens"), requests)
        + tokens / requests / 2,
        "running": running,
        "tok_per_s": 1000 * running / tpot,
        "commit": commit if commit > 0 else NAN,
        "acceptance_length": accept if accept > 0 else NAN,
        "step_ms": tpot * commit if commit > 0 else NAN,
        "steps": ratio(tokens - requests, commit),
        "notes": Note.STEPS_WITHOUT_DRAFT if undrafted else 0,
        "flags": (0 if alone else Flag.MIXED) | (0 if streamed else Flag.PREFILL),
    }


def _by_counters(data: dict[str, Any], decoded: float, failed: float) -> tuple[float, float, bool]:
    """Commit over all steps, acceptance length over drafted ones, and whether there are others.

    From vLLM's counters. The commit is undefined where requests failed: the drafts of these are
    counted and their tokens are not.
    """
    drafts = number(data, "spec_decode_num_drafts")
    accepted = number(data, "spec_decode_accepted_tokens")
    if not drafts > 0 or math.isnan(accepted):
        return NAN, number(data, "spec_decode_acceptance_length"), False
    steps = max(decoded - accepted, drafts)
    if failed > 0 or steps > decoded:
        return NAN, 1 + accepted / drafts, False
    return ratio(decoded, steps), 1 + accepted / drafts, steps > drafts


def _block(data: dict[str, Any], seen: Seen) -> None:
    """The widest block of vLLM's run: a rate for each position, and the bonus token."""
    rates = data.get("spec_decode_per_position_acceptance_rates")
    positions = len(rates) if isinstance(rates, list) else data.get("positions", 0)
    if positions and seen.block is None:
        seen.block, seen.block_from = positions + 1, "positions of the benchmark's acceptance"


def _one_batch(data: dict[str, Any], seen: Seen) -> tuple[Engine, Row]:
    """A case of SGLang's ``bench_one_batch_server``: a batch of equal requests, all at once."""
    batch, tokens = number(data, "batch_size"), number(data, "output_len")
    rate, commit = number(data, "steady_state_output_throughput"), _optional(data, "acc_length")
    if math.isnan(rate) and not number(data, "num_early_stopped") > 0:
        rate = number(data, "output_throughput") * (tokens - 1) / tokens if tokens > 1 else NAN
    add(seen.notes, _CUMULATIVE if commit > 0 else "")
    return "sglang", {
        "context_tokens": number(data, "input_len") + tokens / 2,
        "running": batch,
        "tok_per_s": rate if rate > 0 else NAN,
        "commit": commit,
        "acceptance_length": commit,
        "step_ms": 1000 * ratio(commit * batch, rate),
        "steps": ratio(tokens - 1, commit),
        "flags": 0,
    }


def _speculative(data: dict[str, Any], seen: Seen) -> tuple[Engine, Row]:
    """A configuration of SGLang's ``bench_speculative``."""
    commit, width = _optional(data, "acc_length"), number(data, "num_draft_tokens")
    add(seen.notes, _PERCENTILE)
    return "sglang", {
        "context_tokens": NAN,
        "running": number(data, "batch_size"),
        "tok_per_s": NAN,
        "commit": commit,
        "acceptance_length": commit if width > 0 else NAN,
        "step_ms": 1000 * number(data, "step_time"),
        "steps": NAN,
        "flags": Flag.NO_RATE,
    }


def _optional(data: dict[str, Any], key: str) -> float:
    """A number for which SGLang writes -1 where there is none."""
    return NAN if data.get(key) == -1 else number(data, key)


def _llama_bench(data: dict[str, Any], seen: Seen) -> tuple[Engine, Row] | None:
    """A test of ``llama-bench`` that only generates; ``None`` for one that holds a prompt."""
    tokens, rate = number(data, "n_gen"), number(data, "avg_ts")
    if number(data, "n_prompt") > 0 or not tokens > 0:
        return None
    depth = number(data, "n_depth")
    return "llama.cpp", {
        "context_tokens": (0.0 if math.isnan(depth) else depth) + tokens / 2,
        "running": 1.0,
        "tok_per_s": rate if rate > 0 else NAN,
        "commit": 1.0,
        "acceptance_length": NAN,
        "step_ms": ratio(1000.0, rate),
        "steps": tokens,
        "flags": 0,
    }


def _windows(engine: Engine, file: str, rows: list[Row], seen: Seen) -> Windows:
    add(seen.engines, NAMES[engine])
    limit = math.inf if seen.block is None else seen.block
    flags = [
        int(row["flags"])
        | (Flag.NO_RATE if math.isnan(row["tok_per_s"]) and math.isnan(row["step_ms"]) else 0)
        | (Flag.ABOVE_BLOCK if row["commit"] > limit else 0)
        for row in rows
    ]

    def column(name: str) -> list[float]:
        return [row[name] for row in rows]

    return windows(
        engine,
        file,
        "none",
        ("",),
        line=[int(row["line"]) for row in rows],
        flags=flags,
        notes=[
            int(row.get("notes", 0)) | (Note.FEW_STEPS if row["steps"] < FEW_STEPS else 0)
            for row in rows
        ],
        context_tokens=column("context_tokens"),
        running=column("running"),
        tok_per_s=column("tok_per_s"),
        commit=column("commit"),
        acceptance_length=column("acceptance_length"),
        step_ms=column("step_ms"),
    )
