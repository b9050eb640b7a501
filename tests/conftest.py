"""The command line in this process, and copies of the project in which a build may be broken."""

import json
import os
import select
import shutil
import signal
import subprocess
import sys
import time
import uuid
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from analysis import paths
from analysis.cli.main import run
from analysis.records.case import committed_cases, load_case
from analysis.report.parameters import declared

signal.signal(signal.SIGINT, signal.default_int_handler)
"""Of a shell's background job it may be ignored, and children inherit that."""

SLOW = {"built": "", "browser": "browser", "report": "browser"} | dict.fromkeys(
    ("speculating", "two_slots", "start"), "live"
)
"""Fixtures that make a test slow, and the worker on which their tests run one after another."""

COPIED = ("data", "figures", "notebooks", "requirements", "src")
START = "from analysis.cli.main import run; run()"
SECRET = "not-to-be-published-5c1f"


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark what is slow. What shares a server, a browser or a module's fixture has one worker."""
    for item in items:
        if not isinstance(item, pytest.Function):
            continue
        slow = SLOW.keys() & set(item.fixturenames)
        if slow:
            item.add_marker(pytest.mark.slow)
        fixtures = item._fixtureinfo.name2fixturedefs.values()
        of_module = any(defined[-1].scope == "module" for defined in fixtures)
        group = max(SLOW[name] for name in slow) if slow else ""
        group = group or (item.module.__name__ if of_module else "")
        if group and item.get_closest_marker("xdist_group") is None:
            item.add_marker(pytest.mark.xdist_group(group))


@dataclass(frozen=True)
class Ended:
    """How a command ended, and what it printed."""

    code: int
    out: str
    err: str

    @property
    def json(self) -> dict[str, Any]:
        """Standard output as the one JSON object that it must be."""
        assert self.code == 0, self.err
        assert self.err == ""
        found = json.loads(self.out, parse_constant=_no_constant)
        assert isinstance(found, dict)
        return found

    @property
    def error(self) -> str:
        """The one line of an error: exit code 2, nothing on standard output."""
        assert (self.code, self.out) == (2, "")
        assert self.err.count("\n") == 1, self.err
        assert self.err.endswith("\n")
        assert "Traceback" not in self.err
        return self.err.strip()

    @property
    def ran(self) -> set[str]:
        """Names of the tasks that a build ran, from its progress lines."""
        lines = [line for line in self.out.splitlines() if line.startswith("[")]
        return {line.split("] ")[1].rsplit("  ", 1)[0] for line in lines}


def chapters() -> dict[str, list[str]]:
    """Chapters of every committed case: on data beside a case only where it refers to some."""
    known = {
        path.stem: declared(json.loads(path.read_text()), path.stem)
        for path in sorted(paths.NOTEBOOKS.glob("[0-9]*.ipynb"))
    }
    return {
        case: [
            name
            for name, found in known.items()
            if ("server" not in found or load_case(case).runs)
            and ("log" not in found or load_case(case).logs)
            and ("before" not in found or len(load_case(case).runs) >= 2)
            and ("pools" not in found or load_case(case).pools)
            and ("layout" not in found or load_case(case).kv_layouts)
        ]
        for case in committed_cases()
    }


def _no_constant(name: str) -> None:
    raise AssertionError(f"{name} is not JSON")


@pytest.fixture
def analysis(capsys: pytest.CaptureFixture[str]) -> Callable[..., Ended]:
    """Run ``analysis ARGUMENTS`` in this process."""

    def call(*arguments: str) -> Ended:
        capsys.readouterr()
        with pytest.raises(SystemExit) as stopped:
            run(list(arguments))
        out, err = capsys.readouterr()
        assert isinstance(stopped.value.code, int)
        return Ended(stopped.value.code, out, err)

    return call


@dataclass
class Tree:
    """A copy of the project, and the builds that were started in it."""

    root: Path
    mark: str = field(default_factory=lambda: f"REPORT_TEST_{uuid.uuid4().hex}")

    def start(self, *arguments: str, **environment: str) -> "subprocess.Popen[str]":
        """Start ``analysis ARGUMENTS`` of this copy, in a process group and a folder of its own."""
        return subprocess.Popen(
            [sys.executable, "-c", START, *arguments],
            cwd=self.root.parent,
            env=self.environment() | environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )

    def run(self, *arguments: str, **environment: str) -> Ended:
        """The same, to its end."""
        process = self.start(*arguments, **environment)
        out, err = process.communicate(timeout=300)
        return Ended(process.returncode, out, err)

    def environment(self) -> dict[str, str]:
        """The environment in which this copy, and not the installed package, is imported."""
        inherited = {k: v for k, v in os.environ.items() if k != paths.STAGE_VARIABLE}
        return inherited | {"PYTHONPATH": str(self.root / "src"), self.mark: SECRET}

    def processes(self) -> list[str]:
        """Command lines of all living processes that were started here, kernels included."""
        found = []
        for process in Path("/proc").glob("[0-9]*"):
            try:
                if self.mark.encode() in (process / "environ").read_bytes():
                    found.append((process / "cmdline").read_text().replace("\0", " "))
            except OSError:
                continue
        return found

    def published(self) -> dict[str, bytes]:
        """Every file that is committed and that a build writes, by path."""
        return published(self.root)

    def unbuild(self) -> None:
        """Remove all that a build makes, notebook outputs too."""
        for folder in ("build", "figures"):
            shutil.rmtree(self.root / folder, ignore_errors=True)
        for path in (self.root / "notebooks").glob("*.ipynb"):
            notebook = json.loads(path.read_text())
            for cell in notebook["cells"]:
                if cell["cell_type"] == "code":
                    cell["outputs"], cell["execution_count"] = [], None
            path.write_text(json.dumps(notebook))

    def edit(self, name: str, old: str, new: str) -> None:
        """Replace text that stands once in a file."""
        path = self.root / name
        text = path.read_text()
        assert text.count(old) == 1, f"{old!r} stands {text.count(old)} times in {name}"
        path.write_text(text.replace(old, new))


def published(root: Path) -> dict[str, bytes]:
    """Figures, values and notebooks below ``root``: the files whose bytes are promised."""
    files = [*(root / "figures").rglob("*"), *(root / "notebooks").glob("*")]
    return {str(p.relative_to(root)): p.read_bytes() for p in sorted(files) if p.is_file()}


@pytest.fixture(scope="session")
def committed() -> dict[str, bytes]:
    """The committed figures, values and notebooks."""
    return {
        name: content
        for name, content in published(paths.ROOT).items()
        if ".ipynb_checkpoints" not in name
    }


@pytest.fixture(scope="session")
def built(tmp_path_factory: pytest.TempPathFactory) -> Tree:
    """A copy that was built from scratch, once; not to be changed."""
    tree = Tree(tmp_path_factory.mktemp("built") / "project")
    for name in COPIED:
        shutil.copytree(
            paths.ROOT / name, tree.root / name, ignore=shutil.ignore_patterns("__pycache__")
        )
    tree.unbuild()
    ended = tree.run("report")
    assert (ended.code, ended.err) == (0, "")
    return tree


@pytest.fixture
def tree(built: Tree, tmp_path: Path) -> Iterator[Tree]:
    """A built copy of one's own; nothing of it may be left running."""
    copy = Tree(tmp_path / "project")
    shutil.copytree(built.root, copy.root, ignore=shutil.ignore_patterns("__pycache__"))
    yield copy
    assert left_after(copy.processes) == []


@pytest.fixture(scope="session")
def left() -> Callable[[Callable[[], list[str]]], list[str]]:
    """What of a list that should become empty is left after a bounded wait."""
    return left_after


def left_after(living: Callable[[], list[str]]) -> list[str]:
    for _ in range(300):
        if not living():
            return []
        time.sleep(0.1)
    return living()


@pytest.fixture(scope="session")
def next_line() -> Callable[..., str]:
    """The next line that a process prints, or nothing if none comes within ``seconds``."""

    def read(process: "subprocess.Popen[str]", seconds: float) -> str:
        assert process.stdout is not None
        line = b""
        while not line.endswith(b"\n"):  # byte by byte: a buffer would hide the next line
            if not select.select([process.stdout], [], [], seconds)[0]:
                break
            byte = os.read(process.stdout.fileno(), 1)
            if not byte:
                break
            line += byte
        return line.decode()

    return read
