"""A case for a run that has none: what its manifest says of the server, and no more."""

import json
import os
from pathlib import Path

from analysis import paths
from analysis.records.case import FORMAT, Case
from analysis.records.run import SERVER_LOG, Run, Server

EMBEDDED_MODEL = "HuggingFaceTB/SmolLM2-135M-Instruct"
"""The model that the embedded server serves; llama.cpp keeps its cache in fp16."""


def case_of_run(run: Run) -> Case:
    """Write ``build/cases/<run>/case.toml`` and return the case."""
    folder = paths.BUILD / "cases" / run.name
    folder.mkdir(parents=True, exist_ok=True)
    text = case_toml(run, folder)
    path = folder / "case.toml"
    if not path.exists() or path.read_text() != text:
        path.write_text(text)
    return Case(folder)


def case_toml(run: Run, folder: Path) -> str:
    """The text of a ``case.toml`` in ``folder`` for a run."""
    server, host = run.manifest.server, run.manifest.host
    day = run.manifest.started_utc.date().isoformat()
    engine = f"{server.kind} {server.version}".strip()
    speculation = {True: server.speculation or "on", False: "off", None: "not known"}
    lines = {
        "format": FORMAT,
        "title": f"{server.model} on {engine}, measured on {day}",
        "summary": f"Why is this server this fast? Speculation: {speculation[server.speculates]}.",
        "source": f"run {run.name}, measured on {day} on {host.processor}, {host.cores} cores",
    }
    embedded = _is_embedded_model(server)
    if embedded:
        lines["model"] = EMBEDDED_MODEL
    parts = ["\n".join(_line(name, value) for name, value in lines.items())]
    parts.append(_table("engine", {"name": server.kind, "version": server.version}))
    if embedded:
        parts.append(_table("layout", {"kv_dtype": "fp16"}))
    if server.context_limit:
        parts.append(_table("limits", {"context_tokens": server.context_limit}))
    if server.speculates and server.speculation:
        parts.append(_table("speculation", {"method": server.speculation}))
    references: dict[str, object] = {"runs": [_from(folder, run.folder)]}
    log = run.folder / SERVER_LOG
    if log.is_file():
        references["logs"] = [_from(folder, log)]
    parts.append(_table("references", references))
    return "\n\n".join(parts) + "\n"


def _is_embedded_model(server: Server) -> bool:
    return server.where == "embedded" and server.model.startswith(EMBEDDED_MODEL.split("/")[1])


def _from(folder: Path, run: Path) -> str:
    """Relative within the project, so that it may be moved as a whole; else absolute."""
    inside = run.is_relative_to(paths.ROOT) and folder.is_relative_to(paths.ROOT)
    return os.path.relpath(run, folder) if inside else str(run)


def _table(name: str, values: dict[str, object]) -> str:
    return "\n".join([f"[{name}]", *(_line(key, value) for key, value in values.items())])


def _line(name: str, value: object) -> str:
    """A JSON text, number or list of texts is TOML too."""
    return f"{name} = {json.dumps(value)}"
