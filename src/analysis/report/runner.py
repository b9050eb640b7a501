"""The report's build: run what is stale, publish what succeeded, keep the last good of the rest.

Small on purpose, and why not ``doit``: see ``docs/decisions.md``. Each task is one notebook on
one case. It runs in a worker, in a stage folder of its own; only this process moves results to
where readers find them, file by file, and writes the stamp last.
"""

import fcntl
import json
import os
import shutil
import signal
import tempfile
import time
import tomllib
from collections.abc import Iterator, Mapping
from concurrent.futures import Future, ProcessPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from multiprocessing import get_context
from pathlib import Path
from typing import Any

from analysis import paths
from analysis.errors import InputError
from analysis.report import state
from analysis.report.parameters import check, declared

Say = Any
NEEDS = {
    "server": ("runs", 1),
    "log": ("logs", 1),
    "before": ("runs", 2),
    "pools": ("pools", 1),
    "layout": ("kv_layouts", 1),
}
"""Parameters of chapters on data beside a case: what it has to refer to, and how many."""


@dataclass(frozen=True)
class Target:
    """Where a set of runs is published."""

    notebooks: Path
    figures: Path
    state: Path
    site: Path


COMMITTED = Target(paths.BUILD / "notebooks", paths.FIGURES, paths.STATE, paths.SITE)


def target_for(case: str) -> Target:
    """Where a case that is not committed goes: all below ``build/cases``."""
    folder = paths.BUILD / "cases" / case
    return Target(folder / "notebooks", folder / "figures", folder / "state", folder / "report")


@dataclass(frozen=True, eq=False)
class Task:
    """One notebook on one case. ``in_place`` writes the executed notebook back to ``notebooks``."""

    notebook: Path
    case: str
    target: Target
    in_place: bool
    parameters: Mapping[str, Any] = field(default_factory=dict)

    @property
    def name(self) -> str:
        """How it is called in progress and errors."""
        return f"{self.case} {self.notebook.stem}"

    @property
    def folder(self) -> Path:
        """Where the case is."""
        return paths.CASES / str(self.parameters.get("case", self.case))

    @property
    def executed(self) -> Path:
        """Where the executed notebook stands."""
        if self.in_place:
            return self.notebook
        return self.target.notebooks / self.case / self.notebook.name

    @property
    def stamp(self) -> Path:
        """Where the stamp stands."""
        return self.target.state / self.case / f"{self.notebook.stem}.json"

    @property
    def values(self) -> Path:
        """Where the values of this run are kept until they are merged."""
        return self.target.state / self.case / f"{self.notebook.stem}.values.json"

    def made_from(self) -> dict[str, Any]:
        """What is known before the run. Which tables a case has decides too: a table that was not
        there could not be recorded when it was read.
        """
        return {
            "notebook": state.notebook_hash(self.notebook),
            "parameters": dict(self.parameters),
            "tables": sorted(path.name for path in self.folder.glob("*.csv")),
            "lock": state.file_hash(paths.LOCK),
        }

    def reasons(self) -> list[str]:
        """Why it must run; empty if the last run stands."""
        return state.changed(state.read_stamp(self.stamp), self.made_from())


class RunFailedError(RuntimeError):
    """Some notebooks failed; the message says which, where, and where their copies are."""


def plan(
    case_folders: Mapping[str, str],
    target: Target,
    notebook: str | None = None,
    parameters: Mapping[str, Any] | None = None,
) -> list[Task]:
    """All tasks for cases given as name to the ``case`` parameter that names them.

    A notebook is run in place on the case that it declares as its default. One that declares a
    parameter of ``NEEDS`` runs only on cases that refer to what it is about.
    """
    notebooks = sorted(paths.NOTEBOOKS.glob("[0-9]*.ipynb"))
    if notebook is not None:
        names = ", ".join(path.stem for path in notebooks)
        notebooks = [path for path in notebooks if path.stem == notebook]
        if not notebooks:
            raise InputError("--notebook", repr(notebook), f"one of {names}")
    tasks = []
    for case, folder in case_folders.items():
        for path in notebooks:
            given = dict(parameters or {})
            known = declared(json.loads(path.read_text()), path.stem)
            if any(n not in given and not _refers(folder, *NEEDS[n]) for n in NEEDS if n in known):
                continue
            own = known["case"][1] if "case" in known else paths.FIRST_CASE
            in_place = case == own and target is COMMITTED and not given
            values = given if in_place else {"case": folder, **given}
            checked = check(values, known, path.stem)
            tasks.append(Task(path, case, target, in_place, checked))
    return tasks


def _refers(folder: str, field: str, least: int) -> bool:
    """Whether a case refers to so many; a file that cannot be read is refused when it is read."""
    try:
        facts = tomllib.loads((paths.CASES / folder / "case.toml").read_text())
    except (OSError, ValueError):
        return False
    references = facts.get("references")
    named = references.get(field) if isinstance(references, dict) else None
    return len([named] if isinstance(named, str) else named or []) >= least


def build(tasks: list[Task], force: bool, jobs: int, say: Say) -> list[Path]:
    """Run every stale task; returns the published files that changed.

    Raises ``RunFailedError`` after all others are done if some failed.
    """
    todo = [task for task in tasks if force or task.reasons()]
    changed: list[Path] = []
    if todo:
        _read_cases(todo)
        for left in paths.BUILD.glob("stage-*"):  # of a build that was killed
            shutil.rmtree(left, ignore_errors=True)
        stage = Path(tempfile.mkdtemp(prefix="stage-", dir=_made(paths.BUILD)))
        try:
            changed = _run_all(todo, stage, jobs, say)
        finally:
            _remove(stage)
    return changed


def _read_cases(todo: list[Task]) -> None:
    """Raise ``InputError`` for a case with a bad file, once, before any notebook meets it."""
    from analysis.records.case import load_case

    for case in {str(task.parameters.get("case", task.case)): task for task in todo}:
        load_case(case).read_all()


def _run_all(todo: list[Task], stage: Path, jobs: int, say: Say) -> list[Path]:
    from analysis.report import execute  # papermill: only where something runs

    failed: list[str] = []
    changed: list[Path] = []
    execute.KERNEL_LOG.unlink(missing_ok=True)
    temporary = tempfile.mkdtemp(prefix="report-")
    pool = ProcessPoolExecutor(
        jobs,
        get_context("spawn"),
        initializer=execute.start_worker,
        initargs=(os.getpid(), temporary),
    )
    try:
        began = time.monotonic()
        folders = {task: stage / task.case / task.notebook.stem for task in todo}
        waiting: dict[Future[list[str]], Task] = {
            pool.submit(execute.run, task.notebook, dict(task.parameters), folders[task]): task
            for task in todo
        }
        for done, future in enumerate(as_completed(waiting), 1):
            task = waiting[future]
            faults = future.result()
            say(f"[{done}/{len(todo)}] {task.name}  {time.monotonic() - began:.1f} s")
            if faults:
                kept = _keep_failed(task, folders[task])
                failed.append(f"{task.name}, {faults[0]} (copy: {kept})")
            else:
                changed += _publish(task, folders[task])
    except BrokenProcessPool:
        _stop(pool)
        raise RunFailedError("a worker was killed from outside; run it again") from None
    except BaseException:
        _stop(pool)
        raise
    finally:
        _remove(Path(temporary))
    pool.shutdown()
    if failed:
        raise RunFailedError("; ".join(" ".join(text.split()) for text in failed))
    return changed


def _stop(pool: ProcessPoolExecutor) -> None:
    """End workers and their kernels at once.

    Where there is no ``/proc`` a kernel notices by itself that its worker is gone, a second later.
    """
    workers = list((pool._processes or {}).values())
    kernels: list[int] = []
    for process in workers:
        with suppress(OSError):  # the worker may be gone already
            for children in Path(f"/proc/{process.pid}/task").glob("*/children"):
                kernels += [int(kernel) for kernel in children.read_text().split()]
    for pid in [process.pid for process in workers] + kernels:
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)  # type: ignore[arg-type]
    for process in workers:
        process.join(1)
    pool.shutdown(wait=False, cancel_futures=True)


def _remove(folder: Path) -> None:
    """Remove a folder into which a dying kernel may still be writing."""
    for _ in range(50):
        shutil.rmtree(folder, ignore_errors=True)
        if not folder.exists():
            return
        time.sleep(0.1)


def _publish(task: Task, stage: Path) -> list[Path]:
    from analysis.report.execute import EXECUTED

    task.stamp.unlink(missing_ok=True)
    moves = {stage / EXECUTED: task.executed, stage / "values.json": task.values}
    for path in sorted((stage / "figures").rglob("*")):
        if path.is_file():
            moves[path] = task.target.figures / path.relative_to(stage / "figures")
    changed = [new for old, new in moves.items() if old.exists() and _replace(old, new)]
    read = [json.loads(line) for line in _lines(stage / "inputs.jsonl")]
    modules = json.loads((stage / "modules.json").read_text())
    outputs = [path for path in moves.values() if path.exists()]
    state.write_stamp(
        task.stamp,
        task.made_from()
        | {
            "inputs": {row["file"]: row["sha256"] for row in read},
            "modules": modules,
            "outputs": state.hashes(outputs),
        },
    )
    return changed


def _replace(old: Path, new: Path) -> bool:
    """Move ``old`` over ``new`` unless they are the same; whether anything changed."""
    if state.file_hash(old) == state.file_hash(new):
        return False
    new.parent.mkdir(parents=True, exist_ok=True)
    partial = new.with_name(new.name + ".partial")
    shutil.move(old, partial)
    partial.replace(new)
    return True


def _keep_failed(task: Task, stage: Path) -> str:
    from analysis.report.execute import PARTIAL

    kept = paths.BUILD / "failed" / f"{task.case}-{task.notebook.name}"
    if not (stage / PARTIAL).exists():
        return "none"
    _replace(stage / PARTIAL, kept)
    return paths.relative(kept)


def prune(tasks: list[Task]) -> list[Path]:
    """Remove figures that no run makes any more; returns them."""
    wanted = {
        paths.ROOT / name
        for task in tasks
        for name in (state.read_stamp(task.stamp) or {}).get("outputs", {})
    }
    gone = []
    for task in {task.case: task for task in tasks}.values():
        for path in sorted((task.target.figures / task.case).glob("*")):
            if path not in wanted:
                path.unlink()
                gone.append(path)
    return gone


def merge_values(tasks: list[Task], to: Path) -> None:
    """All values of all runs in one file: case, notebook, name."""
    merged: dict[str, dict[str, Any]] = {}
    for task in tasks:
        if task.values.exists():
            for case, notebooks in json.loads(task.values.read_text()).items():
                merged.setdefault(case, {}).update(notebooks)
    text = json.dumps(merged, indent=1, ensure_ascii=False) + "\n"
    if not to.exists() or to.read_text() != text:
        partial = to.with_suffix(".partial")
        _made(to.parent)
        partial.write_text(text)
        partial.replace(to)


@contextmanager
def only_one() -> Iterator[None]:
    """Refuse to build while another build of this checkout is at work."""
    with (_made(paths.BUILD) / ".lock").open("w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            raise InputError("build", "another build at work", "one at a time") from None
        yield


def _made(folder: Path) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    return folder


def _lines(path: Path) -> list[str]:
    return path.read_text().splitlines() if path.exists() else []
