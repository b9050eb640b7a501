"""Simple commands of a shell script: enough of the grammar to find one command for sure.

POSIX Shell Command Language, 2.2 (quoting), 2.3 (tokens), 2.6 (expansions) and 2.7 (redirection),
with Bash's arrays. Nothing is expanded: a word that would be is marked so. What is beyond this,
here-documents above all, is refused.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import NoReturn

from analysis.errors import InputError
from analysis.records.marked_text import Command, Marked, Word

SPECIAL = "@*#?-$!0123456789"
ESCAPED_IN_QUOTES = '$`"\\\n'


def commands(source: Marked, place: Callable[[int], str]) -> list[Command]:
    """The simple commands in the order of the file, without redirections and comments.

    ``place`` names a position of the file for errors. Raises ``InputError`` for a here-document
    and for a quote or bracket that is not closed.
    """
    return _Reader(source, place).read()


@dataclass
class _Reader:
    source: Marked
    place: Callable[[int], str]
    at: int = 0
    found: list[Command] = field(default_factory=list)
    words: list[Word] = field(default_factory=list)
    kept: list[int] | None = None
    expands: bool = False
    spreads: bool = False
    quoted: bool = False
    is_target: bool = False

    def read(self) -> list[Command]:
        text = self.source.text
        while self.at < len(text):
            char = text[self.at]
            if char == "\\":
                self._escape()
            elif char in "'\"":
                self._quoted(char)
            elif char == "$" or char == "`":
                self._expansion(quoted=False)
            elif char == "#" and self.kept is None:
                end = text.find("\n", self.at)
                self.at = len(text) if end < 0 else end
            elif char in " \t\r":
                self._end_word()
                self.at += 1
            elif char in "<>" or text.startswith("&>", self.at):
                self._redirection()
            elif char == "(" and self._opens_array():
                self._array()
            elif char in "\n;&|()":
                self._end_command()
                self.at += 1
            else:
                self._keep(self.at)
                self.at += 1
        self._end_command()
        return self.found

    def _keep(self, *positions: int) -> None:
        if self.kept is None:
            self.kept = []
        self.kept.extend(positions)

    def _escape(self) -> None:
        following = self.source.text[self.at + 1 : self.at + 2]
        if following and following != "\n":
            self._keep(self.at + 1)
            self.quoted = True
        self.at += 2

    def _quoted(self, quote: str) -> None:
        text, start = self.source.text, self.at
        self._keep()
        self.quoted = True
        self.at += 1
        while self.at < len(text) and text[self.at] != quote:
            if quote == '"' and text[self.at] == "\\" and text[self.at + 1 : self.at + 2]:
                if text[self.at + 1] in ESCAPED_IN_QUOTES:
                    self._keep(*([] if text[self.at + 1] == "\n" else [self.at + 1]))
                else:
                    self._keep(self.at, self.at + 1)
                self.at += 2
            elif quote == '"' and text[self.at] in "$`":
                self._expansion(quoted=True)
            else:
                self._keep(self.at)
                self.at += 1
        if self.at >= len(text):
            self._refuse(start, f"a quote {quote} that is not closed", "whole words")
        self.at += 1

    def _expansion(self, quoted: bool) -> None:
        """A variable or a command, kept as it is written and marked."""
        text, start = self.source.text, self.at
        following = text[start + 1 : start + 2]
        if text[start] == "`":
            end = text.find("`", start + 1) + 1
        elif following == "{":
            end = self._closed(start + 1, "{", "}")
        elif following == "(":
            end = self._closed(start + 1, "(", ")")
        elif following == "'" and not quoted:
            end = text.find("'", start + 2) + 1
        elif following and following in SPECIAL:
            end = start + 2
        else:
            end = start + 1
            while end < len(text) and (text[end].isalnum() or text[end] == "_"):
                end += 1
        if end <= start:
            self._refuse(start, "a quote that is not closed", "whole words")
        self._keep(*range(start, end))
        if end > start + 1:
            self.expands = True
            self.spreads |= not quoted or "@" in text[start:end]
        self.at = end

    def _closed(self, start: int, opening: str, closing: str) -> int:
        """Behind the bracket that closes the one at ``start``."""
        text, depth, at, quote = self.source.text, 0, start, ""
        while at < len(text):
            char = text[at]
            if char == "\\":
                at += 1
            elif quote:
                quote = "" if char == quote else quote
            elif char in "'\"":
                quote = char
            else:
                depth += (char == opening) - (char == closing)
                if depth == 0:
                    return at + 1
            at += 1
        return self._refuse(start, f"a bracket {opening} that is not closed", "whole words")

    def _redirection(self) -> None:
        text, start = self.source.text, self.at
        if text[start + 1 : start + 2] == "(" and text[start] in "<>":
            end = self._closed(start + 1, "(", ")")
            self._keep(*range(start, end))
            self.expands = self.spreads = True
            self.at = end
            return
        if text.startswith("<<", start) and not text.startswith("<<<", start):
            self._refuse(start, "a here-document", "a script without one")
        if self.kept is not None and all(text[i].isdigit() for i in self.kept) and not self.quoted:
            self.kept = None
        self._end_word()
        while self.at < len(text) and text[self.at] in "<>&|":
            self.at += 1
        self.is_target = True

    def _opens_array(self) -> bool:
        return bool(self.kept) and self.source.text[self.at - 1] == "="

    def _array(self) -> None:
        end = self._closed(self.at, "(", ")")
        inner = _Reader(self.source.part(self.at + 1, end - 1), self.place).read()
        words = tuple(word for command in inner for word in command.words)
        self.expands = self.spreads = True
        self.found.append(Command(words, array=True))
        self.at = end

    def _end_word(self) -> None:
        if self.kept is not None and not self.is_target:
            value = Marked(
                "".join(self.source.text[i] for i in self.kept),
                tuple(self.source.at[i] for i in self.kept),
            )
            self.words.append(Word(value, self.expands, self.spreads))
        if self.kept is not None:
            self.is_target = False
        self.kept, self.expands, self.spreads, self.quoted = None, False, False, False

    def _end_command(self) -> None:
        self._end_word()
        self.is_target = False
        if self.words:
            self.found.append(Command(tuple(self.words)))
        self.words = []

    def _refuse(self, at: int, found: str, expected: str) -> NoReturn:
        raise InputError(self.place(self.source.at[at]), found, expected)
