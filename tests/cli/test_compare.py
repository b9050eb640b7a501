"""``analysis compare``: its JSON, its lines for people, and its errors."""

from pathlib import Path

import pytest
from tests.invented_run import write_run

from analysis import paths

TABLE = str(Path(__file__).parents[1] / "findings" / "data" / "syv-ai-long-context.csv")
LIST = str(Path(__file__).parents[1] / "findings" / "data" / "mtplx-305.csv")
RATIOS = {"throughput_ratio", "commit_ratio", "step_ratio", "commit_share", "step_share"}
SERIES = ["--series-before", "KVarN", "--series-after", "fp8"]


def test_the_json_keeps_its_keys(analysis) -> None:
    found = analysis("compare", TABLE, TABLE, *SERIES, "--json").json
    assert set(found) >= RATIOS | {
        "interval95",
        "verdict",
        "smallest_detectable_pct",
        "at_context",
        "context_adjustment",
        "notes",
        "n_before",
        "n_after",
    }
    assert set(found["interval95"]) == RATIOS
    assert set(found["interval95"].values()) == {None}
    product = found["commit_ratio"] * found["step_ratio"]
    assert found["throughput_ratio"] == pytest.approx(product)
    assert found["commit_share"] + found["step_share"] == pytest.approx(1)
    assert (found["n_before"], found["n_after"]) == (1, 1)
    assert (found["at_context"], found["context_adjustment"]) == (112648, "same contexts")


def test_intervals_are_pairs_around_their_ratios(analysis) -> None:
    found = analysis("compare", "smollm2-plain", "smollm2-ngram", "--json").json
    for name in ("throughput_ratio", "step_ratio"):
        low, high = found["interval95"][name]
        assert low < found[name] < high
    assert found["interval95"]["commit_ratio"] is None
    assert found["verdict"] == "both"


def test_a_table_without_commit_has_no_split(analysis) -> None:
    arguments = ["compare", LIST, LIST, "--series-before", "8-40k", "--series-after", "40-80k"]
    found = analysis(*arguments, "--json").json
    assert found["verdict"] == "no split"
    assert found["commit_ratio"] is found["step_ratio"] is found["commit_share"] is None
    assert found["throughput_ratio"] < 1
    assert "= commit" not in analysis(*arguments).out


def test_people_read_the_answer_first_and_aligned_columns(analysis) -> None:
    ended = analysis("compare", "smollm2-plain", "smollm2-ngram")
    assert (ended.code, ended.err) == (0, "")
    lines = ended.out.splitlines()
    assert lines[0].startswith("Throughput per stream is 1.47 times")
    assert max(map(len, lines)) <= 100
    head = next(line for line in lines if "ratio  " in line)
    rows = [line for line in lines if line.startswith(("throughput", "= commit", "x step"))]
    end = head.index("ratio") + len("ratio")
    assert [row[:end].split()[-1] for row in rows] == ["1.47", "7.96", "0.185"]


def test_no_share_is_printed_of_a_change_that_is_not_shown(analysis, tmp_path: Path) -> None:
    first, second = tmp_path / "first.csv", tmp_path / "second.csv"
    first.write_text("step_ms,commit_length\n50,3\n150,3.1\n90,2.9\n")
    second.write_text("step_ms,commit_length\n60,3\n120,2.9\n100,3.1\n")
    found = analysis("compare", str(first), str(second), "--json").json
    assert found["commit_share"] is found["step_share"] is None
    assert found["interval95"]["commit_share"] is found["interval95"]["step_share"] is None


def test_one_series_option_serves_both_sides(analysis, tmp_path: Path) -> None:
    first = tmp_path / "first.csv"
    first.write_text("series,tok_per_s,commit_length\na,50,3\nb,70,3\n")
    second = tmp_path / "second.csv"
    second.write_text("series,tok_per_s,commit_length\na,100,3\nb,70,3\n")
    found = analysis("compare", str(first), str(second), "--series", "a", "--json").json
    assert (found["step_ratio"], found["verdict"]) == (2, "step")


def test_a_run_beside_itself_shows_no_difference(analysis, tmp_path: Path) -> None:
    run = str(write_run(tmp_path / "run"))
    found = analysis("compare", run, run, "--json").json
    assert found["verdict"] == "no difference shown"
    assert found["throughput_ratio"] == 1
    assert found["commit_share"] is found["step_share"] is None
    assert 0 < found["smallest_detectable_pct"] < 1


@pytest.mark.parametrize(
    ("arguments", "parts"),
    [
        ([TABLE, TABLE], ["2 series", "--series-before with one of: fp8; KVarN"]),
        ([TABLE, TABLE, "--series", "bf16"], ["no rows of series 'bf16'", "fp8; KVarN"]),
        ([TABLE, "nowhere.csv", "--series", "fp8"], ["nowhere.csv", "no such file"]),
        ([TABLE], ["AFTER"]),
        (["src", TABLE, "--series-before", "x"], ["found a folder", "a run folder"]),
    ],
)
def test_bad_input_is_one_line(analysis, monkeypatch, arguments, parts) -> None:
    monkeypatch.chdir(paths.ROOT)
    error = analysis("compare", *arguments, "--json").error
    for part in parts:
        assert part in error
