"""``analysis fit``: the line and its evidence, as JSON that does not change its shape."""

import csv
from math import sqrt
from pathlib import Path

import pytest
from tests.invented_run import write_run

from analysis import paths

SWEEP = paths.CASES / "kimi-k26-sglang" / "sweep.csv"
T975_2 = 4.302652729911275  # Student's t, 97.5 %, 2 degrees of freedom (printed tables: 4.303)
KEYS = {
    *("intercept_ms", "intercept_ci95", "slope_us_per_token", "slope_ci95", "n", "dof"),
    "linearity",
}


def by_hand(output_tokens: float = 0) -> tuple[float, float, float, float]:
    """Intercept, its half interval, slope and its half interval, by the textbook's sums."""
    rows = list(csv.DictReader(SWEEP.read_text().splitlines()))
    x = [float(row["prompt_tokens"]) + output_tokens / 2 for row in rows]
    y = [1000 * float(row["commit_length"]) / float(row["tok_per_s"]) for row in rows]
    n = len(x)
    middle_x, middle_y = sum(x) / n, sum(y) / n
    sxx = sum((v - middle_x) ** 2 for v in x)
    slope = sum((v - middle_x) * (w - middle_y) for v, w in zip(x, y, strict=True)) / sxx
    intercept = middle_y - slope * middle_x
    rest = sum((w - intercept - slope * v) ** 2 for v, w in zip(x, y, strict=True)) / (n - 2)
    half_slope = T975_2 * sqrt(rest / sxx)
    half_intercept = T975_2 * sqrt(rest * (1 / n + middle_x**2 / sxx))
    return intercept, half_intercept, 1000 * slope, 1000 * half_slope


@pytest.mark.parametrize(
    ("options", "output_tokens"), [(["--x", "prompt_tokens"], 0), ([], 600)], ids=["prompt", "mean"]
)
def test_the_line_and_its_intervals_are_those_of_the_textbook(
    analysis, options: list[str], output_tokens: float
) -> None:
    found = analysis("fit", str(SWEEP), *options, "--json").json
    intercept, half_intercept, slope, half_slope = by_hand(output_tokens)
    assert found["intercept_ms"] == pytest.approx(intercept, rel=1e-8)
    assert found["slope_us_per_token"] == pytest.approx(slope, rel=1e-8)
    ends = [intercept - half_intercept, intercept + half_intercept]
    assert found["intercept_ci95"] == pytest.approx(ends, rel=1e-7)
    assert found["slope_ci95"] == pytest.approx([slope - half_slope, slope + half_slope], rel=1e-7)
    assert (found["n"], found["dof"]) == (4, 2)


def test_the_json_keeps_its_keys_and_the_order_of_an_interval(analysis) -> None:
    found = analysis("fit", str(SWEEP), "--json").json
    assert set(found) >= KEYS
    assert set(found["linearity"]) == {"f", "p", "bend_pct", "bend_ci95", "power"}
    intervals = [found["intercept_ci95"], found["slope_ci95"], found["linearity"]["bend_ci95"]]
    for low, high in intervals:
        assert low < high
    assert found["x"] == "context_tokens"
    # the sweep has neither column, and the result says so
    assert [note.split(" is ")[0] for note in found["derived"]] == ["context_tokens", "step_ms"]


def test_the_evidence_on_straightness_is_that_of_the_nested_f_test(analysis) -> None:
    """F from residual sums of a line and a parabola through four points, by Lagrange."""
    found = analysis("fit", str(SWEEP), "--x", "prompt_tokens", "--json").json["linearity"]
    rows = list(csv.DictReader(SWEEP.read_text().splitlines()))
    x = [float(row["prompt_tokens"]) for row in rows]
    y = [1000 * float(row["commit_length"]) / float(row["tok_per_s"]) for row in rows]
    intercept, _, slope, _ = by_hand()
    line = sum((w - intercept - slope / 1000 * v) ** 2 for v, w in zip(x, y, strict=True))
    # what a parabola leaves of four points is their third divided difference, to scale
    weights = [1 / _product([a - b for b in x if b != a]) for a in x]
    third = sum(w * v for w, v in zip(weights, y, strict=True))
    parabola = third**2 / sum(w**2 for w in weights)
    assert found["f"] == pytest.approx((line - parabola) / parabola, rel=1e-6)
    assert 0 < found["power"] < 0.2


def _product(values: list[float]) -> float:
    result = 1.0
    for value in values:
        result *= value
    return result


def write(folder: Path, *rows: str) -> str:
    path = folder / "table.csv"
    path.write_text("\n".join(["context_tokens,step_ms", *rows, ""]))
    return str(path)


def test_what_two_points_cannot_say_is_null(analysis, tmp_path: Path) -> None:
    found = analysis("fit", write(tmp_path, "0,20", "1000,30"), "--json").json
    assert (found["intercept_ms"], found["slope_us_per_token"]) == pytest.approx((20, 10))
    assert (found["n"], found["dof"]) == (2, 0)
    assert found["intercept_ci95"] is found["slope_ci95"] is found["linearity"] is None


def test_relative_weights_follow_the_short_steps(analysis, tmp_path: Path) -> None:
    table = write(tmp_path, "0,10", "1000,20", "2000,30", "3000,100")
    plain = analysis("fit", table, "--json").json
    weighted = analysis("fit", table, "--weights", "relative", "--json").json
    assert weighted["weights"] == "relative"
    assert 10 < weighted["slope_us_per_token"] < plain["slope_us_per_token"]


def test_people_read_aligned_lines_with_words(analysis, tmp_path: Path) -> None:
    ended = analysis("fit", write(tmp_path, "0,20", "1000,30"))
    lines = dict(line.split(maxsplit=1) for line in ended.out.splitlines() if " " in line.strip())
    assert (ended.code, ended.err) == (0, "")
    assert lines["intercept_ms"] == "20"
    assert lines["slope_ci95"] == "undefined"
    assert max(map(len, ended.out.splitlines())) <= 80


def test_series_are_never_pooled_in_silence(analysis) -> None:
    table = str(paths.CASES / "kimi-k26-vllm" / "sweep.csv")
    error = analysis("fit", table, "--x", "prompt_tokens").error
    assert "--series with one of" in error
    assert "plain DCP1 v3" in error
    found = analysis("fit", table, "--x", "prompt_tokens", "--series", "plain DCP1 v3", "--json")
    assert found.json["n"] >= 5


def test_a_run_is_fitted_over_the_cells_of_its_sweep(analysis, tmp_path: Path) -> None:
    run = write_run(tmp_path / "run", step_law=lambda context: 20 + 0.01 * context, noise=0.0)
    found = analysis("fit", str(run), "--json").json
    assert found["intercept_ms"] == pytest.approx(20)
    assert found["slope_us_per_token"] == pytest.approx(10)
    assert (found["n"], found["x"], found["derived"]) == (4, "context_tokens", [])
    on_prompt = analysis("fit", str(run), "--x", "prompt_tokens", "--json").json
    assert on_prompt["intercept_ms"] == pytest.approx(20 + 0.01 * 64)


def test_the_texts_of_a_run_are_series(analysis, tmp_path: Path) -> None:
    run = str(write_run(tmp_path / "run", texts=("code", "prose"), commit={"code": 3, "prose": 2}))
    error = analysis("fit", run).error
    assert error.endswith("--series with one of: ngram-simple, code; ngram-simple, prose")
    assert analysis("fit", run, "--series", "ngram-simple, code", "--json").json["n"] == 4
    assert "one of ngram-simple, code" in analysis("fit", run, "--series", "poems").error


def test_a_run_without_a_sweep_has_nothing_to_fit(analysis, tmp_path: Path) -> None:
    run = write_run(tmp_path / "run", experiments=["acceptance"])
    assert "no context sweep with a value" in analysis("fit", str(run)).error
    assert "no column colour" in analysis("fit", str(run), "--x", "colour").error
