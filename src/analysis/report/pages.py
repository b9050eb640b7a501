"""When the pages are stale, build them. Imports nbconvert only then."""

import tomllib
from pathlib import Path
from typing import Any

from analysis import paths
from analysis.report import state
from analysis.report.runner import Target, Task

SITE_SOURCES = paths.SOURCE / "analysis" / "report"


def refresh(tasks: list[Task], target: Target, force: bool) -> Path:
    """Build the pages of all tasks unless they stand; returns the first page."""
    stamp = target.state / "site.json"
    made_from = {"made_from": _made_from(tasks, target)}
    if force or state.changed(state.read_stamp(stamp), made_from):
        from analysis.report.site.build import Page, build

        stamp.unlink(missing_ok=True)
        pages = [
            Page(task.case, _title(task), task.executed, _inputs(task))
            for task in tasks
            if task.executed.exists() and task.stamp.exists()
        ]
        build(pages, target.figures, target.site)
        outputs = [path for path in target.site.rglob("*") if path.is_file()]
        state.write_stamp(stamp, made_from | {"outputs": state.hashes(outputs)})
    return target.site / "index.html"


def _made_from(tasks: list[Task], target: Target) -> dict[str, Any]:
    sources = [path for path in (SITE_SOURCES / "site").rglob("*") if path.is_file()]
    sources = [path for path in sources if path.suffix != ".pyc"]
    figures = [path for path in target.figures.rglob("*") if path.is_file()]
    executed = [task.executed for task in tasks]
    stamps = [task.stamp for task in tasks]
    return state.hashes(
        [
            *sources,
            *figures,
            *executed,
            *stamps,
            SITE_SOURCES / "cite.py",
            Path(__file__),
            paths.LOCK,
        ]
    )


def _title(task: Task) -> str:
    return str(tomllib.loads((task.folder / "case.toml").read_text())["title"])


def _inputs(task: Task) -> dict[str, str]:
    stamp = state.read_stamp(task.stamp) or {}
    return {paths.relative(paths.ROOT / name): sha for name, sha in stamp["inputs"].items()}
