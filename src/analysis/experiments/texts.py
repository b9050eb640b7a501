"""The texts that prompts are cut from: those in ``data/texts``, or a file of the user's own.

How many tokens a step commits depends on the text, so every measurement names its own.
"""

import tomllib
from dataclasses import dataclass
from pathlib import Path

from analysis import paths
from analysis.errors import InputError
from analysis.records.checked import Record, check
from analysis.records.inputs import read_text

FORMAT = 1
INDEX = "texts.toml"
OWN = "a file of the user's"
NOT_SAID = "not said"


class TextFacts(Record):
    """What ``texts.toml`` says of a text. A ``repeated`` one is a sentence that may be repeated."""

    title: str
    origin: str
    licence: str
    stands_for: str
    repeated: bool = False


@dataclass(frozen=True)
class Text:
    """A text and where it comes from; ``stands_for`` says which kind of traffic it represents."""

    name: str
    title: str
    origin: str
    licence: str
    stands_for: str
    content: str
    repeated: bool = False

    def at_least(self, characters: int) -> str:
        """The text, ``characters`` long or longer; a sentence is repeated as often as it takes.

        Raises ``InputError`` where another text is shorter than that.
        """
        if self.repeated:
            sentence = f"{self.content.strip()} "
            return sentence * -(-characters // len(sentence))
        if len(self.content) < characters:
            found = f"{len(self.content)} characters"
            raise InputError(f"text {self.name}", found, f"at least {characters}")
        return self.content


def names() -> list[str]:
    """Names of the texts in ``data/texts``."""
    return list(_index())


def load_text(name: str) -> Text:
    """A text by its name in ``data/texts``, or by the path of a UTF-8 file."""
    index = _index()
    if name in index:
        facts, content = index[name], read_text(paths.TEXTS / f"{name}.txt")
        return Text(name=name, content=content, **facts.model_dump())
    path = Path(name)
    if not path.is_file():
        expected = f"the path of a file, or one of {', '.join(index)}"
        raise InputError("text", repr(name), expected)
    content = read_text(path)
    if not content.strip():
        raise InputError(paths.relative(path), "nothing", "a text")
    return Text(path.stem, path.name, OWN, NOT_SAID, NOT_SAID, content)


def _index() -> dict[str, TextFacts]:
    path = paths.TEXTS / INDEX
    try:
        content = tomllib.loads(read_text(path))
    except tomllib.TOMLDecodeError as error:
        raise InputError(paths.relative(path), str(error), "TOML") from None
    found = content.pop("format", None)
    if found != FORMAT:
        raise InputError(f"{paths.relative(path)}, format", repr(found), str(FORMAT))
    return {name: check(TextFacts, facts, path, f", {name}") for name, facts in content.items()}
