"""What changed between two sides, on published tables, on our own runs and on invented ones."""

from datetime import datetime, timedelta
from pathlib import Path

import numpy as np
import pytest
from tests.invented_run import write_run

from analysis.findings.comparison import Comparison, compare
from analysis.findings.sides import Side, load_side, of_windows
from analysis.model.regression import fit_polynomial
from analysis.records.windows import windows

DATA = Path(__file__).parent / "data"


def published(name: str, before: str, after: str) -> Comparison:
    path = str(DATA / name)
    return compare(load_side(path, before), load_side(path, after))


def test_the_split_that_an_author_made_by_hand() -> None:
    """syv-ai/qwen38-27b-rtx3090 issue 11: 2.13x = 1.98x step time x 1.07 acceptance."""
    found = published("syv-ai-long-context.csv", "KVarN", "fp8")
    assert found.split is not None
    assert found.throughput.ratio == pytest.approx(68.1 / 32.0)
    assert round(found.throughput.ratio, 2) == 2.13
    assert round(found.split.step.ratio, 2) == 1.98
    assert round(found.split.commit.ratio, 3) == 1.076
    assert found.split.commit_share == pytest.approx(0.097, abs=0.001)
    assert found.verdict == "both"
    assert "1.98 times as fast (90 % of the change)" in found.sentence
    assert any("Of the figures as given, no interval" in text for text in found.details)


def test_without_a_commit_there_is_a_ratio_and_no_split() -> None:
    """MTPLX#305 gives tok/s by context alone."""
    found = published("mtplx-305.csv", "8-40k", "40-80k")
    assert (found.split, found.verdict) == (None, "no split")
    assert found.throughput.ratio == pytest.approx(0.667, abs=0.001)
    assert "neither side tells a commit length" in found.sentence
    assert any("is not taken out" in text for text in found.details)
    assert np.isnan(found.before.commit).all()


def test_time_per_token_of_that_table_is_near_linear_in_context() -> None:
    table = [load_side(str(DATA / "mtplx-305.csv"), s) for s in ("8-40k", "40-80k")]
    contexts = np.concatenate([side.context_tokens for side in table])
    token_ms = 1000 / np.concatenate([side.tok_per_s for side in table])
    line = fit_polynomial(contexts.tolist(), token_ms.tolist())
    explained = 1 - line.residual_sum_of_squares / float(np.sum((token_ms - token_ms.mean()) ** 2))
    assert explained > 0.97
    assert 1000 * line.coefficients[1] == pytest.approx(0.78, abs=0.01)


def test_our_own_runs_with_and_without_speculation() -> None:
    """Each repeats its prompts: the filler commits 7.96, and a step is about 5.2 times as long."""
    found = compare(load_side("smollm2-plain"), load_side("smollm2-ngram"))
    assert found.split is not None
    assert found.split.commit.ratio == pytest.approx(191 / 24)
    assert 1 / found.split.step.ratio == pytest.approx(5.4, abs=0.1)
    assert found.split.adjustment == "same contexts"
    assert found.verdict == "both"
    # the chapter's gains: 1.41 to 1.56 times the plain throughput
    low, high = found.throughput.interval95
    assert 1.41 < low < high < 1.56
    assert (found.aligned.n_before, found.aligned.n_after) == (28, 24)
    assert any("only the text that both sides have" in note for note in found.notes)


def runs(folder: Path, **after) -> Comparison:
    one = write_run(folder / "one", noise=0.01, seed=1)
    two = write_run(folder / "two", **({"noise": 0.01, "seed": 2} | after))
    return compare(load_side(str(one)), load_side(str(two)))


@pytest.mark.parametrize(
    ("after", "verdict"),
    [
        ({}, "no difference shown"),
        ({"step_law": lambda c: 16 + 0.008 * c}, "step"),
        ({"commit": 5.0}, "commit"),
        ({"commit": 5.0, "step_law": lambda c: 16 + 0.008 * c}, "both"),
    ],
)
def test_the_verdict_names_what_was_changed(tmp_path: Path, after, verdict) -> None:
    found = runs(tmp_path, **after)
    assert found.verdict == verdict
    assert found.aligned.adjustment == "same contexts"
    if verdict == "no difference shown":
        assert "would have shown a change of" in found.sentence
        assert found.smallest_detectable_pct < 2
    if verdict == "step":
        assert found.split.step.ratio == pytest.approx(1.25, rel=0.01)


def test_other_contexts_are_taken_out_and_that_is_told(tmp_path: Path) -> None:
    found = runs(tmp_path, contexts=(300, 700, 1400, 1900), step_law=lambda c: 16 + 0.008 * c)
    assert found.aligned.adjustment == "common context"
    assert found.split.step.ratio == pytest.approx(1.25, rel=0.02)
    assert any("commit is taken not to depend on context" in text for text in found.details)


def test_a_difference_in_context_that_stays_in_is_told(tmp_path: Path) -> None:
    found = runs(tmp_path, contexts=(6000, 6500))
    assert found.aligned.adjustment == "none"
    assert any("the difference in context is not taken out" in text for text in found.details)


def test_other_texts_are_told(tmp_path: Path) -> None:
    found = runs(tmp_path, texts=("prose",))
    assert any("the texts differ (repeated before, prose after)" in note for note in found.notes)


def log(seed: int, running: list[float], n: int = 60, step: float = 1.0, commit: float = 3) -> Side:
    rng = np.random.default_rng(seed)
    streams = np.resize(np.array(running), n)
    contexts = np.linspace(1000, 5000, n)
    commits = commit * np.exp(0.05 * rng.standard_normal(n))
    steps = step * (20 + 0.002 * contexts) * np.exp(0.02 * rng.standard_normal(n))
    batch = windows(
        "sglang",
        "a.log",
        "date",
        ["TP0"],
        line=list(range(n)),
        context_tokens=contexts,
        running=streams,
        commit=commits,
        step_ms=steps,
        tok_per_s=1000 * streams * commits / steps,
    )
    return of_windows("a.log", [batch])


def test_a_log_of_growing_context_is_compared_at_one_of_them() -> None:
    found = compare(log(1, [1.0]), log(2, [1.0], step=0.8))
    assert (found.verdict, found.aligned.adjustment) == ("step", "common context")
    assert found.split.step.ratio == pytest.approx(1.25, rel=0.02)
    assert found.aligned.at_context == pytest.approx(3000)


def test_windows_at_the_same_batch_are_compared() -> None:
    found = compare(log(1, [1.0, 8.0]), log(2, [8.0], step=0.8))
    assert any("only values at 8 running are compared: 30 of 60 before" in n for n in found.notes)
    assert found.total_ratio is None


def test_another_batch_is_compared_per_stream_and_told() -> None:
    found = compare(log(1, [1.0]), log(2, [4.0], step=1.6))
    assert found.throughput.ratio == pytest.approx(1 / 1.6, rel=0.03)
    assert found.total_ratio == pytest.approx(4 / 1.6, rel=0.03)
    assert any("Running requests differ (1 before, 4 after)" in text for text in found.details)


def sglang_log(path: Path, seed: int, step: float, start: int) -> str:
    """A printed log: one request, 40 forwards a line, a step of 20 ms + 2 us per token."""
    rng, now, context = np.random.default_rng(seed), datetime(2026, 1, 1), start
    lines = [f"[{now} TP0] Prefill batch, #new-seq: 1, #new-token: {start}, #running-req: 0"]
    for _ in range(30):
        commit = 3 * np.exp(0.05 * rng.standard_normal())
        step_ms = step * (20 + 0.002 * context) * np.exp(0.01 * rng.standard_normal())
        now += timedelta(milliseconds=40 * step_ms)
        context += int(40 * commit)
        lines.append(
            f"[{now:%Y-%m-%d %H:%M:%S} TP0] Decode batch, #running-req: 1, #token: {context}, "
            f"token usage: 0.01, accept len: {commit:.2f}, accept rate: 0.67, cuda graph: True, "
            f"gen throughput (token/s): {1000 * commit / step_ms:.2f}, #queue-req: 0"
        )
    path.write_text("\n".join([*lines, ""]))
    return str(path)


def test_two_printed_logs(tmp_path: Path) -> None:
    before = load_side(sglang_log(tmp_path / "before.log", 1, 1.0, 1000))
    after = load_side(sglang_log(tmp_path / "after.log", 2, 0.8, 1500))
    assert (before.kind, before.successive) == ("log", True)
    found = compare(before, after)
    assert (found.verdict, found.aligned.adjustment) == ("step", "common context")
    assert found.split.step.ratio == pytest.approx(1.25, rel=0.02)
    assert any(note.startswith("before: 29 of 30 windows") for note in found.notes)


def test_what_is_not_shown_is_not_called_equal() -> None:
    found = compare(log(1, [1.0]), log(2, [1.0], step=0.8))
    said = next(text for text in found.details if text.startswith("The commit ratio"))
    assert said.endswith("not shown to differ from 1, nor to be 1.")
    for text in found.details:
        assert "equal" not in text


def test_a_throughput_that_changed_is_never_called_unchanged() -> None:
    """Commit and step of one window err together: the throughput is the clearer of the three."""
    noise = np.array([-0.2, -0.1, 0.0, 0.1, 0.2, -0.15, 0.15, 0.05])
    own = 0.01 * np.array([1, -1, 1, -1, -1, 1, 1, -1])
    sides = []
    for commit, step, move in ((3.0, 50.0, noise), (3.15, 47.6, noise[::-1])):
        batch = windows(
            "sglang",
            "a.log",
            "date",
            ["TP0"],
            line=list(range(8)),
            context_tokens=[1000.0] * 8,
            running=[1.0] * 8,
            commit=commit * np.exp(move),
            step_ms=step * np.exp(move + own),
            tok_per_s=1000 * commit / step * np.exp(-own),
        )
        sides.append(of_windows("a.log", [batch]))
    found = compare(*sides)
    assert found.verdict == "no difference shown"
    assert found.throughput.interval95[0] > 1
    assert "no difference is shown" not in found.sentence
    assert found.sentence.startswith("Throughput per stream is 1.10 times")
    assert "Whether by the step or by the commit is not shown" in found.sentence
    assert " % in the step or " in found.sentence
    assert " % in the commit (80 % power at 5 %)." in found.sentence


def test_figures_whose_product_alone_differs_are_told_so(tmp_path: Path) -> None:
    for name, row in (("a", "50,3"), ("b", "54,3.12")):
        (tmp_path / f"{name}.csv").write_text(f"tok_per_s,commit_length\n{row}\n")
    found = compare(*(load_side(str(tmp_path / f"{name}.csv")) for name in "ab"))
    assert found.verdict == "no difference shown"
    assert found.sentence == (
        "Throughput per stream is 1.08 times. Whether by the step or by the commit is not shown: "
        "neither is more than 5 % from 1, and there are no repeats."
    )


def test_windows_too_few_to_show_a_correlation_are_told() -> None:
    few = compare(log(1, [1.0], n=7), log(2, [1.0]))
    assert any(note.startswith("before: fewer than 8 windows") for note in few.notes)
    assert not any(note.startswith("after: fewer") for note in few.notes)


def test_rows_without_a_context_are_told(tmp_path: Path) -> None:
    before, after = tmp_path / "before.csv", tmp_path / "after.csv"
    before.write_text("context_tokens,tok_per_s,commit_length\n1000,50,3\n,60,3\n,61,3\n")
    after.write_text("context_tokens,tok_per_s,commit_length\n1000,80,3\n")
    found = compare(load_side(str(before)), load_side(str(after)))
    assert "before: 2 of 3 rows tell no context and are left out" in found.notes
    assert not any(note.startswith("after: ") for note in found.notes)
