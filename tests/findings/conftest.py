"""The committed cases, worked out once, and altered copies of the first."""

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from analysis import paths
from analysis.findings.ledger import Findings
from analysis.records.case import load_case

Alter = Callable[..., Findings]


@pytest.fixture(scope="session")
def sglang() -> Findings:
    return Findings(load_case("kimi-k26-sglang"))


@pytest.fixture(scope="session")
def vllm() -> Findings:
    return Findings(load_case("kimi-k26-vllm"))


@pytest.fixture(scope="session")
def like() -> Callable[[float, str], str]:
    """A value as a table prints it: with as many decimals as ``printed`` has."""

    def as_printed(value: float, printed: str) -> str:
        return f"{value:.{len(printed.partition('.')[2])}f}"

    return as_printed


@pytest.fixture
def alter(tmp_path: Path) -> Alter:
    """A copy of the first case with pieces of its files replaced, or whole files given.

    ``alter({"case.toml": [(old, new), ...], "sweep.csv": "whole text"})``; ``None`` removes one.
    """

    def altered(changes: dict[str, str | list[tuple[str, str]] | None]) -> Findings:
        folder = tmp_path / "cases" / "altered"
        shutil.copytree(paths.CASES / "kimi-k26-sglang", folder)
        shutil.copytree(paths.VALIDATION, tmp_path / "validation")
        for name, change in changes.items():
            path = folder / name
            if change is None:
                path.unlink()
                continue
            text = change if isinstance(change, str) else path.read_text()
            for old, new in change if isinstance(change, list) else []:
                assert text.count(old) == 1, f"{old!r} stands {text.count(old)} times in {name}"
                text = text.replace(old, new)
            path.write_text(text)
        return Findings(load_case(str(folder)))

    return altered
