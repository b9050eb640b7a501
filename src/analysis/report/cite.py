"""How to cite a figure: id, short hash and a relative path, in three notations."""

import json
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from analysis import paths
from analysis.errors import InputError
from analysis.report import state

TITLE = "Why is my speculative decoding this fast, and what will it do next?"


@dataclass(frozen=True)
class Snippets:
    """The same citation as Markdown, LaTeX and plain text."""

    markdown: str
    latex: str
    plain: str


def snippets(record: dict[str, Any], path: str) -> Snippets:
    """Snippets for a figure's record; ``path`` is that of its SVG from the project root."""
    label = f"{record['id']}@{record['hash']}"
    caption = record["caption"]
    stem = path.removesuffix(".svg")
    return Snippets(
        markdown=f"![{record['alt']}]({path})\n\n*{caption}* ({label}, data: {stem}.csv)",
        latex=(
            "\\begin{figure}\n"
            f"  \\includegraphics[width=\\linewidth]{{{stem}.png}}\n"
            f"  \\caption{{{_latex(caption)} (\\texttt{{{_latex(label)}}})}}\n"
            f"  \\label{{fig:{record['id']}}}\n"
            "\\end{figure}"
        ),
        plain=f'{caption} Figure {label} of "{TITLE}", {path}.',
    )


def sidecars(folder: Path) -> dict[str, dict[str, Any]]:
    """Figure id to sidecar, of all figures below ``folder``."""
    found = {}
    for path in sorted(folder.glob("*/*.json")):
        sidecar = json.loads(path.read_text())
        found[sidecar["id"]] = sidecar
    return found


def find(figure_id: str) -> dict[str, Any]:
    """The sidecar of one figure."""
    known = sidecars(paths.FIGURES)
    if figure_id not in known:
        listed = ", ".join(known) or "none yet: run make report"
        raise InputError("FIGURE-ID", repr(figure_id), f"one of {listed}")
    return known[figure_id]


def stale(sidecar: dict[str, Any]) -> list[str]:
    """Which inputs, modules or files of a committed figure are not what it was made from."""
    expected = dict(sidecar["inputs"]) | dict(sidecar["modules"])
    expected[paths.relative(paths.LOCK)] = sidecar["lock"]
    reasons = []
    for name, known in expected.items():
        now = state.file_hash(paths.ROOT / name)
        if now != known:
            reasons.append(f"{name} {'is gone' if now is None else 'changed'}")
    folder = (paths.FIGURES / sidecar["id"]).parent
    for name, known in sidecar["sha256"].items():
        if state.file_hash(folder / name) != known:
            reasons.append(f"figures/{folder.name}/{name} was edited or is gone")
    return reasons


def _latex(text: str) -> str:
    return re.sub(r"([%&#_$])", r"\\\1", text)
