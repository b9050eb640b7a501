"""Writing a run: each sample is on disk before the next request is sent."""

import fcntl
import json
import os
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path

from analysis import paths
from analysis.errors import InputError
from analysis.experiments.texts import OWN, Text, load_text
from analysis.records.inputs import digest
from analysis.records.run import (
    MANIFEST,
    PLAN,
    REQUESTS,
    Manifest,
    Planned,
    Run,
    Sample,
    is_run,
)
from analysis.rounding import rounded

TEXTS = "texts"


class Recorder:
    """An unfinished run that samples are added to."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._requests = (folder / REQUESTS).open("ab")
        try:
            fcntl.flock(self._requests, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            found = "another session that writes it"
            raise InputError(paths.relative(folder), found, "one at a time") from None

    def add(self, sample: Sample) -> None:
        """Append a sample, and wait until the disk has it."""
        self._requests.write(_line(sample))
        self._requests.flush()
        os.fsync(self._requests.fileno())

    def close(self) -> None:
        """Leave the run as it is, to be resumed."""
        self._requests.close()

    def finish(self) -> Run:
        """Write down that the run is complete; from now on it is not to be changed."""
        self.close()
        manifest = Run(self.folder).manifest
        ended = manifest.model_copy(
            update={
                "ended_utc": datetime.now(UTC),
                "requests_sha256": digest((self.folder / REQUESTS).read_bytes()),
            }
        )
        _write_manifest(self.folder, ended)
        return Run(self.folder)


def refuse_existing(folder: Path) -> None:
    """Raise ``InputError`` where something stands already: no run is written over."""
    expected = "a new folder, or --resume to go on"
    if folder.exists() and not folder.is_dir():
        raise InputError(paths.relative(folder), "a file", expected)
    if is_run(folder) or (folder.exists() and any(folder.iterdir())):
        found = "a run" if is_run(folder) else "a folder with files"
        raise InputError(paths.relative(folder), found, expected)
    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        found = (error.strerror or type(error).__name__).lower()
        raise InputError(paths.relative(folder), found, "a folder that can be made") from None


def refuse_ended(run: Run) -> None:
    """Raise ``InputError`` for a run that is not to be changed any more."""
    if run.ended:
        raise InputError(paths.relative(run.folder), "a run that has ended", "an unfinished one")


def create(
    folder: Path, manifest: Manifest, planned: Sequence[Planned], texts: Mapping[str, Text]
) -> Recorder:
    """Begin a run in a new folder. A text of the user's own is kept in it, to resume with."""
    folder.mkdir(exist_ok=True)
    for name, text in texts.items():
        if text.origin == OWN:
            (folder / TEXTS).mkdir(exist_ok=True)
            (folder / TEXTS / f"{name}.txt").write_text(text.content)
    write_whole(folder / PLAN, b"".join(_line(request) for request in planned))
    _write_manifest(folder, manifest)
    return Recorder(folder)


def texts_of(run: Run) -> dict[str, Text]:
    """The texts of a run: those kept in its folder, and those of ``data/texts``."""
    found = {}
    for name in run.manifest.texts:
        own = run.folder / TEXTS / f"{name}.txt"
        found[name] = load_text(str(own) if own.is_file() else name)
    return found


def reopen(run: Run) -> Recorder:
    """Go on with an unfinished run; half a line, left by a killed writer, is cut off."""
    refuse_ended(run)
    recorder = Recorder(run.folder)
    path = run.folder / REQUESTS
    content = path.read_bytes()
    whole = content.rfind(b"\n") + 1
    if whole < len(content):
        os.truncate(path, whole)
    return recorder


def _write_manifest(folder: Path, manifest: Manifest) -> None:
    """The manifest is whole at any moment: readers see the old one or the new."""
    text = json.dumps(manifest.model_dump(mode="json"), indent=1) + "\n"
    write_whole(folder / MANIFEST, text.encode())


def write_whole(path: Path, content: bytes) -> None:
    """Write a file in one step, and wait until the disk has it."""
    partial = path.with_name(f"{path.name}.partial")
    with partial.open("wb") as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())
    partial.replace(path)


def _line(record: Planned) -> bytes:
    values = record.model_dump(mode="json", exclude_defaults=True)
    return (json.dumps(rounded(values)) + "\n").encode()
