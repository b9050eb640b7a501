"""How fast, and in how much memory, ``analysis diagnose`` reads a large log.

Beside it, in the same run and on the same file, a plain loop: one compiled regular expression that
captures the fields of a decode line, applied to every line. Ratios are what matters: marks are 1
with one process and 0.5 with two, growth linear, memory below 500 MB.

    python benchmarks/diagnose.py [LARGEST_MB]      # default 1000, in the system's temporary folder
"""

import json
import random
import re
import resource
import subprocess
import sys
import tempfile
import time
from datetime import datetime, timedelta
from pathlib import Path

DECODE = re.compile(
    r"\[(\d{4}-\d\d-\d\d \d\d:\d\d:\d\d)((?: [A-Z]+\d+)*)\] Decode batch[^#]*#running-req: (\d+), "
    r"#token: (\d+), .*?accept len: ([\d.]+), accept rate: ([\d.]+), .*?"
    r"gen throughput \(token/s\): ([\d.]+), #queue-req: (\d+)"
)
SIZES_MB = (10, 100, 1000)
ROUNDS = 3


def write_log(path: Path, megabytes: int) -> int:
    """A log of SGLang: decode lines, one prefill line and two of access in twenty."""
    rng = random.Random(1)
    moment, tokens, lines, written = datetime(2026, 1, 1), 1000, 0, 0
    with path.open("w") as out:
        while written < megabytes * 1_000_000:
            moment += timedelta(seconds=1)
            kind = rng.random()
            if kind < 0.85:
                tokens = tokens + 100 if tokens < 60_000 else 1000
                commit = 1 + 3 * rng.random()
                line = (
                    f"[{moment} TP0] Decode batch, #running-req: 1, #token: {tokens}, token usage: "
                    f"{tokens / 1e6:.2f}, accept len: {commit:.2f}, accept rate: {commit / 4:.2f}, "
                    f"cuda graph: True, gen throughput (token/s): "
                    f"{commit * 1000 / (20 + tokens * 0.001):.2f}, #queue-req: 0, \n"
                )
            elif kind < 0.9:
                line = (
                    f"[{moment} TP0] Prefill batch, #new-seq: 1, #new-token: 28, #cached-token: 0, "
                    "token usage: 0.00, #running-req: 0, #queue-req: 0, \n"
                )
            else:
                port = rng.randint(1000, 60000)
                line = f'[{moment}] INFO:     10.0.0.1:{port} - "POST /generate HTTP/1.1" 200 OK\n'
            out.write(line)
            written += len(line)
            lines += 1
    return lines


def plain_loop(path: Path) -> dict[str, float]:
    """Seconds of one pass of the expression over all lines."""
    began = time.perf_counter()
    found = 0
    with path.open() as log:
        for line in log:
            match = DECODE.search(line)
            if match:
                match.groups()
                found += 1
    return {"s": time.perf_counter() - began, "windows": found}


def diagnose(path: Path, processes: int) -> dict[str, float]:
    """Seconds of the function behind the command, and the peak memory of all its processes."""
    from analysis.findings.diagnosis import diagnose as run

    began = time.perf_counter()
    found = run([path], processes)
    seconds = time.perf_counter() - began
    own = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    child = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss
    workers = processes if processes > 1 else 0
    return {"s": seconds, "windows": found.windows_total, "mb": (own + workers * child) / 1000}


def alone(what: str, path: Path) -> dict[str, float]:
    """One measurement in a process of its own."""
    command = [sys.executable, __file__, "--one", what, str(path)]
    out = subprocess.run(command, check=True, capture_output=True, text=True)
    return dict(json.loads(out.stdout))


def main(largest: int) -> None:
    """Print a row a size: the best of three of each, the ratios, and how time grows with size."""
    print("   MB      lines  loop s  one process  ratio  two processes  ratio  peak MB  growth")
    before: tuple[int, float] | None = None
    with tempfile.TemporaryDirectory() as folder:
        for size in (size for size in SIZES_MB if size <= largest):
            path = Path(folder) / f"{size}.log"
            lines = write_log(path, size)
            runs: dict[str, list[dict[str, float]]] = {"loop": [], "1": [], "2": []}
            for _ in range(ROUNDS):
                for what, results in runs.items():  # side by side: a slow minute hits all three
                    results.append(alone(what, path))
            loop, one, two = (min(runs[w], key=lambda r: r["s"]) for w in runs)
            assert loop["windows"] == one["windows"] == two["windows"]
            growth = ""
            if before is not None:  # time for so many more bytes: 1.0 is linear
                growth = f"{one['s'] / before[1] / (size / before[0]):5.2f}"
            peak = max(r["mb"] for w in ("1", "2") for r in runs[w])
            print(
                f"{size:5,}  {lines:9,}  {loop['s']:6.2f}  {one['s']:11.2f}  "
                f"{one['s'] / loop['s']:5.2f}  {two['s']:13.2f}  {two['s'] / loop['s']:5.2f}  "
                f"{peak:7.0f}  {growth}",
                flush=True,
            )
            before = size, one["s"]
            path.unlink()


def one(what: str, path: Path) -> None:
    """Measure here, and print."""
    print(json.dumps(plain_loop(path) if what == "loop" else diagnose(path, int(what))))


if __name__ == "__main__":
    if sys.argv[1:2] == ["--one"]:
        one(sys.argv[2], Path(sys.argv[3]))
    else:
        main(int(sys.argv[1]) if len(sys.argv) > 1 else SIZES_MB[-1])
