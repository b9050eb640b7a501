"""``analysis breakeven``: its JSON, its lines for people, and its errors."""

from pathlib import Path

import pytest

DATA = Path(__file__).parents[1] / "findings" / "data"
PLAIN, SPEC = str(DATA / "specforge-339-plain.csv"), str(DATA / "specforge-339-eagle3.csv")
KEYS = {"break_even_commit", "commit", "block", "reachable", "pays", "speedup"}
STEPS = ["--base-step-ms", "37.7", "--spec-step-ms"]


def test_two_findings_of_one_thread(analysis) -> None:
    """vllm#47277: one draft cannot reach break-even; seven can, and do not."""
    one = analysis("breakeven", *STEPS, "98.7", "--commit", "1.75", "--block", "2", "--json").json
    assert set(one) >= KEYS
    assert one["break_even_commit"] == pytest.approx(2.618, abs=0.001)
    assert (one["reachable"], one["pays"]) == (False, False)
    seven = analysis("breakeven", *STEPS, "263", "--commit", "3.21", "--block", "8", "--json").json
    assert seven["break_even_commit"] == pytest.approx(6.976, abs=0.001)
    assert (seven["reachable"], seven["pays"]) == (True, False)
    assert seven["speedup"] == pytest.approx(3.21 * 37.7 / 263)


def test_what_is_not_given_is_null(analysis) -> None:
    found = analysis("breakeven", *STEPS, "98.7", "--json").json
    assert [found[key] for key in ("commit", "block", "reachable", "pays", "speedup")] == [None] * 5
    assert "rows" not in found


def test_two_sources_give_a_row_for_each_condition(analysis) -> None:
    found = analysis("breakeven", "--base", PLAIN, "--spec", SPEC, "--json").json
    assert set(found) >= KEYS | {"rows"}
    assert len(found["rows"]) == 8
    for row in found["rows"]:
        assert (row["reachable"], row["pays"]) == (True, False)
        assert row["speedup"] == pytest.approx(row["commit"] / row["break_even_commit"])


def test_the_top_level_is_the_row_at_the_median_context(analysis) -> None:
    arguments = ["--base", "smollm2-plain", "--spec", "smollm2-ngram", "--block", "8"]
    found = analysis("breakeven", *arguments, "--json").json
    filler = [row for row in found["rows"] if row["label"].endswith("repeated")]
    middle = sorted(filler, key=lambda row: row["context_tokens"])[3]
    assert found["break_even_commit"] == middle["break_even_commit"]
    assert (found["pays"], found["reachable"], found["block"]) == (True, True, 8)
    low, high = found["interval95"]["break_even_commit"]
    assert low < found["break_even_commit"] < high


def test_a_commit_can_be_given_with_two_sources(analysis) -> None:
    arguments = ["--base", PLAIN, "--spec", SPEC, "--commit", "3"]
    found = analysis("breakeven", *arguments, "--json").json
    assert {row["commit"] for row in found["rows"]} == {3}
    assert any("the commit is 3 as given" in note for note in found["notes"])


def test_people_read_the_answer_first_and_aligned_columns(analysis) -> None:
    ended = analysis("breakeven", "--base", PLAIN, "--spec", SPEC)
    assert (ended.code, ended.err) == (0, "")
    lines = ended.out.splitlines()
    assert lines[0].startswith("Speculation breaks even at a commit length of 2.13 to 4.01")
    head = next(i for i, line in enumerate(lines) if "break-even" in line and "reachable" in line)
    rows = lines[head + 1 : head + 9]
    assert len({len(line) for line in [lines[head], *rows]}) == 1
    assert all(row.endswith("no") for row in rows)


@pytest.mark.parametrize(
    ("arguments", "parts"),
    [
        ([], ["neither steps nor sources", "--base-step-ms and --spec-step-ms"]),
        (["--base-step-ms", "5"], ["found --base-step-ms;", "--base and --spec"]),
        ([*STEPS, "5", "--spec", SPEC], ["--spec-step-ms --spec"]),
        ([*STEPS, "0"], ["--spec-step-ms", "x>0"]),
        ([*STEPS, "nan"], ["--spec-step-ms", "finite"]),
        ([*STEPS, "5", "--commit", "0.5"], ["--commit", "x>=1"]),
        ([*STEPS, "5", "--commit", "5", "--block", "4"], ["5, more than the block of 4"]),
        (["--base", SPEC, "--spec", SPEC], ["6 series", "--series-base with one of"]),
        (["--base", PLAIN, "--spec", "nowhere.csv"], ["nowhere.csv", "no such file"]),
        (["--base", "smollm2-ngram", "--spec", SPEC], ["commit length of", "plain decoding"]),
        (
            ["--base", "smollm2-plain", "--spec", "smollm2-plain"],
            ["a commit length of 1", "speculative decoding"],
        ),
        (["--base", PLAIN, "--spec", SPEC, "--commit", "inf"], ["--commit", "finite"]),
        (["--base", "smollm2-plain", "--spec", SPEC], ["no plain decoding at"]),
    ],
)
def test_bad_input_is_one_line(analysis, arguments: list[str], parts: list[str]) -> None:
    error = analysis("breakeven", *arguments, "--json").error
    for part in parts:
        assert part in error
