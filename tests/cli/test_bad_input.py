"""Bad input ends with one line on standard error: file, place, what was found, what expected."""

from pathlib import Path

import pytest

from analysis import paths

HEADER = "context_tokens,step_ms"
GOOD = ["0,20", "1000,30", "2000,41"]


def table(folder: Path, *lines: str) -> str:
    path = folder / "table.csv"
    path.write_text("\n".join([*lines, ""]))
    return str(path)


@pytest.mark.parametrize(
    ("lines", "place", "found", "expected"),
    [
        (["tokens,step_ms", "0,20"], "table.csv:1", "columns tokens, step_ms", "context_tokens"),
        ([HEADER, *GOOD, "fast,9"], "table.csv:5, column context_tokens", "'fast'", "a number"),
        ([HEADER, *GOOD, "3000,1e"], "table.csv:5, column step_ms", "'1e'", "a number"),
        ([HEADER, *GOOD, "3000,nan"], "table.csv:5, column step_ms", "nan", "a finite number"),
        ([HEADER, *GOOD, "-1,20"], "table.csv:5, column context_tokens", "-1", "not negative"),
        ([HEADER, *GOOD, GOOD[0]], "table.csv:5", "the observation of line 2 again", "once"),
        ([HEADER, *GOOD, "1"], "table.csv:5", "1 cells", "2, as in the header"),
        ([HEADER], "table.csv", "no rows", "rows with"),
        ([], "table.csv", "an empty file", "a header and rows"),
        ([HEADER, "5,20", "5,21"], "table.csv", "", "determine a line"),
    ],
    ids=lambda value: value if isinstance(value, str) else None,
)
def test_a_bad_table_is_told_by_file_line_and_column(
    analysis, tmp_path: Path, lines: list[str], place: str, found: str, expected: str
) -> None:
    error = analysis("fit", table(tmp_path, *lines), "--json").error
    before, after = error.split("; expected ")
    assert place in before
    assert f": found {found}" in before
    assert expected in after


@pytest.mark.parametrize(
    ("content", "found"),
    [
        (b"{", "text that is not JSON"),
        (b"", "text that is not JSON"),
        (b"[1]", "a JSON list"),
        (b"\x80\x81\xff", "a byte that is not UTF-8 at 0"),
        (b'{"num_hidden_layers": "ten"}', "'ten'"),
        (b'{"num_hidden_layers": 10}', "None"),
        (b'{"num_hidden_layers": -1}', "-1"),
        (b'{"num_hidden_layers": true}', "True"),
    ],
    ids=lambda value: value if isinstance(value, str) else None,
)
def test_a_config_that_cannot_be_read_is_told_by_file_and_field(
    analysis, tmp_path: Path, content: bytes, found: str
) -> None:
    config = tmp_path / "config.json"
    config.write_bytes(content)
    error = analysis("kv", "--model", str(config), "--json").error
    assert "config.json" in error
    assert f"found {found}" in error
    assert "; expected " in error


CASES = "one of kimi-k26-sglang, kimi-k26-vllm"


@pytest.mark.parametrize(
    ("arguments", "parts"),
    [
        (["fit", "nowhere.csv"], ["nowhere.csv", "no such file", "a readable file"]),
        (["fit", "."], ["is a directory", "a readable file"]),
        (["kv", "--model", "nowhere.json"], ["nowhere.json", "no such file"]),
        (["kv", "--model", "no-such-model"], ["'no-such-model'", "one of", "a config.json"]),
        (["reconcile", "nowhere"], ["'nowhere'", CASES, "a folder with a case.toml"]),
        (["report", "--case", "nowhere"], ["--case", "'nowhere'", CASES]),
        (["report", "--notebook", "nowhere"], ["'nowhere'", "01-two-point-decode"]),
        (
            ["report", "--case", "kimi-k26-vllm", "-p", 'cass="x"'],
            ["00-summary, parameter cass", "an unknown parameter", "one of case"],
        ),
        (
            ["report", "--case", "kimi-k26-vllm", "-p", "case=7"],
            ["parameter case", "the case in --case"],
        ),
        (["report", "--case", "kimi-k26-vllm", "-p", "case=x"], ["'case=x'", "NAME=JSON"]),
        (["report", "--case", "kimi-k26-vllm", "-p", 'api_key="x"'], ["a secret"]),
        (["report", "-p", 'case="x"'], ["parameters without --case"]),
        (["report", "--jobs", "0"], ["--jobs", "0", "x>=1"]),
        (["cite", "nowhere"], ["FIGURE-ID", "'nowhere'", "one of"]),
        (["cite"], ["FIGURE-ID"]),
        (["forecast"], ["'forecast'"]),
        (["kv", "--modle", "x"], ["--modle"]),
        (["kv"], ["--model"]),
        (["kv", "--model", "Kimi-K2.6", "--tp", "eight"], ["--tp", "'eight'", "integer"]),
        (["kv", "--model", "Kimi-K2.6", "--tp", "0"], ["--tp", "0", "x>=1"]),
        (["kv", "--model", "Kimi-K2.6", "--tp", "-8"], ["--tp", "-8", "x>=1"]),
        (["kv", "--model", "Kimi-K2.6", "--tp", "8", "--dcp", "3"], ["dcp 3", "tp 8"]),
        (["kv", "--model", "Kimi-K2.6", "--tp", "8", "--dcp", "16"], ["dcp 16", "tp 8"]),
        (
            ["kv", "--model", "Kimi-K2.6", "--tp", "8", "--dcp", "8", "--dp-attention"],
            ["--dp-attention", "exclude"],
        ),
        (["kv", "--model", "Qwen3-8B", "--tp", "3"], ["8 KV heads", "3 ranks"]),
        (["kv", "--model", "Qwen3-8B", "--tp", "8", "--dcp", "8"], ["dcp 8"]),
        (["kv", "--model", "Kimi-K2.6", "--kv-dtype", "int3"], ["--kv-dtype", "'int3'", "fp8"]),
        (["kv", "--model", "Kimi-K2.6", "--tokens", "-1"], ["--tokens", "-1"]),
        (["kv", "--model", "Kimi-K2.6", "--tokens", "1", "--pool-gib", "1"], ["one of them"]),
        (["kv", "--model", "Kimi-K2.6", "--pool-gib", "nan"], ["--pool-gib", "nan", "finite"]),
        (["kv", "--model", "Kimi-K2.6", "--pool-gib", "inf"], ["--pool-gib", "inf", "finite"]),
        (["kv", "--model", "Kimi-K2.6", "--pool-gib", "-1"], ["--pool-gib", "-1"]),
        (["fit", "x.csv", "--weights", "some"], ["--weights", "'some'", "relative"]),
    ],
    ids=lambda value: " ".join(value) if isinstance(value[0], str) else None,
)
def test_a_bad_command_line_is_one_line_that_says_what_was_found(
    analysis, tmp_path: Path, monkeypatch, arguments: list[str], parts: list[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    takes_json = arguments[0] in ("fit", "kv", "reconcile", "cite")
    for options in ([], ["--json"]) if takes_json else ([],):
        error = analysis(*arguments, *options).error
        assert error.startswith("error: ")
        for part in parts:
            assert part.lower() in error.lower()


def test_no_error_holds_a_path_of_this_machine(analysis) -> None:
    folder = paths.CASES / "kimi-k26-sglang"
    error = analysis("fit", str(folder / "sweep.csv"), "--x", "nonsense").error
    assert "data/cases/kimi-k26-sglang/sweep.csv:1" in error
    assert str(paths.ROOT) not in error


def test_a_refused_report_leaves_the_build_alone(analysis) -> None:
    stamps = {p: p.stat().st_mtime_ns for p in paths.BUILD.rglob("*.json")}
    assert analysis("report", "--case", "nowhere").error
    assert {p: p.stat().st_mtime_ns for p in paths.BUILD.rglob("*.json")} == stamps


def test_without_a_command_the_help_lists_all_commands(analysis) -> None:
    from analysis.cli.main import COMMANDS

    ended = analysis()
    assert (ended.code, ended.out) == (2, "")
    for name, words in COMMANDS.items():
        assert name in ended.err
        assert words.split(",")[0] in ended.err
