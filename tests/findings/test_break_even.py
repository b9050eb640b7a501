"""What speculation must commit to pay, on published tables and on our own runs."""

from pathlib import Path

import pytest
from tests.invented_run import write_run

from analysis.errors import InputError
from analysis.findings import own_plain
from analysis.findings.break_even import BreakEven, of_numbers, of_sides
from analysis.findings.sides import Side, load_side
from analysis.records.case import load_case

DATA = Path(__file__).parent / "data"


def test_a_reachable_break_even_that_no_row_pays() -> None:
    """SpecForge#339: tok/s of the whole batch, so a step is running x commit / tok/s."""
    found = of_sides(
        load_side(str(DATA / "specforge-339-plain.csv")),
        load_side(str(DATA / "specforge-339-eagle3.csv")),
    )
    assert len(found.rows) == 8
    assert all(row.reachable for row in found.rows)
    assert all(row.pays is False for row in found.rows)
    first = found.rows[0]
    assert (first.running, first.block) == (1, 4)
    assert first.break_even_commit == pytest.approx(222.47 * 1.86 / 159.78)
    assert first.speedup == pytest.approx(159.78 / 222.47)
    four = [row for row in found.rows if row.running == 4]
    assert [row.speedup for row in four] == pytest.approx([447.90 / 566.21, 426.46 / 566.21])


def test_a_break_even_above_the_block_is_another_finding_than_one_that_is_not_met() -> None:
    """vllm#47277: 37.7 ms plain, 98.7 ms at one draft, 263 ms at seven."""
    path = str(DATA / "vllm-47277.csv")
    found = of_sides(load_side(path, "no spec"), load_side(path))
    one, seven = found.rows
    assert (round(one.break_even_commit, 2), one.block, one.reachable) == (2.62, 2, False)
    assert (round(seven.break_even_commit, 2), seven.block, seven.reachable) == (6.98, 8, True)
    assert (one.pays, seven.pays) == (False, False)
    assert "cannot be reached with the block in 1 of 2 rows" in found.sentence
    assert "pays in 0 of 2 rows, does not in 2" in found.sentence


@pytest.fixture(scope="module")
def own() -> BreakEven:
    return of_sides(load_side("smollm2-plain"), load_side("smollm2-ngram"), block=8)


def test_our_own_runs_break_even_where_the_chapter_says(own: BreakEven) -> None:
    """Means on the log scale here and medians there: they lie within 3 % of each other."""
    chapter = own_plain.find(load_case("smollm2-llamacpp"))
    assert not isinstance(chapter, own_plain.Missing)
    filler = [row for row in own.rows if row.text == "repeated"]
    assert len(filler) == len(chapter.main) == 7
    for row, point in zip(filler, chapter.main, strict=True):
        assert row.context_tokens == pytest.approx(point.context_tokens, rel=0.02)
        if point.context_tokens != 996:  # there the acceptance requests count here too
            assert row.break_even_commit == pytest.approx(point.break_even, rel=0.03)
        low, high = row.break_even_interval95
        assert low < point.break_even < high
        assert row.pays is True
    assert filler[0].break_even_commit == pytest.approx(5.2, abs=0.06)
    assert own.main.text == "repeated"
    assert own.main.context_tokens == pytest.approx(2596)


def test_three_places_of_a_text_do_not_decide_on_it(own: BreakEven) -> None:
    """Repeats of one prompt are no new text: the unit is the prompt."""
    others = [row for row in own.rows if row.text != "repeated"]
    assert {row.text for row in others} == {"code", "prose", "question"}
    assert all(row.pays is None and row.speedup_interval95 for row in others)


def test_figures_as_given_have_no_interval() -> None:
    found = of_numbers(14.9, 102.0, 2.9, 16)
    row = found.main
    assert row.break_even_commit == pytest.approx(6.846, abs=0.001)
    assert (row.reachable, row.pays, row.break_even_interval95) == (True, False, None)
    assert row.speedup == pytest.approx(2.9 * 14.9 / 102)
    assert "At 2.90 it does not pay: 0.42 times" in found.sentence


@pytest.mark.parametrize(
    ("commit", "block", "reachable", "pays"),
    [
        (None, None, None, None),
        (None, 4, False, None),
        (None, 5, True, None),
        (4.0, None, None, False),
        (5.1, None, None, None),
        (6.0, 8, True, True),
    ],
)
def test_what_is_not_known_is_not_answered(commit, block, reachable, pays) -> None:
    row = of_numbers(10.0, 50.0, commit, block).main
    assert (row.reachable, row.pays) == (reachable, pays)
    assert (row.speedup is None) == (commit is None)


def test_a_commit_above_the_block_is_refused() -> None:
    with pytest.raises(InputError, match="5, more than the block of 4"):
        of_numbers(10, 20, 5.0, 4)


def sides(folder: Path, base: tuple[int, ...], spec: tuple[int, ...]) -> BreakEven:
    plain = write_run(
        folder / "plain", speculates=False, contexts=base, step_law=lambda c: 10 + 0.002 * c
    )
    drafting = write_run(folder / "spec", contexts=spec, step_law=lambda c: 20 + 0.010 * c)
    return of_sides(load_side(str(plain)), load_side(str(drafting)))


def test_the_plain_line_is_read_between_its_contexts_and_never_beyond(tmp_path: Path) -> None:
    found = sides(tmp_path, (500, 1000, 2000), (700, 1500, 6000))
    contexts = [row.context_tokens for row in found.rows]
    assert contexts == pytest.approx([764, 1564])
    for row in found.rows:
        law = (20 + 0.010 * row.context_tokens) / (10 + 0.002 * row.context_tokens)
        assert row.break_even_commit == pytest.approx(law, rel=0.01)
        assert row.adjustment == "before moved"
    assert any("no plain decoding at 6,064 tokens" in note for note in found.notes)
    assert any("of the plain line there" in note for note in found.notes)


def test_two_plain_contexts_make_no_line(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no plain decoding at 764 tokens"):
        sides(tmp_path, (500, 1000), (700, 800))


def test_the_same_contexts_are_set_beside_each_other(tmp_path: Path) -> None:
    found = sides(tmp_path, (500, 1000), (500, 1000))
    assert [row.adjustment for row in found.rows] == ["same contexts"] * 2
    assert all(row.break_even_interval95 for row in found.rows)


def test_a_batch_that_the_plain_side_lacks_is_left_out(tmp_path: Path) -> None:
    plain, spec = tmp_path / "plain.csv", tmp_path / "spec.csv"
    plain.write_text("running,tok_per_s\n1,100\n")
    spec.write_text("running,tok_per_s,commit_length\n1,120,3\n8,400,3\n")
    found = of_sides(load_side(str(plain)), load_side(str(spec)))
    assert [row.running for row in found.rows] == [1]
    assert found.notes[0] == "left out, since there is no plain decoding at 8 running"


def test_a_speculating_side_without_commit_has_a_break_even_alone(tmp_path: Path) -> None:
    plain, spec = tmp_path / "plain.csv", tmp_path / "spec.csv"
    plain.write_text("step_ms\n10\n")
    spec.write_text("step_ms\n30\n")
    row = of_sides(load_side(str(plain)), load_side(str(spec))).main
    assert row.break_even_commit == pytest.approx(3)
    assert (row.commit, row.speedup, row.pays) == (None, None, None)


def written(folder: Path, plain: str, spec: str) -> tuple[Side, Side]:
    (folder / "plain.csv").write_text(plain)
    (folder / "spec.csv").write_text(spec)
    return load_side(str(folder / "plain.csv")), load_side(str(folder / "spec.csv"))


def test_plain_rows_without_a_context_are_told(tmp_path: Path) -> None:
    both = written(
        tmp_path,
        "context_tokens,step_ms\n1000,10\n,12\n",
        "context_tokens,step_ms,commit_length\n1000,20,3\n",
    )
    assert "plain: 1 of 2 rows tell no context and are left out" in of_sides(*both).notes


def test_a_side_that_does_not_speculate_is_refused(tmp_path: Path) -> None:
    both = written(tmp_path, "step_ms\n10\n", "step_ms,commit_length\n12,1\n")
    with pytest.raises(InputError, match="a commit length of 1 throughout; expected speculative"):
        of_sides(*both)


def test_drafts_that_are_never_accepted_are_speculation_all_the_same(tmp_path: Path) -> None:
    both = written(tmp_path, "step_ms\n10\n", "step_ms,commit_length,block\n12,1,4\n")
    assert of_sides(*both).main.pays is False


def test_a_commit_that_is_given_takes_the_place_of_the_one_seen(tmp_path: Path) -> None:
    both = written(
        tmp_path,
        "context_tokens,step_ms\n1000,10\n1000,10.2\n4000,20\n4000,20.2\n",
        "context_tokens,step_ms,commit_length\n1000,20,5\n1000,20.3,5.1\n4000,80,5\n4000,81,5.2\n",
    )
    found = of_sides(*both, commit=3.0)
    assert [row.commit for row in found.rows] == [3, 3]
    assert [row.pays for row in found.rows] == [True, False]
    for row in found.rows:
        assert row.speedup == pytest.approx(row.gain.ratio)
        low, high = row.break_even_interval95
        assert row.speedup_interval95 == pytest.approx((3 / high, 3 / low))
    assert "At a commit of 3.00 it pays in 1 of 2 rows" in found.sentence
    assert any("the commit is 3 as given" in note for note in found.notes)
    with pytest.raises(InputError, match="3, more than the block of 2"):
        of_sides(*both, block=2, commit=3.0)
