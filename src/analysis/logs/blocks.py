"""A log as blocks of whole lines: a file, an archive (gzip, zstd) or standard input.

A plain file is cut at fixed places, so that several processes can each read their own blocks, and
the blocks are the same whatever their number. A line belongs to the block in which it begins. Its
size is taken once: what a server writes meanwhile is not read.
"""

import gzip
import io
import os
import stat
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from analysis import paths
from analysis.errors import InputError

if sys.version_info >= (3, 14):
    from compression import zstd
else:
    from backports import zstd

STDIN = "-"
BLOCK_BYTES = 4 << 20
USUAL_LINE = 1 << 16
"""Bytes read beyond a block, for the end of its last line."""
LONGEST_LINE = 1 << 20
"""A longer line is cut: no report on decoding is a thousandth of it."""
HEAD_BYTES = 1 << 16
PIECE_BYTES = 1 << 13
"""Read at a time: what an archive gives before it breaks off is not lost but for one piece."""
UNFINISHED = b"\0\n"
"""Ends a last line without a newline: no number that touches it counts."""
_CONTROLS = bytes(sorted(set(range(32)) - set(b"\t\n\v\f\r\x1b")))
_BINARY_SHARE = 0.02
_GZIP, _ZSTD = b"\x1f\x8b", b"\x28\xb5\x2f\xfd"
_ARCHIVES = {_GZIP: "a gzip archive", _ZSTD: "a zstd archive"}
_BROKEN = (EOFError, zstd.ZstdError, gzip.BadGzipFile, OSError)


class Readable(Protocol):
    """A file, an archive or a pipe."""

    def read(self, size: int, /) -> bytes:
        """At most ``size`` bytes; none at the end."""

    def seek(self, place: int, /) -> int:
        """Go on from there."""


@dataclass(frozen=True)
class Span:
    """A part of a plain file; ``end`` is where the file ended when it was opened."""

    path: Path
    start: int
    stop: int
    end: int

    def read(self) -> memoryview:
        """All lines that begin in the span, each with its newline."""
        try:
            with self.path.open("rb", buffering=0) as stream:
                return _lines_from(stream, self)
        except OSError as error:
            raise unreadable(self.path, error) from None


def _lines_from(stream: Readable, span: Span) -> memoryview:
    first = max(0, span.start - 1)  # a newline there means that a line begins at the start
    stream.seek(first)
    data = _read_fully(stream, min(span.stop + USUAL_LINE, span.end) - first)
    own = span.stop - first
    begin = data.find(b"\n", 0, own) + 1 if span.start else 0
    if span.start and not begin:
        return memoryview(b"")
    if data[own - 1 : own] == b"\n":
        return memoryview(data)[begin:own]
    end = data.find(b"\n", own) + 1
    if not end:
        data += _read_fully(stream, min(LONGEST_LINE, span.end - first - len(data)))
        end = data.find(b"\n", own) + 1
    if not end:
        data, end = data + UNFINISHED, len(data) + len(UNFINISHED)
    return memoryview(data)[begin:end]


class Log:
    """A log that can be read once, block by block.

    ``ended_early`` says, after reading, why an archive could not be read to its end.
    """

    def __init__(self, given: str | Path) -> None:
        """Open it; raises ``InputError`` for a folder, for an empty or a binary file."""
        self.path = Path(given)
        self.stdin = str(given) == STDIN
        self.name = name_of(given)
        self.ended_early = ""
        try:
            self._open()
        except _BROKEN as error:
            raise unreadable(self.path, error) from None
        self._check(self.head)

    def _open(self) -> None:
        if self.path.is_dir() and not self.stdin:
            raise InputError(self.name, "a folder", "a log file")
        number = sys.stdin.fileno() if self.stdin else os.open(self.path, os.O_RDONLY)
        raw = io.FileIO(number, closefd=not self.stdin)
        status = os.fstat(number)
        self._regular = stat.S_ISREG(status.st_mode) and not self.stdin
        self.size = status.st_size if self._regular else None
        buffered = io.BufferedReader(raw)
        start = buffered.peek(HEAD_BYTES)[:4]
        self._archive = next(
            (name for magic, name in _ARCHIVES.items() if start[: len(magic)] == magic), ""
        )
        self._raw = buffered
        if start[:2] == _GZIP:
            self._stream: Readable = gzip.GzipFile(fileobj=buffered)
        elif start == _ZSTD:
            self._stream = zstd.ZstdFile(buffered)
        else:
            self._stream = buffered
        self._first = _read_fully(self._stream, HEAD_BYTES, PIECE_BYTES)
        self.head = self._first

    @property
    def plain(self) -> bool:
        """Whether several processes can read it."""
        return self._regular and not self._archive

    def done(self) -> int:
        """Bytes of the file that were taken in by ``blocks``, as they lie on the disk."""
        return self._raw.tell() if self._regular else 0

    def _check(self, head: bytes) -> None:
        if not head:
            raise InputError(self.name, "nothing in it", "a log with decode lines")
        if head[:2] in (b"\xff\xfe", b"\xfe\xff"):
            raise InputError(self.name, "UTF-16 text", "UTF-8: `iconv -f utf-16 -t utf-8`")
        if len(head) - len(head.translate(None, _CONTROLS)) > _BINARY_SHARE * len(head):
            raise InputError(self.name, "binary data", "a text log, or a gzip or zstd of one")

    def spans(self, size: int = BLOCK_BYTES) -> Iterator[Span]:
        """The blocks of a plain file, to be read elsewhere."""
        end = self.size or 0
        for start in range(0, end, size):
            yield Span(self.path, start, min(start + size, end), end)

    def blocks(self, size: int = BLOCK_BYTES) -> Iterator[bytes]:
        """The blocks of a stream, in their order."""
        rest, data = b"", self._first
        while data:
            whole = rest + data
            cut = whole.rfind(b"\n") + 1
            if not cut and len(whole) > LONGEST_LINE:
                yield whole[:LONGEST_LINE] + UNFINISHED
                rest = self._to_next_line()
            else:
                if cut:
                    yield whole[:cut]
                rest = whole[cut:]
            data = self._more(size)
        if rest:
            yield rest if rest.endswith(b"\n") else rest + UNFINISHED

    def text(self, most: int) -> str:
        """All of it; raises ``InputError`` above ``most`` bytes."""
        parts, data, total = [], self._first, 0
        while data:
            parts.append(data)
            total += len(data)
            if total > most:
                raise InputError(self.name, f"more than {most >> 20} MiB", "a smaller document")
            data = self._more(BLOCK_BYTES)
        return b"".join(parts).decode(errors="replace").removeprefix("\ufeff")

    def _more(self, size: int) -> bytes:
        try:
            return _read_fully(self._stream, size, PIECE_BYTES)
        except _BROKEN as error:
            what = self._archive or "the log"
            self.ended_early = f"{what} breaks off: {error}"
            return b""

    def _to_next_line(self) -> bytes:
        """Pass over what is left of a very long line; returns what follows it."""
        while data := self._more(BLOCK_BYTES):
            if b"\n" in data:
                return data.partition(b"\n")[2]
        return b""


def _read_fully(stream: Readable, size: int, piece: int = BLOCK_BYTES) -> bytes:
    """``size`` bytes, or what there is: a pipe gives less at a time.

    An archive that breaks off gives what lies before, and raises when it is read again.
    """
    parts, missing = [], size
    try:
        while missing and (data := stream.read(min(missing, piece))):
            parts.append(data)
            missing -= len(data)
    except _BROKEN:
        if not parts:
            raise
    return b"".join(parts)


def name_of(given: str | Path) -> str:
    """How a log is called."""
    return "standard input" if str(given) == STDIN else paths.relative(Path(given))


def unreadable(path: Path, error: Exception) -> InputError:
    """The error for a file that cannot be read."""
    reason = (getattr(error, "strerror", None) or str(error) or type(error).__name__).lower()
    return InputError(paths.relative(path), reason, "a readable log file")
