"""The KV layout experiment: pools of tiny models at one and two ranks, predicted, then read.

Four servers of an engine, one after the other: MLA and GQA models of random weights
(``engines/tiny-configs``), each at one and at two tensor parallel ranks. vLLM is given 1 GiB for
the pool of each rank and prints how many tokens that holds; SGLang is given 16,384 tokens and
prints what they take. Nothing is asked of a server but its ``/metrics`` page.
"""

import fcntl
import json
import os
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import psutil

from analysis import paths
from analysis.engines import cpu_servers
from analysis.engines.cpu_servers import SGLANG, START_S, VLLM, CpuEngine
from analysis.errors import InputError
from analysis.experiments import host
from analysis.experiments.recorder import write_whole
from analysis.logs.printed_pool import POOL_METRICS, pool_gauges
from analysis.logs.redact import redact
from analysis.model.kv_cache import GIB, Parallelism, bytes_per_token_per_gpu
from analysis.model.kv_pool import sglang_allocated_bytes, vllm_pool_tokens
from analysis.records.inputs import digest, read_bytes
from analysis.records.kv_layout import (
    FORMAT,
    PREDICTIONS,
    KvLayout,
    Prediction,
    Predictions,
    Reading,
    is_kv_layout,
    reading_file,
)
from analysis.records.model_config import load_model

MODELS = ("mla", "gqa")
RANKS = (1, 2)
KV_BYTES = GIB
KV_TOKENS = 16_384
VLLM_BLOCKS = {"MLA": 16}
VLLM_BLOCK = 128
"""vLLM 0.32 on a CPU (``platforms/cpu.py``): blocks of 16 for its CPU_MLA kernel, else of 128."""
SGLANG_PAGE = 1
"""SGLang's default page, and so one row of padding (``mem_cache/memory_pool.py``)."""

RULES = {
    VLLM.name: "vllm_pool_tokens: whole blocks of all layers in the bytes that were given",
    SGLANG.name: "sglang_allocated_bytes: the tokens that were given and one page of padding",
}
KEPT_LINES = {
    VLLM.name: re.compile(
        r"Resolved architecture: |Using \w+ backend\.|GiB for KV cache on node|KV cache size: "
    ),
    SGLANG.name: re.compile(
        r"Load weight end\.|KV Cache is allocated\.|\bmax_total_num_tokens=|fired up and ready"
    ),
}
"""The lines of a log that tell what was served and which pool it got."""

Say = Callable[[Prediction, float, str], None]
"""Takes the server that is being read, seconds since its start, and what it said last."""


def planned(engine: CpuEngine) -> tuple[Prediction, ...]:
    """What each server of an engine is to print, worked out from the configs alone."""
    return tuple(_predict(engine, name, ranks) for name in MODELS for ranks in RANKS)


def measure(
    engine: CpuEngine,
    folder: Path,
    say: Say = lambda prediction, spent, line: None,
    bound_s: float = START_S,
) -> KvLayout:
    """Read every server of an engine that ``folder`` has no reading of.

    Predictions are written before the first server starts. Raises ``InputError`` where the engine
    is not installed, the machine is too small, the folder is another's, or a server does not come
    up; what was read by then stays, and the next call goes on.
    """
    version = cpu_servers.installed_version(engine)
    layout = _opened(engine, version, folder)
    with _locked(folder):
        for prediction in layout.left:
            refuse_small_machine(engine)
            reading = _read(engine, layout, prediction, say, bound_s)
            write_whole(reading_file(folder, prediction.server), _json(reading))
    return KvLayout(folder)


def refuse_small_machine(engine: CpuEngine) -> None:
    """Raise ``InputError`` for fewer cores than ranks, or too little memory that is free."""
    cores, free = len(_cores()), psutil.virtual_memory().available / GIB
    if cores < max(RANKS):
        raise InputError(engine.name, f"{cores} core", f"{max(RANKS)}, one for each rank")
    if free < engine.memory_gib:
        found, expected = f"{free:.1f} GiB of free memory", f"{engine.memory_gib:g} GiB"
        raise InputError(engine.name, found, f"{expected}, for two ranks")


def _opened(engine: CpuEngine, version: str, folder: Path) -> KvLayout:
    """The folder with its predictions; they are written now if there are none."""
    now = Predictions(
        format=FORMAT,
        engine=engine.name,
        version=version,
        rule=RULES[engine.name],
        host=host.describe(),
        written_utc=datetime.now(UTC),
        servers=planned(engine),
    )
    if not is_kv_layout(folder):
        if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
            raise InputError(paths.relative(folder), "other files", "a new or an empty folder")
        refuse_small_machine(engine)
        try:
            (folder / "servers").mkdir(parents=True, exist_ok=True)
            write_whole(folder / PREDICTIONS, _json(now))
        except OSError as error:
            found = (error.strerror or type(error).__name__).lower()
            raise InputError(paths.relative(folder), found, "a folder that can be made") from None
        return KvLayout(folder)
    layout = KvLayout(folder)
    then = layout.predictions
    for what, is_now, was in (
        ("engine", now.engine, then.engine),
        ("version", now.version, then.version),
        ("processor", now.host.processor, then.host.processor),
        ("cores", now.host.cores, then.host.cores),
        ("predictions", now.servers, then.servers),
    ):
        if layout.left and is_now != was:
            found = "others" if what == "predictions" else repr(is_now)
            expected = "a new folder (--out)" if what == "predictions" else f"{was!r}, as it began"
            raise InputError(f"{paths.relative(folder)}, {what}", found, expected)
    return layout


def _predict(engine: CpuEngine, name: str, ranks: int) -> Prediction:
    path = paths.ENGINES / "tiny-configs" / f"{name}.json"
    model, parallelism = load_model(str(path)), Parallelism(tp=ranks)
    cell = bytes_per_token_per_gpu(model.cache, model.dtype, parallelism)
    common: dict[str, Any] = {
        "server": f"{name}-tp{ranks}",
        "model": name,
        "config_sha256": digest(read_bytes(path)),
        "attention": model.attention,
        "tp": ranks,
        "kv_dtype": model.dtype,
        "bytes_per_token": cell,
    }
    if engine is VLLM:
        block = VLLM_BLOCKS.get(model.attention, VLLM_BLOCK)
        tokens = vllm_pool_tokens(KV_BYTES, model.cache, model.dtype, parallelism, block)
        return Prediction(
            **common,
            page_tokens=block,
            given_bytes=KV_BYTES,
            tokens=tokens,
            rank_bytes=tokens * cell,
        )
    return Prediction(
        **common,
        page_tokens=SGLANG_PAGE,
        given_tokens=KV_TOKENS,
        tokens=KV_TOKENS,
        rank_bytes=sglang_allocated_bytes(KV_TOKENS, cell, SGLANG_PAGE),
    )


@dataclass(frozen=True)
class _Start:
    """Flags and environment variables of one server."""

    flags: tuple[str, ...]
    variables: dict[str, str]


def _start(engine: CpuEngine, prediction: Prediction) -> _Start:
    ranks = str(prediction.tp)
    if engine is VLLM:
        # The kernel is named so that processors with AMX, where another would be taken, agree.
        kernel = ("--attention-backend", "CPU_MLA") if prediction.attention == "MLA" else ()
        flags = (
            *("--load-format", "dummy", "--skip-tokenizer-init", "--enforce-eager"),
            *("--tensor-parallel-size", ranks, *kernel),
        )
        gib = str(KV_BYTES // GIB)
        bound = {"VLLM_CPU_KVCACHE_SPACE": gib, "VLLM_CPU_OMP_THREADS_BIND": "nobind"}
        return _Start(flags, bound)
    flags = (
        *("--load-format", "dummy", "--skip-tokenizer-init", "--skip-server-warmup"),
        *("--device", "cpu", "--attention-backend", "torch_native", "--dtype", "bfloat16"),
        *("--enable-metrics", "--max-total-tokens", str(KV_TOKENS), "--tp", ranks),
    )
    cores = "|".join(str(core) for core in _cores()[: prediction.tp])
    return _Start(flags, {"SGLANG_USE_CPU_ENGINE": "1", "SGLANG_CPU_OMP_THREADS_BIND": cores})


def _read(
    engine: CpuEngine, layout: KvLayout, prediction: Prediction, say: Say, bound_s: float
) -> Reading:
    """Start one server, and read what it prints of its pool."""
    start = _start(engine, prediction)
    config = paths.ENGINES / "tiny-configs" / f"{prediction.model}.json"
    stand_in = paths.ENGINES / f"{engine.key}-cpu"
    extra = {"PYTHONPATH": str(stand_in)} if stand_in.is_dir() else {}
    failed = layout.folder / f"{prediction.server}.failed.log"
    began = datetime.now(UTC)
    variables = start.variables | extra
    with cpu_servers.running(engine, config, start.flags, variables) as server:
        try:
            page = cpu_servers.metrics_page(
                server,
                lambda page: _complete(page, prediction),
                lambda spent, line: say(prediction, spent, redact(line)),
                bound_s,
            )
        except InputError as error:
            write_whole(failed, server.log.read_bytes())
            seen = f"{error.found}; its log is {paths.relative(failed)}"
            raise InputError(f"{engine.name} {prediction.server}", seen, error.expected) from None
        lines = server.log.read_text(errors="replace").splitlines()
    failed.unlink(missing_ok=True)
    return Reading(
        server=prediction.server,
        flags=start.flags,
        variables=start.variables,
        predictions_sha256=layout.sha256,
        started_utc=began,
        read_utc=datetime.now(UTC),
        log=tuple(redact(one) for one in lines if KEPT_LINES[engine.name].search(one)),
        metrics=tuple(redact(one) for one in page.splitlines() if one.startswith(POOL_METRICS)),
    )


def _complete(page: str, prediction: Prediction) -> bool:
    """Whether a page tells of the pool, on every rank where it tells of ranks."""
    told = pool_gauges(page)
    return told.blocks is not None or len(told.rank_gib) == prediction.tp


def _cores() -> list[int]:
    """The cores that this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return sorted(os.sched_getaffinity(0))
    return list(range(os.cpu_count() or 1))


@contextmanager
def _locked(folder: Path) -> Iterator[None]:
    """One session at a time in a folder."""
    with (folder / PREDICTIONS).open("rb") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            found = "another session that writes it"
            raise InputError(paths.relative(folder), found, "one at a time") from None
        yield


def _json(record: Predictions | Reading) -> bytes:
    return (json.dumps(record.model_dump(mode="json", exclude_none=True), indent=1) + "\n").encode()
