"""``analysis measure``."""

import os
import shlex
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from click.core import ParameterSource

from analysis import paths
from analysis.cli import kv_layout
from analysis.cli.output import json_option, show_cells
from analysis.engines.embedded import Settings
from analysis.errors import InputError
from analysis.records.run import EXPERIMENTS, Planned, Sample, is_run, load_run

if TYPE_CHECKING:
    from analysis.experiments.session import Request


class Numbers(click.ParamType):  # type: ignore[type-arg]
    """Whole numbers with commas between them."""

    name = "N,N,..."

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> tuple[int, ...]:
        """The numbers, as they were given."""
        from analysis.experiments.designs import lengths

        try:
            return lengths(str(value))
        except ValueError as error:
            self.fail(str(error), param, ctx)


@click.command()
@click.argument("experiments", nargs=-1, metavar="EXPERIMENT...")
@click.option("--server", default="embedded", show_default=True, help="URL, or embedded")
@click.option("--out", type=click.Path(path_type=Path), help="run folder  [default: runs/NAME]")
@click.option("--prompts", type=Numbers(), help="prompt lengths, tokens")
@click.option("--outputs", type=Numbers(), help="output lengths, tokens")
@click.option("--texts", help="names in data/texts or files, commas between")
@click.option("--repeats", type=click.IntRange(min=1), help="rounds over all cells")
@click.option("--excerpts", type=click.IntRange(min=1), help="places of a text to start at")
@click.option("--cold", is_flag=True, help="keep every cache out of it")
@click.option("--seed", type=int, default=1, show_default=True, help="of the random order")
@click.option("--speculation", type=click.Choice(["ngram-simple", "none"]), default="ngram-simple")
@click.option("--llama-server", type=click.Path(path_type=Path), help="program to embed instead")
@click.option("--server-log", help="FILE or journal:UNIT, where only the log tells commit length")
@click.option(
    "--timeout",
    "timeout_s",
    type=click.FloatRange(min=1),
    default=300.0,
    show_default=True,
    help="seconds of silence after which a request has failed",
)
@click.option("--max-minutes", type=click.FloatRange(min=0), help="stop after so long")
@click.option("--resume", type=click.Path(path_type=Path), help="an unfinished run to complete")
@click.option(
    "--engine",
    type=click.Choice(["vllm", "sglang", "all"]),
    default="all",
    show_default=True,
    help="of kv-layout: what `make engines` set up",
)
@click.option("--dry-run", is_flag=True, help="say what would be sent, and stop")
@click.option("--yes", is_flag=True, help="go on although the server is another machine")
@json_option
def measure(
    experiments: tuple[str, ...],
    server: str,
    out: Path | None,
    resume: Path | None,
    engine: str,
    dry_run: bool,
    yes: bool,
    as_json: bool,
    **options: Any,
) -> None:
    """Measure a server and write a run folder with every raw sample.

    EXPERIMENT... is one or more of two-point, context-sweep, output-length and acceptance.
    A key is read from the environment variable ANALYSIS_API_KEY only.

    kv-layout alone is another thing: it starts vLLM and SGLang on this machine's CPUs with tiny
    models, and compares the KV pools that they print with predictions written down before. It has
    the options --engine, --out, --dry-run and --json.
    """
    given_options = _given()
    if kv_layout.NAME in experiments:
        kv_layout.refuse_others(given_options, experiments)
        kv_layout.kv_layout(engine, out, dry_run, as_json)
        return
    if "engine" in given_options:
        raise InputError("--engine", "no kv-layout", "it beside kv-layout only")
    from analysis.experiments import session
    from analysis.experiments.designs import checked
    from analysis.experiments.texts import load_text

    settings = Settings(speculation=options["speculation"], program=options["llama_server"])
    given = {
        field: options[option]
        for field, option in (
            ("prompt_tokens", "prompts"),
            ("output_tokens", "outputs"),
            ("repeats", "repeats"),
            ("excerpts", "excerpts"),
        )
        if options[option] is not None
    }
    texts = [load_text(name) for name in (options["texts"] or "").split(",") if name]
    if texts:
        given["texts"] = tuple(text.name for text in texts)
    if options["cold"]:
        given["cold"] = True
    unfinished = load_run(resume) if resume else None
    if unfinished:
        if experiments or given or out:
            raise InputError("--resume", "experiments or lengths", "nothing: the run has its plan")
        request = session.saved_request(unfinished, server, settings)
    else:
        names = _experiments(experiments)
        designs = {name: checked(name, given) for name in names}
        own = {text.name: text for text in texts}
        request = session.Request(server, designs, own, options["seed"], settings)
    request = session.with_limits(
        request, options["timeout_s"], options["max_minutes"], options["server_log"]
    )
    session.allow(request, yes or dry_run)
    left = unfinished.left() if unfinished else None
    click.echo(f"to send: {session.planned_load(request, left).says}", err=True)
    if dry_run:
        return
    folder = resume or out or paths.MEASURED / session.new_name(request)
    click.echo(f"run: {paths.relative(folder)}", err=True)
    planned = left if left is not None else session.plan(request)
    go_on = _how_to_resume(folder, request)
    try:
        with _Bar(planned) as bar:
            outcome = (
                session.resume(request, unfinished, bar.sent)
                if unfinished
                else session.measure(request, folder, bar.sent)
            )
    except KeyboardInterrupt:
        if is_run(folder):
            click.echo(f"\n{go_on}", err=True)
        raise
    show_cells(outcome.run, as_json)
    if not outcome.stopped:
        return
    done = len(outcome.run.plan) - len(outcome.run.left())
    found = f"{outcome.stopped}, after {done} of {len(outcome.run.plan)} requests"
    if outcome.as_asked:
        click.echo(f"{found}; {go_on}", err=True)
        return
    raise InputError("measure", found, f"an end; {go_on}")


def _given() -> set[str]:
    """Parameters that stand on the command line."""
    context = click.get_current_context()
    return {
        name
        for name in context.params
        if context.get_parameter_source(name) is ParameterSource.COMMANDLINE
    }


class _Bar:
    """Progress in tokens decoded, with the time left, on standard error."""

    def __init__(self, planned: Sequence[Planned]) -> None:
        self._bar: Any = click.progressbar(
            length=sum(_weight(p) for p in planned),
            label="measuring",
            file=sys.stderr,
            item_show_func=_shown,
        )

    def __enter__(self) -> "_Bar":
        self._bar.__enter__()
        return self

    def __exit__(self, *ending: Any) -> None:
        self._bar.__exit__(*ending)

    def sent(self, planned: Planned, sample: Sample) -> None:
        """Advance by a request; warm-ups are paid by the request that they belong to."""
        what = f"{planned.experiment} {planned.text} {planned.asked_prompt_tokens}"
        self._bar.update(0 if sample.warmup else _weight(planned), what)


def _shown(item: str | None) -> str:
    return item or ""


def _weight(planned: Planned) -> int:
    return planned.asked_output_tokens + planned.asked_prompt_tokens // 20


def _how_to_resume(folder: Path, request: "Request") -> str:
    """The command that goes on, from the folder that this one was called in."""
    settings = request.settings
    inside = folder.resolve().is_relative_to(Path.cwd())
    command = [
        "analysis",
        "measure",
        "--resume",
        os.path.relpath(folder) if inside else str(folder),
    ]
    if request.server != "embedded":
        command += ["--server", request.server]
    elif settings.speculation != Settings().speculation:
        command += ["--speculation", settings.speculation]
    if settings.program:
        command += ["--llama-server", str(settings.program)]
    if request.server_log:
        command += ["--server-log", request.server_log]
    return f"`{shlex.join(command)}` goes on"


def _experiments(given: tuple[str, ...]) -> list[Any]:
    """The names of known experiments, each once."""
    if not given:
        raise InputError("EXPERIMENT", "none", f"one or more of {', '.join(EXPERIMENTS)}")
    for name in given:
        if name not in EXPERIMENTS:
            raise InputError("EXPERIMENT", repr(name), f"one of {', '.join(EXPERIMENTS)}")
    return list(dict.fromkeys(given))
