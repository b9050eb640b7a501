"""One notebook run, in a worker process: Papermill, checks, normalising, all in a stage folder."""

import json
import os
import tempfile
import threading
import time
from pathlib import Path
from typing import Any

import nbformat
import papermill
from nbclient.exceptions import DeadKernelError
from papermill.exceptions import PapermillExecutionError
from traitlets.config import Config

from analysis import paths
from analysis.report import normalise

EXECUTED = "notebook.ipynb"
PARTIAL = "notebook.partial.ipynb"
KERNEL_LOG = paths.BUILD / "kernel.log"
QUIET_KERNEL = ["--IPKernelApp.log_level=50", "--HistoryManager.enabled=False"]


def start_worker(parent: int, temporary: str) -> None:
    """End this worker when its parent is gone, so that a killed build leaves no one behind.

    What it makes for a while goes into ``temporary``, which the parent removes. What kernels
    print of themselves goes to ``KERNEL_LOG``: some complain of closed sockets as they end, after
    all is done, and that is no news for a reader.
    """
    tempfile.tempdir = temporary
    os.dup2(os.open(KERNEL_LOG, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644), 2)

    def watch() -> None:
        while os.getppid() == parent:
            time.sleep(0.2)
        os._exit(1)

    threading.Thread(target=watch, daemon=True).start()


def run(notebook: Path, parameters: dict[str, Any], stage: Path) -> list[str]:
    """Run a notebook into ``stage``; returns what was wrong with the run, nothing if it is good."""
    stage.mkdir(parents=True, exist_ok=True)
    os.environ |= {paths.STAGE_VARIABLE: str(stage), "PYTHONHASHSEED": "0", "MPLBACKEND": "agg"}
    partial = stage / PARTIAL
    with tempfile.TemporaryDirectory(prefix="kernel-") as sockets:
        # Sockets of its own for each kernel: ports are raced for by kernels that start together.
        transport = {"transport": "ipc", "ip": f"{sockets}/ipc"}
        try:
            papermill.execute_notebook(
                str(notebook),
                str(partial),
                parameters=parameters,
                kernel_name=normalise.KERNEL["name"],
                cwd=str(paths.ROOT),
                progress_bar=False,
                log_output=False,
                config=Config(KernelManager=transport),
                extra_arguments=QUIET_KERNEL,
            )
        except PapermillExecutionError as error:
            found = normalise.faults(json.loads(partial.read_text()))
            return found or [f"{error.ename}: {error.evalue}"]
        except (DeadKernelError, RuntimeError, OSError) as error:
            return [f"{type(error).__name__}: {error} ({paths.relative(KERNEL_LOG)})"]
    executed = json.loads(partial.read_text())
    found = normalise.faults(executed)
    if not found:
        clean = nbformat.from_dict(normalise.normalise(executed))
        nbformat.validate(clean)
        (stage / EXECUTED).write_text(nbformat.writes(clean) + "\n")
        partial.unlink()
    return found
