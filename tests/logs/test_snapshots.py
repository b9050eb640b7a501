"""Two pages of counters are a window of what a server did between them."""

import contextlib
import json
import re
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from analysis.errors import InputError
from analysis.logs.answers import answers
from analysis.logs.snapshots import SINCE_START, looks_like, page, read
from analysis.records.seen import Seen
from analysis.records.windows import Flag, Note, Windows

DATA = Path(__file__).parent / "data"
VLLM = Path(__file__).parents[1] / "engines" / "data" / "vllm-0.32.0"
NGRAM = (DATA / "sglang-0.5.23-metrics-ngram.txt").read_text()
FOUR = 'sglang:num_requests_total{model_name="smol-hf"} 4.0\n'
"""What the capture of SGLang's page lacks: the four requests of ``generate-ngram.json``."""


def vllm(kind: str) -> list[tuple[str, str]]:
    return [(f"{w}.txt", (VLLM / kind / f"{w}.txt").read_text()) for w in ("before", "after")]


def llama(which: str) -> tuple[str, str]:
    return (f"{which}.txt", (DATA / f"llama.cpp-b11549-metrics-{which}.txt").read_text())


def table(texts: list[tuple[str, str]], seen: Seen | None = None) -> Windows:
    (only,) = read(texts, seen or Seen())
    return only


def test_vllms_gaps_between_tokens_are_its_steps() -> None:
    """The request's own answer is the judge: 719.07 ms in the 19 steps that its chunks tell of."""
    rows = table(vllm("per-request"))
    (own,) = answers((VLLM / "per-request" / "stream.txt").read_text(), "stream", Seen())
    assert rows.commit[0] == own.commit == 23 / 19
    assert rows.step_ms[0] == pytest.approx(own.step_ms)
    assert (rows.flags[0], rows.notes[0] & Note.FEW_STEPS) == (0, Note.FEW_STEPS)


def test_vllms_forwards_tell_that_one_request_ran_at_a_time() -> None:
    rows = table(vllm("counters"))
    assert rows.running[0] == 1
    assert rows.tok_per_s[0] == pytest.approx(1000 * rows.commit[0] / rows.step_ms[0])
    before, (name, after) = vllm("counters")
    fewer = re.sub(r"(iteration_tokens_total_count\{.*\}) 60.0", r"\1 59.0", after)
    mixed = table([before, (name, fewer)])
    assert np.isnan([mixed.running[0], mixed.tok_per_s[0]]).all()
    assert mixed.flags[0] == Flag.MIXED
    assert mixed.step_ms[0] == rows.step_ms[0]


def test_vllms_drafts_are_an_acceptance_length_over_fewer_steps() -> None:
    before, after = (
        (name, text + f'vllm:spec_decode_num_drafts_total{{engine="0"}} {drafts}\n')
        for (name, text), drafts in zip(vllm("per-request"), (24, 36), strict=True)
    )
    rows = table([before, after])
    assert rows.acceptance_length[0] == 1 + 9 / 12 == 1.75
    assert rows.notes[0] == Note.STEPS_WITHOUT_DRAFT | Note.FEW_STEPS


def test_vllms_engines_are_apart() -> None:
    pages = [(name, text + text.replace('"0"', '"1"')) for name, text in vllm("counters")]
    rows = table(pages)
    assert rows.sources == ("engine 0", "engine 1")
    assert rows.commit[0] == rows.commit[1] == 23 / 19


def test_vllms_old_engine_counted_otherwise() -> None:
    old = 'vllm:spec_decode_num_emitted_tokens_total{engine="0"} 9\n'
    seen = Seen()
    rows = table([(name, text + old) for name, text in vllm("counters")], seen)
    assert np.isnan([rows.commit[0], rows.step_ms[0]]).all()
    assert "V0" in seen.notes[0]


def test_sglangs_commit_is_its_tokens_without_prefills_over_its_verify_steps() -> None:
    seen = Seen()
    rows = table([("ngram", NGRAM + FOUR)], seen)
    of = json.loads((DATA / "sglang-0.5.23-generate-ngram.json").read_text())
    steps = [one["meta_info"]["spec_verify_ct"] for one in of]
    assert rows.commit[0] == 4 * 95 / sum(steps) == 380 / 124
    assert rows.context_tokens[0] == (13 + 900 + 1663 + 3333) / 4 + 48
    assert (seen.pool_tokens, seen.block, seen.notes[0]) == (16384, 4, SINCE_START)


def test_sglangs_gaps_without_streaming_are_of_later_tokens_so_no_step_follows() -> None:
    rows = table([("ngram", NGRAM + FOUR)])
    assert np.isnan(rows.step_ms[0])
    streamed = NGRAM.replace("latency_seconds_count{", 'latency_seconds_count{x="",').replace(
        " 92.0", " 380.0"
    )
    whole = table([("ngram", streamed + FOUR)])
    assert whole.step_ms[0] == pytest.approx(1000 * 2.1669504130004498 / 124)
    assert np.isnan(whole.running[0]), "four requests may have run at once"


def test_sglang_without_its_count_of_requests_tells_no_commit() -> None:
    seen = Seen()
    rows = table([("ngram", NGRAM)], seen)
    assert np.isnan(rows.commit[0])
    assert rows.flags[0] == Flag.NO_RATE
    assert any("num_requests_total is missing" in note for note in seen.notes)


def test_sglang_without_speculation_commits_one_token_a_step() -> None:
    rows = table([("plain", (DATA / "sglang-0.5.23-metrics-plain.txt").read_text())])
    assert (rows.commit[0], rows.flags[0]) == (1, 0)
    assert rows.step_ms[0] == pytest.approx(1000 * 11.220560196999031 / 184)


def test_llama_cpp_counts_no_requests_so_only_an_acceptance_length_follows() -> None:
    seen = Seen()
    rows = table([llama("before"), llama("after")], seen)
    assert rows.acceptance_length[0] == 1 + 158 / 24
    assert np.isnan([rows.commit[0], rows.step_ms[0], rows.tok_per_s[0]]).all()
    known = answers((DATA / "llama.cpp-b11549-answers.json").read_text(), "answers", Seen())[1:]
    together = int(sum(answer.steps for answer in known)) + len(known)
    assert seen.notes == [f"llama.cpp counts no requests: decode steps and requests are {together}"]


def test_one_page_tells_of_all_since_the_servers_start() -> None:
    seen = Seen()
    alone = table([vllm("counters")[1]], seen)
    assert (alone.commit[0], seen.notes) == (69 / 57, [SINCE_START])
    assert not alone.flags.any()


def test_three_pages_are_two_windows() -> None:
    (start, before), (end, after) = vllm("counters")
    found = read([(start, before), (end, after), ("later", after)], Seen())
    assert [rows.file for rows in found] == [end, "later"]
    assert found[1].flags[0] & Flag.NO_RATE


def test_a_counter_that_went_down_is_refused_by_its_name() -> None:
    before, after = vllm("counters")
    with pytest.raises(InputError) as raised:
        read([after, before], Seen())
    assert raised.value.place == "before.txt"
    assert re.search(
        r"found vllm:\w+ at \d+ after \d+; expected .* in after.txt", str(raised.value)
    )


def test_another_start_of_the_process_is_refused() -> None:
    pages = [
        (name, text + f"process_start_time_seconds {start}\n")
        for (name, text), start in zip(vllm("counters"), (1.7e9, 1.7e9 + 60), strict=True)
    ]
    with pytest.raises(InputError, match="another start of the process"):
        read(pages, Seen())


def test_pages_of_two_engines_are_refused() -> None:
    with pytest.raises(InputError, match=r"found metrics of llama.cpp; expected vLLM"):
        read([vllm("counters")[0], llama("after")], Seen())


def test_a_gauge_may_fall() -> None:
    gauge = "# TYPE vllm:free_slots_total gauge\nvllm:free_slots_total "
    pages = [(n, t + gauge + v) for (n, t), v in zip(vllm("counters"), ("9\n", "2\n"), strict=True)]
    assert table(pages).commit[0] == 23 / 19


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("vllm:a_total 1\nvllm:b_total{x 2\n", "p.txt:2: found no metric"),
        ("vllm:a_total one\n", "p.txt:1: found no metric"),
        ("process_cpu_seconds_total 1\n", "p.txt: found no engine's metrics"),
        ("", "p.txt: found no engine's metrics"),
    ],
)
def test_a_page_that_is_none_is_refused(text: str, message: str) -> None:
    with pytest.raises(InputError) as raised:
        page(text, "p.txt")
    assert str(raised.value).startswith(message)


def test_pages_are_told_from_logs() -> None:
    assert all(looks_like(text.encode()) for _, text in [*vllm("counters"), llama("after")])
    assert looks_like(NGRAM.encode())
    logs = [*DATA.glob("*.log"), *DATA.glob("*.json"), DATA / "README.md"]
    assert not any(looks_like(path.read_bytes()[:65536]) for path in logs)


@given(st.integers(0, 10**9))
def test_what_happened_before_the_first_page_does_not_count(more: int) -> None:
    def later(text: str) -> str:
        return re.sub(
            r"(_total|_count)(\{.*\}) (\S+)", lambda m: f"{m[1]}{m[2]} {float(m[3]) + more}", text
        )

    rows = table([(name, later(text)) for name, text in vllm("counters")])
    assert (rows.commit[0], rows.running[0]) == (23 / 19, 1)


@given(st.integers(0, 1), st.data())
def test_a_page_that_was_cut_is_refused_or_tells_less(which: int, data: st.DataObject) -> None:
    pages = vllm("counters")
    name, text = pages[which]
    pages[which] = (name, text[: data.draw(st.integers(0, len(text)))])
    with contextlib.suppress(InputError):
        rows, whole = table(pages), table(vllm("counters"))
        for column in ("commit", "step_ms", "running", "tok_per_s"):
            got, true = getattr(rows, column)[0], getattr(whole, column)[0]
            assert np.isnan(got) or got == true, column
