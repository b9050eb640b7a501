"""A log comes as whole lines, whatever it is kept in and wherever it is cut."""

import gzip
import io
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from analysis.errors import InputError
from analysis.logs import blocks
from analysis.logs.blocks import UNFINISHED, Log, Span, zstd

LINES = b"".join(b"line %d %s\n" % (i, b"x" * (i % 37)) for i in range(500))


def written(folder: Path, content: bytes, name: str = "a.log") -> Path:
    path = folder / name
    path.write_bytes(content)
    return path


@pytest.mark.parametrize("size", [1, 7, 64, 1000, 1 << 20])
def test_spans_hold_every_line_once(tmp_path: Path, size: int) -> None:
    log = Log(written(tmp_path, LINES))
    parts = [bytes(span.read()) for span in log.spans(size)]
    assert b"".join(parts) == LINES
    assert all(part.endswith(b"\n") for part in parts if part)


@given(st.lists(st.binary(max_size=9).map(lambda b: b.replace(b"\n", b"")), max_size=40))
def test_spans_hold_every_line_once_whatever_the_lines(lines: list[bytes]) -> None:
    content = b"".join(line + b"\n" for line in lines)
    with io.BytesIO(content) as stream:
        parts = [
            blocks._lines_from(stream, Span(Path("x"), at, min(at + 5, len(content)), len(content)))
            for at in range(0, len(content), 5)
        ]
    assert b"".join(parts) == content


@pytest.mark.parametrize("pack", [bytes, gzip.compress, zstd.compress])
def test_an_archive_gives_the_same_lines(tmp_path: Path, pack: object) -> None:
    assert callable(pack)
    log = Log(written(tmp_path, pack(LINES)))
    assert b"".join(log.blocks(100)) == LINES


def test_archives_of_several_parts_are_read_to_the_end(tmp_path: Path) -> None:
    """Log rotation appends."""
    content = zstd.compress(LINES) + zstd.compress(LINES)
    assert b"".join(Log(written(tmp_path, content)).blocks()) == LINES + LINES


@pytest.mark.parametrize("pack", [gzip.compress, zstd.compress])
def test_an_archive_that_breaks_off_gives_what_there_is(tmp_path: Path, pack: object) -> None:
    assert callable(pack)
    noise = b"".join(b"%d\n" % (i * 7919 % 1_000_003) for i in range(200_000))
    packed = pack(noise)
    log = Log(written(tmp_path, packed[: len(packed) * 2 // 3]))
    read = b"".join(log.blocks(10_000))
    lines = read.removesuffix(UNFINISHED)
    assert noise.startswith(lines)
    assert len(lines) > len(noise) // 10
    assert "breaks off" in log.ended_early


def test_a_last_line_without_an_end_is_marked(tmp_path: Path) -> None:
    log = Log(written(tmp_path, b"one\ntwo"))
    assert b"".join(span.read() for span in log.spans()) == b"one\ntwo" + UNFINISHED
    assert b"".join(Log(written(tmp_path, b"one\ntwo")).blocks()) == b"one\ntwo" + UNFINISHED


def test_what_is_written_meanwhile_is_not_read(tmp_path: Path) -> None:
    path = written(tmp_path, b"one\ntwo\n")
    spans = list(Log(path).spans())
    with path.open("ab") as stream:
        stream.write(b"three\n")
    assert b"".join(span.read() for span in spans) == b"one\ntwo\n"


@pytest.mark.parametrize("plain", [True, False])
def test_a_very_long_line_is_cut_and_the_next_is_whole(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, plain: bool
) -> None:
    monkeypatch.setattr(blocks, "LONGEST_LINE", 1000)
    monkeypatch.setattr(blocks, "HEAD_BYTES", 64)
    content = b"first\n" + b"y" * 100_000 + b"\nlast\n"
    log = Log(written(tmp_path, content))
    monkeypatch.setattr(blocks, "USUAL_LINE", 64)
    spans = (bytes(span.read()) for span in log.spans(100))
    parts = list(spans if plain else log.blocks(100))
    whole = b"".join(parts)
    assert whole.startswith(b"first\n")
    assert whole.endswith(b"last\n")
    assert len(whole) < 3000
    assert whole.count(b"\n") == 3


@pytest.mark.parametrize(
    ("content", "found"),
    [
        (b"", "nothing in it"),
        (bytes(range(256)) * 40, "binary data"),
        ("Decode batch".encode("utf-16"), "UTF-16"),
    ],
)
def test_what_is_no_log_is_refused_in_one_line(tmp_path: Path, content: bytes, found: str) -> None:
    with pytest.raises(InputError, match=found) as error:
        Log(written(tmp_path, content))
    assert "\n" not in str(error.value)


def test_a_folder_and_a_missing_file_are_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="a folder"):
        Log(tmp_path)
    with pytest.raises(InputError, match="no such file"):
        Log(tmp_path / "none.log")


def test_standard_input_is_a_log() -> None:
    code = "from analysis.logs.blocks import Log; print(sum(map(len, Log('-').blocks(64))))"
    out = subprocess.run([sys.executable, "-c", code], input=LINES, capture_output=True, check=True)
    assert int(out.stdout) == len(LINES)


def test_a_document_that_is_too_large_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="more than 0 MiB"):
        Log(written(tmp_path, LINES)).text(100)
