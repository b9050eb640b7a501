"""An invented run folder: a step law, a commit law and a little seeded noise, all files valid.

What a run of it must say follows from the laws alone: ``steps = (output - 1) / commit`` rounded,
each of them ``step_law(prompt + output / 2)`` ms, with ``noise`` as the relative standard deviation
of a request's times. Prefill takes 2 ms and 0.1 ms per prompt token; the client sees the engine's
times and half a millisecond more for the decode.
"""

import hashlib
import json
import random
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from analysis.records.run import FORMAT, MANIFEST, PLAN, REQUESTS, ExperimentName

HOST = {
    "system": "Linux",
    "processor": "an invented one",
    "cores": 4,
    "memory_gib": 16.0,
    "python": "3.11.9",
}
DRAFTS = 7
STARTED = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)
EVERY: tuple[ExperimentName, ...] = ("two-point", "context-sweep", "output-length", "acceptance")
OUTPUTS: dict[ExperimentName, tuple[int, ...]] = {
    "two-point": (64, 128, 192),
    "context-sweep": (128,),
    "output-length": (64, 128, 256),
    "acceptance": (128,),
}


def write_run(
    folder: Path,
    *,
    name: str | None = None,
    speculates: bool = True,
    experiments: Sequence[ExperimentName] = EVERY,
    contexts: Sequence[int] = (128, 512, 1024, 2048),
    texts: Sequence[str] = ("repeated",),
    step_law: Callable[[float], float] = lambda context: 20 + 0.01 * context,
    commit: float | Mapping[str, float] = 4.0,
    repeats: int = 3,
    noise: float = 0.002,
    seed: int = 1,
    server: Mapping[str, Any] | None = None,
    host: Mapping[str, Any] | None = None,
    each: Callable[[dict[str, Any]], dict[str, Any]] = lambda sample: sample,
    ended: bool = True,
) -> Path:
    """Write a run into ``folder`` and return it.

    ``commit`` is one commit length, or one for each text; ``server`` and ``host`` replace fields
    of the manifest; ``each`` may change the values of any sample (flag it, take a figure out).
    Every experiment sends every text at every context, but ``output-length`` and ``acceptance``
    at the second context alone; each cell is warmed up once, under the number of its first request.
    """
    draw = random.Random(seed)
    folder.mkdir(parents=True)
    plan = list(_plan(experiments, contexts, texts, repeats))
    commits = commit if isinstance(commit, Mapping) else dict.fromkeys(texts, commit)
    samples = []
    for planned in plan:
        accepts = commits[planned["text"]] if speculates else 1.0
        for warmup in (True, False) if planned["repeat"] == 0 else (False,):
            answer = _answer(planned, speculates, accepts, step_law, noise, draw)
            samples.append(each(planned | {"warmup": warmup} | answer))
    (folder / PLAN).write_text(_lines(plan))
    requests = _lines(samples).encode()
    (folder / REQUESTS).write_bytes(requests)
    manifest = {
        "format": FORMAT,
        "name": name or folder.name,
        "server": {
            "kind": "llama.cpp",
            "version": "b9999",
            "model": "invented-1B",
            "context_limit": 8192,
            "slots": 1,
            "speculation": "ngram-simple" if speculates else "",
            "speculates": speculates,
            "where": "this machine",
            "flags": ["--slots", "1"],
            **(server or {}),
        },
        "host": {**HOST, **(host or {})},
        "experiments": {
            experiment: {"outputs": OUTPUTS[experiment], "repeats": repeats}
            for experiment in experiments
        },
        "texts": {text: hashlib.sha256(text.encode()).hexdigest() for text in texts},
        "seed": seed,
        "started_utc": STARTED.isoformat(),
    }
    if ended:
        manifest["ended_utc"] = (STARTED + timedelta(seconds=len(plan))).isoformat()
        manifest["requests_sha256"] = hashlib.sha256(requests).hexdigest()
    (folder / MANIFEST).write_text(json.dumps(manifest, indent=1) + "\n")
    return folder


def _plan(
    experiments: Sequence[ExperimentName],
    contexts: Sequence[int],
    texts: Sequence[str],
    repeats: int,
) -> Iterator[dict[str, Any]]:
    number = 0
    for experiment in experiments:
        one = experiment in ("output-length", "acceptance")
        for text in texts:
            for prompt in contexts[1:2] if one else contexts:
                for output in OUTPUTS[experiment]:
                    for repeat in range(repeats):
                        yield {
                            "number": number,
                            "experiment": experiment,
                            "text": text,
                            "asked_prompt_tokens": prompt,
                            "asked_output_tokens": output,
                            "repeat": repeat,
                        }
                        number += 1


def _answer(
    planned: Mapping[str, Any],
    speculates: bool,
    commit: float,
    step_law: Callable[[float], float],
    noise: float,
    draw: random.Random,
) -> dict[str, Any]:
    prompt, output = planned["asked_prompt_tokens"], planned["asked_output_tokens"]
    steps = round((output - 1) / commit)
    decode_ms = steps * step_law(prompt + output / 2) * draw.gauss(1, noise)
    prefill_ms = (2 + 0.1 * prompt) * draw.gauss(1, noise)
    drafted = {"drafted_tokens": DRAFTS * steps, "accepted_tokens": output - 1 - steps}
    return {
        "sent_utc": (STARTED + timedelta(seconds=planned["number"])).isoformat(),
        "request_s": (prefill_ms + decode_ms + 1.5) / 1000,
        "first_token_s": (prefill_ms + 1.0) / 1000,
        "decode_s": (decode_ms + 0.5) / 1000,
        "chunks": steps + 1,
        "prompt_tokens": prompt,
        "cached_tokens": prompt - 1,
        "output_tokens": output,
        **(drafted if speculates else {}),
        "steps": steps,
        "steps_source": "timings" if speculates else "no drafting",
        "engine_decode_ms": decode_ms,
        "engine_prefill_ms": prefill_ms,
        "running_before": 0,
        "busy_cores": 0.05,
        "clock_step_ms": 0.1,
    }


def _lines(records: Sequence[Mapping[str, Any]]) -> str:
    return "".join(json.dumps(record) + "\n" for record in records)
