"""Saving a figure: picture, table, sidecar and short hash, all by one function."""

import base64
import hashlib
import io
import json
import sys
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import matplotlib as mpl
import pandas as pd
from matplotlib.figure import Figure

from analysis import paths
from analysis.records import inputs
from analysis.report.style import RC
from analysis.rounding import rounded

MIME = "application/vnd.analysis.figure+json"
HASH_LENGTH = 8


@dataclass(frozen=True)
class SavedFigure:
    """What a notebook shows of a figure, and what the page makes of it."""

    id: str
    hash: str
    notebook: str
    caption: str
    alt: str


def save(
    figure: Figure,
    table: pd.DataFrame,
    saved: SavedFigure,
    parameters: Mapping[str, Any],
    folder: Path,
) -> tuple[SavedFigure, bytes]:
    """Write ``<id>.svg .png .csv .json`` below ``folder``; returns the record and the PNG.

    The short hash is of the table and of what was drawn (see ``drawing``), so that neither a
    refactoring nor another release of a library makes a citation stale.
    """
    csv = table.to_csv(index=False, lineterminator="\n")
    spec = drawing(figure)
    content = json.dumps([csv, spec, saved.caption], sort_keys=True)
    saved = SavedFigure(
        **asdict(saved) | {"hash": hashlib.sha256(content.encode()).hexdigest()[:HASH_LENGTH]}
    )
    # The first save solves the constrained layout; then it is frozen: a second could move it.
    with mpl.rc_context(RC):
        svg, png = io.BytesIO(), io.BytesIO()
        figure.savefig(png, format="png", metadata={"Software": None})
        figure.set_layout_engine("none")
        figure.savefig(svg, format="svg", metadata={"Date": None, "Creator": None})
    files = {"svg": svg.getvalue(), "png": png.getvalue(), "csv": csv.encode()}
    name = Path(saved.id).name
    sidecar = {
        **asdict(saved),
        "sha256": {f"{name}.{ending}": inputs.digest(data) for ending, data in files.items()},
        "parameters": dict(parameters),
        "drawing": spec,
        "inputs": inputs.seen(),
        "modules": modules(),
        "lock": hashlib.sha256(paths.LOCK.read_bytes()).hexdigest()
        if paths.LOCK.exists()
        else None,
    }
    target = folder / saved.id
    target.parent.mkdir(parents=True, exist_ok=True)
    for ending, data in files.items():
        target.with_suffix(f".{ending}").write_bytes(data)
    target.with_suffix(".json").write_text(json.dumps(rounded(sidecar), indent=1) + "\n")
    return saved, png.getvalue()


def bundle(saved: SavedFigure, png: bytes) -> dict[str, Any]:
    """What a notebook stores: the record for the page, a picture for other viewers, alt text."""
    return {
        MIME: asdict(saved),
        "image/png": base64.b64encode(png).decode(),
        "text/plain": f"Figure {saved.id} ({saved.hash}): {saved.caption}",
    }


def drawing(figure: Figure) -> list[dict[str, Any]]:
    """What is drawn, apart from the data: axes, their scales, limits and texts, and artists."""
    spec = []
    for axis in figure.axes:
        artists = [
            f"{type(artist).__name__}:{_colour(artist)}"
            for artist in (*axis.lines, *axis.collections, *axis.patches)
        ]
        spec.append(
            {
                "title": axis.get_title(loc="left") or axis.get_title(),
                "x": axis.get_xlabel(),
                "y": axis.get_ylabel(),
                "scales": [axis.get_xscale(), axis.get_yscale()],
                "limits": [
                    [float(f"{end:.6g}") for end in lim]
                    for lim in (axis.get_xlim(), axis.get_ylim())
                ],
                "texts": [text.get_text() for text in axis.texts],
                "artists": artists,
            }
        )
    return spec


def _colour(artist: Any) -> str:
    for name in ("get_color", "get_facecolor"):
        if hasattr(artist, name):
            flat = mpl.colors.to_rgba_array(getattr(artist, name)())
            return mpl.colors.to_hex(flat[0], keep_alpha=True) if len(flat) else "none"
    return "none"


def modules() -> dict[str, str]:
    """SHA-256 of every module of this package that is loaded, by path."""
    found = {}
    for name, module in list(sys.modules.items()):
        source = getattr(module, "__file__", None)
        if name.split(".")[0] == "analysis" and source:
            path = Path(source)
            found[paths.relative(path)] = hashlib.sha256(path.read_bytes()).hexdigest()
    return dict(sorted(found.items()))
