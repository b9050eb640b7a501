"""A server's log while it is written: a file, or a unit of the systemd journal.

``mark()`` before a request and ``since(mark)`` after it give the lines that came in between. Bytes
that are not UTF-8 are replaced, not refused: servers print what models say.
"""

import json
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from analysis import paths
from analysis.errors import InputError

JOURNAL = "journal:"
REMEMBERED_BYTES = 256
TIMEOUT_S = 30


@dataclass(frozen=True)
class Mark:
    """A place in a log: a byte and what stood before it, or a journal's cursor."""

    offset: int = 0
    before: bytes = b""
    cursor: str = ""


class LogSource(Protocol):
    """A log that grows."""

    def mark(self) -> Mark:
        """The end of the log now."""

    def since(self, mark: Mark) -> list[str]:
        """The whole lines that were begun after ``mark``.

        Raises ``InputError`` where the log was truncated, replaced or can no longer be read.
        """


def log_source(given: str) -> LogSource:
    """The log at a path, or of ``journal:UNIT``; raises ``InputError`` where it cannot be read."""
    source: LogSource
    if given.startswith(JOURNAL):
        source = JournalLog(given.removeprefix(JOURNAL))
    else:
        source = FileLog(Path(given))
    source.mark()
    return source


@dataclass(frozen=True)
class FileLog:
    """A log file that is only appended to."""

    path: Path

    def mark(self) -> Mark:
        """See ``LogSource``."""
        size = self._size()
        before = self._read(max(0, size - REMEMBERED_BYTES), size)
        return Mark(size, before)

    def since(self, mark: Mark) -> list[str]:
        """See ``LogSource``."""
        start = mark.offset - len(mark.before)
        content = self._read(start, self._size())
        if not content.startswith(mark.before):
            found = "another file, or a shorter one, than before the request"
            expected = "a log that is only appended to: no rotation while measuring"
            raise InputError(paths.relative(self.path), found, expected)
        new = content[len(mark.before) :]
        if mark.before and not mark.before.endswith(b"\n"):
            new = new.partition(b"\n")[2]
        whole = new[: new.rfind(b"\n") + 1]
        return whole.decode(errors="replace").splitlines()

    def _size(self) -> int:
        try:
            return self.path.stat().st_size
        except OSError as error:
            raise self._unreadable(error) from None

    def _read(self, start: int, stop: int) -> bytes:
        try:
            with self.path.open("rb") as stream:
                stream.seek(start)
                return stream.read(max(0, stop - start))
        except OSError as error:
            raise self._unreadable(error) from None

    def _unreadable(self, error: OSError) -> InputError:
        reason = (error.strerror or type(error).__name__).lower()
        return InputError(paths.relative(self.path), reason, "a readable log file")


@dataclass(frozen=True)
class JournalLog:
    """The journal of a systemd unit, by ``journalctl`` with JSON output.

    Fields: systemd, ``docs/JOURNAL_EXPORT_FORMATS.md`` (Journal JSON Format).
    """

    unit: str

    def mark(self) -> Mark:
        """See ``LogSource``."""
        last = self._entries("--lines=1")
        return Mark(cursor=last[-1]["__CURSOR"] if last else "")

    def since(self, mark: Mark) -> list[str]:
        """See ``LogSource``."""
        after = f"--after-cursor={mark.cursor}" if mark.cursor else "--boot"
        return [line for entry in self._entries(after) for line in _message(entry)]

    def _entries(self, option: str) -> list[dict[str, Any]]:
        command = ["journalctl", f"--unit={self.unit}", "--output=json", "--all", "--quiet", option]
        place = f"{JOURNAL}{self.unit}"
        if not self.unit:
            raise InputError(place, "no unit", "journal: and the name of a systemd unit")
        try:
            done = subprocess.run(command, capture_output=True, timeout=TIMEOUT_S, check=False)
        except FileNotFoundError:
            expected = "systemd's journalctl on this machine, or the path of a log file"
            raise InputError(place, "no journalctl", expected) from None
        except subprocess.TimeoutExpired:
            expected = "an answer of journalctl"
            raise InputError(place, f"none within {TIMEOUT_S} s", expected) from None
        if done.returncode:
            said = done.stderr.decode(errors="replace").strip() or f"exit {done.returncode}"
            raise InputError(place, said, "a unit whose journal can be read")
        return [json.loads(line) for line in done.stdout.splitlines() if line.strip()]


def _message(entry: dict[str, Any]) -> list[str]:
    """Lines of an entry; one that is not UTF-8 comes as a list of bytes, one too long as null."""
    message = entry.get("MESSAGE")
    if isinstance(message, list):
        message = bytes(message).decode(errors="replace")
    return message.splitlines() if isinstance(message, str) else []
