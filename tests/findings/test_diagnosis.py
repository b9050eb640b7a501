"""What a log says alone: the same as a live measurement, and the same however it is read."""

from pathlib import Path

import numpy as np
import pytest

from analysis import paths
from analysis.findings import log_alone
from analysis.findings.diagnosis import diagnose, fit_steps
from analysis.findings.diagnosis_types import Diagnosis
from analysis.findings.missing import Missing
from analysis.logs import read
from analysis.records.case import load_case
from analysis.records.run import load_run
from analysis.records.windows import COLUMNS, Windows, windows

CASE = "smollm2-llamacpp"
LOGGED = paths.RUNS / "smollm2-logged"


def decode(second: int, token: int, accept: float, step_ms: float, running: int = 1) -> str:
    rate = 1000 * accept * running / step_ms
    return (
        f"[2026-01-01 10:{second // 60:02d}:{second % 60:02d} TP0] Decode batch, #running-req: "
        f"{running}, #token: {token}, token usage: 0.01, accept len: {accept:.2f}, cuda graph: "
        f"True, gen throughput (token/s): {rate:.6f}, #queue-req: 0, \n"
    )


def log(folder: Path, lines: list[str], name: str = "a.log") -> Path:
    path = folder / name
    path.write_text("".join(lines))
    return path


def same_request(n: int, intercept_ms: float, slope_ms: float, accept: float = 2.5) -> list[str]:
    """One request from 1,000 tokens on, a line every 40 steps."""
    tokens = [1000 + round(40 * accept) * i for i in range(n)]
    return [
        decode(i, token, accept, intercept_ms + slope_ms * token) for i, token in enumerate(tokens)
    ]


@pytest.fixture(scope="module")
def alone() -> log_alone.LogAlone:
    found = log_alone.find(load_case(CASE))
    assert not isinstance(found, Missing)
    return found


def test_the_log_alone_gives_the_live_step_and_commit_within_3_percent(
    alone: log_alone.LogAlone,
) -> None:
    """Of every cell of the run whose log it is: seven contexts, and four texts at one of them."""
    assert len(alone.cells) >= 10
    for cell in alone.cells:
        assert abs(cell.step_gap_pct) < 3
        assert abs(cell.commit_gap_pct) < 3
    assert alone.worst_gap_pct < 3


def test_every_request_of_the_run_is_in_its_log(alone: log_alone.LogAlone) -> None:
    """Found by throughput and context; two that are alike to the last digit are left out."""
    counted = [s for s in load_run(LOGGED).samples if not s.flags and s.step_ms is not None]
    assert sum(cell.requests for cell in alone.cells) >= 0.9 * len(counted)


def test_the_median_step_of_the_sweep_is_that_of_the_run() -> None:
    """Without matching requests: the windows at each context of the sweep, by their medians."""
    (batch,) = diagnose([LOGGED / "server.log"]).windows
    samples = [
        s
        for s in load_run(LOGGED).samples
        if s.experiment == "context-sweep" and not s.warmup and s.asked_prompt_tokens != 900
    ]
    contexts = {s.context_tokens for s in samples}
    assert len(contexts) == 6
    for context in contexts:
        live = np.median([s.step_ms for s in samples if s.context_tokens == context and s.step_ms])
        near = np.abs(batch.context_tokens - context) < 1.5
        assert np.median(batch.step_ms[near]) == pytest.approx(live, rel=0.03)


def test_the_fit_finds_the_line_that_the_log_was_made_from(tmp_path: Path) -> None:
    found = diagnose([log(tmp_path, same_request(60, 20.0, 0.01))])
    assert found.fit is not None
    assert found.fit.intercept_ms == pytest.approx(20, rel=1e-3)
    assert found.fit.slope_us_per_token == pytest.approx(10, rel=1e-3)
    assert found.summary.windows_used == found.windows_total == 60


def test_contexts_that_hardly_vary_have_no_line(tmp_path: Path) -> None:
    assert diagnose([log(tmp_path, same_request(3, 20.0, 0.01))]).fit is None


def test_the_line_is_of_one_running_count(tmp_path: Path) -> None:
    """Eight requests at once take longer steps: they do not bend the line of one."""
    many = [decode(100 + i, 8 * (9000 + 100 * i), 2.5, 300.0, 8) for i in range(20)]
    found = diagnose([log(tmp_path, [*same_request(60, 20.0, 0.01), *many])])
    assert found.fit is not None
    assert (found.fit.running, found.fit.n) == (1, 60)


def test_correlated_windows_widen_the_lines_interval() -> None:
    rng = np.random.default_rng(5)
    context = np.linspace(1000, 9000, 200)
    white = rng.normal(size=200)
    red = np.zeros(200)
    for i in range(1, 200):
        red[i] = 0.8 * red[i - 1] + white[i] * 0.6

    def width(noise: np.ndarray) -> float:
        batch = windows(
            "sglang", "a.log", "none", [""], line=list(range(1, 201)), context_tokens=context,
            running=np.ones(200), step_ms=20 + 0.01 * context + noise / np.std(noise),
        )  # fmt: skip
        fit = fit_steps([batch], False)
        assert fit is not None
        assert fit.slope_ci95 is not None
        return fit.slope_ci95[1] - fit.slope_ci95[0]

    assert width(red) > 1.5 * width(white)


def test_the_answer_does_not_depend_on_processes_or_blocks(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = log(tmp_path, same_request(3000, 20.0, 0.001))
    monkeypatch.setattr(read, "WORTH_PROCESSES", 0)
    one, two = diagnose([path], 1), diagnose([path], 2)
    assert summary(one) == summary(two)
    pieces = list(read.read([path], one.seen, 1, None, 5000))
    for column in COLUMNS:
        whole = np.concatenate([getattr(part, column) for part in two.windows])
        parts = np.concatenate([getattr(part, column) for part in pieces])
        assert np.array_equal(whole, parts, equal_nan=True), column


def summary(found: Diagnosis) -> tuple[object, ...]:
    return found.windows_total, found.summary, found.fit, found.verdict, found.seen.lines


def test_medians_that_do_not_multiply_are_told(alone: log_alone.LogAlone) -> None:
    assert "medians each on its own: contexts run from" in alone.verdict


def test_which_of_the_two_moves_throughput_is_told(tmp_path: Path) -> None:
    moving_commit = [decode(i, 1000 + 40 * i, 1.5 + i % 3, 20.0) for i in range(30)]
    moving_step = [decode(i, 1000 + 80 * i, 2.0, 20.0 + 5 * (i % 4)) for i in range(30)]
    details = [
        " ".join(diagnose([log(tmp_path, lines, name)]).details)
        for name, lines in (("c.log", moving_commit), ("s.log", moving_step))
    ]
    assert "it is the commit that moves it" in details[0]
    assert "it is the step that moves it" in details[1]


def test_progress_ends_at_the_size_of_the_files(tmp_path: Path) -> None:
    both = [log(tmp_path, same_request(300, 20.0, 0.01), name) for name in ("a.log", "b.log")]
    told: list[tuple[int, int | None]] = []
    diagnose(both, progress=lambda done, total: told.append((done, total)))
    size = sum(path.stat().st_size for path in both)
    assert told[-1] == (size, size)


def test_a_log_that_grows_meanwhile_is_read_to_where_it_ended(tmp_path: Path) -> None:
    path = log(tmp_path, same_request(300, 20.0, 0.01))

    def grows(batch: Windows) -> None:
        with path.open("a") as stream:
            stream.write(decode(900, 99999, 2.5, 20.0))

    assert diagnose([path], each=grows).windows_total == 300


def test_a_case_without_a_log_has_no_such_chapter() -> None:
    assert isinstance(log_alone.find(load_case("kimi-k26-sglang")), Missing)


def test_a_file_that_is_given_twice_is_read_once(tmp_path: Path) -> None:
    path = log(tmp_path, same_request(30, 20.0, 0.01))
    assert diagnose([path, path]).windows_total == 30


def test_a_plain_server_that_goes_idle_is_still_plain(tmp_path: Path) -> None:
    """vLLM's last lines before it falls silent tell of no token: neither plain nor speculating."""
    form = (
        "INFO 07-20 18:11:{:02d} [loggers.py:271] Engine 000: Avg prompt throughput: 0.0 tokens/s, "
        "Avg generation throughput: {:.1f} tokens/s, Running: {} reqs, Waiting: 0 reqs, GPU KV "
        "cache usage: 1.0%, Prefix cache hit rate: 0.0%\n"
    )
    lines = [form.format(10 * i, 50.0, 1) for i in range(4)]
    lines += [form.format(40, 0.0, 0), form.format(50, 0.0, 0)]
    found = diagnose([log(tmp_path, lines)])
    assert found.summary.windows_used == 4
    assert found.verdict.startswith("50.0 tok/s at one request, without speculation")


def test_what_pays_is_told_of_windows_and_not_of_medians(alone: log_alone.LogAlone) -> None:
    """Median step over median commit would be of no window that there was."""
    throughput = alone.diagnosis.summary.tok_per_s
    assert throughput is not None
    (text,) = [t for t in alone.diagnosis.details if t.startswith("Speculation pays here only")]
    assert f"plain decoding below {throughput.median:.1f} tok/s" in text


def test_ranks_are_correlated_each_with_itself(tmp_path: Path) -> None:
    """Eight ranks that print in turn, each an autoregression: the next line is another rank's."""
    rng = np.random.default_rng(6)
    steps = np.zeros((60, 8))
    for i in range(1, 60):
        steps[i] = 0.97 * steps[i - 1] + rng.normal(size=8) * np.sqrt(1 - 0.97**2)
    lines = [
        decode(i, 1000 + 100 * i, 2.5, 20 * float(np.exp(0.2 * steps[i, rank]))).replace(
            "TP0", f"DP{rank} TP{rank}"
        )
        for i in range(60)
        for rank in range(8)
    ]
    found = diagnose([log(tmp_path, lines)])
    middle = found.summary.step_ms
    assert middle is not None
    assert middle.low is not None
    assert middle.high is not None
    assert middle.low < 20 < middle.high
    assert "on each of 8 ranks" in found.verdict


def test_what_is_missing_is_named(tmp_path: Path) -> None:
    data = paths.ROOT / "tests" / "logs" / "data"
    verdict = diagnose([data / "vllm-project-vllm-35714.txt"]).verdict
    assert verdict.startswith("Throughput 45.9 tok/s")
    assert "step and commit length not told" in verdict


def test_servers_of_several_engines_are_not_pooled_in_silence() -> None:
    data = paths.ROOT / "tests" / "logs" / "data"
    logs = [data / "sgl-project-sglang-6081.log", data / "ggml-org-llama.cpp-24536.log"]
    assert any("2 engines are taken together" in text for text in diagnose(logs).details)
