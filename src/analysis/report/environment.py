"""``environment.yml`` from ``pyproject.toml``: one list of dependencies, not two."""

import tomllib
from pathlib import Path

from analysis import paths

NOT_ON_CONDA = {"axe-playwright-python", "py-rattler", "scipy-stubs"}
"""Packages that pip installs inside the conda environment."""
RENAMED = {
    "playwright": "playwright-python",
    "matplotlib": "matplotlib-base",
    "prometheus-client": "prometheus_client",
}


def environment(pyproject: Path) -> str:
    """The text of environment.yml: every extra that a reader may want, then the package."""
    project = tomllib.loads(pyproject.read_text())["project"]
    extras = project["optional-dependencies"]
    groups = [
        project["dependencies"],
        extras["report"],
        extras["measure"],
        extras["parquet"],
        extras["lab"],
        extras["test"],
    ]
    wanted = sorted({item.partition(";")[0] for group in groups for item in group})
    conda = [_renamed(item) for item in wanted if _name(item) not in NOT_ON_CONDA]
    pip = [item for item in wanted if _name(item) in NOT_ON_CONDA]
    lines = [
        "# Written by `make environment` from pyproject.toml; do not edit. "
        "The lock that the figures",
        "# are promised for is requirements/report.lock; conda resolves its own versions.",
        f"name: {project['name']}",
        "channels:",
        "  - conda-forge",
        "dependencies:",
        f"  - python{project['requires-python']}",
        *[f"  - {item}" for item in conda],
        "  - pip",
        "  - pip:",
        *[f"      - {item}" for item in pip],
        "      - --editable .",
    ]
    return "\n".join(lines) + "\n"


def _name(requirement: str) -> str:
    return requirement.split(">")[0].split("=")[0].split("<")[0]


def _renamed(requirement: str) -> str:
    name = _name(requirement)
    return RENAMED.get(name, name) + requirement.removeprefix(name)


if __name__ == "__main__":
    print(environment(paths.ROOT / "pyproject.toml"), end="")
