"""Time the build against a plain loop of the papermill and nbconvert commands, in one run.

Prints seconds and ratios: the full build, the build with nothing changed, and the build after one
table changed, each against the loop over the same notebooks and cases. Works in a copy of the
tree, so this one stays as it is. Machines are shared: read the ratios.
"""

import os
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from analysis import paths

COPIED = ("data", "notebooks", "src", "requirements", "figures")
TABLE = "data/cases/kimi-k26-sglang/two_point.csv"
BIN = Path(sys.executable).parent


def main() -> None:
    """Run the four builds and print them side by side."""
    with tempfile.TemporaryDirectory(prefix="benchmark-") as name:
        root = Path(name)
        for folder in COPIED:
            shutil.copytree(paths.ROOT / folder, root / folder)
        environment = os.environ | {"PYTHONPATH": str(root / "src")}
        build = [sys.executable, "-c", "from analysis.cli.main import run; run(['report'])"]
        took = {"plain loop": loop(root, environment)}
        took["full build"] = timed(build, root, environment)
        took["nothing changed"] = min(timed(build, root, environment) for _ in range(3))
        table = root / TABLE
        table.write_text(table.read_text().replace("255", "256"))
        took["one table changed"] = timed(build, root, environment)
    for label, seconds in took.items():
        print(f"{label:<18} {seconds:7.2f} s   {seconds / took['plain loop']:6.3f} of the loop")


def loop(root: Path, environment: dict[str, str]) -> float:
    """Every notebook on every case by the papermill command, then by the nbconvert command."""
    began = time.perf_counter()
    out = root / "loop"
    out.mkdir()
    for case in sorted(path.name for path in (root / "data" / "cases").iterdir()):
        for notebook in sorted((root / "notebooks").glob("*.ipynb")):
            made = out / f"{case}-{notebook.name}"
            papermill = [BIN / "papermill", notebook, made, "-p", "case", case]
            run([*papermill, "--no-progress-bar", "--cwd", root], root, environment)
            run([BIN / "jupyter-nbconvert", "--to", "html", made], root, environment)
    return time.perf_counter() - began


def timed(command: list[str], root: Path, environment: dict[str, str]) -> float:
    """Seconds of one command."""
    began = time.perf_counter()
    run(command, root, environment)
    return time.perf_counter() - began


def run(command: list[str | Path], root: Path, environment: dict[str, str]) -> None:
    """Run a command; what it printed is shown only if it failed."""
    done = subprocess.run(command, cwd=root, env=environment, capture_output=True, text=True)
    if done.returncode:
        sys.exit(f"{command} failed:\n{done.stdout}{done.stderr}")


if __name__ == "__main__":
    main()
