"""What a run was made from, and whether that still holds. Standard library only: it must be quick.

A stamp is written last. It lists the SHA-256 of every input read, every module used, the lock and
every output, so a run that was killed half-way, an edited output and a changed input all show.
"""

import hashlib
import json
import os
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from analysis import paths


def file_hash(path: Path) -> str | None:
    """SHA-256 of a file, ``None`` if it is not there."""
    try:
        return hashlib.sha256(path.read_bytes()).hexdigest()
    except OSError:
        return None


def name_of(path: Path) -> str:
    """A path from the project root; absolute outside it. Only for stamps, which stay here."""
    return os.path.relpath(path, paths.ROOT) if path.is_relative_to(paths.ROOT) else str(path)


def hashes(files: Iterable[Path]) -> dict[str, str | None]:
    """Name to SHA-256 of files."""
    return {name_of(path): file_hash(path) for path in sorted(set(files))}


def notebook_hash(path: Path) -> str:
    """SHA-256 of what a notebook says, without its outputs and counts."""
    cells = json.loads(path.read_text())["cells"]
    kept = [
        [cell["cell_type"], cell.get("id"), "".join(cell["source"]), cell["metadata"].get("tags")]
        for cell in cells
        if "injected-parameters" not in cell["metadata"].get("tags", [])
    ]
    return hashlib.sha256(json.dumps(kept).encode()).hexdigest()


def write_stamp(path: Path, stamp: Mapping[str, Any]) -> None:
    """Write a stamp in one step."""
    path.parent.mkdir(parents=True, exist_ok=True)
    partial = path.with_suffix(".partial")
    partial.write_text(json.dumps(stamp, indent=1, sort_keys=True) + "\n")
    partial.replace(path)


def read_stamp(path: Path) -> dict[str, Any] | None:
    """A stamp, ``None`` where there is none that can be read."""
    try:
        stamp = json.loads(path.read_text())
    except (OSError, ValueError):
        return None
    return stamp if isinstance(stamp, dict) else None


def changed(stamp: Mapping[str, Any] | None, made_from: Mapping[str, Any]) -> list[str]:
    """Why what a stamp speaks of must be made again; empty if it stands.

    ``made_from`` holds what is known before the run (notebook, parameters, lock); files that the
    run read, used and wrote are in the stamp itself.
    """
    if stamp is None:
        return ["never made"]
    reasons = [name for name, value in made_from.items() if stamp.get(name) != value]
    for group in ("inputs", "modules", "outputs"):
        for name, known in stamp.get(group, {}).items():
            now = file_hash(paths.ROOT / name)
            if now != known:
                reasons.append(f"{name} {'is gone' if now is None else 'changed'}")
    return reasons
