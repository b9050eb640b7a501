"""A measurement session: connect, plan, send one request after the other, record each."""

import subprocess
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path
from time import monotonic

from analysis import paths
from analysis.engines.embedded import Settings
from analysis.engines.http import checked_url, on_this_machine
from analysis.errors import InputError
from analysis.experiments import designs, host, recorder
from analysis.experiments.designs import Design
from analysis.experiments.estimate import Load, load, prompt_name
from analysis.experiments.opening import EMBEDDED, Opened, opened
from analysis.experiments.sender import Sender, StoppedError
from analysis.experiments.texts import Text, load_text
from analysis.logs.source import LogSource, log_source
from analysis.records.checked import Record
from analysis.records.run import (
    FORMAT,
    Bounds,
    ExperimentName,
    Manifest,
    Planned,
    Run,
    Sample,
    Server,
)

MOST_SLOTS = 24

Progress = Callable[[Planned, Sample], None]


@dataclass(frozen=True)
class Request:
    """What the user asked for. ``server`` is an address or ``embedded``.

    ``texts`` are those of the user's own, by the name that the designs use.
    """

    server: str
    designs: Mapping[ExperimentName, Design]
    texts: Mapping[str, Text] = field(default_factory=dict)
    seed: int = 1
    settings: Settings = field(default_factory=Settings)
    timeout_s: float = 300.0
    max_minutes: float | None = None
    server_log: str | None = None


@dataclass(frozen=True)
class Outcome:
    """How a session ended; ``stopped`` says why it ended early, ``as_asked`` that it was to."""

    run: Run
    stopped: str = ""
    as_asked: bool = False


def plan(request: Request) -> list[Planned]:
    """Every request of a new run, in order."""
    return designs.plan(request.designs, request.seed)


def planned_load(request: Request, left: list[Planned] | None = None) -> Load:
    """What a session will send, worked out without any server; ``left`` of a run to resume."""
    planned = plan(request) if left is None else left
    return load(planned, _slots(planned) if request.server == EMBEDDED else None)


def allow(request: Request, yes: bool) -> None:
    """Raise ``InputError`` for a server on another machine, unless the user has said yes."""
    if request.server == EMBEDDED:
        return
    if not yes and not on_this_machine(checked_url(request.server)):
        found = "a server on another machine"
        raise InputError("--server", found, "--yes, once --dry-run has shown what it will get")


def with_limits(
    request: Request, timeout_s: float, max_minutes: float | None, server_log: str | None
) -> Request:
    """The request with its bounds in time, and the server's log."""
    return replace(request, timeout_s=timeout_s, max_minutes=max_minutes, server_log=server_log)


def measure(
    request: Request, folder: Path, progress: Progress = lambda planned, sample: None
) -> Outcome:
    """Run the experiments and write a run into ``folder``.

    Raises ``InputError`` for a server that is not there or that the plan does not fit. A session
    that ends early, by an interrupt too, leaves a valid run that ``resume`` completes.
    """
    recorder.refuse_existing(folder)
    log = _log(request)
    planned = plan(request)
    settings = replace(request.settings, slots=_slots(planned))
    names = {name for design in request.designs.values() for name in design.texts}
    texts = {name: request.texts.get(name) or load_text(name) for name in sorted(names)}
    with opened(request.server, settings, folder, request.timeout_s) as there:
        for name, design in request.designs.items():
            _refuse_beyond_limit(name, design, there.facts)
        manifest = Manifest(
            format=FORMAT,
            name=folder.name,
            server=there.facts,
            host=host.describe(),
            bounds=Bounds(),
            experiments={name: d.model_dump(mode="json") for name, d in request.designs.items()},
            texts={
                name: f"{text.title} ({text.origin}; {text.licence})"
                for name, text in texts.items()
            },
            seed=request.seed,
            git_commit=_git_commit(),
            started_utc=datetime.now(UTC),
        )
        writer = recorder.create(folder, manifest, planned, texts)
        return _send(request, there, texts, log, writer, progress)


def resume(
    request: Request, run: Run, progress: Progress = lambda planned, sample: None
) -> Outcome:
    """Complete an unfinished run on the same server.

    Raises ``InputError`` for a run that has ended, or where server or machine are not those that
    the run began on.
    """
    recorder.refuse_ended(run)
    log = _log(request)
    _refuse_other("machine", run, host.describe(), run.manifest.host, ("processor", "cores"))
    settings = replace(request.settings, slots=_slots(run.plan))
    with opened(request.server, settings, run.folder, request.timeout_s) as there:
        _refuse_other("server", run, there.facts, run.manifest.server, tuple(Server.model_fields))
        texts = recorder.texts_of(run)
        return _send(request, there, texts, log, recorder.reopen(run), progress)


def measure_for_notebook(
    server: str, experiment: ExperimentName, prompts: str = "", repeats: int = 0
) -> Path:
    """Run one experiment for a notebook, by default with its own design; the folder of the run.

    The output length is judged beside a context sweep, so it brings one along. Raises
    ``InputError`` for a server on another machine: a notebook cannot ask.
    """
    changes: dict[str, object] = {"repeats": repeats} if repeats else {}
    chosen = {experiment: designs.checked(experiment, changes | _prompts(prompts))}
    if experiment == "output-length":
        chosen["context-sweep"] = designs.checked("context-sweep", changes)
    request = Request(server, chosen)
    allow(request, yes=False)
    outcome = measure(request, paths.MEASURED / new_name(request))
    if outcome.stopped:
        raise InputError("server", outcome.stopped, "a server that answers to the end")
    return outcome.run.folder


def _prompts(prompts: str) -> dict[str, object]:
    try:
        return {"prompt_tokens": designs.lengths(prompts)} if prompts else {}
    except ValueError as error:
        raise InputError("parameter prompts", str(error), "such as 300,900,1700") from None


def new_name(request: Request) -> str:
    """A name for a new run: what was measured, and when."""
    what = "-".join(request.designs) if len(request.designs) == 1 else "measured"
    return f"{what}-{datetime.now(UTC):%Y%m%d-%H%M%S}"


def saved_request(run: Run, server: str, settings: Settings) -> Request:
    """The request that an unfinished run came from."""
    saved = run.manifest.experiments
    return Request(
        server=server,
        designs={name: Design.model_validate(values) for name, values in saved.items()},
        seed=run.manifest.seed,
        settings=settings,
    )


def _send(
    request: Request,
    there: Opened,
    texts: Mapping[str, Text],
    log: LogSource | None,
    writer: recorder.Recorder,
    progress: Progress,
) -> Outcome:
    """Send what is left, and what fails once more; what fails twice is left to be resumed."""
    run = Run(writer.folder)
    watch = host.Watch(there.pid, there.facts.where != "another machine")
    sender = Sender(there.client, run.manifest, texts, watch, log)
    until = None if request.max_minutes is None else monotonic() + 60 * request.max_minutes
    try:
        for planned in _twice(run):
            if until is not None and monotonic() > until:
                over = f"--max-minutes {request.max_minutes:g} are over"
                return Outcome(Run(run.folder), over, as_asked=True)
            for sample in sender.send(planned):
                writer.add(sample)
                progress(planned, sample)
        failed = len(Run(run.folder).left())
        if failed:
            return Outcome(Run(run.folder), f"{failed} requests failed twice")
        return Outcome(writer.finish())
    except StoppedError as reason:
        return Outcome(Run(run.folder), str(reason))
    finally:
        writer.close()


def _twice(run: Run) -> Iterator[Planned]:
    """What is left of a run, and then what failed of that."""
    yield from run.left()
    yield from Run(run.folder).left()


def _log(request: Request) -> LogSource | None:
    """The server's log, if one was named; ``InputError`` where it cannot be read."""
    if request.server_log is None:
        return None
    return log_source(request.server_log)


def _slots(planned: list[Planned]) -> int:
    """A slot for every prompt, so that each stays cached."""
    return min(MOST_SLOTS, len({prompt_name(p) for p in planned}))


def _refuse_beyond_limit(name: ExperimentName, design: Design, server: Server) -> None:
    shortest = min(design.prompt_tokens) + min(design.output_tokens)
    limit = server.context_limit
    if limit is not None and shortest > limit:
        place = f"{name}, prompt_tokens and output_tokens"
        raise InputError(
            place, f"{shortest} tokens at least", f"at most {limit}, the server's limit"
        )


def _refuse_other(what: str, run: Run, now: Record, then: Record, fields: tuple[str, ...]) -> None:
    """Raise ``InputError`` for the first field in which a server or machine is another."""
    for name in fields:
        is_now, was = getattr(now, name), getattr(then, name)
        if is_now != was:
            place = f"{paths.relative(run.folder)}, {what}"
            raise InputError(place, f"{name} {is_now!r}", f"{was!r}, as the run began")


def _git_commit() -> str:
    try:
        found = subprocess.run(
            ["git", "rev-parse", "HEAD"], cwd=paths.ROOT, capture_output=True, text=True, check=True
        )
    except (OSError, subprocess.CalledProcessError):
        return ""
    return found.stdout.strip()
