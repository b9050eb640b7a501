"""``analysis plan-context``."""

import os
import shutil
import tempfile
from pathlib import Path
from typing import Any

import click

from analysis import paths
from analysis.cli.output import json_option, print_paragraphs, show
from analysis.errors import InputError
from analysis.findings.context_plan import ContextPlan, plan_change
from analysis.findings.context_steps import HEADS, page, server_url, share, verify_command
from analysis.records.case import load_case
from analysis.records.launch import read_launch

DIFF, PAGE = "change.diff", "PLAN.md"


@click.command("plan-context")
@click.argument("unit", type=click.Path(path_type=Path))
@click.option("--to", required=True, type=click.IntRange(min=1), help="context tokens wished")
@click.option("--case", "case_name", required=True, help="whose model, layout and pool are known")
@click.option("--out", type=click.Path(path_type=Path), help="folder  [default: in build/plans]")
@json_option
def plan_context(unit: Path, to: int, case_name: str, out: Path | None, as_json: bool) -> None:
    """Plan another context limit for the server that UNIT starts; change and restart nothing.

    UNIT is a systemd unit or a shell script that starts SGLang, vLLM or llama.cpp. What cannot be
    read for sure is refused.
    """
    case = load_case(case_name)
    launch = read_launch(unit)
    plan = plan_change(launch, to, case)
    folder = out or paths.BUILD / "plans" / f"{unit.name}-{to}"
    if folder.resolve() in (unit.resolve().parent, unit.absolute().parent.resolve()):
        raise InputError("--out", "the folder of the unit itself", "another folder")
    files = {
        launch.path.name: (plan.patched, launch.mode),
        DIFF: (plan.diff, launch.mode & 0o666),
        PAGE: (page(plan, folder).encode("utf-8", "replace"), launch.mode & 0o666),
    }
    write_folder(folder, files)
    if as_json:
        show(facts(plan, folder), as_json=True)
        return
    click.echo(f"{HEADS[plan.verdict]} {launch.path.name}: {launch.setting.written} to {to}")
    print_paragraphs(
        [
            f"Capability: {plan.capability}",
            f"Memory: {plan.memory.text}",
            f"Engine: {launch.engine} {plan.memory.behaviour}",
            *share(plan),
            *(f"Differs: {text}" for text in plan.differences),
            *(f"Rests on: {text}" for text in plan.conditions),
            f"Written to {paths.relative(folder)}: {', '.join(files)}",
            "Nothing was changed in place, and nothing restarted",
        ]
    )


def write_folder(folder: Path, files: dict[str, tuple[bytes, int]]) -> None:
    """Make a folder of files, given as content and mode, whole or not at all.

    One that holds just these already is left alone; one with other content is refused.
    """
    if folder.exists() or folder.is_symlink():
        if not folder.is_dir():
            raise InputError("--out", f"a file {folder.name!r}", "a folder")
        there = {path.name for path in folder.iterdir()}
        if there == set(files) and all(
            (folder / name).read_bytes() == content for name, (content, _) in files.items()
        ):
            return
        if there:
            names = ", ".join(sorted(there)[:3])
            raise InputError("--out", f"a folder with other content ({names})", "a new folder")
    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
        partial = Path(tempfile.mkdtemp(prefix=f".{folder.name}.", dir=folder.parent))
    except OSError as error:
        raise InputError("--out", str(error.strerror).lower(), "a folder to write in") from None
    try:
        for name, (content, mode) in files.items():
            path = partial / name
            path.touch(mode=0o600)
            path.write_bytes(content)
            path.chmod(mode)
        partial.chmod(0o777 & ~_umask())
        partial.replace(folder)
    except OSError as error:
        raise InputError("--out", str(error.strerror).lower(), "a folder to write in") from None
    finally:
        shutil.rmtree(partial, ignore_errors=True)


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask


def facts(plan: ContextPlan, folder: Path) -> dict[str, Any]:
    """The plan as JSON."""
    launch, setting, memory = plan.launch, plan.launch.setting, plan.memory
    found = memory.allowed
    return {
        "unit": launch.path.name,
        "kind": launch.kind,
        "engine": launch.engine,
        "setting": setting.name,
        "line": setting.line,
        "written": setting.written,
        "now_tokens": setting.tokens,
        "to_tokens": plan.to,
        "tokens_per_request": plan.per_request,
        "case": plan.case,
        "verdict": plan.verdict,
        "capability": plan.capability,
        "memory": memory.text,
        "behaviour": f"{launch.engine} {memory.behaviour}",
        "needed_gib_per_gpu": memory.needed_gib,
        "pool_tokens": found.pool_tokens if found else None,
        "starts": found.starts if found else None,
        "largest_request": found.largest_request if found else None,
        "largest_prompt": found.largest_prompt if found else None,
        "requests_at_limit": found.requests_at_limit if found else None,
        "ways": [
            {"name": w.name, "tokens": w.tokens, "enough": w.enough, "costs": w.costs}
            for w in memory.ways
        ],
        "conditions": list(plan.conditions),
        "differences": list(plan.differences),
        "notes": list(launch.notes),
        "folder": paths.relative(folder),
        "files": [launch.path.name, DIFF, PAGE],
        "url": server_url(launch),
        "verify": verify_command(plan),
    }
