"""One side of a comparison from a run, a case, a table or a log, told apart and read alike."""

from pathlib import Path

import numpy as np
import pytest
from tests.invented_run import write_run

from analysis.errors import InputError
from analysis.findings.comparison import compare
from analysis.findings.sides import as_plain, load_side, of_windows
from analysis.records.windows import Flag, windows


def table(folder: Path, *lines: str, name: str = "table.csv") -> str:
    path = folder / name
    path.write_text("\n".join([*lines, ""]))
    return str(path)


def test_a_table_gives_what_follows_from_its_columns(tmp_path: Path) -> None:
    side = load_side(
        table(
            tmp_path,
            "prompt_tokens,output_tokens,running,tok_per_s,commit_length",
            "1000,200,2,100,3",
            "2000,200,2,50,",
        ),
    )
    assert (side.kind, len(side), side.successive) == ("table", 2, False)
    assert side.context_tokens.tolist() == [1100, 2100]
    assert side.step_ms[0] == pytest.approx(1000 * 3 * 2 / 100)
    assert side.tok_per_s_per_stream.tolist() == [50, 25]
    assert np.isnan(side.commit[1])
    assert side.splits.tolist() == [True, False]


def test_a_throughput_follows_from_commit_and_step(tmp_path: Path) -> None:
    side = load_side(table(tmp_path, "commit_length,step_ms", "3,60"))
    assert side.tok_per_s[0] == pytest.approx(50)
    assert np.isnan(side.context_tokens[0])


def test_prompt_lengths_are_told_from_mean_contexts(tmp_path: Path) -> None:
    side = load_side(table(tmp_path, "prompt_tokens,tok_per_s", "1000,50"))
    assert side.context_tokens.tolist() == [1000]
    assert "the context is the prompt length" in side.notes[0]


def test_three_figures_that_do_not_agree_are_told(tmp_path: Path) -> None:
    agree = table(tmp_path, "tok_per_s,commit_length,step_ms", "50,3,60")
    assert load_side(agree).notes == ()
    differ = table(tmp_path, "tok_per_s,commit_length,step_ms", "45,3,60")
    assert "more than 2 % from commit over step" in load_side(differ).notes[0]


def test_no_speculation_commits_one_token(tmp_path: Path) -> None:
    side = load_side(table(tmp_path, "speculation,tok_per_s", "none,50", "MTP,80"))
    assert side.commit[0] == 1
    assert np.isnan(side.commit[1])


def test_a_run_gives_its_requests_without_a_flag(tmp_path: Path) -> None:
    def flagged(sample: dict) -> dict:
        return sample | ({"flags": ["host busy"]} if sample["repeat"] == 2 else {})

    side = load_side(str(write_run(tmp_path / "run", each=flagged)))
    assert (side.kind, side.series_names) == ("run", ["ngram-simple"])
    assert len(side) == 2 * (4 + 1)  # the sweep's four contexts, and acceptance at one of them
    assert len(set(side.request)) == 4
    plain = load_side(str(write_run(tmp_path / "plain", speculates=False)))
    assert set(plain.commit.tolist()) == {1.0}


def test_other_experiments_count_where_a_run_has_no_sweep(tmp_path: Path) -> None:
    side = load_side(str(write_run(tmp_path / "run", experiments=["two-point"])))
    assert len(side) == 4 * 3 * 3


def test_the_texts_of_a_run_can_be_asked_for(tmp_path: Path) -> None:
    run = str(write_run(tmp_path / "run", texts=("code", "prose"), commit={"code": 3, "prose": 2}))
    assert set(load_side(run).text) == {"code", "prose"}
    assert set(load_side(run, "ngram-simple, code").text) == {"code"}
    assert set(load_side(run, "ngram-simple").text) == {"code", "prose"}


def test_committed_runs_and_cases_are_found_by_name() -> None:
    assert load_side("smollm2-plain").kind == "run"
    case = load_side("smollm2-llamacpp")
    assert (case.kind, case.series_names) == ("case", ["ngram-simple", "no speculation"])
    account = load_side("kimi-k26-sglang")
    assert account.step_ms == pytest.approx([34.03, 62.78, 101.41, 144.04], abs=0.005)


def batch(n: int = 6, **columns: list[float]):
    flags = [0] * n
    flags[1] = int(Flag.PREFILL)
    given = {
        "context_tokens": [1000.0 + 40 * i for i in range(n)],
        "running": [1.0] * n,
        "tok_per_s": [50.0] * n,
        "commit": [3.0] * n,
        "step_ms": [60.0] * n,
    }
    return windows(
        "sglang",
        "a.log",
        "date",
        ["TP0", "TP1"],
        line=list(range(n)),
        source=[0, 1] * (n // 2),
        flags=flags,
        **(given | columns),
    )


def test_windows_with_a_flag_or_without_a_rate_do_not_count() -> None:
    side = of_windows("a.log", [batch(tok_per_s=[50, 50, 50, float("nan"), 50, 50])])
    assert (side.kind, side.successive, len(side)) == ("log", True, 4)
    # source by source: the windows of one rank follow each other
    assert side.context_tokens.tolist() == [1000, 1080, 1160, 1200]


def test_plain_decoding_takes_a_step_for_each_token(tmp_path: Path) -> None:
    side = as_plain(load_side(table(tmp_path, "running,tok_per_s", "4,200")))
    assert (side.commit.tolist(), side.step_ms.tolist()) == ([1], [20])
    speculating = load_side(table(tmp_path, "tok_per_s,commit_length", "200,3"))
    with pytest.raises(InputError, match="a commit length of 3"):
        as_plain(speculating)


@pytest.mark.parametrize(
    ("lines", "says"),
    [
        (["context_tokens,commit_length", "1,2"], "table.csv:1: found columns context_tokens"),
        (["tok_per_s", "fast"], "table.csv:2, tok_per_s: found 'fast'"),
        (["tok_per_s", "0"], "greater than 0"),
        (["tok_per_s,commit_length", "50,0.7"], "greater than or equal to 1"),
        (["tok_per_s,commit_length", ",2"], "no rows"),
        (["tok_per_s,commit_length", "50,2", "50,2"], "the observation of line 2 again"),
        (["tok_per_s"], "no rows"),
    ],
)
def test_a_bad_table_is_told_by_file_line_and_column(tmp_path: Path, lines, says) -> None:
    with pytest.raises(InputError, match=says):
        load_side(table(tmp_path, *lines))


def test_a_folder_that_is_nothing_is_told(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="found a folder; expected a log file, a CSV table"):
        load_side(str(tmp_path))


def test_an_unknown_series_is_told_with_those_that_exist(tmp_path: Path) -> None:
    path = table(tmp_path, "series,tok_per_s", "a,50", "b,60")
    with pytest.raises(InputError, match="one of: a; b"):
        load_side(path, "c")
    with pytest.raises(InputError, match="--series-before with one of: a; b"):
        compare(load_side(path), load_side(path, "a"))


LINE = "[2026-01-01 00:00:0{} TP0] Decode batch, #running-req: 1, #token: {}, token usage: 0.01, "
LINE += "accept len: 3.00, cuda graph: True, gen throughput (token/s): 50.00, #queue-req: 0\n"


def test_rotated_logs_are_joined_by_commas(tmp_path: Path) -> None:
    first, second = tmp_path / "a.log.1", tmp_path / "a.log"
    first.write_text("".join(LINE.format(2 * i, 1000 + 120 * i) for i in range(3)))
    second.write_text("".join(LINE.format(6 + i, 1400 + 120 * i) for i in range(3)))
    side = load_side(f"{first},{second}")
    assert (side.kind, side.successive) == ("log", True)
    assert side.name.endswith("a.log.1 and 1 more")
    assert len(side) > len(load_side(str(first)))
    assert sorted(side.context_tokens) == side.context_tokens.tolist()
    with pytest.raises(InputError, match="found a table; expected logs alone"):
        load_side(f"{first},{table(tmp_path, 'tok_per_s', '50')}")


def test_a_log_without_an_unflagged_window_says_why(tmp_path: Path) -> None:
    path = tmp_path / "a.log"
    prefill = "[2026-01-01 00:00:01 TP0] Prefill batch, #new-seq: 1, #new-token: 9, #running-req: 1"
    path.write_text("".join(f"{prefill}\n{LINE.format(2 + i, 1000 + i)}" for i in range(3)))
    with pytest.raises(InputError, match=r"alone among \d+ \(.*prefill inside \d.*\); expected"):
        load_side(str(path))
