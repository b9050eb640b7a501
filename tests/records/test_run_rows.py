"""A case's runs as rows of its sweep and of its two-point decode."""

from pathlib import Path

import pytest
from tests.invented_run import write_run

from analysis.errors import InputError
from analysis.records.case import Case, load_case
from analysis.records.run import Run
from analysis.records.run_case import case_toml
from analysis.records.run_rows import sweep_rows, two_point_rows

HEAD = """\
format = 1
title = "An invented server"
summary = "Invented."
source = "made up"
[engine]
name = "llama.cpp"
[references]
runs = [%s]
"""


def write_case(folder: Path, *runs: str) -> Case:
    folder.mkdir(exist_ok=True)
    (folder / "case.toml").write_text(HEAD % ", ".join(f'"{run}"' for run in runs))
    return load_case(str(folder))


@pytest.fixture
def case(tmp_path: Path) -> Case:
    write_run(tmp_path / "spec", step_law=lambda context: 20 + 0.01 * context, noise=0.001)
    write_run(tmp_path / "plain", speculates=False, step_law=lambda c: 12 + 0.004 * c, noise=0.001)
    return write_case(tmp_path / "case", "../spec", "../plain")


def test_a_row_is_a_cell_with_a_measured_step(case: Case) -> None:
    assert [row.series for row in case.sweep] == (
        ["ngram-simple, repeated"] * 4 + ["no speculation, repeated"] * 4
    )
    for row in case.sweep[:4]:
        assert (row.commit_kind, row.step_kind, row.output_tokens) == ("measured", "measured", 128)
        assert row.commit_length == pytest.approx(127 / 32)
        assert row.step_ms == pytest.approx(20 + 0.01 * (row.prompt_tokens + 64), rel=0.003)
        # the client sees half a millisecond more than the engine, over all tokens
        engine_s = 32 * row.step_ms / 1000
        assert row.tok_per_s == pytest.approx(127 / (engine_s + 0.0005), rel=1e-6)
    for row in case.sweep[4:]:
        assert (row.commit_kind, row.commit_length, row.speculation) == ("exact", 1, "none")
        assert row.step_ms == pytest.approx(12 + 0.004 * (row.prompt_tokens + 64), rel=0.003)


def test_the_table_of_the_case_comes_first(case: Case) -> None:
    header = "series,prompt_tokens,output_tokens,tok_per_s,commit_length,commit_kind,source"
    (case.folder / "sweep.csv").write_text(f"{header}\nby hand,100,128,50,2,measured,made up\n")
    rows = Case(case.folder).sweep
    assert [row.series for row in rows[:2]] == ["by hand", "ngram-simple, repeated"]
    assert (rows[0].step_kind, rows[0].step_ms) == ("derived", 40)
    assert len(rows) == 9


def test_a_two_point_row_is_the_slope_of_request_time_over_output(case: Case) -> None:
    rows = case.two_point[:4]
    contexts = [row.context_tokens for row in rows]
    assert contexts == pytest.approx([p + 128 for p in (128, 512, 1024, 2048)])
    for row in rows:
        step = 20 + 0.01 * row.context_tokens
        # 16, 32 and 48 steps of 63, 127 and 191 tokens: exactly 4 tokens a step between them
        assert row.commit_length == pytest.approx(4)
        assert 1000 * row.commit_length / row.tok_per_s == pytest.approx(step, rel=0.01)
        assert 0 < row.standard_error_ms < 0.02 * 1000 / row.tok_per_s
    assert {row.commit_length for row in case.two_point[4:]} == {1}


def test_other_experiments_do_not_stand_in(tmp_path: Path) -> None:
    run = Run(write_run(tmp_path / "run", experiments=["output-length", "acceptance"]))
    assert sweep_rows([run]) == []
    assert two_point_rows([run]) == []


def test_a_cell_without_a_value_is_no_row(tmp_path: Path) -> None:
    def flag(sample: dict) -> dict:
        return sample | ({"flags": ["error"]} if sample["asked_prompt_tokens"] == 512 else {})

    run = Run(write_run(tmp_path / "run", each=flag))
    assert [row.prompt_tokens for row in sweep_rows([run])] == [128, 1024, 2048]
    assert len(two_point_rows([run])) == 3


def test_without_the_engines_time_the_step_is_derived(tmp_path: Path) -> None:
    run = Run(write_run(tmp_path / "run", each=lambda s: s | {"engine_decode_ms": None}))
    row = sweep_rows([run])[0]
    assert row.step_kind == "derived"
    assert row.step_ms == pytest.approx(1000 * row.commit_length / row.tok_per_s)


def test_a_server_that_does_not_tell_its_steps_gives_throughput_alone(tmp_path: Path) -> None:
    unknown = {"steps": None, "steps_source": None, "drafted_tokens": None, "accepted_tokens": None}
    folder = write_run(
        tmp_path / "run",
        server={"speculates": None, "speculation": ""},
        each=lambda sample: sample | unknown,
    )
    row = sweep_rows([Run(folder)])[0]
    assert row.series == "speculation not known, repeated"
    assert row.commit_length is row.commit_kind is row.step_ms is row.step_kind is None
    assert row.tok_per_s > 0


def test_a_series_that_was_measured_before_is_a_repeat(tmp_path: Path) -> None:
    runs = [Run(write_run(tmp_path / name, seed=seed)) for seed, name in enumerate("ab")]
    assert {(row.series, row.repeat) for row in sweep_rows(runs)} == {
        ("ngram-simple, repeated", ""),
        ("ngram-simple, repeated", "b"),
    }


OTHERS = {
    "host": ({}, {"processor": "another one"}, "host '"),
    "engine": ({"kind": "vLLM"}, {}, "engine 'vLLM' in run other"),
    "version": ({"version": "b1"}, {}, "engine version 'b1' in run other"),
    "model": ({"model": "invented-2B"}, {}, "model 'invented-2B' in run other"),
    "model file": ({"model_sha256": "ab12"}, {}, "model file 'ab12' in run other"),
}


@pytest.mark.parametrize(("server", "host", "found"), OTHERS.values(), ids=list(OTHERS))
def test_runs_of_unlike_servers_are_never_pooled(
    tmp_path: Path, server: dict, host: dict, found: str
) -> None:
    write_run(tmp_path / "one")
    write_run(tmp_path / "other", server=server, host=host)
    case = write_case(tmp_path / "case", "../one", "../other")
    with pytest.raises(InputError) as raised:
        case.read_all()
    assert raised.value.place == "case/case.toml, references.runs"
    assert found in raised.value.found
    assert "as in run one, or a case of its own" in raised.value.expected


def test_a_run_that_is_not_there_is_the_fault_of_the_case(tmp_path: Path) -> None:
    case = write_case(tmp_path / "case", "../gone")
    with pytest.raises(InputError, match=r"case/case\.toml, references\.runs: found '\.\./gone'"):
        _ = case.runs


def test_a_fault_in_a_run_is_the_fault_of_the_run(tmp_path: Path) -> None:
    folder = write_run(tmp_path / "run")
    (folder / "plan.jsonl").write_text("{,}\n")
    with pytest.raises(InputError, match=r"^run/plan\.jsonl:1: "):
        _ = write_case(tmp_path / "case", "../run").runs


def test_the_case_of_a_run_says_what_its_manifest_says(tmp_path: Path) -> None:
    run = Run(write_run(tmp_path / "my-run"))
    folder = tmp_path / "made"
    folder.mkdir()
    (folder / "case.toml").write_text(case_toml(run, folder))
    case = load_case(str(folder))
    assert case.facts.engine.name == "llama.cpp"
    assert case.facts.engine.version == "b9999"
    assert case.facts.limits.context_tokens == 8192
    assert case.facts.speculation.method == "ngram-simple"
    assert (case.model, case.gpu) == (None, None)
    assert case.runs[0].folder == run.folder
    assert "my-run" in case.facts.source


def test_the_case_of_an_embedded_run_knows_the_model(tmp_path: Path) -> None:
    server = {"where": "embedded", "model": "SmolLM2-135M-Instruct.Q4_1.gguf"}
    folder = tmp_path / "made"
    folder.mkdir()
    (folder / "case.toml").write_text(
        case_toml(Run(write_run(tmp_path / "run", server=server, speculates=False)), folder)
    )
    case = load_case(str(folder))
    assert case.model.name == "HuggingFaceTB/SmolLM2-135M-Instruct"
    assert case.facts.layout.kv_dtype == "fp16"
    assert case.facts.speculation is None


def test_a_gpu_and_their_number_go_together(tmp_path: Path) -> None:
    write_run(tmp_path / "run")
    case = write_case(tmp_path / "case", "../run")
    path = case.folder / "case.toml"
    path.write_text(path.read_text().replace("[engine]", 'gpu = "H200 SXM"\n[engine]'))
    with pytest.raises(InputError, match="both or neither"):
        load_case(str(case.folder))
