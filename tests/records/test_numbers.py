"""Two columns for ``analysis fit``: derived where they can be, refused where they cannot."""

from pathlib import Path

import pytest

from analysis.errors import InputError
from analysis.records.numbers import read_columns


def write(folder: Path, content: str | bytes) -> Path:
    path = folder / "t.csv"
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return path


def read(path: Path, series: str | None = None):
    return read_columns(path, "context_tokens", "step_ms", series)


# Content; where in the file, what was found, what was expected.
BAD = {
    "missing column": ("context_tokens,b\n1,2\n", ":1", "columns context_tokens, b", "step_ms"),
    "nothing to derive from": ("context_tokens,tok_per_s\n1,2\n", ":1", "tok_per_s", "step_ms"),
    "column twice": ("step_ms,step_ms\n1,2\n", ":1", "column step_ms twice", "once"),
    "text": ("context_tokens,step_ms\n1,slow\n", ":2, column step_ms", "'slow'", "a number"),
    "NaN": ("context_tokens,step_ms\n1,nan\n", ":2, column step_ms", "nan", "finite"),
    "infinity": ("context_tokens,step_ms\n1,-inf\n", ":2, column step_ms", "-inf", "finite"),
    "negative context": (
        "context_tokens,step_ms\n1,2\n-5,2\n",
        ":3, column context_tokens",
        "-5",
        "not negative",
    ),
    "a throughput of zero": (
        "context_tokens,commit_length,tok_per_s\n1,2.9,0\n",
        ":2, column tok_per_s",
        "0",
        "above zero",
    ),
    "the same observation twice": (
        "context_tokens,step_ms\n1,2\n3,4\n1,2\n",
        ":4",
        "the observation of line 2 again",
        "every observation once",
    ),
    "ragged row": ("context_tokens,step_ms\n1,2,3\n", ":2", "3 cells", "2, as in the header"),
    "empty file": ("", "", "an empty file", "a header and rows"),
    "header alone": ("context_tokens,step_ms\n", "", "no rows", "rows with context_tokens"),
    "every row empty": ("context_tokens,step_ms\n1,\n", "", "no rows", "rows with context_tokens"),
    "not UTF-8": (b"context_tokens,step_ms\n1,\xff\n", "", "not UTF-8 at 25", "UTF-8"),
    "several series": (
        "series,context_tokens,step_ms\na,1,2\nb,1,3\n",
        "",
        "2 series",
        "--series with one of: a; b",
    ),
}


@pytest.mark.parametrize(("content", "place", "found", "expected"), BAD.values(), ids=list(BAD))
def test_bad_columns_are_refused_in_one_line(tmp_path, content, place, found, expected) -> None:
    with pytest.raises(InputError) as raised:
        read(write(tmp_path, content))
    assert raised.value.place == f"{tmp_path.name}/t.csv{place}"
    assert found in raised.value.found
    assert expected in raised.value.expected
    assert "\n" not in str(raised.value)


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"t\.csv: found no such file.*expected a readable file"):
        read(tmp_path / "t.csv")


def test_an_unknown_series_is_answered_with_those_there_are(tmp_path: Path) -> None:
    path = write(tmp_path, "series,repeat,context_tokens,step_ms\na,v3,1,2\na,v4,1,3\n")
    with pytest.raises(InputError) as raised:
        read(path, "c")
    assert raised.value.found == "no rows of series 'c'"
    assert raised.value.expected == "one of a v3; a v4"


def test_one_series_and_repeat_is_picked_and_never_pooled(tmp_path: Path) -> None:
    path = write(tmp_path, "series,repeat,context_tokens,step_ms\na,v3,1,2\na,v4,1,3\n")
    found = read(path, "a v4")
    assert (found.x, found.y) == ([1.0], [3.0])


def test_step_and_context_are_derived_and_it_is_said(tmp_path: Path) -> None:
    path = write(tmp_path, "prompt_tokens,output_tokens,tok_per_s,commit_length\n13,600,29,2.9\n")
    found = read(path)
    assert (found.x, found.y) == ([313.0], [pytest.approx(100)])
    assert found.derived == [
        "context_tokens is derived from prompt_tokens and output_tokens",
        "step_ms is derived from commit_length and tok_per_s",
    ]


def test_a_column_that_stands_in_the_table_is_not_derived(tmp_path: Path) -> None:
    path = write(tmp_path, "context_tokens,step_ms,tok_per_s,commit_length\n5,77,29,2.9\n")
    found = read(path)
    assert (found.x, found.y, found.derived) == ([5.0], [77.0], [])


def test_rows_with_an_empty_cell_are_left_out(tmp_path: Path) -> None:
    path = write(tmp_path, "context_tokens,step_ms\n1,2\n3,\n,4\n5,6\n")
    found = read(path)
    assert (found.x, found.y) == ([1.0, 5.0], [2.0, 6.0])


def test_a_column_that_may_be_negative_is_read_as_it_is(tmp_path: Path) -> None:
    path = write(tmp_path, "delta,step_ms\n-3,4\n")
    assert read_columns(path, "delta", "step_ms").x == [-3.0]
