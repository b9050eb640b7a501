"""Answers that servers gave become one window each, with steps as the server counted them."""

import contextlib
import json
import math
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from analysis.errors import InputError
from analysis.logs.answers import Answer, answers, looks_like, read
from analysis.records.seen import Seen
from analysis.records.windows import Flag, Note, Windows

DATA = Path(__file__).parent / "data"
VLLM = Path(__file__).parents[1] / "engines" / "data" / "vllm-0.32.0"
FILES = {
    "sglang-0.5.23-generate-ngram.json": 4,
    "sglang-0.5.23-generate-plain.json": 4,
    "sglang-0.5.23-ngram.json": 4,
    "sglang-0.5.23-server-info-ngram.json": 1,
    "ggml-org-llama.cpp-12603.log": 1,
    "llama.cpp-b11549-answers.json": 3,
    "vllm-project-vllm-48915.log": 1,
}


def text_of(name: str) -> str:
    return (DATA / name).read_text()


def found(text: str) -> list[Answer]:
    return answers(text, "answers.json", Seen())


def table(text: str, seen: Seen | None = None) -> Windows:
    (only,) = read(text, "answers.json", seen or Seen())
    return only


@pytest.mark.parametrize(("name", "count"), FILES.items())
def test_each_answer_is_a_window(name: str, count: int) -> None:
    seen = Seen()
    assert looks_like(text_of(name).encode())
    assert len(table(text_of(name), seen)) == count
    assert (seen.unparsed, seen.malformed, len(seen.engines)) == (0, 0, 1)


def test_sglang_counts_its_verify_steps_and_its_accept_length_holds_prefills_token() -> None:
    of = found(text_of("sglang-0.5.23-generate-ngram.json"))
    assert [answer.steps for answer in of] == [51, 25, 24, 24]
    for answer in of:
        assert answer.acceptance_length == answer.output_tokens / answer.steps
        assert answer.commit == 95 / answer.steps
        assert answer.block == 4


def test_sglangs_step_is_the_time_after_its_first_token_over_its_steps() -> None:
    """Its own decode throughput (tokens less one over that time) is the judge."""
    given_by = [
        one["meta_info"] for one in json.loads(text_of("sglang-0.5.23-generate-ngram.json"))
    ]
    rows = table(text_of("sglang-0.5.23-generate-ngram.json"))
    np.testing.assert_allclose(
        rows.tok_per_s, [m["decode_throughput"] for m in given_by], rtol=1e-9
    )
    np.testing.assert_allclose(rows.step_ms, 1000 * rows.commit / rows.tok_per_s)
    assert rows.step_ms[0] == pytest.approx(1000 * (3.6892026 - 0.0933665) / 51, rel=1e-6)
    assert list(rows.context_tokens) == [61, 948, 1711, 3381]
    assert (rows.clock, rows.time_s[0]) == ("date", 1796079382.262454)
    assert not rows.flags.any()


def test_without_speculation_every_token_is_a_step() -> None:
    rows = table(text_of("sglang-0.5.23-generate-plain.json"))
    assert list(rows.commit) == [1, 1, 1, 1]
    assert np.isnan(rows.acceptance_length).all()
    np.testing.assert_allclose(rows.step_ms, 1000 / rows.tok_per_s)


def test_an_older_sglang_tells_no_first_token_so_there_is_no_rate() -> None:
    rows = table(text_of("sglang-0.5.23-ngram.json"))
    assert list(rows.commit) == [95 / 51, 95 / 25, 95 / 24, 95 / 24]
    assert np.isnan(rows.step_ms).all()
    assert (rows.flags == Flag.NO_RATE).all()


def test_sglangs_answers_that_overlap_are_mixed() -> None:
    one, other = json.loads(text_of("sglang-0.5.23-generate-ngram.json"))[:2]
    other["meta_info"]["request_received_ts"] = one["meta_info"]["request_finished_ts"] - 1
    rows = table(json.dumps([one, other]))
    assert (rows.flags == Flag.MIXED).all()


def test_sglangs_server_tells_its_pool_its_block_and_a_commit_without_a_rate() -> None:
    seen = Seen()
    rows = table(text_of("sglang-0.5.23-server-info-ngram.json"), seen)
    assert (seen.pool_tokens, seen.block, seen.version_hints) == (16384, 4, ["SGLang 0.5.23"])
    assert "since the server's start" in seen.notes[0]
    assert (rows.commit[0], rows.flags[0]) == (3.075, Flag.NO_RATE)


def test_llama_cpps_steps_are_its_tokens_less_one_and_the_accepted_drafts() -> None:
    (answer,) = found(text_of("ggml-org-llama.cpp-12603.log"))
    assert (answer.line, answer.steps) == (2, 200 - 1 - 65)
    assert answer.step_ms == 11082.606 / 134
    assert answer.commit == 199 / 134
    assert math.isnan(answer.context_tokens), "without cache_n the prompt is not known"


def test_llama_cpps_cached_tokens_are_context_too() -> None:
    rows = table(text_of("llama.cpp-b11549-answers.json"))
    assert list(rows.context_tokens) == [0 + 17 + 48, 16 + 305 + 48, 320 + 641 + 48]
    assert [answer.steps for answer in found(text_of("llama.cpp-b11549-answers.json"))] == [
        31,
        16,
        16,
    ]
    assert list(rows.notes & Note.FEW_STEPS) == [0, Note.FEW_STEPS, Note.FEW_STEPS]
    assert list(rows.flags) == [0, 0, 0]
    plain = found(text_of("llama.cpp-b11549-answers-plain.json"))
    assert [(a.steps, a.commit, a.drafted_steps) for a in plain] == [(95, 1, 0)] * 3


def test_vllm_counts_drafted_steps_which_are_no_commit_without_the_output() -> None:
    (answer,) = found(text_of("vllm-project-vllm-48915.log"))
    assert (answer.drafted_steps, answer.acceptance_length, answer.block) == (43, 53 / 43, 4)
    assert math.isnan(answer.commit)
    assert math.isnan(answer.step_ms)


def test_a_recorded_stream_of_vllm_is_one_answer_whose_chunks_are_its_steps() -> None:
    """24 tokens and 9 accepted drafts would be 14 steps; its counters and chunks tell of 19."""
    seen = Seen()
    text = (VLLM / "per-request" / "stream.txt").read_text()
    rows = table(text, seen)
    assert [answer.steps for answer in found(text)] == [19]
    assert rows.step_ms[0] == pytest.approx(719.0744469999117 / 19)
    assert (rows.flags[0], rows.notes[0]) == (0, Note.STEPS_WITHOUT_DRAFT | Note.FEW_STEPS)
    assert (seen.version_hints, seen.unparsed) == (["vllm-0.32.0-f7fbbecf"], 0)


def test_vllms_times_alone_are_a_rate_without_a_commit() -> None:
    """The example of mostlygeek/llama-swap#906: a server that reports no speculation."""
    answer = {
        "usage": {"prompt_tokens": 42, "completion_tokens": 128},
        "metrics": {"time_to_first_token_ms": 85.2, "generation_time_ms": 1240.5},
    }
    rows = table(json.dumps({"data": answer}))
    assert rows.tok_per_s[0] == pytest.approx(1000 * 127 / 1240.5)
    assert np.isnan([rows.commit[0], rows.step_ms[0]]).all()
    assert rows.context_tokens[0] == 42 + 64


def test_chunks_of_a_stream_that_goes_on_are_passed_over() -> None:
    timings = {"predicted_n": 40, "predicted_ms": 100.0, "prompt_n": 3, "cache_n": 0}
    meta = {"completion_tokens": 5, "prompt_tokens": 3, "finish_reason": None}
    chunk = {"choices": [{"finish_reason": None}], "timings": timings}
    going_on = [{"stop": False, "timings": timings}, {"meta_info": meta}, chunk]
    assert found("\n".join(f"data: {json.dumps(one)}\n" for one in going_on)) == []
    assert len(found(json.dumps({"stop": True, "timings": timings}))) == 1


def test_engines_in_one_file_are_apart() -> None:
    both = text_of("ggml-org-llama.cpp-12603.log") + text_of("vllm-project-vllm-48915.log")
    assert [w.engine for w in read(both, "both", Seen())] == ["vllm", "llama.cpp"]


@pytest.mark.parametrize(
    ("value", "what"),
    [
        ({"predicted_n": "200", "predicted_ms": 1.0}, "predicted_n is no number"),
        ({"predicted_n": 9, "predicted_ms": 1.0, "draft_n_accepted": 9}, "more accepted drafts"),
        ({"predicted_n": 9, "predicted_ms": -1.0}, "predicted_ms is negative"),
        ({"predicted_n": 9, "predicted_ms": math.inf}, "not finite"),
        ({"completion_tokens": 1, "e2e_latency": 1, "spec_verify_ct": 4}, "without a decoded"),
        (
            {
                "usage": {"completion_tokens": 9},
                "metrics": {"speculative_decoding": {"num_spec_steps": 9}},
            },
            "more drafted steps",
        ),
    ],
)
def test_impossible_counts_are_malformed_and_said_without_values(
    value: dict[str, object], what: str
) -> None:
    seen = Seen()
    assert read(json.dumps(value), "answers.json", seen) == []
    assert seen.malformed == 1
    assert what in seen.malformed_examples[0]


@pytest.mark.parametrize(
    ("text", "place"),
    [
        ('{"predicted_n": 1}\n{"predicted_n": \n', "a.json:3"),
        ('[{"predicted_n": 1},\n', "a.json:2"),
        ("plain words", "a.json:1"),
        ('{"a": 1} ]', "a.json:1"),
        ("[" * 9 + '{"a":' * 100_000, "a.json:1"),
    ],
)
def test_broken_json_is_one_line_with_its_place(text: str, place: str) -> None:
    with pytest.raises(InputError) as raised:
        read(text, "a.json", Seen())
    assert str(raised.value).startswith(f"{place}: found ")
    assert "\n" not in str(raised.value)


@pytest.mark.parametrize(
    "name", ["sglang-0.5.23-ngram.log", "vllm-0.32-ngram.log", "sgl-cookbook-deepseek-v3.md"]
)
def test_logs_and_benchmarks_do_not_look_like_answers(name: str) -> None:
    assert not looks_like(text_of(name).encode()[:65536])


SECRET = st.text(st.characters(min_codepoint=0x4E00, max_codepoint=0x4E80), min_size=6)


@given(SECRET)
def test_what_was_asked_or_answered_is_not_kept(secret: str) -> None:
    values: list[object] = [
        {"prompt": secret, "messages": [{"content": secret}], "n": 1},
        secret,
        {secret: 1},
        {"content": secret, "timings": {"predicted_n": secret, "predicted_ms": 1}},
        {"system_fingerprint": secret, "choices": [{"text": secret}]},
    ]
    seen = Seen()
    read(json.dumps(values, ensure_ascii=False), "a.json", seen)
    assert (seen.unparsed, seen.malformed) == (4, 1)
    assert secret not in repr(seen)


@given(st.data())
def test_a_file_that_was_cut_is_refused_or_tells_less(data: st.DataObject) -> None:
    text = text_of(data.draw(st.sampled_from(list(FILES))))
    cut = text[: data.draw(st.integers(0, len(text)))]
    with contextlib.suppress(InputError):
        assert sum(map(len, read(cut, "a.json", Seen()))) <= len(table(text))


@given(st.integers(2, 5000), st.floats(0, 0.99), st.floats(1e-3, 1e6))
def test_rate_step_and_commit_are_one_identity(tokens: int, share: float, ms: float) -> None:
    accepted = int(share * (tokens - 1))
    timings = {"predicted_n": tokens, "predicted_ms": ms, "draft_n": 10**6}
    rows = table(json.dumps(timings | {"draft_n_accepted": accepted}))
    assert rows.step_ms[0] == pytest.approx(1000 * rows.commit[0] / rows.tok_per_s[0])
    assert rows.commit[0] >= 1
