"""``analysis reconcile`` on the account: commit over step against what was observed."""

import pytest

AXES = ("prompt_axis", "mean_axis", "growing")


@pytest.fixture
def found(analysis) -> dict:
    return analysis("reconcile", "kimi-k26-sglang", "--json").json


def test_the_accounts_product_is_29_and_not_the_32_that_were_observed(found) -> None:
    assert (found["observed_tok_per_s"], found["account_tok_per_s"]) == (32.0, 29.0)


# 2.9 tokens over the step of the sweep's line at 3500 tokens; growing: at 3500 + 1500 / 2. The
# lines, worked out apart from this code: 32.3576 + 0.0201504 p on the prompt axis, 26.3124 ms +
# the same slope on the mean axis.
@pytest.mark.parametrize(
    ("axis", "printed", "step_ms"),
    [
        ("prompt_axis", 28.2, 32.3576 + 0.0201504 * 3500),
        ("mean_axis", 29.9, 26.3124 + 0.0201504 * 3500),
        ("growing", 25.9, 26.3124 + 0.0201504 * (3500 + 1500 / 2)),
    ],
)
def test_each_axis_predicts_its_own_throughput(found, axis, printed, step_ms) -> None:
    prediction = found[axis]
    assert round(prediction["predicted_tok_per_s"], 1) == printed
    assert prediction["predicted_tok_per_s"] == pytest.approx(2900 / step_ms, rel=1e-5)
    assert prediction["commit_for_observed"] == pytest.approx(32 * step_ms / 1000, rel=1e-5)
    assert prediction["context_tokens"] == 3500


@pytest.mark.parametrize("axis", AXES)
def test_an_interval_holds_its_prediction_and_says_that_the_commit_is_fixed(found, axis) -> None:
    low, high = found[axis]["prediction_interval95"]
    assert low < found[axis]["predicted_tok_per_s"] < high
    assert found[axis]["interval_includes_commit_uncertainty"] is False


def test_the_context_that_gives_the_observation_does_give_it(found) -> None:
    """32 tok/s at 2.9 tokens a step are 90.625 ms."""
    for axis, intercept in (("prompt_axis", 32.3576), ("mean_axis", 26.3124)):
        at = found[axis]["context_for_observed"]
        assert intercept + 0.0201504 * at == pytest.approx(90.625, abs=1e-3)
    growing = found["growing"]["context_for_observed"]
    assert growing == pytest.approx(found["mean_axis"]["context_for_observed"] - 750, abs=1e-3)


def test_the_json_keeps_its_keys(found) -> None:
    assert set(found) == {"observed_tok_per_s", "account_tok_per_s", *AXES}
    keys = {
        *("context_tokens", "predicted_tok_per_s", "prediction_interval95"),
        *("commit_for_observed", "context_for_observed", "interval_includes_commit_uncertainty"),
    }
    assert set(found["prompt_axis"]) == set(found["mean_axis"]) == keys
    assert set(found["growing"]) == keys | {"output_tokens"}


def test_people_read_aligned_lines_that_fit(analysis) -> None:
    ended = analysis("reconcile", "kimi-k26-sglang")
    assert (ended.code, ended.err) == (0, "")
    lines = dict(line.split(maxsplit=1) for line in ended.out.splitlines())
    assert lines["account_tok_per_s"] == "29"
    assert lines["prompt_axis.interval_includes_commit_uncertainty"] == "no"
    assert lines["prompt_axis.prediction_interval95"] == "24.9273 to 32.4277"
    assert max(map(len, ended.out.splitlines())) <= 80


def test_a_case_is_found_from_any_folder_and_by_its_path(
    analysis, found, tmp_path, monkeypatch
) -> None:
    from analysis import paths

    monkeypatch.chdir(tmp_path)
    assert analysis("reconcile", "kimi-k26-sglang", "--json").json == found
    path = str(paths.CASES / "kimi-k26-sglang")
    assert analysis("reconcile", path, "--json").json == found


def test_a_case_without_an_observation_says_so(analysis) -> None:
    error = analysis("reconcile", "kimi-k26-vllm").error
    assert "no observation in case.toml" in error
