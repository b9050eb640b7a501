"""Tables at the door: what is read, and what is refused in one line."""

from pathlib import Path

import pytest

from analysis import paths
from analysis.errors import InputError
from analysis.records.tables import AcceptRow, PlainRow, PoolRow, SweepRow, TwoPointRow, read_table

HEADER = "series,prompt_tokens,output_tokens,tok_per_s,commit_length,commit_kind,source"
ROW = "a,13,600,139.6,4.75,measured,somewhere"


def table(*lines: str) -> bytes:
    return "\n".join([HEADER, *lines, ""]).encode()


def changed(column: str, cell: str) -> bytes:
    cells = dict(zip(HEADER.split(","), ROW.split(","), strict=True)) | {column: cell}
    return table(ROW, ",".join(cells.values()))


NOT_NEGATIVE = "greater than or equal to 0"
# Content; where in the file, what was found, what was expected.
BAD = {
    "missing column": (b"series,source\na,b\n", ":1", "columns series, source", "prompt_tokens"),
    "unknown column": (
        table().replace(b"series", b"colour"),
        ":1, column colour",
        "an unknown column",
        "one of series, repeat",
    ),
    "column twice": (
        table().replace(b"source", b"series"),
        ":1",
        "column series twice",
        "once",
    ),
    "text in a number": (changed("tok_per_s", "fast"), ":3, tok_per_s", "'fast'", "a valid number"),
    "half a token": (changed("prompt_tokens", "13.5"), ":3, prompt_tokens", "'13.5'", "integer"),
    "negative context": (changed("prompt_tokens", "-5"), ":3, prompt_tokens", "'-5'", NOT_NEGATIVE),
    "no throughput": (changed("tok_per_s", "0"), ":3, tok_per_s", "'0'", "greater than 0"),
    "NaN": (changed("tok_per_s", "nan"), ":3, tok_per_s", "'nan'", "finite number"),
    "infinity": (changed("tok_per_s", "inf"), ":3, tok_per_s", "'inf'", "finite number"),
    "empty cell that is needed": (changed("tok_per_s", ""), ":3, tok_per_s", "nothing", "a value"),
    "commit below the bonus token": (
        changed("commit_length", "0.9"),
        ":3, commit_length",
        "'0.9'",
        "greater than or equal to 1",
    ),
    "unknown kind": (
        changed("commit_kind", "guessed"),
        ":3, commit_kind",
        "'guessed'",
        "'measured', 'exact' or 'derived'",
    ),
    "kind without commit": (
        changed("commit_length", ""),
        ":3, commit_kind",
        "'measured'",
        "commit_length and commit_kind, both or neither",
    ),
    "commit without kind": (
        changed("commit_kind", ""),
        ":3, commit_kind",
        "None",
        "commit_length and commit_kind, both or neither",
    ),
    "the same observation twice": (
        table(ROW, "b" + ROW[1:], ROW),
        ":4",
        "the observation of line 2 again",
        "every observation once",
    ),
    "ragged row": (table(ROW + ",more"), ":2", "8 cells", "7, as in the header"),
    "short row": (table("a,13"), ":2", "2 cells", "7, as in the header"),
    "empty file": (b"", "", "an empty file", "a header and rows"),
    "blank lines alone": (b"\n\n ,\n", "", "an empty file", "a header and rows"),
    "header alone": (table(), "", "no rows", "at least one observation"),
    "not UTF-8": (table(ROW).replace(b"some", b"\xff"), "", "a byte that is not UTF-8", "UTF-8"),
}


@pytest.mark.parametrize(("content", "place", "found", "expected"), BAD.values(), ids=list(BAD))
def test_a_bad_table_is_refused_in_one_line(
    tmp_path: Path, content: bytes, place: str, found: str, expected: str
) -> None:
    path = tmp_path / "sweep.csv"
    path.write_bytes(content)
    with pytest.raises(InputError) as raised:
        read_table(path, SweepRow)
    error = raised.value
    assert error.place == f"{tmp_path.name}/sweep.csv{place}"
    assert found in error.found
    assert expected in error.expected
    assert str(error) == " ".join(
        f"{error.place}: found {error.found}; expected {error.expected}".split()
    )


@pytest.mark.parametrize(
    ("name", "found"), [("none.csv", "no such file"), ("folder.csv", "is a directory")]
)
def test_a_table_that_cannot_be_read_is_named(tmp_path: Path, name: str, found: str) -> None:
    (tmp_path / "folder.csv").mkdir()
    with pytest.raises(InputError) as raised:
        read_table(tmp_path / name, SweepRow)
    assert raised.value.place.endswith(f"/{name}")
    assert found in raised.value.found
    assert raised.value.expected == "a readable file"


def test_the_line_that_an_error_names_counts_blank_and_quoted_lines(tmp_path: Path) -> None:
    path = tmp_path / "sweep.csv"
    path.write_bytes(table("", 'a,13,600,139.6,,,"one, two"', "", ROW.replace("13,", "x,")))
    with pytest.raises(InputError) as raised:
        read_table(path, SweepRow)
    assert raised.value.place.endswith("sweep.csv:5, prompt_tokens")


def test_a_byte_order_mark_and_spaces_do_no_harm(tmp_path: Path) -> None:
    path = tmp_path / "sweep.csv"
    path.write_bytes(b"\xef\xbb\xbf" + table(ROW.replace(",", " , ")))
    (row,) = read_table(path, SweepRow)
    assert (row.series, row.prompt_tokens, row.tok_per_s) == ("a", 13, 139.6)


def test_context_and_step_are_derived_and_undefined_where_a_part_is(tmp_path: Path) -> None:
    path = tmp_path / "sweep.csv"
    path.write_bytes(table(ROW, "a,13,,139.6,,,somewhere"))
    first, second = read_table(path, SweepRow)
    assert first.context_tokens == 313
    assert first.step_ms == pytest.approx(34.03, abs=0.005)
    assert (second.context_tokens, second.step_ms, second.commit_length) == (None, None, None)


def test_a_row_cannot_be_changed() -> None:
    row = TwoPointRow(context_tokens=64, tok_per_s=255, source="S03")
    with pytest.raises(ValueError, match="frozen"):
        row.tok_per_s = 300


@pytest.mark.parametrize(
    ("name", "row", "n"),
    [
        ("kimi_k26_sglang_plain.csv", PlainRow, 7),
        ("kimi_k2_commit_by_task.csv", AcceptRow, 34),
        ("kv_pool_observed.csv", PoolRow, 21),
    ],
)
def test_every_committed_table_is_read_whole(name: str, row: type, n: int) -> None:
    rows = read_table(paths.VALIDATION / name, row)
    assert len(rows) == n
    assert all(r.source for r in rows)
