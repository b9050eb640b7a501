"""Recorded answers of servers, as JSON: one request each, with what its server counted of it.

What is read, and the file in the engine's repository that fills it:

- llama.cpp ``timings`` (``tools/server/server-task.cpp``): ``predicted_ms`` is the time of
  ``predicted_n - 1`` tokens; ``draft_n`` and ``draft_n_accepted`` are left out where nothing was
  drafted; no step count, so steps are ``predicted_n - 1 - draft_n_accepted``.
- SGLang ``meta_info`` (``srt/managers/tokenizer_manager.py``): ``completion_tokens`` counts the
  token that prefill sampled, ``spec_verify_ct`` the verify steps, ``spec_accept_length`` is the
  one over the other. ``first_token_latency`` stands there if the server runs with metrics, in
  0.5.22 and later (not yet in 0.5.20): up to the scheduler's end of prefill, so ``e2e_latency``
  less that is decoding. ``decode_throughput`` is not used: in 0.5.9 it counts the first token too,
  and up to 0.5.20 it starts, without streaming, when the first fifty tokens have arrived.
- vLLM ``metrics`` (``vllm/entrypoints/generate/base/serving.py``): ``generation_time_ms`` is from
  the first output token to the last, ``num_spec_steps`` the steps that drafted. Steps are the
  output less one and the accepted drafts, no fewer than drafted or than chunks of a stream: the
  last block may have been cut.
- SGLang ``/get_server_info``: facts of the server, and a commit length without a rate.
"""

import math
import re
from dataclasses import dataclass
from typing import Any

from analysis.logs.documents import (
    NAMES,
    NAN,
    MalformedError,
    add,
    group,
    lines_of,
    malformed,
    number,
    opens_with_object,
    ratio,
    unknown,
    values,
)
from analysis.model.decode_steps import FEW_STEPS, steps_from_accepted
from analysis.records.seen import Seen
from analysis.records.windows import Engine, Flag, Note, Windows, windows

_KEYS = (
    b'"predicted_n"',
    b'"meta_info"',
    b'"spec_verify_ct"',
    b'"speculative_decoding"',
    b'"generation_time_ms"',
    b'"internal_states"',
    b'"avg_spec_accept_length"',
    b'"max_total_num_tokens"',
)
_OF_A_BENCHMARK = (b'"request_throughput"', b'"mean_tpot_ms"')
_META = {"spec_verify_ct", "e2e_latency", "finish_reason", "cached_tokens"}
_SERVER = {"internal_states", "max_total_num_tokens", "avg_spec_accept_length"}
_WRAPPERS = ("data", "response", "body")
_HINT = re.compile(r"[\w.+() -]{1,60}", re.ASCII)


@dataclass(frozen=True)
class Answer:
    """One request. ``NaN`` where the answer does not tell.

    ``steps`` are all decode steps, ``drafted_steps`` those that drafted, ``decode_ms`` is the time
    of the ``output_tokens - 1`` tokens after prefill's. ``commit`` is over all steps and without
    prefill's token, ``acceptance_length`` as the server has it; both with the bonus token.
    ``block`` is the most that a step can commit, 0 if unknown; times are seconds since 1970.
    """

    line: int
    engine: Engine
    output_tokens: float = NAN
    steps: float = NAN
    drafted_steps: float = NAN
    commit: float = NAN
    acceptance_length: float = NAN
    decode_ms: float = NAN
    context_tokens: float = NAN
    block: int = 0
    begun_s: float = NAN
    ended_s: float = NAN

    @property
    def step_ms(self) -> float:
        """Milliseconds of one decode step."""
        return ratio(self.decode_ms, self.steps)

    @property
    def tok_per_s(self) -> float:
        """Decoded tokens per second of this request alone."""
        return 1000 * ratio(self.output_tokens - 1, self.decode_ms)


def looks_like(head: bytes) -> bool:
    """Whether a file that begins with ``head`` (64 KiB do) holds answers of a server."""
    known = any(key in head for key in _KEYS)
    return known and opens_with_object(head) and not any(key in head for key in _OF_A_BENCHMARK)


def read(text: str, file: str, seen: Seen) -> list[Windows]:
    """A window for each answer in the order of the file, one table for each engine.

    ``running`` is 1 and ``tok_per_s`` the request's own; where times tell that another one of the
    file ran beside it, it is flagged as mixed. Raises ``InputError`` for broken JSON.
    """
    found = answers(text, file, seen)
    engines: list[Engine] = [e for e in NAMES if any(answer.engine == e for answer in found)]
    return [_windows(e, file, [a for a in found if a.engine == e], seen) for e in engines]


def answers(text: str, file: str, seen: Seen) -> list[Answer]:
    """The answers of a file in its order, and into ``seen`` what else it holds."""
    seen.lines += lines_of(text)
    found: list[Answer] = []
    chunks: dict[str, int] = {}
    for line, value in values(text, file):
        try:
            answer = _answer(line, value, chunks, seen)
        except MalformedError as error:
            malformed(seen, line, str(error))
            continue
        if answer is not None:
            found.append(answer)
    return found


def _answer(line: int, value: Any, chunks: dict[str, int], seen: Seen) -> Answer | None:
    """What one object tells; ``None`` for a chunk of a stream, a server's facts, or the unknown."""
    if isinstance(value, dict):
        value = next((value[key] for key in _WRAPPERS if isinstance(value.get(key), dict)), value)
        if _is_hint(hint := value.get("system_fingerprint")):
            add(seen.version_hints, str(hint))
        name = str(value.get("id", ""))
        if _is_chunk(value):
            chunks[name] = chunks.get(name, 0) + 1
            if not {"timings", "metrics"} & value.keys():
                return None
        meta, timings = value.get("meta_info", value), value.get("timings", value)
        if isinstance(meta, dict) and "completion_tokens" in meta and _META & meta.keys():
            going_on = "finish_reason" in meta and meta["finish_reason"] is None
            return None if going_on else _sglang(line, meta)
        if isinstance(timings, dict) and {"predicted_n", "predicted_ms"} <= timings.keys():
            going_on = value.get("stop") is False or _goes_on(value)
            return None if going_on else _llama(line, timings, value)
        metrics = group(value, "metrics")
        if {"speculative_decoding", "generation_time_ms"} & metrics.keys():
            return _vllm(line, metrics, group(value, "usage"), chunks.get(name, 0))
        if value.keys() & _SERVER:
            return _server(line, value, seen)
    unknown(seen, line, value)
    return None


def _is_chunk(value: dict[str, Any]) -> bool:
    """Whether this is an event of an OpenAI stream that carries text."""
    choices = value.get("choices")
    return isinstance(choices, list) and len(choices) > 0 and value.get("usage") is None


def _goes_on(value: dict[str, Any]) -> bool:
    """Whether an event of an OpenAI stream is followed by another with text."""
    first = value["choices"][0] if _is_chunk(value) else None
    return isinstance(first, dict) and first.get("finish_reason") is None


def _sglang(line: int, meta: dict[str, Any]) -> Answer:
    tokens, verified = number(meta, "completion_tokens"), number(meta, "spec_verify_ct")
    if verified > 0 and tokens < 2:
        raise MalformedError("verify steps without a decoded token")
    if verified > tokens - 1 > 0:
        raise MalformedError("more verify steps than decoded tokens")
    steps = verified if verified > 0 else tokens - 1
    decode_s = number(meta, "e2e_latency") - number(meta, "first_token_latency")
    drafts = ratio(number(meta, "spec_num_proposed_drafts"), verified)
    return Answer(
        line,
        "sglang",
        output_tokens=tokens,
        steps=steps,
        drafted_steps=verified if verified > 0 else 0.0,
        commit=ratio(tokens - 1, steps),
        acceptance_length=number(meta, "spec_accept_length"),
        decode_ms=1000 * decode_s if decode_s > 0 else NAN,
        context_tokens=number(meta, "prompt_tokens") + tokens / 2,
        block=0 if math.isnan(drafts) else round(drafts) + 1,
        begun_s=number(meta, "request_received_ts"),
        ended_s=number(meta, "request_finished_ts"),
    )


def _llama(line: int, timings: dict[str, Any], whole: dict[str, Any]) -> Answer:
    tokens, drafted = number(timings, "predicted_n"), number(timings, "draft_n")
    accepted = number(timings, "draft_n_accepted")
    prompt = number(timings, "cache_n") + number(timings, "prompt_n")
    if math.isnan(prompt):
        prompt = number(whole, "tokens_evaluated")
    steps = _steps(tokens, 0.0 if math.isnan(accepted) else accepted)
    return Answer(
        line,
        "llama.cpp",
        output_tokens=tokens,
        steps=steps,
        drafted_steps=NAN if drafted > 0 else 0.0,
        commit=ratio(tokens - 1, steps),
        decode_ms=number(timings, "predicted_ms"),
        context_tokens=prompt + tokens / 2,
    )


def _vllm(line: int, metrics: dict[str, Any], usage: dict[str, Any], chunks: int) -> Answer:
    drafting = group(metrics, "speculative_decoding")
    tokens, width = number(usage, "completion_tokens"), number(drafting, "num_spec_tokens")
    drafted = number(drafting, "num_spec_steps")
    accepted = number(drafting, "num_accepted_draft_tokens")
    if drafted > tokens - 1:
        raise MalformedError("more drafted steps than decoded tokens")
    steps = _steps(tokens, accepted)
    if not math.isnan(steps):
        steps = max(steps, drafted, chunks - 1)
    return Answer(
        line,
        "vllm",
        output_tokens=tokens,
        steps=steps,
        drafted_steps=drafted,
        commit=ratio(tokens - 1, steps),
        acceptance_length=1 + accepted / drafted if drafted > 0 else NAN,
        decode_ms=number(metrics, "generation_time_ms"),
        context_tokens=number(usage, "prompt_tokens") + tokens / 2,
        block=int(width) + 1 if width > 0 else 0,
    )


def _steps(tokens: float, accepted: float) -> float:
    """All decode steps; ``NaN`` where nothing was decoded, or a count is unknown."""
    if not tokens > 1 or math.isnan(accepted):
        return NAN
    try:
        return float(steps_from_accepted(int(tokens), int(accepted)))
    except ValueError:
        raise MalformedError("more accepted drafts than decoded tokens") from None


def _server(line: int, info: dict[str, Any], seen: Seen) -> Answer | None:
    """Facts of an SGLang server; an answer only for the commit length that it has of all so far.

    ``avg_spec_accept_length`` (``srt/managers/scheduler_components/internal_state.py``) is over
    the verify steps from the start, or a flush, up to the last log line, of one rank.
    """
    if isinstance(decode := info.get("decode"), list) and decode and isinstance(decode[0], dict):
        info = decode[0]
    states = info.get("internal_states")
    state = states[0] if isinstance(states, list) and states else info
    pool, width = number(info, "max_total_num_tokens"), number(info, "speculative_num_draft_tokens")
    limit, commit = number(info, "context_len"), number(state, "avg_spec_accept_length")
    add(seen.engines, NAMES["sglang"])
    if _is_hint(version := info.get("version")):
        add(seen.version_hints, f"SGLang {version}")
    if pool > 0:
        seen.pool_tokens = int(pool)
    if width > 0 and seen.block is None:
        seen.block, seen.block_from = int(width), "speculative_num_draft_tokens"
    if limit > 0:
        add(seen.notes, f"context limit: {limit:.0f} tokens")
    if math.isnan(commit):
        return None
    add(seen.notes, "avg_spec_accept_length: all requests since the server's start, one rank's")
    return Answer(line, "sglang", commit=commit, acceptance_length=commit)


def _is_hint(value: Any) -> bool:
    return isinstance(value, str) and _HINT.fullmatch(value) is not None


def _flags(answer: Answer, block: int | None) -> int:
    flags = Flag(0)
    if math.isnan(answer.tok_per_s):
        flags |= Flag.NO_RATE
    if block is not None and answer.commit > block:
        flags |= Flag.ABOVE_BLOCK
    return int(flags)


def _notes(answer: Answer) -> int:
    some = 0 < answer.drafted_steps < answer.steps
    undrafted = Note.STEPS_WITHOUT_DRAFT if some else Note(0)
    return int(undrafted | (Note.FEW_STEPS if answer.steps < FEW_STEPS else Note(0)))


def _beside_another(found: list[Answer]) -> set[int]:
    """Which of these ran while another of them ran, by their places, as far as times tell."""
    known = [i for i, answer in enumerate(found) if answer.begun_s <= answer.ended_s]
    known.sort(key=lambda i: found[i].begun_s)
    beside: set[int] = set()
    last = -1
    for i in known:
        if last >= 0 and found[i].begun_s < found[last].ended_s:
            beside |= {i, last}
        if last < 0 or found[i].ended_s > found[last].ended_s:
            last = i
    return beside


def _windows(engine: Engine, file: str, found: list[Answer], seen: Seen) -> Windows:
    add(seen.engines, NAMES[engine])
    block = max(answer.block for answer in found)
    if block and seen.block is None:
        seen.block, seen.block_from = block, "drafts per step of the answers"
    beside = _beside_another(found)
    timed = all(answer.ended_s > 0 for answer in found)
    return windows(
        engine,
        file,
        "date" if timed else "none",
        ("",),
        line=[answer.line for answer in found],
        time_s=[answer.ended_s if timed else NAN for answer in found],
        running=[1.0] * len(found),
        context_tokens=[answer.context_tokens for answer in found],
        tok_per_s=[answer.tok_per_s for answer in found],
        commit=[answer.commit for answer in found],
        acceptance_length=[answer.acceptance_length for answer in found],
        step_ms=[answer.step_ms for answer in found],
        flags=[
            _flags(answer, seen.block) | (Flag.MIXED if i in beside else 0)
            for i, answer in enumerate(found)
        ],
        notes=[_notes(answer) for answer in found],
    )
