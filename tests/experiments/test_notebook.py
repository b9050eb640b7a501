"""The chapter of an experiment, run by hand with Papermill on a server that is there."""

import json
import shutil
import subprocess
import sys
from pathlib import Path

from analysis import paths
from analysis.engines.embedded import Embedded
from analysis.records.run import load_run

NOTEBOOK = paths.NOTEBOOKS / "07-measure-context-sweep.ipynb"
LENGTHS = (60, 120, 240)


def test_papermill_measures_the_server_that_it_is_given(
    two_slots: Embedded, tmp_path: Path
) -> None:
    executed = tmp_path / "executed.ipynb"
    before = runs()
    parameters = ["-p", "server", two_slots.url, "-p", "prompts", ",".join(map(str, LENGTHS))]
    done = subprocess.run(
        [Path(sys.executable).parent / "papermill", NOTEBOOK, executed, *parameters],
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr[-2000:]
    cells = {c["id"]: c for c in json.loads(executed.read_text())["cells"]}
    (verdict,) = cells["verdict"]["outputs"]
    said = "".join(verdict["data"]["text/plain"])
    (run,) = runs() - before
    manifest = load_run(run).manifest
    shutil.rmtree(run)
    assert manifest.server.where == "this machine"
    assert manifest.experiments["context-sweep"]["prompt_tokens"] == list(LENGTHS)
    assert "speculating" in said, said  # of a busy machine it says that every request is flagged


def runs() -> set[Path]:
    """Folders of the context sweeps that were measured here."""
    return set(paths.MEASURED.glob("context-sweep-*"))
