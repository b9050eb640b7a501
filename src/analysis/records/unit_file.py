"""Lines and words of a systemd unit.

``systemd.syntax(7)`` for lines, continuations, comments and quotes; ``systemd.service(5)``, section
"Command lines", for words, ``$`` and the prefixes of ``ExecStart=``.
"""

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from analysis.errors import InputError
from analysis.records.marked_text import Marked, Word, joined

SECTION = re.compile(r"\[([^\]]+)\]\s*$")
ASSIGNMENT = re.compile(r"([A-Za-z][\w-]*)\s*=[ \t]*")
EXPANSION = re.compile(r"\$\{[^}]*\}|\$\w+|%[A-Za-z]")
WHOLE_VARIABLE = re.compile(r"\$\w+$")
KEPT_ESCAPES = "\\\"' "


@dataclass(frozen=True)
class Entry:
    """One assignment of a unit: its section, its key, and its value over all its lines."""

    section: str
    key: str
    value: Marked


def entries(content: bytes) -> list[Entry]:
    """The assignments in the order of the file; comments and sections are not among them."""
    found, section = [], ""
    for line in _logical_lines(Marked.whole(content)):
        if named := SECTION.match(line.text):
            section = named[1]
        elif assigned := ASSIGNMENT.match(line.text):
            value = line.part(assigned.end())
            length = len(value.text.rstrip(" \t\r\n"))
            found.append(Entry(section, assigned[1], value.part(0, length)))
    return found


def _logical_lines(source: Marked) -> Iterator[Marked]:
    """Lines joined where one ends with a backslash, which becomes a space; without comments."""
    held: list[Marked] = []
    start = 3 if source.text.startswith("\xef\xbb\xbf") else 0
    while start < len(source):
        end = source.text.find("\n", start) + 1 or len(source)
        line = source.part(start, end)
        start = end
        bare = line.text.rstrip("\r\n")
        indent = len(bare) - len(bare.lstrip(" \t"))
        if bare[indent : indent + 1] in ("#", ";"):
            continue  # a comment within a continuation does not end it
        continues = bare.endswith("\\")
        body = line.part(0 if held else indent, len(bare) - continues)
        if continues:
            space = Marked(" ", (line.at[len(bare) - 1],))
            held += [body, space]
            continue
        yield joined([*held, body])
        held = []
    if held:
        yield joined(held)


def unit_words(value: Marked, place: Callable[[int], str]) -> list[Word]:
    """Words of a value by systemd's rules: quotes removed, nothing expanded.

    Only ``$NAME`` as a word of its own is split by systemd; ``${NAME}`` is always one word. Raises
    ``InputError`` for a quote that is not closed.
    """
    words: list[Word] = []
    kept: list[int] | None = None
    quote, odd = "", False
    text, at = value.text, 0

    def keep(*positions: int) -> None:
        nonlocal kept
        if kept is None:
            kept = []
        kept.extend(positions)

    def end() -> None:
        nonlocal kept, odd
        if kept is not None:
            word = Marked("".join(text[i] for i in kept), tuple(value.at[i] for i in kept))
            plain = word.text.replace("$$", "").replace("%%", "")
            expands = odd or bool(EXPANSION.search(plain))
            words.append(Word(word, expands, bool(WHOLE_VARIABLE.match(word.text))))
        kept, odd = None, False

    while at < len(text):
        char = text[at]
        if char == "\\" and at + 1 < len(text):
            following = text[at + 1]
            odd |= following not in KEPT_ESCAPES
            keep(*([] if following in KEPT_ESCAPES else [at]), at + 1)
            at += 2
            continue
        if quote:
            if char == quote:
                quote = ""
            else:
                keep(at)
        elif char in "'\"":
            quote = char
            keep()
        elif char in " \t\r\n":
            end()
        else:
            keep(at)
        at += 1
    if quote:
        raise InputError(place(value.at[-1]), f"a quote {quote} that is not closed", "whole words")
    end()
    return words
