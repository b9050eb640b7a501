"""``analysis diagnose``: one JSON object, lines for people, files that are whole or absent."""

import gzip
import io
import os
import sys
import threading
from pathlib import Path

import pytest

from analysis import paths
from analysis.logs.blocks import zstd
from analysis.records import bins

DATA = paths.ROOT / "tests" / "logs" / "data"
WINDOW = {
    "file", "line", "time", "context_tokens", "running", "tok_per_s", "commit",
    "acceptance_length", "step_ms", "flags",
}  # fmt: skip
SUMMARY = ("commit", "step_ms", "tok_per_s")


def told(analysis, *arguments: object) -> dict:
    return analysis("diagnose", *map(str, arguments), "--json").json


@pytest.mark.parametrize("path", sorted(DATA.glob("*.log")), ids=lambda path: path.stem)
def test_the_object_has_its_stable_keys(analysis, path: Path) -> None:
    found = told(analysis, path)
    assert {
        "engine",
        "version_hint",
        "windows_total",
        "windows",
        "summary",
        "fit",
        "unparsed",
    } <= set(found)
    assert all(set(window) >= WINDOW for window in found["windows"])
    assert found["windows_total"] == len(found["windows"]) > 0
    used = [window for window in found["windows"] if not window["flags"]]
    assert found["summary"]["windows_used"] == len(used)
    assert found["summary"]["windows_flagged"] == len(found["windows"]) - len(used)
    assert set(found["unparsed"]) >= {"lines", "examples"}
    for name in SUMMARY:
        middle = found["summary"][name]
        if middle is not None and middle["low"] is not None:
            assert middle["low"] <= middle["median"] <= middle["high"]


def test_an_eagle3_log(analysis) -> None:
    """sgl-project/sglang#11948."""
    found = told(analysis, DATA / "sgl-project-sglang-11948.log")
    steps = [w["step_ms"] for w in found["windows"] if not w["flags"]]
    assert (round(min(steps), 2), round(max(steps), 2)) == (10.86, 10.90)
    assert "after idle gap" in found["windows"][0]["flags"]
    assert found["version_hint"] == "SGLang up to 0.5.2"
    assert (found["summary"]["windows_used"], found["summary"]["windows_flagged"]) == (4, 1)


def test_a_log_of_eight_ranks(analysis) -> None:
    """sgl-project/sglang#6081: the step stands still while commit moves."""
    found = told(analysis, DATA / "sgl-project-sglang-6081.log")
    assert [w["flags"] for w in found["windows"]] == [[]] * 5
    assert all(135.6 < w["step_ms"] < 136.15 for w in found["windows"])
    assert any("it is the commit that moves it" in text for text in found["details"])


def test_a_vllm_window_is_worth_its_assumed_ten_seconds(analysis) -> None:
    """vllm-project/vllm-ascend#12521, engine 002: 433 tokens, of which 282 were drafted."""
    found = told(analysis, DATA / "vllm-project-vllm-ascend-12521.log")
    (window,) = (w for w in found["windows"] if "engine 002" in w["source"])
    assert window["tok_per_s"] == 43.3
    assert window["commit"] == pytest.approx(433 / (433 - 282))
    assert window["step_ms"] == pytest.approx(10_000 / 151)
    assert "length of the window assumed" in window["notes"]
    assert "Assumed: that a line covers 10 s." in found["details"]


def test_commit_and_acceptance_length_stand_under_their_own_names(analysis) -> None:
    """ggml-org/llama.cpp#24536: one of 88 steps drafted nothing."""
    found = told(analysis, DATA / "ggml-org-llama.cpp-24536.log")
    (window,) = found["windows"]
    assert window["acceptance_length"] == 2.92
    assert window["commit"] == pytest.approx(255 / 88)
    assert window["step_ms"] == pytest.approx(2296.72 / 88)
    assert any("2.90" in text and "2.92" in text for text in found["details"])


def test_steps_of_an_early_build(analysis) -> None:
    """am17an/llama.cpp#6: 57 tokens, 36 of them accepted drafts, 20 steps."""
    (window,) = told(analysis, DATA / "am17an-llama.cpp-6.log")["windows"]
    assert window["step_ms"] == pytest.approx(1287.69 / 20)


def test_the_v0_rule(analysis) -> None:
    """vllm-project/vllm#7301: 34,244 emitted tokens over 53,716 / 4 steps."""
    (window,) = told(analysis, DATA / "vllm-project-vllm-7301.log")["windows"]
    assert window["commit"] == pytest.approx(34_244 / (53_716 / 4))
    assert round(window["commit"], 2) == 2.55


@pytest.mark.parametrize("pack", [gzip.compress, zstd.compress])
def test_an_archive_says_the_same(analysis, tmp_path: Path, pack: object) -> None:
    assert callable(pack)
    log = DATA / "sglang-0.5.23-ngram.log"
    packed = tmp_path / "log.packed"
    packed.write_bytes(pack(log.read_bytes()))
    assert told(analysis, packed)["summary"] == told(analysis, log)["summary"]


def test_standard_input_says_the_same(analysis, monkeypatch: pytest.MonkeyPatch) -> None:
    log = DATA / "sglang-0.5.23-ngram.log"
    whole = told(analysis, log)
    with log.open("rb") as stream:
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(stream))
        found = told(analysis, "-")
    assert found["summary"] == whole["summary"]
    assert {window["file"] for window in found["windows"]} == {"standard input"}


def test_several_files_are_one_diagnosis(analysis) -> None:
    logs = [DATA / f"sgl-project-sglang-{n}.log" for n in (11948, 6081)]
    both = told(analysis, *logs)
    assert both["windows_total"] == sum(told(analysis, log)["windows_total"] for log in logs)
    assert len({window["file"] for window in both["windows"]}) == 2


def test_many_windows_become_bins(
    analysis, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    line = (DATA / "sgl-project-sglang-3909.log").read_text().splitlines()[0]
    log = tmp_path / "long.log"
    log.write_text("".join(f"{line.replace('67724', str(67724 + 320 * i))}\n" for i in range(500)))
    monkeypatch.setattr("analysis.findings.diagnosis.BINS", 100)
    found = told(analysis, log, "--windows", tmp_path / "all.csv")
    assert found["binned"]
    assert found["windows_total"] == sum(w["windows"] for w in found["windows"]) == 500
    assert len(found["windows"]) <= 101 < bins.MOST_ROWS
    assert len((tmp_path / "all.csv").read_text().splitlines()) == 501


def test_plain_windows_of_a_speculating_server_leave_the_summary(analysis, tmp_path: Path) -> None:
    log = tmp_path / "both.log"
    spec = (DATA / "sglang-0.5.23-ngram.log").read_text()
    plain = (DATA / "sgl-project-sglang-3909.log").read_text()
    log.write_text(plain + spec)
    found = told(analysis, log)
    off = [w for w in found["windows"] if "speculation off" in w["flags"]]
    assert len(off) == len(plain.splitlines())
    assert (
        found["summary"]["commit"]
        == told(analysis, DATA / "sglang-0.5.23-ngram.log")["summary"]["commit"]
    )


def test_the_block_can_be_given(analysis) -> None:
    found = told(analysis, DATA / "sgl-project-sglang-6081.log", "--block", 2)
    assert all("commit above block" in w["flags"] for w in found["windows"])


def test_people_get_the_answer_first(analysis) -> None:
    ended = analysis("diagnose", str(DATA / "sgl-project-sglang-11948.log"))
    assert ended.code == 0
    first = ended.out.splitlines()[0]
    assert first.startswith(
        "172.2 tok/s at one request: 1.88 tokens per step, over steps of 10.9 ms"
    )
    assert max(map(len, ended.out.splitlines())) <= 120


def test_examples_are_redacted_unless_asked_for(analysis, tmp_path: Path) -> None:
    log = tmp_path / "a.log"
    secret = "connect from 10.1.2.3:4567 with key hf_abcdefghijklmnop\n"
    log.write_text(secret + (DATA / "sgl-project-sglang-6081.log").read_text())
    kept = told(analysis, log, "--no-redact")["unparsed"]["examples"]
    assert secret.strip() in kept
    shown = str(told(analysis, log)["unparsed"])
    assert "10.1.2.3" not in shown
    assert "hf_abc" not in shown


@pytest.mark.parametrize(
    ("content", "found"),
    [
        (b"", "nothing in it"),
        (bytes(range(256)) * 9, "binary data"),
        (b"INFO started\nINFO stopped\n", "2 lines without a report on decoding"),
        (b"[2025-10-22 10:27:57 TP0] Decode batch. #running-req: 1, #tok", "1 of them broken"),
        ("Decode batch".encode("utf-16"), "UTF-16"),
    ],
)
def test_what_tells_nothing_is_refused_in_one_line(
    analysis, tmp_path: Path, content: bytes, found: str
) -> None:
    log = tmp_path / "a.log"
    log.write_bytes(content)
    assert found in analysis("diagnose", str(log), "--json").error


def test_a_folder_is_refused(analysis, tmp_path: Path) -> None:
    assert "a folder" in analysis("diagnose", str(tmp_path)).error


def test_a_wrong_encoding_is_read_all_the_same(analysis, tmp_path: Path) -> None:
    log = tmp_path / "a.log"
    text = (DATA / "sgl-project-sglang-6081.log").read_bytes()
    log.write_bytes(b"prompt: \xff\xfe caf\xe9\n" + text)
    assert told(analysis, log)["windows_total"] == 5


def test_a_file_of_another_kind_is_refused_before_the_log_is_read(analysis, tmp_path: Path) -> None:
    log = str(DATA / "sgl-project-sglang-6081.log")
    assert ".parquet" in analysis("diagnose", log, "--windows", str(tmp_path / "a.xlsx")).error
    assert list(tmp_path.iterdir()) == []


def test_the_page_is_written_whole(analysis, tmp_path: Path) -> None:
    page = tmp_path / "page.html"
    log = str(DATA / "sgl-project-sglang-11948.log")
    assert analysis("diagnose", log, "--html", str(page)).code == 0
    assert "172.2 tok/s at one request" in page.read_text()
    assert [path.name for path in tmp_path.iterdir()] == ["page.html"]


@pytest.mark.parametrize(("option", "name"), [("--html", "a.html"), ("--windows", "a.csv")])
def test_a_log_is_not_written_over(analysis, tmp_path: Path, option: str, name: str) -> None:
    log = tmp_path / name
    text = (DATA / "sgl-project-sglang-6081.log").read_text()
    log.write_text(text)
    assert "a file that is read" in analysis("diagnose", str(log), option, str(log)).error
    assert log.read_text() == text


def test_a_page_is_called_a_page(analysis, tmp_path: Path) -> None:
    log = str(DATA / "sgl-project-sglang-6081.log")
    assert ".html" in analysis("diagnose", log, "--html", str(tmp_path / "a.txt")).error


def test_a_pipe_is_read(analysis, tmp_path: Path) -> None:
    """Process substitution gives a file without a size."""
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    log = DATA / "sgl-project-sglang-6081.log"
    writer = threading.Thread(target=lambda: pipe.write_bytes(log.read_bytes()))
    writer.start()
    assert told(analysis, pipe)["windows_total"] == 5
    writer.join()


def test_writing_every_window_changes_nothing(analysis, tmp_path: Path) -> None:
    log = tmp_path / "both.log"
    parts = (
        "sgl-project-sglang-3909.log",
        "sglang-0.5.23-ngram.log",
        "sgl-project-sglang-3909.log",
    )
    log.write_text("".join((DATA / part).read_text() for part in parts))
    with_file = told(analysis, log, "--windows", tmp_path / "w.csv")
    assert with_file == told(analysis, log)
