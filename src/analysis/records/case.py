"""A case: what is known of one deployment, and the claims and tables that belong to it."""

import tomllib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cached_property
from pathlib import Path
from typing import Self

from pydantic import (
    Field,
    NonNegativeFloat,
    NonNegativeInt,
    PositiveFloat,
    PositiveInt,
    model_validator,
)

from analysis import paths
from analysis.errors import InputError
from analysis.model.kv_cache import KvDtype, Parallelism
from analysis.records.checked import Record, check
from analysis.records.hardware import Gpu, find_gpu
from analysis.records.inputs import read_text
from analysis.records.model_config import ModelConfig, load_model
from analysis.records.run import Run, find_run
from analysis.records.run_rows import sweep_rows, two_point_rows
from analysis.records.tables import (
    AcceptRow,
    ClaimRow,
    CommitLength,
    PlainRow,
    PoolRow,
    SweepRow,
    TwoPointRow,
    read_table,
)

FORMAT = 1


class Engine(Record):
    """The serving engine; an empty version means that the source does not give it."""

    name: str
    version: str = ""


class Layout(Record):
    """Parallelism and KV dtype that the server ran with: one rank without a GPU if not said."""

    gpus: NonNegativeInt = 0
    tp: PositiveInt = 1
    dcp: PositiveInt = 1
    dp_attention: bool = False
    kv_dtype: KvDtype = "bf16"
    pool_tokens: PositiveInt | None = None
    free_gb_per_gpu: PositiveFloat | None = None

    @model_validator(mode="after")
    def _ranks_go_together(self) -> Self:
        self.parallelism()
        return self

    def parallelism(self, dcp: int | None = None) -> Parallelism:
        """The layout's ranks, with another ``dcp`` if one is given."""
        return Parallelism(self.tp, dcp or self.dcp, self.dp_attention)


class Limits(Record):
    """Context limits in tokens: what the service ran with, and what is wished."""

    context_tokens: PositiveInt | None = None
    wished_context_tokens: PositiveInt | None = None


class NamedContext(Record):
    """One context that the account gives for its observation."""

    label: str
    tokens: NonNegativeInt
    output_tokens: PositiveInt | None = None


class Observation(Record):
    """The throughput to be explained, and what the account explains it with."""

    tok_per_s: PositiveFloat
    commit_length: CommitLength
    step_ms: PositiveFloat
    context_tokens: NonNegativeInt
    growing_output_tokens: PositiveInt
    baseline_tok_per_s: PositiveFloat | None = None
    ttft_s: NonNegativeFloat | None = None
    contexts: tuple[NamedContext, ...] = Field(min_length=1)


class Speculation(Record):
    """The drafting method, and how many tokens a step verifies at least and at most.

    ``draft_model`` is the drafter, for the size of its cache.
    """

    method: str
    verified_tokens: tuple[PositiveInt, PositiveInt] | None = None
    draft_model: str = ""


class References(Record):
    """Tables from elsewhere, as paths from the case folder; cases to set beside this one.

    ``runs`` are measurements of this server: names in ``data/runs``, or paths from the case folder.
    ``logs`` are what a server of this kind printed, ``kv_layouts`` the folders of KV layout
    measurements: paths from the case folder.
    """

    plain: str | None = None
    accept: str | None = None
    pools: str | None = None
    compare: tuple[str, ...] = ()
    runs: tuple[str, ...] = ()
    logs: tuple[str, ...] = ()
    kv_layouts: tuple[str, ...] = ()


class CaseFacts(Record):
    """The content of ``case.toml``. ``published`` says that others measured it.

    An empty ``model`` is one whose facts are not known, an empty ``gpu`` a server without one.
    """

    format: int
    title: str
    summary: str
    source: str
    published: bool = False
    model: str = ""
    gpu: str = ""
    engine: Engine
    layout: Layout = Layout()
    limits: Limits = Limits()
    speculation: Speculation | None = None
    observation: Observation | None = None
    references: References = References()

    @model_validator(mode="after")
    def _gpu_is_counted(self) -> Self:
        if bool(self.gpu) != bool(self.layout.gpus):
            raise ValueError("gpu and a number of layout.gpus, both or neither")
        return self


class Case:
    """A case folder; its tables are read when they are first asked for."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.name = folder.name
        path = folder / "case.toml"
        try:
            content = tomllib.loads(read_text(path))
        except tomllib.TOMLDecodeError as error:
            raise InputError(paths.relative(path), str(error), "TOML") from None
        if content.get("format", FORMAT) != FORMAT:
            raise InputError(
                f"{paths.relative(path)}, format", repr(content["format"]), str(FORMAT)
            )
        self.facts = check(CaseFacts, content, path)

    @cached_property
    def sweep(self) -> list[SweepRow]:
        """Rows of ``sweep.csv``, then those of the runs' context sweeps, or none."""
        return [*self._optional("sweep.csv", SweepRow), *sweep_rows(self.runs)]

    @cached_property
    def two_point(self) -> list[TwoPointRow]:
        """Rows of ``two_point.csv``, then those of the runs' two-point decodes, or none."""
        return [*self._optional("two_point.csv", TwoPointRow), *two_point_rows(self.runs)]

    @cached_property
    def claims(self) -> list[ClaimRow]:
        """Rows of ``claims.csv``, or none."""
        claims = self._optional("claims.csv", ClaimRow)
        ids = [claim.id for claim in claims]
        for claim_id in ids:
            if ids.count(claim_id) > 1:
                where = f"{paths.relative(self.folder / 'claims.csv')}, column id"
                raise InputError(where, f"{claim_id} {ids.count(claim_id)} times", "it once")
        return claims

    @cached_property
    def plain(self) -> list[PlainRow]:
        """Published throughput without speculation on the same hardware, or none."""
        name = self.facts.references.plain
        return read_table(self.folder / name, PlainRow) if name else []

    @cached_property
    def accept(self) -> list[AcceptRow]:
        """Published commit lengths of this family of drafters, or none."""
        name = self.facts.references.accept
        return read_table(self.folder / name, AcceptRow) if name else []

    @cached_property
    def pools(self) -> list[PoolRow]:
        """KV pools that real servers printed, or none."""
        name = self.facts.references.pools
        return read_table(self.folder / name, PoolRow) if name else []

    @cached_property
    def runs(self) -> list[Run]:
        """The runs of this server; of another host, engine or model they are refused."""
        runs = []
        for name in self.facts.references.runs:
            with self._blamed("references.runs"):
                folder = find_run(name, self.folder)
            runs.append(Run(folder))
            self._refuse_another_server(runs[0], runs[-1])
        return runs

    @cached_property
    def logs(self) -> list[Path]:
        """Logs of a server of this kind."""
        return self._there("logs", self.facts.references.logs, Path.is_file, "a file")

    @cached_property
    def kv_layouts(self) -> list[Path]:
        """Folders of KV layout measurements."""
        return self._there("kv_layouts", self.facts.references.kv_layouts, Path.is_dir, "a folder")

    @cached_property
    def model(self) -> ModelConfig | None:
        """The model's facts, where they are known."""
        if not self.facts.model:
            return None
        beside = self.folder / self.facts.model
        if beside.is_file():
            return load_model(str(beside))
        with self._blamed("model"):
            return load_model(self.facts.model)

    @cached_property
    def gpu(self) -> Gpu | None:
        """The GPU's published figures, if the server has one."""
        if not self.facts.gpu:
            return None
        with self._blamed("gpu"):
            return find_gpu(self.facts.gpu)

    @cached_property
    def compared(self) -> list["Case"]:
        """The cases to set beside this one."""
        return [load_case(name) for name in self.facts.references.compare]

    @property
    def committed(self) -> bool:
        """Whether it is one of the project's own cases."""
        return self.folder.resolve().parent == paths.CASES

    def read_all(self) -> None:
        """Read every file of the case now, so that what is wrong shows before anything runs."""
        for name, value in vars(type(self)).items():
            if isinstance(value, cached_property):
                getattr(self, name)

    def _there(
        self, field: str, names: tuple[str, ...], kind: Callable[[Path], bool], expected: str
    ) -> list[Path]:
        """Paths from the case folder; one that leads nowhere is the fault of its line."""
        for name in names:
            if not kind(self.folder / name):
                place = f"{paths.relative(self.folder / 'case.toml')}, references.{field}"
                raise InputError(place, repr(name), f"{expected}, as a path from the case folder")
        return [(self.folder / name).resolve() for name in names]

    def _refuse_another_server(self, first: Run, other: Run) -> None:
        """Figures of unlike servers stand in cases of their own, never pooled in silence."""
        for what, one, two in zip(
            ("host", "engine", "engine version", "model", "model file"),
            *(_server_of(run) for run in (first, other)),
            strict=True,
        ):
            if one != two:
                place = f"{paths.relative(self.folder / 'case.toml')}, references.runs"
                expected = f"{one!r} as in run {first.name}, or a case of its own"
                raise InputError(place, f"{what} {two!r} in run {other.name}", expected)

    @contextmanager
    def _blamed(self, field: str) -> Iterator[None]:
        """A name that leads nowhere is the fault of the line in ``case.toml`` that gives it."""
        try:
            yield
        except InputError as error:
            place = f"{paths.relative(self.folder / 'case.toml')}, {field}"
            raise InputError(place, error.found, error.expected) from None

    def _optional(self, name: str, row: type) -> list:  # type: ignore[type-arg]
        path = self.folder / name
        return read_table(path, row) if path.exists() else []


def _server_of(run: Run) -> tuple[str, ...]:
    host, server = run.manifest.host, run.manifest.server
    machine = f"{host.processor}, {host.cores} cores, {host.memory_gib:.3g} GiB, {host.system}"
    return machine, server.kind, server.version, server.model, server.model_sha256[:12]


def committed_cases() -> list[str]:
    """Names of the cases in ``data/cases``, the first case first."""
    names = sorted(path.parent.name for path in paths.CASES.glob("*/case.toml"))
    return sorted(names, key=lambda name: name != paths.FIRST_CASE)


def load_case(name_or_path: str) -> Case:
    """A case by its name in ``data/cases`` or a path from there, or by the path of its folder."""
    folder = (paths.CASES / name_or_path).resolve()
    if not (folder / "case.toml").exists():
        folder = Path(name_or_path).resolve()
    if not (folder / "case.toml").is_file():
        expected = f"one of {', '.join(committed_cases())}, or a folder with a case.toml"
        raise InputError("case", repr(name_or_path), expected)
    return Case(folder)
