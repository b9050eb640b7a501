"""Reading a file, and remembering that it was read.

Inputs are recorded when they are read, not declared, so a figure cannot forget one. Under the
runner each read also appends a line to ``inputs.jsonl`` in the stage folder.
"""

import hashlib
import json
from pathlib import Path

from analysis import paths
from analysis.errors import InputError

_read: dict[str, str] = {}


def digest(content: bytes) -> str:
    """SHA-256 in hexadecimal."""
    return hashlib.sha256(content).hexdigest()


def read_bytes(path: Path) -> bytes:
    """Content of ``path``, recorded as an input of whatever is made next."""
    try:
        content = path.read_bytes()
    except OSError as error:
        reason = (error.strerror or type(error).__name__).lower()
        raise InputError(paths.relative(path), reason, "a readable file") from None
    note(path, digest(content))
    return content


def note(path: Path, sha: str) -> None:
    """Record that a file of this digest was read."""
    name = paths.relative(path)
    if _read.get(name) != sha:
        _read[name] = sha
        stage = paths.stage()
        if stage is not None:
            with (stage / "inputs.jsonl").open("a") as log:
                log.write(json.dumps({"file": _file(path), "sha256": sha}) + "\n")


def digest_of(path: Path) -> str:
    """SHA-256 of a file that may be too large for memory; recorded as an input."""
    with path.open("rb") as stream:
        sha = hashlib.file_digest(stream, "sha256").hexdigest()
    note(path, sha)
    return sha


def read_text(path: Path) -> str:
    """Text of a UTF-8 file."""
    try:
        return read_bytes(path).decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise InputError(
            paths.relative(path), f"a byte that is not UTF-8 at {error.start}", "UTF-8 text"
        ) from None


def _file(path: Path) -> str:
    """A path from the project root; absolute outside it."""
    resolved = path.resolve()
    inside = resolved.is_relative_to(paths.ROOT)
    return resolved.relative_to(paths.ROOT).as_posix() if inside else str(resolved)


def seen() -> dict[str, str]:
    """Path and SHA-256 of every file read so far, by path."""
    return dict(sorted(_read.items()))
