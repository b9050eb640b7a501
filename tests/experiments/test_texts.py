"""Every text of the prompts is there, is long enough, and says where it comes from."""

import base64
import hashlib
from pathlib import Path

import pytest

from analysis import paths
from analysis.errors import InputError
from analysis.experiments import texts
from analysis.experiments.texts import load_text, names
from analysis.records import inputs

# The longest prompt of the experiments, at four characters a token as English has them.
LONGEST = 3500 * 4

# h11/_connection.py of the wheel h11 0.16.0, as its RECORD lists it.
H11_CONNECTION = "k9YRVf6koZqbttBW36xSWaJpWdZwa-xQVU9AHEo9DuI"


def test_the_four_kinds_are_there_and_every_file_has_its_entry() -> None:
    assert names() == ["repeated", "prose", "code", "question"]
    assert {path.stem for path in paths.TEXTS.glob("*.txt")} == set(names())


@pytest.mark.parametrize("name", ["repeated", "prose", "code", "question"])
def test_a_text_is_long_enough_for_the_longest_prompt(name: str) -> None:
    assert len(load_text(name).at_least(LONGEST)) >= LONGEST


def test_the_texts_are_small_enough_to_be_committed() -> None:
    assert sum(path.stat().st_size for path in paths.TEXTS.iterdir()) < 150_000


def test_the_repeated_text_is_one_sentence_as_often_as_asked() -> None:
    text = load_text("repeated")
    sentence = text.content.strip()
    assert text.at_least(1) == f"{sentence} "
    long = text.at_least(10 * len(sentence))
    assert long.split(f"{sentence} ") == [""] * 11


def test_the_code_is_the_released_module_with_its_licence() -> None:
    module, licence = load_text("code").content.split("\n\n# The licence of the module above:\n")
    compile(module, "code.txt", "exec")
    assert "# Copyright (c) 2016 Nathaniel J. Smith" in licence
    assert base64_sha256(module) == H11_CONNECTION


def test_the_prose_has_neither_header_nor_licence_of_its_edition() -> None:
    content = load_text("prose").content
    assert content.startswith("CHAPTER II: A MORNING BATH\n")
    assert "Gutenberg" not in content
    assert "\r" not in content


def test_the_question_asks_for_steps_and_leaves_the_last_problem_open() -> None:
    content = load_text("question").content
    problems = content.split("\nProblem ")[1:]
    assert [problem.split(".")[0] for problem in problems] == [
        str(number) for number in range(1, len(problems) + 1)
    ]
    assert all("\nCheck. " in problem and "\nAnswer: " in problem for problem in problems[:-1])
    assert "Think step by step" in problems[-1]
    assert content.endswith("\nStep 1.\n")


def test_a_text_is_an_input_of_what_is_made_from_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(inputs, "_read", {})
    load_text("prose")
    assert set(inputs.seen()) == {"data/texts/texts.toml", "data/texts/prose.txt"}


def test_a_file_of_ones_own_is_a_text(tmp_path: Path) -> None:
    path = tmp_path / "mine.txt"
    path.write_text("naïve text", encoding="utf-8")
    text = load_text(str(path))
    assert (text.name, text.content, text.licence) == ("mine", "naïve text", "not said")
    with pytest.raises(InputError, match="text mine: found 10 characters; expected at least 11"):
        text.at_least(11)


def test_an_unknown_name_lists_the_known_ones() -> None:
    with pytest.raises(InputError, match="one of repeated, prose, code, question"):
        load_text("poem")


def test_a_folder_and_an_empty_file_are_no_texts(tmp_path: Path) -> None:
    (tmp_path / "empty.txt").write_text("\n")
    with pytest.raises(InputError, match="one of repeated"):
        load_text(str(tmp_path))
    with pytest.raises(InputError, match=r"empty\.txt: found nothing; expected a text"):
        load_text(str(tmp_path / "empty.txt"))


@pytest.mark.parametrize(
    ("index", "message"),
    [
        ("format = 2\n", "format: found 2; expected 1"),
        ("format = 1\n[a]\ntitle = 'A'\n", "a, origin: found nothing; expected a value"),
        ("format = ", "expected TOML"),
    ],
)
def test_a_wrong_index_is_named(
    index: str, message: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / texts.INDEX).write_text(index)
    monkeypatch.setattr(paths, "TEXTS", tmp_path)
    with pytest.raises(InputError, match=message):
        names()


def base64_sha256(content: str) -> str:
    """The digest as a wheel's RECORD writes it."""
    digest = hashlib.sha256(content.encode()).digest()
    return base64.urlsafe_b64encode(digest).decode().rstrip("=")
