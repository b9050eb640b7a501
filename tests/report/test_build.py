"""The build on a copy of the project: bytes, what is stale, failures, kills and interrupts."""

import json
import os
import random
import signal
import subprocess
import sys
import time
import xml.etree.ElementTree as ET
from pathlib import Path

import nbformat
import pytest
from tests.conftest import chapters

from analysis.records.case import load_case

HEAVY = ("papermill", "nbconvert", "nbformat", "pandas", "matplotlib", "seaborn", "numpy", "scipy")
LIST_MODULES = f"""
import sys
from analysis.cli.main import run
try:
    run(["report"])
except SystemExit as stopped:
    print("heavy", sorted(set({HEAVY}) & set(sys.modules)))
    raise
"""
TWO_POINT = "data/cases/kimi-k26-sglang/two_point.csv"


def differing(one: dict[str, bytes], other: dict[str, bytes]) -> list[str]:
    return sorted(name for name in one.keys() | other.keys() if one.get(name) != other.get(name))


def test_a_build_from_scratch_gives_the_committed_bytes(built, committed) -> None:
    assert len(committed) > 60
    assert differing(built.published(), committed) == []


def test_a_secret_of_the_environment_is_in_nothing_that_a_build_writes(built) -> None:
    assert built.environment()[built.mark]
    for path in built.root.rglob("*"):
        if path.is_file():
            content = path.read_bytes()
            assert built.mark.encode() not in content, path
            assert built.environment()[built.mark].encode() not in content, path


def test_a_build_leaves_nothing_but_results_and_a_log_behind(built) -> None:
    left = {path.name for path in (built.root / "build").iterdir()}
    assert left - {"kernel.log"} == {".lock", "notebooks", "report", "state"}
    assert list(built.root.rglob("*.partial*")) == []


def test_a_build_with_nothing_to_do_runs_nothing_and_loads_no_heavy_library(tree) -> None:
    """File times say nothing: git does not keep them."""
    for path in tree.root.rglob("*"):
        if path.is_file():
            os.utime(path)
    before = {path: path.stat().st_mtime_ns for path in tree.root.rglob("*.*") if path.is_file()}
    ended = subprocess.run(
        [sys.executable, "-c", LIST_MODULES],
        env=tree.environment() | {"PYTHONDONTWRITEBYTECODE": "1"},
        cwd=tree.root,
        capture_output=True,
        text=True,
    )
    assert (ended.returncode, ended.stderr) == (0, "")
    assert ended.stdout.splitlines() == ["build/report/index.html is up to date", "heavy []"]
    after = {path: path.stat().st_mtime_ns for path in tree.root.rglob("*.*") if path.is_file()}
    lock = tree.root / "build" / ".lock"
    assert before | {lock: 0} == after | {lock: 0}


def readers(tree, name: str) -> set[str]:
    """Tasks whose last run read a file, from the stamps."""
    found = set()
    for stamp in (tree.root / "build" / "state").glob("*/*.json"):
        content = json.loads(stamp.read_text())
        if name in content.get("inputs", {}):
            found.add(f"{stamp.parent.name} {stamp.stem}")
    return found


def test_a_changed_table_runs_the_notebooks_that_read_it_and_no_other(tree) -> None:
    wanted = {"kimi-k26-sglang 00-summary", "kimi-k26-sglang 01-two-point-decode"}
    assert readers(tree, TWO_POINT) == wanted
    before = tree.published()
    tree.edit(TWO_POINT, "5120,67,", "5120,68,")
    orphan = tree.root / "figures" / "kimi-k26-sglang" / "of-a-notebook-long-gone.svg"
    orphan.write_text("<svg/>")
    ended = tree.run("report")
    assert (ended.code, ended.ran) == (0, wanted)
    assert not orphan.exists()
    assert "changed: figure needed-commit" in ended.out.splitlines()
    changed = differing(before, tree.published())
    assert {
        "figures/values.json",
        "figures/kimi-k26-sglang/needed-commit.csv",
        "figures/kimi-k26-sglang/needed-commit.svg",
        "notebooks/01-two-point-decode.ipynb",
    } <= set(changed)
    assert not [name for name in changed if "kimi-k26-vllm" in name or "02-" in name]
    # 68 tok/s for the 67 of the account, at the same fitted step
    values = json.loads((tree.root / "figures" / "values.json").read_text())
    old = json.loads(before["figures/values.json"])["kimi-k26-sglang"]["01-two-point-decode"]
    new = values["kimi-k26-sglang"]["01-two-point-decode"]
    assert new["needed[0]"] == old["needed[0]"]
    assert tree.run("report").ran == set()


def test_a_table_that_a_case_did_not_have_is_noticed(tree) -> None:
    two_point = tree.root / "data" / "cases" / "kimi-k26-vllm" / "two_point.csv"
    two_point.write_text("context_tokens,tok_per_s,source\n16384,90,made up\n")
    ended = tree.run("report", "--notebook", "01-two-point-decode")
    assert (ended.code, ended.ran) == (0, {"kimi-k26-vllm 01-two-point-decode"})
    assert (tree.root / "figures" / "kimi-k26-vllm" / "needed-commit.svg").is_file()


def test_a_refactored_plot_runs_its_notebooks_and_no_citation_grows_stale(tree) -> None:
    before = tree.published()
    module = tree.root / "src/analysis/report/plots/memory.py"
    module.write_text(module.read_text() + "\n\ndef unused() -> None:\n    pass\n")
    ended = tree.run("report")
    wanted = {f"{case} 05-mla-memory" for case in chapters()}
    assert (ended.code, ended.ran) == (0, wanted)
    changed = differing(before, tree.published())
    with_gpus = [case for case in chapters() if load_case(case).gpu]
    assert changed == [f"figures/{case}/kv-per-gpu.json" for case in with_gpus]
    for name in changed:
        old, new = json.loads(before[name]), json.loads((tree.root / name).read_text())
        assert [key for key in old if old[key] != new[key]] == ["modules"]


def test_a_failing_notebook_is_one_line_and_the_last_good_report_stays(tree) -> None:
    notebook = tree.root / "notebooks" / "02-context-sweep.ipynb"
    content = json.loads(notebook.read_text())
    (cell,) = [cell for cell in content["cells"] if cell["id"] == "verdict"]
    cell["source"] = 'raise ValueError("made to\\nfail")'
    notebook.write_text(json.dumps(content))
    tree.edit(TWO_POINT, "5120,67,", "5120,68,")  # so that others have work too
    written = notebook.read_bytes()
    good = tree.published()
    page = (tree.root / "build/report/index.html").read_bytes()
    ended = tree.run("report")
    assert ended.code == 2
    assert ended.ran == {
        "kimi-k26-sglang 00-summary",
        "kimi-k26-sglang 01-two-point-decode",
        "kimi-k26-sglang 02-context-sweep",
        "kimi-k26-vllm 02-context-sweep",
        "smollm2-llamacpp 02-context-sweep",
    }
    (line,) = ended.err.splitlines()
    for case in chapters():
        copy = f"build/failed/{case}-02-context-sweep.ipynb"
        where = f"{case} 02-context-sweep, cell verdict: ValueError: made to fail (copy: {copy})"
        assert where in line
        assert "made to" in (tree.root / copy).read_text()
    assert (tree.root / "build/report/index.html").read_bytes() == page
    assert notebook.read_bytes() == written
    changed = differing(good, tree.published())
    assert "notebooks/01-two-point-decode.ipynb" in changed
    assert not [name for name in changed if "sweep" in name or "vllm" in name]
    again = tree.run("report")
    assert again.code == 2
    assert {name.split()[1] for name in again.ran} == {"02-context-sweep"}


def test_a_second_build_at_the_same_time_is_refused_in_one_line(tree, left) -> None:
    (tree.root / "build/state/kimi-k26-vllm/05-mla-memory.json").unlink()
    first = tree.start("report")
    assert left(lambda: [] if list((tree.root / "build").glob("stage-*")) else ["no"]) == []
    second = tree.run("report")
    assert second.error == "error: build: found another build at work; expected one at a time"
    out, err = first.communicate(timeout=120)
    assert (first.returncode, err) == (0, "")
    assert "kimi-k26-vllm 05-mla-memory" in out


@pytest.mark.parametrize("whole_group", [False, True], ids=["main", "terminal"])
def test_an_interrupt_ends_with_130_in_one_line_and_valid_files(
    tree, left, next_line, tmp_path: Path, whole_group: bool
) -> None:
    good = tree.published()
    for stamp in (tree.root / "build/state/kimi-k26-sglang").glob("0*.json"):
        if not stamp.name.endswith(".values.json"):
            stamp.unlink()
    temporary = tmp_path / "t"
    temporary.mkdir()
    process = tree.start("report", TMPDIR=str(temporary))
    assert "[1/6]" in next_line(process, 120)
    (os.killpg if whole_group else os.kill)(process.pid, signal.SIGINT)
    _, err = process.communicate(timeout=60)
    assert (process.returncode, err.split()) == (130, ["interrupted"])
    assert left(tree.processes) == []
    assert list((tree.root / "build").glob("stage-*")) == []
    assert list(temporary.iterdir()) == []
    assert differing(good, tree.published()) == []
    for name, content in tree.published().items():
        if name.endswith(".ipynb"):
            nbformat.validate(json.loads(content))
        elif name.endswith(".json"):
            json.loads(content)
        elif name.endswith(".svg"):
            ET.fromstring(content)


def test_a_killed_worker_is_one_line_too(tree, left) -> None:
    (tree.root / "build/state/kimi-k26-vllm/05-mla-memory.json").unlink()
    process = tree.start("report", "--jobs", "1")
    begun = "stage-*/kimi-k26-vllm/05-mla-memory/notebook.partial.ipynb"
    assert left(lambda: [] if list((tree.root / "build").glob(begun)) else ["not begun"]) == []
    children = Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split()
    worker = [c for c in children if b"spawn_main" in Path(f"/proc/{c}/cmdline").read_bytes()]
    os.kill(int(worker[0]), signal.SIGKILL)
    _, err = process.communicate(timeout=60)
    assert process.returncode == 2
    assert err.splitlines() == [
        "error: report: found a failed run: a worker was killed from outside; run it again; "
        "expected every cell to run"
    ]


def core_type(**environment: str) -> str:
    """The kind of processor for which NumPy's OpenBLAS picks its kernels."""
    code = (
        "import ctypes, glob, os, numpy\n"
        "folder = os.path.join(os.path.dirname(numpy.__file__), '..', 'numpy.libs')\n"
        "library = ctypes.CDLL(glob.glob(os.path.join(folder, '*openblas*'))[0])\n"
        "name = library.scipy_openblas_get_corename64_\n"
        "name.restype = ctypes.c_char_p\n"
        "print(name().decode())\n"
    )
    made = subprocess.run(
        [sys.executable, "-c", code],
        env=os.environ | environment,
        capture_output=True,
        text=True,
        check=True,
    )
    return made.stdout.strip()


def test_kills_at_random_moments_on_another_processor_end_in_the_same_bytes(
    tree, left, next_line, committed
) -> None:
    """From scratch, killed by process group, in the main process alone, and by group again.

    Under another OPENBLAS_CORETYPE linear algebra takes other code paths with other last bits.
    """
    present = core_type()
    other = {"OPENBLAS_CORETYPE": "Nehalem" if present != "Nehalem" else "Haswell"}
    if os.uname().machine == "x86_64":
        assert core_type(**other) == other["OPENBLAS_CORETYPE"] != present
    chance = random.Random(20260)
    tree.unbuild()
    for kill in (os.killpg, os.kill, os.killpg):
        process = tree.start("report", **other)
        for _ in range(chance.choice((0, 1, 1))):
            next_line(process, 120)
        time.sleep(chance.uniform(0.2, 2.5))
        assert process.poll() is None
        kill(process.pid, signal.SIGKILL)
        process.communicate(timeout=60)
        assert left(tree.processes) == []
    ended = tree.run("report", **other)
    assert (ended.code, ended.err) == (0, "")
    assert 0 < len(ended.ran) < sum(map(len, chapters().values()))
    assert differing(tree.published(), committed) == []
    assert list((tree.root / "build").glob("stage-*")) == []
    assert list(tree.root.rglob("*.partial*")) == []
    assert tree.run("report").ran == set()
