"""Writing a run: each sample is on disk before the next request is sent."""

import json
import os
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path

from analysis import paths
from analysis.errors import InputError
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


class Recorder:
    """An unfinished run that samples are added to."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._requests = (folder / REQUESTS).open("ab")

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
    if is_run(folder) or (folder.exists() and any(folder.iterdir())):
        found = "a run" if is_run(folder) else "a folder with files"
        raise InputError(paths.relative(folder), found, "a new folder, or --resume to go on")


def create(folder: Path, manifest: Manifest, planned: Sequence[Planned]) -> Recorder:
    """Begin a run in a new folder."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / PLAN).write_bytes(b"".join(_line(request) for request in planned))
    _write_manifest(folder, manifest)
    return Recorder(folder)


def reopen(run: Run) -> Recorder:
    """Go on with an unfinished run; half a line, left by a killed writer, is cut off."""
    if run.ended:
        raise InputError(paths.relative(run.folder), "a run that has ended", "an unfinished one")
    path = run.folder / REQUESTS
    if path.exists():
        content = path.read_bytes()
        whole = content[: content.rfind(b"\n") + 1]
        if len(whole) < len(content):
            partial = path.with_name(f"{REQUESTS}.partial")
            partial.write_bytes(whole)
            partial.replace(path)
    return Recorder(run.folder)


def _write_manifest(folder: Path, manifest: Manifest) -> None:
    """The manifest is whole at any moment: readers see the old one or the new."""
    partial = folder / f"{MANIFEST}.partial"
    partial.write_text(json.dumps(manifest.model_dump(mode="json"), indent=1) + "\n")
    partial.replace(folder / MANIFEST)


def _line(record: Planned) -> bytes:
    values = record.model_dump(mode="json", exclude_defaults=True)
    return (json.dumps(rounded(values)) + "\n").encode()
