"""Text that remembers where each of its characters stands in the file it was read from."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Self


@dataclass(frozen=True)
class Marked:
    """Characters and, for each, its position in the file; positions rise from left to right.

    Files are read as Latin-1: a character is a byte, whatever the encoding, and nothing that is
    not touched can change.
    """

    text: str = ""
    at: tuple[int, ...] = ()

    @classmethod
    def whole(cls, content: bytes) -> Self:
        """A whole file."""
        return cls(content.decode("latin-1"), tuple(range(len(content))))

    def __len__(self) -> int:
        return len(self.text)

    def part(self, start: int, end: int | None = None) -> "Marked":
        """The characters from ``start`` to before ``end``."""
        return Marked(self.text[start:end], self.at[start:end])

    @property
    def start(self) -> int:
        """Position of the first character; 0 where there is none."""
        return self.at[0] if self.at else 0

    @property
    def span(self) -> tuple[int, int] | None:
        """Start and end in the file; ``None`` where it is empty or was not one piece there."""
        if not self.at or self.at[-1] - self.at[0] != len(self.at) - 1:
            return None
        return self.at[0], self.at[-1] + 1

    @property
    def readable(self) -> str:
        """The text for people: bytes that are UTF-8 as what they mean."""
        return self.text.encode("latin-1").decode("utf-8", "replace")


def joined(pieces: Iterable[Marked]) -> Marked:
    """Pieces in a row."""
    kept = list(pieces)
    return Marked(
        "".join(piece.text for piece in kept),
        tuple(position for piece in kept for position in piece.at),
    )


def line_of(content: bytes, position: int) -> int:
    """Number of the line, from 1, in which a position lies."""
    return content.count(b"\n", 0, position) + 1


@dataclass(frozen=True)
class Word:
    """One word of a command line, its quotes removed.

    ``expands``: it holds a variable or a command, so its text is not what the program gets.
    ``spreads``: it may become several words, or none.
    """

    value: Marked
    expands: bool = False
    spreads: bool = False

    @property
    def text(self) -> str:
        """Its characters."""
        return self.value.text


@dataclass(frozen=True)
class Command:
    """Words of one simple command; ``array`` for the words that an array is made of."""

    words: tuple[Word, ...]
    array: bool = False
