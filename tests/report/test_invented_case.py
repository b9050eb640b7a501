"""Values follow the data: an invented server, whose every figure is worked out in this file.

Its step is 20 ms + 10 us per prompt token exactly, it commits 4 tokens a step, and every request
puts out 100 tokens, so the mean context is 50 tokens above the prompt and the same line reads
19.5 ms + 10 us on that axis.
"""

import csv
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import nbformat
import pytest

from analysis import paths

NAME = "toy-server"
MODEL = {
    "num_hidden_layers": 10,
    "num_attention_heads": 16,
    "num_key_value_heads": 4,
    "head_dim": 64,
    "hidden_size": 1024,
    "max_position_embeddings": 65536,
    "torch_dtype": "bfloat16",
}
HEAD = """\
format = 1
title = "A server that never was"
summary = "An invented server."
source = "made up"
model = "model.json"
gpu = "RTX PRO 6000 Blackwell Server"
[engine]
name = "Toy"
[layout]
gpus = 2
tp = 2
kv_dtype = "bf16"
"""
REST = """\
pool_tokens = 40000
free_gb_per_gpu = 0.25
[limits]
context_tokens = 30000
wished_context_tokens = 50000
[speculation]
method = "guessing"
verified_tokens = [5, 7]
[observation]
tok_per_s = 48.0
commit_length = 3.0
step_ms = 40.0
context_tokens = 3000
growing_output_tokens = 400
baseline_tok_per_s = 150.0
ttft_s = 0.02
[[observation.contexts]]
label = "low"
tokens = 1000
[[observation.contexts]]
label = "high"
tokens = 5000
output_tokens = 1000
[references]
plain = "plain.csv"
"""
# Steps of 25, 32, 40, 50, 80 and 100 ms at these prompts: 4 tokens over them are these tok/s.
SWEEP = {500: 160, 1200: 125, 2000: 100, 3000: 80, 6000: 50, 8000: 40}
TWO_POINT = {1000: 200, 4000: 125}
CLAIMS = [
    "S01,observation,tok/s seen,48,tok/s,stated,,given",
    "S02,reconciliation,3 tokens over 40 ms,75,tok/s,derived,,account-product",
    "S03,reconciliation,exactly the observed,48,tok/s,argued,,product-is-observed",
    "S04,model,implied steps,25/32/40/50/80/100,ms,derived,,sweep-step-times",
    "S05,memory,bytes per token and GPU,5.12,KB/token/GPU,derived,,kv-bytes-per-token",
    "S06,cause,the wind,,,argued,nothing blew,not-testable",
]
PLAIN = [
    "made up,Toy 1,toy,RTX,none,1,1000,100,90,10.0,",
    "made up,Toy 1,toy,RTX,none,1,1000,100,80,,",
    "made up,Other 1,toy,RTX,none,1,1000,100,500,2.0,",
]


def step(context: float, axis: str = "prompt") -> float:
    return (20 if axis == "prompt" else 19.5) + 0.01 * context


def write_case(folder: Path, whole: bool) -> Path:
    folder.mkdir(parents=True)
    rows = [f"toy,guessing,{p},100,{t},4,measured,made up" for p, t in SWEEP.items()]
    header = "series,speculation,prompt_tokens,output_tokens,tok_per_s,commit_length,"
    (folder / "sweep.csv").write_text("\n".join([f"{header}commit_kind,source", *rows, ""]))
    (folder / "model.json").write_text(json.dumps({"model": "toy/Toy-GQA", "facts": MODEL}))
    (folder / "case.toml").write_text(HEAD + (REST if whole else ""))
    if whole:
        points = [f"{context},{tok_per_s},made up" for context, tok_per_s in TWO_POINT.items()]
        (folder / "two_point.csv").write_text(
            "\n".join(["context_tokens,tok_per_s,source", *points])
        )
        header = "id,topic,claim,value,unit,given_in_source,note,check"
        (folder / "claims.csv").write_text("\n".join([header, *CLAIMS, ""]))
        header = "source,system,model,hardware,spec,batch,prompt_tokens,output_tokens,tok_per_s,"
        (folder / "plain.csv").write_text("\n".join([f"{header}tpot_ms,note", *PLAIN, ""]))
    return folder


EXPECTED: dict[str, dict[str, Any]] = {
    "00-summary": {"n": 6, "summary": "1 given, 3 reproduced, 1 contradicted, 1 not testable here"},
    "01-two-point-decode": {
        # tok/s times the sweep's step at that context
        "needed[0]": 200 * step(1000) / 1000,
        "needed[1]": 125 * step(4000) / 1000,
        "needed_mean[0]": 200 * step(1000, "mean") / 1000,
        "sweep_commit_max": 4,
    },
    "02-context-sweep": {
        "first.tok_per_s": 160,
        "last.tok_per_s": 40,
        "first.prompt_tokens": 500,
        "last.prompt_tokens": 8000,
        "first.commit_length": 4,
    },
    "03-step-time-model": {
        "longest_context": 8000,
        "wished_tokens": 50000,
        "far_step_ms": step(50000),
        # a vanished slope leaves the intercept, so it is worth two where the slope has doubled it
        "crossover_prompt": 20 / 0.01,
        "crossover_says": "2,000 tokens of prompt (1,950 of mean context)",
    },
    "04-reconciliation": {
        "account_tok_per_s": 1000 * 3 / 40,
        "observed_tok_per_s": 48,
        "shortfall_pct": 100 * (75 / 48 - 1),
        "prompt_axis.predicted_tok_per_s": 1000 * 3 / step(3000),
        "mean_axis.predicted_tok_per_s": 1000 * 3 / step(3000, "mean"),
        "baseline_step_ms": 1000 * 3 / 150,
        "fastest_tok_per_s": 1000 * 3 / 19.5,
        # low: both axes; high: both axes, growing from 5000 by 1000, growing up to 5000
        "readings": 6,
        "named_range[0]": 1000 * 3 / step(5500, "mean"),
        "named_range[1]": 1000 * 3 / step(1000, "mean"),
        # 48 tok/s need 62.5 ms: at 1000 on both axes, and where 4000 grows to 5000 (64.5) not
        "reached_count": 2,
        # plain: 10 ms stated, and 1000 / 80 where no time per token is stated
        "reconciliation.plain.token_ms": [10, 12.5],
        "reconciliation.plain.tok_per_s": [80, 100],
        "reconciliation.plain.break_even": [step(3000) / 12.5, step(3000) / 10],
        "reconciliation.plain.break_even_mean": [step(3000, "mean") / x for x in (12.5, 10)],
        "reconciliation.plain.step_ms_that_pays": [3 * 10, 3 * 12.5],
        "reconciliation.plain.context_that_pays": [(30 - 19.5) / 0.01, (37.5 - 19.5) / 0.01],
    },
    "05-mla-memory": {
        # 10 layers, 4 / 2 KV heads, key and value of 64, 2 bytes
        "main.bytes_per_token": 10 * 2 * (64 + 64) * 2,
        "main.wished_gb": 5120 * 50000 / 1e9,
        "wished_tokens": 50000,
        "gqa.bytes_per_token": 10 * (8 // 2) * (128 + 128) * 2,
        "mha.bytes_per_token": 10 * (16 // 2) * (128 + 128) * 2,
    },
    "14-context-extension": {
        "wished_tokens": 50000,
        "commit_length": 3,
        "at_wish.beyond": 50000 / 8000,
        "at_wish.line_ms": step(50000),
        "at_wish.line_tok_per_s": 3 * 1000 / step(50000),
        "served": "not known before it is tried",
    },
    # 10 us a token, against 5,120 B at 1.792 TB/s
    "15-roofline": {"main.slope_us": 10, "slope_over_memory": 10 / (5120 / 1.792e6)},
    "16-levers": {"context_tokens": 3000, "commit_length": 3, "axis_words": "mean context"},
}
PROSE = {
    "00-summary": [
        "Why is this server at 48 tok/s and not at 150?",
        "Commit over step does not explain it. A step at 3,000 tokens takes 50 ms and commits "
        "3 tokens: 60.0 tok/s",
        "Of 6 claims: 1 given, 3 reproduced, 1 contradicted, 1 not testable here.",
    ],
    "01-two-point-decode": ["need 6.0 to 7.5 committed tokens per step", "at 2 of 2 contexts"],
    "02-context-sweep": ["commit length is 4 at 500 prompt tokens and 4 at 8,000"],
    "03-step-time-model": ["20.0 ms + 10 (10 to 10) us per token, n = 6"],
    "04-reconciliation": [
        "over the stated step is 75.0 tok/s, against 48 observed",
        "predicts 60.0 (prompt axis) or 60.6 (mean axis) at 3,000 tokens",
        "published at 80 to 100 tok/s",
        "speculation does not pay at 3 tokens per step, since break-even is 4.0 to 5.0",
    ],
    "05-mla-memory": [
        "GQA heads shared out (TP) costs 5,120 B",
        "50,000 tokens take 0.26 GB",
        "50,000 tokens do not fit in the pool of 40,000 as it is.",
        "0.05 GiB more than the pool has on each GPU",
        "enough if read after the pool was allocated, and not enough if read before (0.26 GB)",
    ],
    "14-context-extension": ["do not fit in the pool as it is", "520 ms a step", "5.8 tok/s"],
    "15-roofline": [
        "adds 10 (10 to 10, 95 % confidence) us to a step",
        # 467.8 TFLOP/s over 1.792 TB/s, and 4 query heads on each KV head in bf16
        "from 66 tokens a step on. A step here computes 5 to 7, so memory sets it",
        "has 8 of them on each GPU",
    ],
    "16-levers": [
        # 49.5 ms over 19.5; plain decoding at 80 to 100 tok/s against 3 tokens in 49.5 ms
        "slope vanishes 2.54 times (2.54 to 2.54); drafter 2 times as good 2.00 times; "
        "speculation off 1.48 times (1.32 to 1.65)",
        "Below 1,950 (1,950 to 1,950) tokens",
        "break-even at 3,000 tokens is a commit of 4.4 (4.0 to 5.0)",
    ],
}


def prose(notebook: Path) -> str:
    cells = nbformat.read(notebook, as_version=4).cells
    outputs = [o for cell in cells if cell.cell_type == "code" for o in cell.outputs]
    return "\n".join(
        o.data["text/markdown"] for o in outputs if "text/markdown" in o.get("data", {})
    )


def table(path: Path) -> list[dict[str, str]]:
    return list(csv.DictReader(path.read_text().splitlines()))


def assert_values(values: dict[str, Any], notebook: str) -> None:
    for name, expected in EXPECTED[notebook].items():
        if isinstance(expected, str):
            assert values[name] == expected, name
        else:
            assert values[name] == pytest.approx(expected, rel=1e-8), name


def assert_figures(figures: Path) -> None:
    """The tables behind the figures hold the invented numbers."""
    sweep = [float(row["step_ms"]) for row in table(figures / "sweep.csv")]
    assert sweep == [25, 32, 40, 50, 80, 100]
    needed = [float(row["needed_prompt"]) for row in table(figures / "needed-commit.csv")]
    assert needed == pytest.approx([6.0, 7.5], rel=1e-8)
    forest = table(figures / "reconciliation.csv")
    assert {row["observed_tok_per_s"] for row in forest} == {"48.0"}
    assert [float(row["predicted_tok_per_s"]) for row in forest[:2]] == pytest.approx(
        [1000 * 3 / step(1000), 1000 * 3 / step(1000, "mean")], rel=1e-8
    )
    lines = [row for row in table(figures / "step-lines.csv") if row["kind"] == "line"]
    for row in lines:
        at = step(float(row["context_tokens"]), row["axis"])
        assert float(row["step_ms"]) == pytest.approx(at, rel=1e-7)
    assert {row["axis"] for row in lines} == {"prompt", "mean"}
    bytes_ = {row["layout"]: float(row["wished_gb"]) for row in table(figures / "kv-per-gpu.csv")}
    assert bytes_["GQA, 8 KV heads of 128"] == pytest.approx(20480 * 50000 / 1e9)


@pytest.fixture(scope="module")
def project(built, tmp_path_factory: pytest.TempPathFactory) -> Any:
    """A built copy for cases that are not committed."""
    root = tmp_path_factory.mktemp("for-cases") / "project"
    shutil.copytree(built.root, root)
    return type(built)(root)


@pytest.fixture(scope="module")
def reported(project, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """``analysis report --case FOLDER`` on the invented case: the folder with its results."""
    folder = write_case(tmp_path_factory.mktemp("invented") / NAME, whole=True)
    before = project.published()
    ended = project.run("report", "--case", str(folder))
    assert (ended.code, ended.err) == (0, "")
    assert ended.ran == {f"{NAME} {notebook}" for notebook in EXPECTED}
    assert project.published() == before
    return project.root / "build" / "cases" / NAME


BY_HAND = ("03-step-time-model", "04-reconciliation", "05-mla-memory")
RUN = """
import sys, papermill
notebook, result, case = sys.argv[1:]
papermill.execute_notebook(
    notebook, result, parameters={"case": case}, kernel_name="python3", progress_bar=False
)
"""


@pytest.fixture(scope="module")
def by_hand(built, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Notebooks run by hand with Papermill; in this folder each has one with its results."""
    folder = tmp_path_factory.mktemp("by-hand")
    case = write_case(folder / NAME, whole=True)
    runs = []
    for name in BY_HAND:
        stage = folder / name
        stage.mkdir()
        environment = {paths.STAGE_VARIABLE: str(stage), "PYTHONPATH": str(paths.SOURCE)}
        notebook = paths.NOTEBOOKS / f"{name}.ipynb"
        arguments = [str(notebook), str(stage / "done.ipynb"), str(case)]
        runs.append(
            subprocess.Popen(
                [sys.executable, "-c", RUN, *arguments],
                env=os.environ | environment,
                cwd=folder,
                stderr=subprocess.PIPE,
                text=True,
            )
        )
    for run in runs:
        _, err = run.communicate(timeout=120)
        assert run.returncode == 0, err
    return folder


@pytest.mark.parametrize("notebook", EXPECTED)
def test_reported_values_equal_those_worked_out_from_the_invented_inputs(
    reported: Path, notebook: str
) -> None:
    values = json.loads((reported / "figures" / "values.json").read_text())
    assert list(values) == [NAME]
    assert_values(values[NAME][notebook], notebook)


@pytest.mark.parametrize("notebook", PROSE)
def test_reported_prose_says_the_invented_numbers(reported: Path, notebook: str) -> None:
    said = prose(reported / "notebooks" / NAME / f"{notebook}.ipynb")
    for words in PROSE[notebook]:
        assert words in said


def test_reported_figures_hold_the_invented_numbers(reported: Path) -> None:
    assert_figures(reported / "figures" / NAME)


def test_the_pages_of_an_invented_case_show_it_and_no_machine_path(reported: Path) -> None:
    first = (reported / "report" / "index.html").read_text()
    assert "A server that never was" in first
    assert "Kimi" not in first
    for page in (reported / "report").rglob("*.html"):
        assert str(reported.parents[2]) not in page.read_text()
    assert {path.stem for path in (reported / "report" / NAME).glob("*.html")} == (
        set(EXPECTED) - {"00-summary"}
    )


@pytest.mark.parametrize("notebook", BY_HAND)
def test_a_run_by_hand_gives_the_values_and_says_them(by_hand: Path, notebook: str) -> None:
    values = json.loads((by_hand / notebook / "values.json").read_text())
    assert {name: list(of) for name, of in values.items()} == {NAME: [notebook]}
    assert_values(values[NAME][notebook], notebook)
    said = prose(by_hand / notebook / "done.ipynb")
    for words in PROSE[notebook]:
        assert words in said


def test_a_run_by_hand_and_the_report_draw_the_same_figures(by_hand: Path, reported: Path) -> None:
    drawn = sorted(by_hand.glob(f"*/figures/{NAME}/*.csv"))
    assert {path.stem for path in drawn} >= {"step-lines", "reconciliation", "kv-per-gpu"}
    for path in drawn:
        other = reported / "figures" / NAME / path.name
        assert path.read_bytes() == other.read_bytes()
        hashes = [json.loads(p.with_suffix(".json").read_text())["hash"] for p in (path, other)]
        assert hashes[0] == hashes[1]


def test_a_case_with_nothing_but_a_sweep_says_so_in_sentences_and_nothing_fails(
    project, tmp_path: Path
) -> None:
    folder = write_case(tmp_path / "bare-server", whole=False)
    ended = project.run("report", "--case", str(folder))
    assert (ended.code, ended.err) == (0, "")
    assert len(ended.ran) == len(EXPECTED)
    results = project.root / "build" / "cases" / "bare-server"
    said = {p.stem: prose(p) for p in (results / "notebooks" / "bare-server").glob("*.ipynb")}
    reasons = {
        "00-summary": "This case makes no claims (no claims.csv)",
        "01-two-point-decode": "This case has no two-point decode (no two_point.csv).",
        "02-context-sweep": "This case has no single observed throughput to explain",
        "04-reconciliation": "This case has no single observed throughput to explain",
        "14-context-extension": "This case wishes for no other context limit than its own",
    }
    for notebook, reason in reasons.items():
        assert said[notebook].count(reason) == 1, notebook
    assert "20.0 ms + 10 (10 to 10) us per token, n = 6" in said["03-step-time-model"]
    assert "costs 5,120 B per token and GPU in bf16: 65,536 tokens" in said["05-mla-memory"]
    figures = {path.stem for path in (results / "figures" / "bare-server").glob("*.svg")}
    assert {"sweep", "step-lines", "kv-per-gpu"} <= figures
    assert not figures & {"needed-commit", "reconciliation", "break-even"}
    assert "nan" not in " ".join(said.values()).lower().split()
