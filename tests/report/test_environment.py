"""One list of dependencies: pyproject.toml; environment.yml and the locks follow from it."""

import re
import tomllib

import pytest
from rattler import MatchSpec
from rattler.exceptions import InvalidMatchSpecError

from analysis import paths
from analysis.report.environment import NOT_ON_CONDA, RENAMED, environment

FILE = paths.ROOT / "environment.yml"
LOCKS = {name: paths.ROOT / "requirements" / f"{name}.lock" for name in ("report", "test")}


def project() -> dict:
    return tomllib.loads((paths.ROOT / "pyproject.toml").read_text())["project"]


def conda_lines() -> list[str]:
    found = re.findall(r"^  - ([^:\n]+)$", FILE.read_text(), re.MULTILINE)
    return [line for line in found if line != "conda-forge"]


def lock(name: str) -> dict[str, tuple[str, int]]:
    """Package (with its marker, if any) to version and number of hashes."""
    found = {}
    for entry in re.split(r"\n(?=\S)", LOCKS[name].read_text().strip()):
        if entry.startswith("#"):
            continue
        head = entry.splitlines()[0].rstrip("\\ ")
        match = re.fullmatch(r"([a-z0-9.-]+)(?:\[[^\]]*\])?==([^\s;]+)(\s*;.*)?", head)
        assert match, head
        hashes = re.findall(r"--hash=sha256:[0-9a-f]{64}\b", entry)
        found[match[1] + (match[3] or "").strip()] = (match[2], len(hashes))
    return found


def test_environment_yml_is_what_pyproject_gives() -> None:
    assert FILE.read_text() == environment(paths.ROOT / "pyproject.toml")


def test_every_dependency_of_pyproject_is_in_environment_yml_once() -> None:
    extras = project()["optional-dependencies"]
    wanted = {*project()["dependencies"], *extras["report"], *extras["lab"], *extras["test"]}
    wanted |= {*extras["measure"], *extras["parquet"]}
    lines = [line.strip().removeprefix("- ") for line in FILE.read_text().splitlines()]
    for item in (item.partition(";")[0] for item in wanted):
        name = re.split("[<>=]", item)[0]
        assert lines.count(RENAMED.get(name, name) + item.removeprefix(name)) == 1, item
    assert "--editable ." in lines


@pytest.mark.parametrize("line", conda_lines())
def test_a_conda_line_is_a_match_spec_with_a_name_and_a_lower_bound(line: str) -> None:
    name = re.split("[<>=]", line)[0]
    assert str(MatchSpec(line, strict=True)) == f"{name} {line.removeprefix(name)}".strip()
    assert name not in NOT_ON_CONDA
    assert ">=" in line or name == "pip"


def test_a_line_that_is_no_match_spec_would_be_noticed() -> None:
    with pytest.raises(InvalidMatchSpecError):
        MatchSpec("numpy>==2.2", strict=True)
    with pytest.raises(InvalidMatchSpecError):
        MatchSpec("numpy>=2.2 and more", strict=True)


@pytest.mark.parametrize("name", LOCKS)
def test_a_lock_holds_a_hash_for_every_package_and_no_address(name: str) -> None:
    packages = lock(name)
    assert len(packages) > 50
    assert [package for package, (_, hashes) in packages.items() if not hashes] == []
    text = LOCKS[name].read_text()
    assert not re.search(r"://|index-url|find-links|trusted-host|(^|\s)@ ", text)


def test_the_two_locks_agree_on_every_version() -> None:
    report, test = lock("report"), lock("test")
    assert report.items() <= test.items()
    assert len(test) > len(report)


@pytest.mark.parametrize(("name", "extras"), [("report", ["report"]), ("test", ["report", "test"])])
def test_a_lock_holds_every_dependency_of_its_extras(name: str, extras: list[str]) -> None:
    groups = [project()["dependencies"], *(project()["optional-dependencies"][e] for e in extras)]
    wanted = {re.split("[<>=]", item)[0].replace(".", "-") for group in groups for item in group}
    assert wanted - {package.split(";")[0] for package in lock(name)} == set()
