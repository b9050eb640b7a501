"""A benchmark is one window: what its program printed, and nothing that it did not."""

import json
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from analysis.errors import InputError
from analysis.logs import answers, snapshots
from analysis.logs.benchmarks import looks_like, read
from analysis.records.seen import Seen
from analysis.records.windows import Flag, Note, Windows

DATA = Path(__file__).parent / "data"
FILES = {
    "vllm-bench-serve-ornith.txt": ("vllm", 2),
    "vllm-project-vllm-35714.txt": ("vllm", 1),
    "sgl-cookbook-deepseek-v3.md": ("sglang", 2),
    "sgl-project-sglang-12389.txt": ("sglang", 1),
    "sglang-one-batch-dpa.jsonl": ("sglang", 2),
}


def text_of(name: str) -> str:
    return (DATA / name).read_text()


def table(text: str, seen: Seen | None = None) -> Windows:
    (only,) = read(text, "bench", seen or Seen())
    return only


@pytest.mark.parametrize(("name", "expected"), FILES.items())
def test_each_run_is_a_window(name: str, expected: tuple[str, int]) -> None:
    seen = Seen()
    head = text_of(name).encode()[:65536]
    rows = table(text_of(name), seen)
    assert (rows.engine, len(rows)) == expected
    assert seen.malformed == 0
    assert looks_like(head)
    assert not answers.looks_like(head)
    assert not snapshots.looks_like(head)


def test_vllms_step_is_its_mean_gap_between_chunks() -> None:
    """TPOT times the commit from its counters, judged by the ITL that its client saw itself."""
    rows = table(text_of("vllm-bench-serve-ornith.txt"))
    np.testing.assert_allclose(rows.step_ms, [47.85, 27.98], rtol=5e-4)
    assert list(rows.line) == [2, 42]


def test_vllms_steps_are_tokens_less_requests_and_accepted_drafts_or_its_drafts() -> None:
    seen = Seen()
    rows = table(text_of("vllm-bench-serve-ornith.txt"), seen)
    assert 2560 - 20 - 737 < 1810, "a cut last block: the drafts are more"
    assert list(rows.commit) == [2540 / 1810, 1016 / 661]
    assert list(rows.acceptance_length) == [1 + 737 / 1810, 1 + 359 / 661]
    assert seen.block == 4


def test_a_run_of_one_request_at_a_time_is_decoding_alone_and_others_are_mixed() -> None:
    rows = table(text_of("vllm-bench-serve-ornith.txt"))
    assert list(rows.flags) == [Flag.MIXED, 0]
    assert np.isnan(rows.running[0]), "a peak is no mean"
    assert (rows.running[1], rows.tok_per_s[1]) == (1, 1000 / 18.20)
    assert list(rows.context_tokens) == [256 + 64, 256 + 64]


def test_a_block_without_drafts_tells_no_commit() -> None:
    seen = Seen()
    rows = table(text_of("vllm-project-vllm-35714.txt"), seen)
    assert rows.tok_per_s[0] == 1000 / 21.80
    assert np.isnan([rows.commit[0], rows.step_ms[0], rows.acceptance_length[0]]).all()
    assert "taken for vLLM" in seen.notes[0]


def test_sglangs_accept_length_is_of_the_server_since_its_start() -> None:
    seen = Seen()
    rows = table(text_of("sgl-cookbook-deepseek-v3.md"), seen)
    assert rows.commit[0] == 2.61
    assert rows.step_ms[0] == pytest.approx(25.04 * 2.61)
    assert np.isnan(rows.commit[1])
    assert (rows.running[1], rows.flags[1]) == (87.53, Flag.MIXED)
    assert rows.tok_per_s[1] == pytest.approx(1000 * 87.53 / 214.73)
    assert seen.notes == [
        "accept length of a benchmark: all requests since the server's start, one rank's"
    ]


def test_without_a_time_to_first_token_its_time_per_token_holds_the_prefill() -> None:
    rows = table(text_of("sgl-project-sglang-12389.txt"))
    assert rows.flags[0] == Flag.PREFILL | Flag.MIXED | Flag.NO_RATE
    assert np.isnan([rows.tok_per_s[0], rows.step_ms[0]]).all()


def test_a_batch_of_sglang_has_no_rate_from_first_tokens() -> None:
    rows = table(text_of("sglang-one-batch-dpa.jsonl"))
    assert list(rows.running) == [33, 38]
    np.testing.assert_allclose(rows.tok_per_s, np.array([551.92, 225.45]) * 65535 / 65536)
    assert np.isnan(rows.commit).all(), "an accept length of -1 is none"
    one = json.loads(text_of("sglang-one-batch-dpa.jsonl").splitlines()[0])
    newer = table(json.dumps(one | {"acc_length": 2.5, "steady_state_output_throughput": 500.0}))
    assert (newer.tok_per_s[0], newer.commit[0]) == (500, 2.5)
    assert newer.step_ms[0] == pytest.approx(1000 * 2.5 * 33 / 500)


def test_a_percentile_of_steps_is_a_step_without_a_rate() -> None:
    record = {"batch_size": 4, "steps": 3, "topk": 1, "num_draft_tokens": 4}
    result = {"acc_length": 2.4, "step_time": 0.0125, "speed": 192.0, "completion_tokens": 300.0}
    seen = Seen()
    rows = table(json.dumps(record | result), seen)
    assert (rows.step_ms[0], rows.commit[0], rows.running[0]) == (12.5, 2.4, 4)
    assert rows.flags[0] == Flag.NO_RATE
    assert "20th percentile" in seen.notes[0]


def test_llama_bench_tells_of_plain_steps_where_it_only_generates() -> None:
    pp = {"n_prompt": 512, "n_gen": 0, "n_depth": 0, "avg_ts": 415.23}
    tg = {"n_prompt": 0, "n_gen": 128, "n_depth": 4096, "avg_ts": 25.0}
    seen = Seen()
    rows = table(json.dumps([pp, tg]), seen)
    assert (rows.engine, rows.commit[0], rows.step_ms[0]) == ("llama.cpp", 1, 40)
    assert (rows.context_tokens[0], seen.unparsed) == (4096 + 64, 1)


VLLM_JSON = {
    "backend": "openai",
    "max_concurrency": 1,
    "completed": 8,
    "failed": 0,
    "total_input_tokens": 2048,
    "total_output_tokens": 1024,
    "mean_ttft_ms": 120.92,
    "mean_tpot_ms": 18.2,
    "generated_texts": ["a prompt"],
    "spec_decode_acceptance_length": 1.54,
    "spec_decode_num_drafts": 661,
    "spec_decode_draft_tokens": 1983,
    "spec_decode_accepted_tokens": 359,
    "spec_decode_per_position_acceptance_rates": [0.5068, 0.0348, 0.0015],
}


def test_the_json_of_a_run_says_what_its_block_says() -> None:
    seen = Seen()
    saved, printed = (
        table(json.dumps(VLLM_JSON), seen),
        table(text_of("vllm-bench-serve-ornith.txt")),
    )
    for name in (
        "context_tokens",
        "running",
        "tok_per_s",
        "commit",
        "acceptance_length",
        "step_ms",
    ):
        assert getattr(saved, name)[0] == getattr(printed, name)[1]
    assert (seen.block, seen.examples) == (4, [])


def test_steps_that_drafted_nothing_lower_the_commit_and_are_noted() -> None:
    rows = table(json.dumps(VLLM_JSON | {"spec_decode_num_drafts": 300}))
    assert rows.notes[0] == Note.STEPS_WITHOUT_DRAFT
    assert (rows.commit[0], rows.acceptance_length[0]) == (1016 / 657, 1 + 359 / 300)


def test_drafts_of_failed_requests_leave_the_commit_open() -> None:
    rows = table(json.dumps(VLLM_JSON | {"failed": 1}))
    assert np.isnan([rows.commit[0], rows.step_ms[0]]).all()
    assert rows.acceptance_length[0] == 1 + 359 / 661


def test_drafts_of_other_clients_leave_the_commit_open() -> None:
    rows = table(json.dumps(VLLM_JSON | {"spec_decode_num_drafts": 5000}))
    assert np.isnan(rows.commit[0])


@pytest.mark.parametrize(
    ("change", "what"),
    [({"completed": 0}, "no count"), ({"mean_tpot_ms": "fast"}, "mean_tpot_ms is no number")],
)
def test_a_run_that_cannot_be_read_is_malformed(change: dict[str, object], what: str) -> None:
    seen = Seen()
    assert read(json.dumps(VLLM_JSON | change), "bench", seen) == []
    assert what in seen.malformed_examples[0]


def test_a_number_that_the_file_ends_within_is_not_taken() -> None:
    text = text_of("vllm-project-vllm-35714.txt")
    cut = text[: text.index("Mean TPOT (ms):                          21.80") + 43]
    assert cut.endswith("21")
    assert np.isnan(table(cut).tok_per_s[0])


def test_broken_json_is_refused_with_its_line() -> None:
    with pytest.raises(InputError, match=r"^bench:1: found .*; expected JSON$"):
        read('{"completed": 1, "total_output_tokens": ', "bench", Seen())


@given(st.sampled_from(list(FILES)), st.data())
def test_a_text_that_was_cut_tells_no_other_numbers(name: str, data: st.DataObject) -> None:
    text = text_of(name)
    if text.startswith("{"):
        return
    cut = text[: data.draw(st.integers(0, len(text)))]
    whole = table(text)
    for rows in read(cut, "bench", Seen()):
        for column in ("tok_per_s", "commit", "context_tokens"):
            got, true = getattr(rows, column), getattr(whole, column)[: len(rows)]
            assert (np.isnan(got) | (got == true)).all(), column
