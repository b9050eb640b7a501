"""What was appended between a mark and now, from files as servers treat them and from journals."""

import os
import sys
from pathlib import Path

import pytest

from analysis.errors import InputError
from analysis.logs.source import Mark, log_source

# An entry as `journalctl -o json` prints it, less the fields that are not read.
ENTRY = {"__CURSOR": "s=1;i=1", "__REALTIME_TIMESTAMP": "1796079378573251", "PRIORITY": "6"}


def test_only_what_was_appended_since_the_mark_is_read(tmp_path: Path) -> None:
    path = tmp_path / "server.log"
    path.write_bytes(b"before\n")
    log = log_source(str(path))
    mark = log.mark()
    assert log.since(mark) == []
    with path.open("ab") as stream:
        stream.write(b"one\r\ntwo \xff\xfe three\nunfinished")
    assert log.since(mark) == ["one", "two \ufffd\ufffd three"]


def test_a_line_begun_before_the_mark_is_not_of_the_request(tmp_path: Path) -> None:
    path = tmp_path / "server.log"
    path.write_bytes(b"eval time = 1 ms / 9")
    log = log_source(str(path))
    mark = log.mark()
    with path.open("ab") as stream:
        stream.write(b"6 tokens\nnext\n")
    assert log.since(mark) == ["next"]


def test_an_empty_log_is_read_from_its_start(tmp_path: Path) -> None:
    path = tmp_path / "server.log"
    path.touch()
    log = log_source(str(path))
    mark = log.mark()
    path.write_bytes(b"first\n")
    assert log.since(mark) == ["first"]


@pytest.mark.parametrize(
    "after", [b"", b"short\n", b"another log that is longer than it was\n" * 9]
)
def test_a_truncated_log_is_an_error_and_a_new_mark_goes_on(tmp_path: Path, after: bytes) -> None:
    path = tmp_path / "server.log"
    path.write_bytes(b"a line of some length\n" * 3)
    log = log_source(str(path))
    mark = log.mark()
    path.write_bytes(after)
    with pytest.raises(InputError, match=r"server\.log: found another file, or a shorter one"):
        log.since(mark)
    mark = log.mark()
    with path.open("ab") as stream:
        stream.write(b"more\n")
    assert log.since(mark) == ["more"]


def test_a_rotated_log_is_an_error(tmp_path: Path) -> None:
    path = tmp_path / "server.log"
    path.write_bytes(b"line 1\nline 2\n")
    log = log_source(str(path))
    mark = log.mark()
    path.rename(tmp_path / "server.log.1")
    with pytest.raises(InputError, match="no such file"):
        log.since(mark)
    path.write_bytes(b"line 3\nline 4\nline 5\n")
    with pytest.raises(InputError, match="only appended to"):
        log.since(mark)


def test_a_log_that_is_not_there_is_an_error_at_once(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no such file or directory; expected a readable log file"):
        log_source(str(tmp_path / "none.log"))
    with pytest.raises(InputError, match="is a directory"):
        log_source(str(tmp_path))


def journalctl(folder: Path, body: str) -> None:
    """A program of that name: no journal runs in the machines that the tests run on."""
    program = folder / "journalctl"
    program.write_text(f"#!{sys.executable}\nimport json, sys\n{body}")
    program.chmod(0o755)


def test_a_journal_is_read_from_its_last_entry_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    entries = [
        ENTRY | {"MESSAGE": "[2026-11-30 22:56:19] Decode batch"},
        ENTRY | {"MESSAGE": list(b"bytes \xff\nand a second line")},
        ENTRY | {"MESSAGE": None},
    ]
    journalctl(
        tmp_path,
        f"after = [a for a in sys.argv if a.startswith('--after-cursor=')]\n"
        f"assert '--unit=sglang.service' in sys.argv and '--output=json' in sys.argv\n"
        f"entries = {entries!r} if after == ['--after-cursor=s=1;i=1'] else [{ENTRY!r}]\n"
        f"print(*map(json.dumps, entries), sep='\\n')\n",
    )
    monkeypatch.setenv("PATH", str(tmp_path))
    log = log_source("journal:sglang.service")
    mark = log.mark()
    assert mark == Mark(cursor="s=1;i=1")
    assert log.since(mark) == [
        "[2026-11-30 22:56:19] Decode batch",
        "bytes \ufffd",
        "and a second line",
    ]


def test_the_real_journalctl_takes_our_options() -> None:
    """On a unit without entries it prints nothing; where no journal is, it says so."""
    if not any((Path(folder) / "journalctl").exists() for folder in os.get_exec_path()):
        pytest.skip("no journalctl on this machine")
    log = log_source("journal:there-is-no-such-unit.service")
    mark = log.mark()
    assert mark == Mark()
    assert log.since(mark) == []


def test_a_journal_that_cannot_be_read_says_what_journalctl_said(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    journalctl(
        tmp_path, "sys.exit('No journal files were opened due to insufficient permissions.')"
    )
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(InputError, match="journal:vllm: found No journal files were opened"):
        log_source("journal:vllm")


def test_without_journalctl_or_a_unit_the_message_says_what_to_give(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(InputError, match="no journalctl; expected systemd's journalctl"):
        log_source("journal:vllm.service")
    with pytest.raises(InputError, match="no unit"):
        log_source("journal:")
