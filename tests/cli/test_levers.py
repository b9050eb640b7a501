"""``analysis levers``: the promised JSON, what people read, and refusals."""

import json

import pytest


def test_json_is_best_first_with_a_basis_each(analysis) -> None:
    ended = analysis("levers", "kimi-k26-sglang", "--context", "3400", "--axis", "prompt", "--json")
    assert (ended.code, ended.err) == (0, "")
    found = json.loads(ended.out)
    assert (found["context_tokens"], found["axis"]) == (3400, "prompt")
    rows = found["levers"]
    assert {"lever", "gain", "low", "high", "basis"} <= rows[0].keys()
    assert {row["basis"] for row in rows} <= {"measured", "published", "assumed"}
    for one_stream in (True, False):
        gains = [row["gain"] for row in rows if row["for_one_stream"] == one_stream]
        assert gains == sorted(gains, reverse=True)
    assert rows[0]["lever"] == "slope vanishes"


def test_people_read_what_the_bounds_are_and_where_the_ranking_turns(analysis) -> None:
    ended = analysis("levers", "kimi-k26-sglang", "--context", "500")
    assert (ended.code, ended.err) == (0, "")
    assert ended.out.splitlines()[0].startswith("At 500 tokens of mean context and 2.9 tokens")
    assert "1,306" in ended.out
    assert "what the bounds are" in ended.out
    assert max(map(len, ended.out.splitlines())) <= 110


def test_another_commit_makes_a_drafter_worth_less_and_speculation_off_less(analysis) -> None:
    def gains(commit: str) -> dict[str, float]:
        ended = analysis("levers", "kimi-k26-sglang", "--commit", commit, "--json")
        return {row["lever"]: row["gain"] for row in json.loads(ended.out)["levers"]}

    low, high = gains("2.9"), gains("5.8")
    assert high["speculation off"] == pytest.approx(low["speculation off"] / 2)
    assert high["slope vanishes"] == pytest.approx(low["slope vanishes"])


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["no-such-case"], "no-such-case"),
        (["kimi-k26-vllm", "--axis", "mean"], "axis prompt"),
        (["kimi-k26-sglang", "--context", "inf"], "a finite number"),
        (["kimi-k26-sglang", "--context", "-1"], "--context"),
        (["kimi-k26-sglang", "--commit", "0.5"], "--commit"),
        (["kimi-k26-sglang", "--axis", "sideways"], "--axis"),
    ],
)
def test_bad_input_is_one_line_and_exit_code_2(analysis, arguments, says) -> None:
    ended = analysis("levers", *arguments)
    assert ended.code == 2
    assert ended.out == ""
    assert says in ended.err
    assert len(ended.err.strip().splitlines()) == 1
