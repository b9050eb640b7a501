"""Which command of a unit or script starts an engine, and what stands on its command line."""

import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

from analysis.errors import InputError
from analysis.model.context_limit import Engine
from analysis.records.engine_flags import FLAGS, option_name
from analysis.records.marked_text import Command, Word
from analysis.records.shell_words import commands

Place = Callable[[int], str]

ASSIGNMENT = re.compile(r"(?:--env=|-e)?([A-Za-z_]\w*)=")
MODULES: dict[str, Engine] = {
    "sglang.launch_server": "SGLang",
    "sglang.srt.entrypoints.http_server": "SGLang",
    "vllm.entrypoints.openai.api_server": "vLLM",
    "vllm.entrypoints.api_server": "vLLM",
}
SCRIPTS: dict[str, Engine] = {
    "sglang/launch_server.py": "SGLang",
    "vllm/entrypoints/openai/api_server.py": "vLLM",
}
SERVERS: dict[str, Engine] = {"sglang": "SGLang", "vllm": "vLLM"}
IMAGES: tuple[tuple[re.Pattern[str], Engine], ...] = (
    (re.compile(r"(?:[\w.-]+/)?vllm/vllm-openai(?:-[\w.]+)?(?:[:@]\S+)?"), "vLLM"),
    (re.compile(r"ghcr\.io/gg(?:ml-org|erganov)/llama\.cpp:server\S*"), "llama.cpp"),
)
"""Images whose entry point is the server; SGLang's own image needs the command behind it."""
SHELLS = {"sh", "bash", "dash", "zsh", "ksh"}
RESERVED = {"then", "do", "else", "elif", "if", "while", "until", "{", "!", "time", "in"}
TALKS = {"echo", "printf", "pkill", "pgrep", "grep", "logger", "log", "which", "ps", "kill", "trap"}
STARTERS = {
    *("exec", "nohup", "env", "command", "sudo", "taskset", "numactl", "nice", "ionice", "setsid"),
    *("stdbuf", "chrt", "uv", "uvx", "poetry", "conda", "mamba", "micromamba", "docker", "podman"),
    *("nvidia-docker", "srun", "systemd-run", "apptainer", "singularity", "export"),
}
PYTHON = re.compile(r"(?:python|pypy)[\d.]*")
VARIABLE = re.compile(r"\$\{?(\w+)\}?")


@dataclass(frozen=True)
class ServeCommand:
    """A command that starts an engine: what stands before its arguments, and these."""

    engine: Engine
    before: tuple[Word, ...]
    arguments: tuple[Word, ...]
    in_container: bool


def base(word: Word) -> str:
    """The last part of a path."""
    return word.text.rsplit("/", 1)[-1]


def serve_command(words: tuple[Word, ...], place: Place) -> ServeCommand | None:
    """The engine that a simple command starts; ``None`` if it starts none that is known.

    Raises ``InputError`` for an engine behind a program that is not known here.
    """
    words = _without_reserved(words)
    found = list(_marks(words))
    if not found:
        return None
    first = next((w for w in words if not ASSIGNMENT.match(w.text)), words[0])
    if base(first) in TALKS:
        return None
    start, end, engine = found[0]
    if len(found) > 1:
        raise InputError(place(first.value.start), "two engines in one command", "one")
    known = first is words[start] or base(first) in STARTERS or PYTHON.fullmatch(base(first))
    if not (known or first.expands):
        raise InputError(
            place(first.value.start),
            f"an engine behind {first.value.readable[:40]!r}, which is not known here",
            "the engine's own command",
        )
    container = any(base(w) in ("docker", "podman", "nvidia-docker") for w in words[:start])
    return ServeCommand(engine, words[:start], words[end:], container)


def _marks(words: tuple[Word, ...]) -> Iterator[tuple[int, int, Engine]]:
    """Where an engine is named: its first word, the first of its arguments, which it is."""
    found = []
    for i, word in enumerate(words):
        following = words[i + 1].text if i + 1 < len(words) else ""
        script = next((SCRIPTS[end] for end in SCRIPTS if word.text.endswith(end)), None)
        if base(word) == "llama-server":
            found.append((i, i + 1, "llama.cpp"))
        elif base(word) in SERVERS and following == "serve":
            found.append((i, i + 2, SERVERS[base(word)]))
        elif word.text == "-m" and following in MODULES:
            found.append((i, i + 2, MODULES[following]))
        elif script:
            found.append((i, i + 1, script))
    if not found and any(base(word) in ("docker", "podman") for word in words):
        found = [
            (i, i + 1, engine)
            for i, word in enumerate(words)
            for image, engine in IMAGES
            if image.fullmatch(word.text)
        ]
    yield from found  # type: ignore[misc]


def _without_reserved(words: tuple[Word, ...]) -> tuple[Word, ...]:
    while words and words[0].text in RESERVED:
        words = words[1:]
    return words


def inner_commands(words: tuple[Word, ...], place: Place) -> list[Command] | None:
    """The commands of ``sh -c TEXT``, or ``None`` if the command is no such one."""
    words = _without_reserved(words)
    for i, word in enumerate(words[:-2]):
        if base(word) in SHELLS and re.fullmatch(r"-[a-z]*c", words[i + 1].text):
            return commands(words[i + 2].value, place)
        if not (ASSIGNMENT.match(word.text) or base(word) in STARTERS):
            return None
    return None


def occurrences(
    engine: Engine, arguments: tuple[Word, ...], place: Place
) -> list[tuple[str, Word]]:
    """Every context flag on a command line, with the word that holds its value.

    Raises ``InputError`` for a flag without value, in a form that the engine does not take, or
    shortened.
    """
    names, found, at = FLAGS[engine].context, [], 0
    while at < len(arguments):
        word = arguments[at]
        name, equals, _ = word.text.partition("=")
        name = option_name(engine, name)
        where = place(word.value.start)
        if name in names:
            if equals and engine == "llama.cpp":
                raise InputError(where, f"{name}=", f"{name} and its value as words of their own")
            if equals:
                value = word.value.part(word.text.index("=") + 1)
                found.append((name, Word(value, word.expands, word.spreads)))
            elif at + 1 < len(arguments):
                at += 1
                found.append((name, arguments[at]))
            else:
                raise InputError(where, f"{name} without a value", "a number behind it")
        elif engine != "llama.cpp" and any(_shortened(name, full) for full in names):
            raise InputError(where, f"the shortened flag {name}", f"{names[-1]} in full")
        at += 1
    return found


def _shortened(name: str, full: str) -> bool:
    return len(name) > 3 and full.startswith(name) and name != full


def options(engine: Engine, arguments: tuple[Word, ...]) -> dict[str, str | None]:
    """Values of the flags in ``FLAGS`` by our names, the last of each; ``None``: not readable."""
    flags, found = FLAGS[engine], dict[str, str | None]()
    for at, word in enumerate(arguments):
        name, equals, given = word.text.partition("=")
        name = option_name(engine, name)
        for ours, names in flags.others.items():
            if name in names:
                value = arguments[at + 1] if not equals and at + 1 < len(arguments) else word
                text = given if equals else value.value.readable
                missing = value is word and not equals
                found[ours] = None if value.expands or missing else text
        for ours, names in flags.switches.items():
            if name in names:
                found[ours] = "yes"
    if engine == "vLLM" and arguments and not arguments[0].text.startswith("-"):
        found.setdefault("model", None if arguments[0].expands else arguments[0].value.readable)
    return found


def refuse_hidden_flags(serve: ServeCommand, known: dict[str, str | None], place: Place) -> None:
    """Refuse a word that may stand for several, unless nothing in it can be a context flag.

    ``known``: texts of variables that the file itself gives once.
    """
    flags = FLAGS[serve.engine]
    valued = flags.takes_value.union(*flags.others.values())
    before = ""
    for at, word in enumerate(serve.arguments):
        alone = option_name(serve.engine, before) in valued or (at == 0 and _is_model(serve))
        joined = "=" in word.text and option_name(serve.engine, word.text) in valued
        if word.spreads and not alone and not joined and not _harmless(word, serve.engine, known):
            raise InputError(
                place(word.value.start),
                f"{word.value.readable[:60]!r}, which may hold the context flag again",
                "flags written out, or the variable given once in this file",
            )
        before = word.text


def _is_model(serve: ServeCommand) -> bool:
    """``vllm serve MODEL``: the first word is the model."""
    return serve.engine == "vLLM" and not serve.in_container


def _harmless(word: Word, engine: Engine, known: dict[str, str | None]) -> bool:
    named = VARIABLE.fullmatch(word.text)
    text = known.get(named[1]) if named else None
    if text is None:
        return False
    words = (option_name(engine, part) for part in text.split())
    full = FLAGS[engine].context
    return not any(part in full or any(_shortened(part, flag) for flag in full) for part in words)


def assignments(words: Iterable[Word]) -> Iterator[tuple[str, Word]]:
    """``NAME=VALUE`` words, with ``-e`` and ``--env=`` of containers."""
    for word in words:
        if found := ASSIGNMENT.match(word.text):
            yield found[1], Word(word.value.part(found.end()), word.expands, word.spreads)
