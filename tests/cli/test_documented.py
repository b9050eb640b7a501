"""Every command and option is documented, and none is documented that does not exist."""

import importlib
import re

import click
import pytest

from analysis import paths
from analysis.cli.main import COMMANDS

PAGES = [paths.ROOT / "README.md", *sorted((paths.ROOT / "docs").rglob("*.md"))]
TEXT = "\n".join(page.read_text() for page in PAGES)


@pytest.mark.parametrize("name", COMMANDS)
def test_a_command_is_in_the_readme_or_the_docs(name: str) -> None:
    assert re.search(rf"\banalysis {name}\b", TEXT)


def test_no_command_is_documented_that_does_not_exist() -> None:
    named = set(re.findall(r"`analysis ([a-z-]+)", TEXT))
    named |= set(re.findall(r"^(?:\$ )?(?:\.venv/bin/)?analysis ([a-z-]+)", TEXT, re.MULTILINE))
    assert named - set(COMMANDS) == set()


@pytest.mark.parametrize("name", COMMANDS)
def test_a_command_has_a_help_that_says_what_its_arguments_are(analysis, name: str) -> None:
    module = name.replace("-", "_")
    command = getattr(importlib.import_module(f"analysis.cli.{module}"), module)
    ended = analysis(name, "--help")
    assert (ended.code, ended.err) == (0, "")
    assert max(map(len, ended.out.splitlines())) <= 80
    assert (command.help or "").strip().split("\n")[0].endswith(".")
    for parameter in command.params:
        if isinstance(parameter, click.Argument):
            assert parameter.human_readable_name.upper() in (command.help or ""), parameter.name
        else:
            assert parameter.opts[0] in ended.out


def test_the_list_of_commands_is_that_of_the_folder() -> None:
    folder = paths.SOURCE / "analysis" / "cli"
    modules = {path.stem for path in folder.glob("*.py")} - {"__init__", "main"}
    loaded = {name: importlib.import_module(f"analysis.cli.{name}") for name in modules}
    found = {
        name.replace("_", "-")
        for name, module in loaded.items()
        if isinstance(getattr(module, name, 0), click.Command)
    }
    assert found == set(COMMANDS)
