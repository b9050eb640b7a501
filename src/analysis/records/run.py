"""A run: one measurement session on one server, immutable once it has ended.

A folder with ``manifest.json`` (what, where and how), ``plan.jsonl`` (every request that was
planned), ``requests.jsonl`` (every request that was sent, one line each, raw) and, where the
server's output could be had, ``server.log``. Until ``ended_utc`` and the digest of the requests
stand in the manifest the run is unfinished, and may be resumed.

Format history: 1, the first.
"""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal, Self, TypeVar

from pydantic import (
    AwareDatetime,
    NonNegativeFloat,
    NonNegativeInt,
    PositiveFloat,
    PositiveInt,
    model_validator,
)

from analysis import paths
from analysis.errors import InputError
from analysis.model.decode_steps import FEW_STEPS, commit_length, decoded_tokens
from analysis.model.step_time import mean_context
from analysis.records.checked import Record, check
from analysis.records.inputs import digest, read_bytes
from analysis.records.tables import CommitLength

FORMAT = 1
MANIFEST = "manifest.json"
PLAN = "plan.jsonl"
REQUESTS = "requests.jsonl"
SERVER_LOG = "server.log"

ExperimentName = Literal["two-point", "context-sweep", "output-length", "acceptance"]
EXPERIMENTS: tuple[ExperimentName, ...] = (
    "two-point",
    "context-sweep",
    "output-length",
    "acceptance",
)
StepsSource = Literal["timings", "metrics", "log", "no drafting"]
Flag = Literal[
    "short output",
    "long output",
    "prompt length",
    "cached prompt",
    "cold prompt",
    "beyond limit",
    "error",
    "refused",
    "other requests",
    "host busy",
    "clock step",
    "nothing drafted",
    "few steps",
]
R = TypeVar("R", bound=Record)


class Host(Record):
    """The machine that the client ran on; the server's too, unless that is elsewhere."""

    system: str
    processor: str
    cores: PositiveInt
    memory_gib: PositiveFloat
    python: str


class Server(Record):
    """What the server said of itself. Undefined is empty: it did not tell."""

    kind: Literal["llama.cpp", "vLLM", "OpenAI-compatible"]
    version: str = ""
    model: str
    model_sha256: str = ""
    context_limit: PositiveInt | None = None
    slots: PositiveInt | None = None
    speculation: str = ""
    speculates: bool | None = None
    where: Literal["embedded", "this machine", "another machine"]
    flags: tuple[str, ...] = ()


class Bounds(Record):
    """What counts as quiet, and what as enough; written down before the first request."""

    busy_cores: PositiveFloat = 0.1
    spread_pct: PositiveFloat = 5.0
    few_steps: PositiveInt = FEW_STEPS
    clock_step_ms: PositiveFloat = 50.0


class Planned(Record):
    """One request that is to be sent. ``cold`` asks for a prompt that no cache holds.

    ``excerpt`` tells apart prompts of one length from different places of one text. A ``warmup``
    is sent before the first request of a prompt, and never measured.
    """

    number: NonNegativeInt
    experiment: ExperimentName
    text: str
    asked_prompt_tokens: PositiveInt
    asked_output_tokens: PositiveInt
    excerpt: NonNegativeInt = 0
    cold: bool = False
    warmup: bool = False
    repeat: NonNegativeInt = 0


class Sample(Planned):
    """One request that was sent, and all that is known of it.

    ``request_s`` is from sending to the end of the reply, ``first_token_s`` to the first token and
    ``decode_s`` from the first to the last token, all by the client's monotonic clock.
    ``engine_decode_ms`` and ``engine_prefill_ms`` are the server's own. ``busy_cores`` is what
    others than server and client used of this machine meanwhile.
    """

    sent_utc: AwareDatetime
    request_s: NonNegativeFloat | None = None
    first_token_s: NonNegativeFloat | None = None
    decode_s: NonNegativeFloat | None = None
    chunks: NonNegativeInt | None = None
    prompt_tokens: NonNegativeInt | None = None
    cached_tokens: NonNegativeInt | None = None
    output_tokens: NonNegativeInt | None = None
    drafted_tokens: NonNegativeInt | None = None
    accepted_tokens: NonNegativeInt | None = None
    steps: NonNegativeInt | None = None
    steps_source: StepsSource | None = None
    counter_steps: NonNegativeInt | None = None
    logged_commit_length: CommitLength | None = None
    engine_decode_ms: NonNegativeFloat | None = None
    engine_prefill_ms: NonNegativeFloat | None = None
    running_before: NonNegativeInt | None = None
    busy_cores: NonNegativeFloat | None = None
    clock_step_ms: NonNegativeFloat | None = None
    flags: tuple[Flag, ...] = ()
    error: str = ""

    @property
    def context_tokens(self) -> float | None:
        """Mean context while decoding."""
        if self.prompt_tokens is None or self.output_tokens is None:
            return None
        return mean_context(self.prompt_tokens, self.output_tokens)

    @property
    def commit_length(self) -> float | None:
        """Tokens per step by the steps counted, else as the log gave it, else undefined."""
        if self.output_tokens and self.steps:
            return commit_length(self.output_tokens, self.steps)
        return self.logged_commit_length

    @property
    def decode_ms(self) -> float | None:
        """Time of the decoded tokens: the engine's own, else by the client's clock."""
        if self.engine_decode_ms is not None:
            return self.engine_decode_ms
        return None if self.decode_s is None else 1000 * self.decode_s

    @property
    def step_ms(self) -> float | None:
        """Time of one verify step, by the engine where it tells."""
        return self._per_step(self.decode_ms)

    @property
    def client_step_ms(self) -> float | None:
        """The same by the client's clock."""
        return self._per_step(None if self.decode_s is None else 1000 * self.decode_s)

    @property
    def tok_per_s(self) -> float | None:
        """Decode throughput: the tokens after the first over their time."""
        if not self.output_tokens or not self.decode_ms:
            return None
        return 1000 * decoded_tokens(self.output_tokens) / self.decode_ms

    def _per_step(self, decode_ms: float | None) -> float | None:
        if decode_ms is None or self.commit_length is None or not self.output_tokens:
            return None
        return decode_ms * self.commit_length / decoded_tokens(self.output_tokens)


class Manifest(Record):
    """What was measured, where and how. ``ended_utc`` and the digest are written last."""

    format: int
    name: str
    server: Server
    host: Host
    bounds: Bounds = Bounds()
    experiments: Mapping[ExperimentName, Mapping[str, Any]]
    texts: Mapping[str, str]
    seed: int
    git_commit: str = ""
    started_utc: AwareDatetime
    ended_utc: AwareDatetime | None = None
    requests_sha256: str = ""

    @model_validator(mode="after")
    def _ends_together(self) -> Self:
        if (self.ended_utc is None) != (not self.requests_sha256):
            raise ValueError("ended_utc and requests_sha256, both or neither")
        return self


class Run:
    """A run folder, read and checked."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.name = folder.name
        path = folder / MANIFEST
        try:
            content = json.loads(read_bytes(path))
        except ValueError as error:
            raise InputError(paths.relative(path), str(error), "JSON") from None
        if not isinstance(content, dict) or content.get("format") != FORMAT:
            found = content.get("format") if isinstance(content, dict) else type(content).__name__
            raise InputError(f"{paths.relative(path)}, format", repr(found), str(FORMAT))
        self.manifest = check(Manifest, content, path)
        self.plan = _lines(folder / PLAN, Planned, torn=False)
        requests = folder / REQUESTS
        self.samples = (
            _lines(requests, Sample, torn=not self.ended) if self.ended or requests.exists() else []
        )
        if self.ended and digest(read_bytes(requests)) != self.manifest.requests_sha256:
            raise InputError(
                paths.relative(requests),
                "other content than when the run ended",
                f"SHA-256 {self.manifest.requests_sha256[:12]}...: a run is not edited",
            )

    @property
    def ended(self) -> bool:
        """Whether the session was brought to its end."""
        return self.manifest.ended_utc is not None

    def of(self, experiment: ExperimentName) -> list[Sample]:
        """The samples of one experiment that were not warm-up, in the order they were sent."""
        return [s for s in self.samples if s.experiment == experiment and not s.warmup]

    def left(self) -> list[Planned]:
        """What has no answer yet: first what was never sent, then what failed, to be sent again.

        A request that the server refused for good was answered.
        """
        tried = {s.number for s in self.samples if not s.warmup}
        done = {
            s.number for s in self.samples if not s.warmup and (not s.error or "refused" in s.flags)
        }
        left = [planned for planned in self.plan if planned.number not in done]
        return sorted(left, key=lambda planned: planned.number in tried)


def is_run(path: Path) -> bool:
    """Whether ``path`` is a run folder."""
    return (path / MANIFEST).is_file()


def committed_runs() -> list[str]:
    """Names of the runs in ``data/runs``."""
    return sorted(path.parent.name for path in paths.RUNS.glob(f"*/{MANIFEST}"))


def load_run(name_or_path: str | Path) -> Run:
    """A run by its name in ``data/runs``, or by the path of its folder."""
    return Run(find_run(name_or_path))


def find_run(name_or_path: str | Path, beside: Path | None = None) -> Path:
    """The folder of a run; a path is from ``beside``, or from where one is."""
    for folder in (paths.RUNS / name_or_path, (beside or Path()) / name_or_path):
        if is_run(folder):
            return folder.resolve()
    known = ", ".join(committed_runs()) or "none"
    expected = f"a folder with a {MANIFEST}, or a run in data/runs (there: {known})"
    raise InputError("run", repr(str(name_or_path)), expected)


def _lines(path: Path, record: type[R], torn: bool) -> list[R]:
    """Records of a file with one JSON object a line; ``torn`` forgives an unfinished last one."""
    content = read_bytes(path)
    lines = content.split(b"\n")
    if lines.pop() and not torn:
        where = f"{paths.relative(path)}:{len(lines) + 1}"
        raise InputError(where, "an unfinished last line", "a line that ends")
    records = []
    for number, line in enumerate(lines, 1):
        try:
            values = json.loads(line)
        except ValueError as error:
            raise InputError(f"{paths.relative(path)}:{number}", str(error), "JSON") from None
        if not isinstance(values, dict):
            found = type(values).__name__
            raise InputError(f"{paths.relative(path)}:{number}", found, "a JSON object")
        records.append(check(record, values, path, f":{number}"))
    return records
