"""What a unit or a script runs and sets, before an engine is looked for."""

import re
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from analysis import paths
from analysis.errors import InputError
from analysis.records.launch_command import SHELLS, assignments, base
from analysis.records.marked_text import Command, Marked, Word
from analysis.records.shell_words import commands
from analysis.records.unit_file import entries, unit_words

Place = Callable[[int], str]

PREFIXES = "-:+!|"
EXPORTED = {"export", "declare", "typeset"}
READS_FILES = {"source", "."}
PASSED = re.compile(r"[A-Za-z_]\w*")


@dataclass
class Source:
    """What a file runs and sets. ``known``: variables that it gives once, in plain text."""

    commands: list[Command] = field(default_factory=list)
    environment: list[tuple[str, Word]] = field(default_factory=list)
    environment_files: list[str] = field(default_factory=list)
    known: dict[str, str | None] = field(default_factory=dict)
    unexported: dict[str, Word] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)

    def without_engine(self) -> str:
        """What was found where no engine was, for the error."""
        if any(c.words and c.words[0].text.startswith("-") for c in self.commands if not c.array):
            return "a flag at the start of a command, so the command before it ends too early"
        if any(command.array for command in self.commands):
            return "no engine on a command line (words in an array are not read)"
        heads = [  # the first words only: others may hold keys
            base(c.words[0]) for c in self.commands if c.words and not any(assignments(c.words[:1]))
        ]
        return f"no engine in {', '.join(repr(head[:40]) for head in heads[:3]) or 'any command'}"

    def elsewhere(
        self, variable: str, flags: tuple[str, ...], options: dict[str, str | None]
    ) -> str:
        """Where a setting that was not found may stand instead, for the error."""
        if variable in self.unexported:
            return f" ({variable} is assigned, but not exported in the same line)"
        if "config" in options:
            return " (it may stand in the file of --config, which is not read)"
        if self.environment_files and variable:
            return f" (it may stand in {self.environment_files[0]}, which is not read)"
        for command in self.commands:
            if command.array and any(w.text.split("=")[0] in flags for w in command.words):
                return " on the command line (words in an array are not read)"
            if command.words and command.words[0].text.split("=")[0] in flags:
                return " on its command line, which ends before that line"
        return ""


def read_unit(content: bytes, path: Path, place: Place) -> Source:
    """The commands of ``ExecStart=`` and the environment of the section ``[Service]``."""
    source = Source()
    for entry in entries(content):
        if entry.section != "Service":
            continue
        at = place(entry.value.start)
        if entry.key == "ExecStart":
            if not entry.value.text:
                source.commands.clear()  # systemd: an empty value resets the list
                continue
            source.commands.append(Command(_exec_words(entry.value, at, place)))
        elif entry.key == "Environment":
            words = unit_words(entry.value, place)
            source.environment = [] if not words else [*source.environment, *assignments(words)]
        elif entry.key in ("EnvironmentFile", "PassEnvironment"):
            source.environment_files.append(f"{entry.key}={entry.value.readable}")
    if not source.commands:
        raise InputError(paths.relative(path), "no ExecStart= in [Service]", "one")
    if source.environment_files:
        source.notes.append(f"the unit reads {'; '.join(source.environment_files)}: look there too")
    else:
        source.known = _given_once(source.environment)
    return source


def _exec_words(value: Marked, at: str, place: Place) -> tuple[Word, ...]:
    words = unit_words(value, place)
    if any(word.text == ";" for word in words):
        raise InputError(at, "more than one command in ExecStart=", "one")
    first = words[0].text
    stripped = len(first) - len(first.lstrip(PREFIXES))
    if "@" in first[: stripped + 1]:
        raise InputError(at, "the prefix @ of ExecStart=", "the program itself")
    head = Word(words[0].value.part(stripped), words[0].expands, words[0].spreads)
    return (head, *words[1:])


def read_script(content: bytes, path: Path, place: Place) -> Source:
    """The commands of a shell script, and what it exports before them."""
    if b"\r\n" in content:
        raise InputError(
            paths.relative(path), "line ends CR LF, which a shell takes as part of a word", "LF"
        )
    source = Source(commands=commands(Marked.whole(content), place))
    alone: list[tuple[str, Word]] = []
    for command in source.commands:
        words = command.words
        if command.array or not words:
            continue
        exported = words[0].text in EXPORTED
        pairs = list(assignments(words[1:] if exported else words))
        if exported:
            source.environment += pairs
            names = [w.text for w in words[1:] if PASSED.fullmatch(w.text)]
            source.environment += [pair for pair in alone if pair[0] in names]
        elif len(pairs) == len(words):
            alone += pairs
        elif base(words[0]) in READS_FILES:
            name = words[1].value.readable if len(words) > 1 else ""
            source.environment_files.append(name)
            source.notes.append(f"the script reads {name}: look there too")
        elif base(words[0]) in SHELLS and len(words) > 1 and not words[1].text.startswith("-"):
            source.notes.append(f"the script runs {words[1].value.readable}: not read")
    source.unexported = dict(alone)
    if not source.environment_files:
        source.known = _given_once([*alone, *source.environment])
    return source


def _given_once(pairs: list[tuple[str, Word]]) -> dict[str, str | None]:
    counts = Counter(name for name, _ in pairs)
    return {name: word.text for name, word in pairs if counts[name] == 1 and not word.expands}
