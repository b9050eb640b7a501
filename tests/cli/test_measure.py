"""``analysis measure`` and ``promote``: what is said and refused before anything is sent."""

import re
import shutil
import socket
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.conftest import Ended
from tests.invented_run import write_run

from analysis import paths
from analysis.records.run import REQUESTS, load_run

Analysis = Callable[..., Ended]
ELSEWHERE = "http://192.0.2.1:8000"  # an address for documentation (RFC 5737): nobody has it


def test_a_dry_run_says_what_would_be_sent_and_writes_nothing(
    analysis: Analysis, tmp_path: Path
) -> None:
    ended = analysis(
        *("measure", "context-sweep", "--dry-run", "--out", str(tmp_path / "run")),
        *("--prompts", "100,200", "--outputs", "50", "--repeats", "3"),
    )
    assert (ended.code, ended.out) == (0, "")
    assert "6 requests and 2 warm-ups: 300 prompt tokens and 332 output" in ended.err
    assert list(tmp_path.iterdir()) == []


def test_a_dry_run_contacts_nobody(analysis: Analysis) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listening:
        listening.settimeout(0.2)
        url = f"http://127.0.0.1:{listening.getsockname()[1]}"
        ended = analysis("measure", "acceptance", "--server", url, "--dry-run")
        assert ended.code == 0
        with pytest.raises(TimeoutError):
            listening.accept()


def test_another_machine_asks_for_yes(analysis: Analysis) -> None:
    error = analysis("measure", "two-point", "--server", ELSEWHERE).error
    assert "--server: found a server on another machine; expected --yes" in error
    assert analysis("measure", "two-point", "--server", ELSEWHERE, "--dry-run").code == 0


@pytest.mark.parametrize(
    ("arguments", "found"),
    [
        ((), "EXPERIMENT: found none; expected one or more of two-point"),
        (("warp",), "EXPERIMENT: found 'warp'; expected one of two-point"),
        (("context-sweep", "--prompts", "0,900"), "prompt_tokens: found 0; expected"),
        (("context-sweep", "--prompts", "900,900"), "prompt_tokens: found 900 twice; expected"),
        (("context-sweep", "--prompts", "900,x"), "'900,x' is not whole numbers"),
        (("two-point", "--outputs", "64"), "output_tokens: found one output length (64)"),
        (("acceptance", "--texts", "sonnets"), "text: found 'sonnets'; expected the path of a"),
        (("two-point", "--server", "localhost"), "--server: found 'localhost'; expected http://"),
        (("two-point", "--server", "http://me:pw@localhost:1"), "more than an address (a user,"),
        (("two-point", "--server-log", "no/such.log"), "such.log"),
        (("--resume", "no/such/run"), "run: found 'no/such/run'; expected a folder with a"),
        (("two-point", "--llama-server", "no/such/program"), "a program that can be run"),
    ],
)
def test_what_cannot_be_measured_is_refused_in_one_line(
    analysis: Analysis, tmp_path: Path, arguments: tuple[str, ...], found: str
) -> None:
    out = () if "--resume" in arguments else ("--out", str(tmp_path / "run"))
    ended = analysis("measure", *arguments, *out)
    assert (ended.code, ended.out) == (2, "")
    assert found in ended.err.splitlines()[-1]
    assert "pw@" not in ended.err
    assert not (tmp_path / "run").exists()


def test_nothing_listens_there(analysis: Analysis, tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as closed:
        port = closed.getsockname()[1]
    url = f"http://127.0.0.1:{port}"
    ended = analysis("measure", "two-point", "--server", url, "--out", str(tmp_path / "run"))
    assert ended.code == 2
    assert f"--server {url}: found connection refused; expected" in ended.err.splitlines()[-1]
    assert not (tmp_path / "run").exists()


@pytest.fixture
def runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "data-runs"
    monkeypatch.setattr(paths, "RUNS", folder)
    return folder


def test_promote_copies_a_finished_run_and_never_over_another(
    analysis: Analysis, tmp_path: Path, runs: Path
) -> None:
    run = write_run(tmp_path / "mine")
    folder = tmp_path / "mine"
    assert analysis("promote", str(folder), "--name", "kept").code == 0
    assert (runs / "kept" / REQUESTS).read_bytes() == (folder / REQUESTS).read_bytes()
    assert load_run("kept").manifest == load_run(folder).manifest
    assert "found a run of that name" in analysis("promote", str(folder), "--name", "kept").error
    assert "a name without folders" in analysis("promote", str(folder), "--name", "a/b").error
    assert run is not None


def test_an_unfinished_run_is_not_promoted(analysis: Analysis, tmp_path: Path, runs: Path) -> None:
    write_run(tmp_path / "mine")
    unfinished = tmp_path / "unfinished"
    shutil.copytree(tmp_path / "mine", unfinished)
    manifest = unfinished / "manifest.json"
    text = re.sub(r'"ended_utc": "[^"]+"', '"ended_utc": null', manifest.read_text())
    manifest.write_text(re.sub(r'"requests_sha256": "\w+"', '"requests_sha256": ""', text))
    lines = (unfinished / REQUESTS).read_text().splitlines(keepends=True)
    (unfinished / REQUESTS).write_text("".join(lines[:-1]))
    assert "found an unfinished run (1 of" in analysis("promote", str(unfinished)).error
    assert not runs.exists()
