"""How a server is started: a systemd unit or a shell script, and its one context setting.

Only what can be read for sure is read; everything else is refused with the reason, because a plan
for a restart that rests on a guess is worse than none.
"""

import re
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from stat import S_IMODE
from typing import Literal

from analysis import paths
from analysis.errors import InputError
from analysis.model.context_limit import Engine
from analysis.records.engine_flags import FLAGS, VARIABLES, context_tokens
from analysis.records.inputs import read_bytes
from analysis.records.launch_command import (
    ServeCommand,
    assignments,
    inner_commands,
    occurrences,
    options,
    refuse_hidden_flags,
    serve_command,
)
from analysis.records.launch_source import Source, read_script, read_unit
from analysis.records.marked_text import Word, line_of

Kind = Literal["systemd unit", "launch script"]
LARGEST_BYTES = 1_000_000
SHELL = re.compile(rb"#!\s*\S*/(?:env\s+(?:-S\s+)?)?(?:ba|da|z|k)?sh\b")
SCRIPT_SUFFIXES = ("", ".sh", ".bash")


@dataclass(frozen=True)
class Setting:
    """The context setting: flag or variable, value as written, tokens, and its bytes' place.

    ``tokens`` is ``None`` where the engine chooses (vLLM's ``auto``, llama.cpp's 0).
    """

    name: str
    written: str
    tokens: int | None
    start: int
    end: int
    line: int


@dataclass(frozen=True)
class Launch:
    """A unit or script, read. ``options`` are flags by our names (``None``: not readable)."""

    path: Path
    content: bytes = field(repr=False)
    mode: int
    kind: Kind
    engine: Engine
    setting: Setting
    options: dict[str, str | None]
    environment: dict[str, str | None]
    published_ports: tuple[str, ...]
    in_container: bool
    notes: tuple[str, ...]

    def patched(self, tokens: int) -> bytes:
        """The content with another number in the setting, and nothing else changed."""
        setting = self.setting
        return self.content[: setting.start] + b"%d" % tokens + self.content[setting.end :]


def read_launch(path: Path) -> Launch:
    """Read a systemd unit or a shell script that starts SGLang, vLLM or llama.cpp.

    Raises ``InputError`` for a file that is neither, for no or more than one command that starts
    an engine, and for a context setting that is absent, twice, a variable, or may be overridden
    from elsewhere.
    """
    content = read_bytes(path)
    kind = _kind(path, content)
    place = partial(_place, path, content)
    if kind == "systemd unit":
        _refuse_drop_ins(path, content)
    source = (read_unit if kind == "systemd unit" else read_script)(content, path, place)
    serve, inside = _the_command(source, path, place)
    settings, environment = _settings(source, serve, inside, place)
    setting = _the_setting(settings, serve, source, path, content)
    refuse_hidden_flags(serve, source.known, place)
    found = options(serve.engine, serve.arguments)
    if serve.engine == "llama.cpp":
        for variable, ours in VARIABLES.items():
            if variable in environment:
                found.setdefault(ours, environment[variable])
    return Launch(
        path=path,
        content=content,
        mode=S_IMODE(path.stat().st_mode),
        kind=kind,
        engine=serve.engine,
        setting=setting,
        options=found,
        environment=environment,
        published_ports=_published(serve),
        in_container=serve.in_container,
        notes=tuple(source.notes),
    )


def _place(path: Path, content: bytes, position: int) -> str:
    return f"{paths.relative(path)}:{line_of(content, position)}"


def _kind(path: Path, content: bytes) -> Kind:
    where = paths.relative(path)
    expected = "a systemd unit or a shell script"
    if len(content) > LARGEST_BYTES:
        raise InputError(where, f"{len(content):,} bytes", f"{expected} of at most 1 MB")
    if b"\0" in content:
        raise InputError(where, "a byte 0 (UTF-16, or no text)", expected)
    if re.search(rb"^\s*\[Service\]\s*$", content, re.MULTILINE):
        return "systemd unit"
    if path.suffix in (".yml", ".yaml"):
        raise InputError(where, "a YAML file (compose or Kubernetes), which is not read", expected)
    if content.startswith(b"#!"):
        if SHELL.match(content):
            return "launch script"
        raise InputError(where, content.split(b"\n")[0].decode("latin-1")[:60], expected)
    if path.suffix in SCRIPT_SUFFIXES:
        return "launch script"
    raise InputError(where, f"no section [Service] and the suffix {path.suffix!r}", expected)


def _refuse_drop_ins(path: Path, content: bytes) -> None:
    where = paths.relative(path)
    expected = "one unit, with what its drop-ins say written into it"
    beside = path.with_name(f"{path.name}.d")
    names = ", ".join(sorted(p.name for p in beside.glob("*.conf"))) if beside.is_dir() else ""
    if names:
        raise InputError(where, f"drop-ins beside it that may override it ({names})", expected)
    if path.resolve().parent.suffix == ".d":
        raise InputError(where, "a drop-in of another unit", expected)
    if mention := re.search(rb"\.service\.d/", content):
        place = _place(path, content, mention.start())
        raise InputError(place, "a mention of a drop-in, which may override this", expected)


def _the_command(
    source: Source, path: Path, place: Callable[[int], str]
) -> tuple[ServeCommand, tuple[Word, ...]]:
    """The one command that starts an engine, and the words of the command that it stands in."""
    found = []
    for command in source.commands:
        if command.array:
            continue
        inner = inner_commands(command.words, place)
        if inner is None:
            if serve := serve_command(command.words, place):
                found.append((serve, command.words))
            continue
        before = tuple(word for c in inner if not c.array for word in c.words)
        for part in inner:
            if serve := serve_command(part.words, place):
                found.append((serve, (*command.words, *before)))
    expected = "one command that starts SGLang, vLLM or llama.cpp's llama-server"
    if not found:
        raise InputError(paths.relative(path), source.without_engine(), expected)
    if len(found) > 1:
        lines = ", ".join(place(inside[0].value.start).rsplit(":", 1)[1] for _, inside in found)
        raise InputError(
            paths.relative(path), f"{len(found)} commands that start one (lines {lines})", expected
        )
    return found[0]


def _settings(
    source: Source, serve: ServeCommand, inside: tuple[Word, ...], place: Callable[[int], str]
) -> tuple[list[tuple[str, Word]], dict[str, str | None]]:
    """Every place that sets the context, and the environment that the engine gets."""
    found = occurrences(serve.engine, serve.arguments, place)
    given = {*serve.arguments}
    before = [word for word in inside if word not in given]
    source.environment_files += [w.text for w in before if w.text.startswith("--env-file")]
    # a container gets no variable that is not named on its own command line
    around = [] if serve.in_container else source.environment
    pairs = [*around, *assignments(before)]
    variable = FLAGS[serve.engine].variable
    found += [pair for pair in pairs if variable and pair[0] == variable]
    environment = {name: None if word.expands else word.value.readable for name, word in pairs}
    return found, environment


def _the_setting(
    found: list[tuple[str, Word]], serve: ServeCommand, source: Source, path: Path, content: bytes
) -> Setting:
    where, flags = paths.relative(path), FLAGS[serve.engine]
    names = " or ".join(filter(None, (*flags.context, flags.variable)))
    if not found:
        given = options(serve.engine, serve.arguments)
        elsewhere = source.elsewhere(flags.variable, flags.context, given)
        raise InputError(where, f"no {names} of {serve.engine}{elsewhere}", "it once, as a number")
    lines = [line_of(content, word.value.start) if word.value.at else 0 for _, word in found]
    if len(found) > 1:
        told = ", ".join(f"{name} in line {n}" for (name, _), n in zip(found, lines, strict=True))
        raise InputError(where, f"the context {len(found)} times ({told})", "it once")
    (name, word), line = found[0], lines[0]
    place = f"{where}:{line}, {name}" if line else f"{where}, {name}"
    if name == flags.variable and source.environment_files:
        raise InputError(
            place,
            f"an environment file ({source.environment_files[0]}), which overrides it",
            "the variable in one place",
        )
    if word.expands:
        raise InputError(place, f"{word.value.readable[:60]!r}, a variable", "a number")
    span = word.value.span
    if span is None:
        raise InputError(place, "no value, or one in pieces", "a number in one piece")
    try:
        tokens = context_tokens(serve.engine, word.text)
    except ValueError as error:
        raise InputError(place, repr(word.value.readable[:60]), str(error)) from None
    return Setting(name, word.value.readable, tokens, *span, line)


def _published(serve: ServeCommand) -> tuple[str, ...]:
    """``-p HOST:CONTAINER`` of ``docker run``."""
    if not serve.in_container:
        return ()
    found, before = [], ""
    for word in serve.before:
        name, equals, value = word.text.partition("=")
        if equals and name in ("-p", "--publish"):
            found.append(value)
        elif before in ("-p", "--publish"):
            found.append(word.text)
        elif word.text in ("--network=host", "--net=host") or (
            before in ("--network", "--net") and word.text == "host"
        ):
            found.append("host")
        before = word.text
    return tuple(found)
