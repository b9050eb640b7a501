"""``make check``: the tests that a change since the last green check can break.

``pytest-testmon`` picks tests by the Python that they ran. It does not see other files: for those
``READ_BY`` says which tests read them. A changed notebook is run too, and compared with its
committed outputs (nbval). Nothing marked slow runs.
"""

import hashlib
import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[1]
KEPT = ROOT / ".testmon"
SEEN = KEPT / "files.json"
ALWAYS = ("tests/cli/test_smoke.py", "tests/cli/test_documented.py", "tests/docs")
READ_BY = {
    "docs/": ALWAYS,
    "figures/": ("tests/report", "tests/cli/test_status_and_cite.py"),
    "notebooks/": ("tests/report", "tests/measured/test_chapters.py"),
    ".ci/": (),
    **dict.fromkeys(("CHANGELOG.md", "CONTRIBUTING.md", "README.md"), ALWAYS),
}
"""Start of a file's name, and the tests that read it; of any other file it may be all tests."""

PYTEST = (sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider")
SIDE_BY_SIDE = ("-n", "auto", "--dist", "loadgroup", "-m", "not slow")
TESTMON = ("--testmon", "--testmon-forceselect")
NBVAL = ("--nbval", "--nbval-current-env", "--nbval-sanitize-with", "tests/nbval.cfg")
GREEN = (0, 5)
"""Exit codes of pytest: all passed, nothing to run."""

LEFT_OUT = """\
left out, and part of `make test`: what rebuilds the report, opens its pages in a browser or starts
a server; notebooks that did not change. Testmon does not see what a test runs as another process,
nor what a fixture of many tests ran for the first of them."""


def main() -> int:
    """Run the checks; returns the exit code of the first that failed, else 0."""
    KEPT.mkdir(exist_ok=True)
    before = json.loads(SEEN.read_text()) if SEEN.exists() else {}
    now = other_files()
    changed = sorted(n for n in before.keys() | now.keys() if before.get(n) != now.get(n))
    for run in runs(changed, first=not before):
        done = subprocess.run(
            [*PYTEST, *run], cwd=ROOT, env=os.environ | {"TESTMON_DATAFILE": str(KEPT / "data")}
        )
        if done.returncode not in GREEN:
            return done.returncode
    SEEN.write_text(json.dumps(now, indent=1) + "\n")
    subprocess.run([Path(sys.executable).parent / "analysis", "status"], cwd=ROOT)
    print(LEFT_OUT)
    return 0


def runs(changed: list[str], first: bool) -> Iterator[tuple[str, ...]]:
    """Arguments of pytest, one run after another."""
    yield ("-p", "no:testmon", *ALWAYS)
    rules = {name: next((s for s in READ_BY if name.startswith(s)), None) for name in changed}
    unknown = [name for name, start in rules.items() if start is None]
    if unknown:
        why = "no check was green before" if first else f"{unknown[0]} changed"
        print(f"{why}: every test that is not slow")
        yield ("--testmon", "--testmon-noselect", *SIDE_BY_SIDE, "tests")
    else:
        print("testmon's choice")
        yield (*TESTMON, *SIDE_BY_SIDE, "tests")
        readers = {test for start in rules.values() if start for test in READ_BY[start]}
        if readers - set(ALWAYS):
            print(f"what reads {', '.join(changed[:3])}{' ...' if changed[3:] else ''}")
            yield ("-p", "no:testmon", *SIDE_BY_SIDE, *sorted(readers - set(ALWAYS)))
    notebooks = [n for n in changed if n.endswith(".ipynb") and (ROOT / n).exists()]
    if notebooks and not first:
        print(f"changed notebooks: {', '.join(notebooks)}")
        yield ("-p", "no:testmon", *NBVAL, *notebooks)


def other_files() -> dict[str, str]:
    """SHA-256 of each file but Python that git tracks, or would track."""
    listed = ("git", "ls-files", "--cached", "--others", "--exclude-standard", "-z")
    names = subprocess.run(listed, cwd=ROOT, capture_output=True, text=True, check=True).stdout
    return {
        name: hashlib.sha256((ROOT / name).read_bytes()).hexdigest()
        for name in sorted(set(names.split("\0")))
        if name and not name.endswith(".py") and (ROOT / name).is_file()
    }


if __name__ == "__main__":
    sys.exit(main())
