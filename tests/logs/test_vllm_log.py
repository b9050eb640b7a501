"""vLLM's lines become windows: figures, flags and sources, whatever stands before them."""

import pickle
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from analysis.logs.scan import Scan
from analysis.logs.vllm import Reader, parse
from analysis.records.seen import CALLER, Seen
from analysis.records.windows import COLUMNS, Flag, Note, Windows

DATA = Path(__file__).parent / "data"
LOGS = sorted(path.name for path in DATA.glob("vllm*.log"))


def read(
    text: str, cuts: list[int] | None = None, seen: Seen | None = None
) -> tuple[Seen, list[Windows]]:
    """Windows of a log; ``cuts`` are lines before which a new block begins."""
    seen, lines = seen or Seen(), text.splitlines(keepends=True)
    reader, found = Reader("a.log", seen), []
    edges = [0, *(cuts or []), len(lines)]
    for begin, end in pairwise(edges):
        parsed = parse(Scan("".join(lines[begin:end]).encode()))
        if parsed is not None:
            found += reader.feed(pickle.loads(pickle.dumps(parsed)), begin + 1)
    return seen, [*found, *reader.finish()]


def rows(text: str, cuts: list[int] | None = None) -> list[tuple[object, ...]]:
    """Every value of every window, with its source by name."""
    found = []
    for part in read(text, cuts)[1]:
        for i in range(len(part)):
            values = [float(getattr(part, name)[i]) for name in COLUMNS if name != "source"]
            found.append((part.sources[part.source[i]], *np.nan_to_num(values, nan=-9.0).tolist()))
    return found


def only(text: str) -> Windows:
    found = read(text)[1]
    assert len(found) == 1
    return found[0]


def log(name: str) -> str:
    return (DATA / name).read_text()


def speed(
    at: str = "07-20 18:11:49",
    generation: float = 43.3,
    running: int = 1,
    prompt: float = 0.0,
    usage: float = 10.1,
    engine: str = "Engine 000: ",
    pid: int = 7,
) -> str:
    return (
        f"(APIServer pid={pid}) INFO {at} [loggers.py:271] {engine}Avg prompt throughput: "
        f"{prompt:.1f} tokens/s, Avg generation throughput: {generation:.1f} tokens/s, "
        f"Running: {running} reqs, Waiting: 0 reqs, GPU KV cache usage: {usage:.1f}%, "
        "Prefix cache hit rate: 0.0%\n"
    )


def drafts(
    at: str = "07-20 18:11:49",
    accepted: int = 282,
    drafted: int = 453,
    length: float = 2.87,
    pid: int = 7,
) -> str:
    return (
        f"(APIServer pid={pid}) INFO {at} [metrics.py:101] SpecDecoding metrics: Mean acceptance "
        f"length: {length:.2f}, Accepted throughput: 9.40 tokens/s, Drafted throughput: 15.10 "
        f"tokens/s, Accepted: {accepted} tokens, Drafted: {drafted} tokens, Per-position "
        "acceptance rate: 0.821, 0.609, 0.437, Avg Draft acceptance rate: 62.3%\n"
    )


def at(seconds: int) -> str:
    return f"07-20 18:{seconds // 60:02d}:{seconds % 60:02d}"


def test_both_engines_of_12521_step_in_66_ms() -> None:
    made = only(log("vllm-project-vllm-ascend-12521.log"))
    assert made.sources == ("pid=95669 engine 002", "pid=95673 engine 004")
    assert made.tok_per_s == pytest.approx([43.3, 45.0])
    assert made.commit == pytest.approx([433 / 151, 450 / 151])  # 453 drafts of 3: 151 steps
    assert made.acceptance_length == pytest.approx([2.87, 2.98])
    assert made.step_ms == pytest.approx([66.225, 66.225], abs=0.001)
    assert made.flags.tolist() == [Flag.PREFILL] * 2  # 0.1 tokens/s of prompt
    assert made.notes.tolist() == [Note.LENGTH_ASSUMED] * 2
    assert made.clock == "month and day"


def test_v0_counts_a_step_for_each_k_drafts() -> None:
    seen, [made] = read(log("vllm-project-vllm-7301.log"))
    assert made.commit == pytest.approx([34244 / 13429])
    assert made.commit[0] == pytest.approx(2.55, abs=0.005)
    assert made.flags.tolist() == [Flag.NO_RATE]
    assert (seen.block, seen.version_hints) == (5, ["vLLM V0"])


def test_the_full_stop_of_v0_ends_its_last_number() -> None:
    whole = log("vllm-project-vllm-7301.log").rstrip("\n")
    assert len(rows(whole + "\0\n")) == 1  # a last line without a newline
    assert rows(whole.rstrip(".") + "\n") == []


def test_the_first_versions_of_v1_give_counts_but_no_length() -> None:
    seen, [made] = read(log("vllm-project-vllm-15902.log"))
    assert np.isnan(made.acceptance_length).all()
    assert np.isnan(made.step_ms).all()
    assert (made.flags & Flag.NO_RATE).all()
    assert seen.version_hints == ["vLLM V1 of 2025-03", "vLLM V1 of 2025-04 to 2025-09"]


def test_the_order_of_2025_09_gives_the_length_and_five_positions() -> None:
    seen, [made] = read(log("vllm-project-vllm-24127.log"))
    assert made.acceptance_length.tolist() == [5.44]
    assert np.isnan(made.commit).all()
    assert made.flags.tolist() == [Flag.NO_RATE]
    assert seen.block == 6


def test_a_batch_of_nine_with_prefill_is_mixed() -> None:
    made = only(log("vllm-project-vllm-43295.log"))
    assert made.flags.tolist() == [Flag.PREFILL | Flag.MIXED] * 3
    assert made.commit[:2] == pytest.approx([9948 / 3716, 9294 / 3412])
    assert made.acceptance_length[:2] == pytest.approx([2.68, 2.72])
    assert made.step_ms[0] == pytest.approx(1000 * made.commit[0] * 9 / 994.8)


def test_every_window_of_our_capture_has_a_prefill_or_is_partly_idle() -> None:
    seen, [made] = read(log("vllm-0.32-ngram.log"))
    assert (made.flags & (Flag.PREFILL | Flag.IDLE) > 0).all()
    assert not made.unflagged.any()
    assert made.acceptance_length[:4] == pytest.approx([1.78, 2.79, 8.0, 8.0])
    assert made.commit[2] == pytest.approx(8.0)  # 15 drafts, 105 accepted
    assert seen.block == 8
    assert (seen.window_s, seen.window_s_assumed) == (10.0, False)


@pytest.mark.parametrize("name", LOGS)
def test_windows_do_not_depend_on_where_blocks_are_cut(name: str) -> None:
    lines = len(log(name).splitlines())
    assert rows(log(name), list(range(1, lines))) == rows(log(name))


LINES = st.one_of(
    st.builds(
        lambda s, g, r, p, e: speed(at(s), g, r, p, engine=f"Engine 00{e}: ", pid=8 + e),
        st.integers(0, 600),
        st.floats(0, 99),
        st.integers(0, 3),
        st.sampled_from([0.0, 0.0, 12.0]),
        st.integers(0, 1),
    ),
    st.builds(
        lambda s, a, e: drafts(at(s), a, pid=8 + e),
        st.integers(0, 600),
        st.integers(0, 400),
        st.integers(0, 1),
    ),
    st.sampled_from(
        [
            'INFO:     127.0.0.1:5 - "POST /v1/completions HTTP/1.1" 200 OK\n',
            "(EngineCore pid=9) INFO 07-20 18:00:00 [kv.py:1] GPU KV cache size: 20,480 tokens\n",
            "Speculative metrics: Draft acceptance rate: 0.6, System efficiency: 0.5, Number of "
            "speculative tokens: 4, Number of accepted tokens: 30, Number of draft tokens: 400, "
            "Number of emitted tokens: 250.\n",
        ]
    ),
)


@given(st.lists(LINES, min_size=1, max_size=90), st.data())
@settings(max_examples=60, deadline=None)
def test_any_log_may_be_cut_anywhere(lines: list[str], data: st.DataObject) -> None:
    text = "".join(lines)
    inside = st.integers(1, max(len(lines) - 1, 1))
    cuts = sorted(data.draw(st.sets(inside, max_size=8)))
    assert rows(text, [cut for cut in cuts if cut < len(lines)]) == rows(text)
    assert rows(text, list(range(1, len(lines)))) == rows(text)


PREFIXES = {
    "journald": "Oct 22 10:27:5{n} host vllm[12]: {line}",
    "docker compose": "vllm-1  | {line}",
    "docker logs -t": "2025-10-22T10:27:5{n}.123456789Z {line}",
    "kubernetes CRI": "2025-10-22T10:27:5{n}.123456789Z stdout F {line}",
    "kubectl --prefix": "[pod/vllm-0/server] {line}",
    "supervisor": "2025-10-22 10:27:5{n},123 DEBG 'vllm' stdout output: {line}",
    "nothing": "{line}",
}


@pytest.mark.parametrize("shape", PREFIXES.values(), ids=PREFIXES)
def test_what_stands_before_a_line_does_not_matter(shape: str) -> None:
    text = log("vllm-project-vllm-43295.log")
    put = "".join(
        shape.format(n=n % 10, line=line) + "\n" for n, line in enumerate(text.splitlines())
    )
    assert [row[1:] for row in rows(put)] == [row[1:] for row in rows(text)]
    assert all(str(row[0]).endswith("pid=5020 engine 000") for row in rows(put))


def test_docker_json_does_not_matter() -> None:
    text = log("vllm-project-vllm-43295.log")
    put = "".join(
        f'{{"log":"{line}\\n","stream":"stdout","time":"2025-10-22T10:27:5{n % 10}.1Z"}}\n'
        for n, line in enumerate(text.splitlines())
    )
    assert rows(put) == rows(text)


def test_two_containers_with_the_same_pid_are_kept_apart() -> None:
    text = ""
    for n in range(4):
        text += f"a-1  | {speed(at(10 * n), pid=1)}b-1  | {speed(at(10 * n), 99.0, pid=1)}"
        text += f"b-1  | {drafts(at(10 * n), 500, pid=1)}a-1  | {drafts(at(10 * n), pid=1)}"
    made = only(text)
    assert made.sources == ("a-1 pid=1 engine 000", "b-1 pid=1 engine 000")
    assert made.commit[made.source == 0] == pytest.approx([433 / 151] * 4)
    assert made.commit[made.source == 1] == pytest.approx([990 / 490] * 4)
    assert made.unflagged.all()


def test_the_length_of_a_window_is_learned_from_the_stamps() -> None:
    text = "".join(speed(at(5 * n), 40.0) + drafts(at(5 * n), 100) for n in range(4))
    seen, [made] = read(text)
    assert (seen.window_s, seen.window_s_assumed) == (5.0, False)
    assert made.commit == pytest.approx([2.0] * 4)  # 200 tokens, 100 of them drafted
    assert made.notes.tolist() == [Note.STEPS_WITHOUT_DRAFT] * 4  # 2.0 is not 2.87


def test_a_line_without_drafts_is_a_plain_step() -> None:
    made = only("".join(speed(at(10 * n), 50.0, running=2) for n in range(3)))
    assert made.commit.tolist() == [1.0] * 3
    assert np.isnan(made.acceptance_length).all()
    assert made.step_ms == pytest.approx([40.0] * 3)
    assert made.unflagged.all()


def test_idle_changed_and_late_windows_are_flagged() -> None:
    made = only(
        speed(at(0), 50.0)
        + speed(at(10), 20.0, running=0)
        + speed(at(20), 0.0, running=0)
        + speed(at(100), 30.0)
        + speed(at(110), 60.0, running=2)
        + speed(at(120), 60.0, running=2)
        + speed(at(140), 60.0, running=2)
        + speed(at(130), 60.0, running=2)
    )
    idle, changed = Flag.IDLE, Flag.RUNNING_CHANGED
    assert made.flags.tolist() == [
        0,
        idle | changed | Flag.NO_RATE,
        idle | Flag.NO_RATE,
        idle | changed,
        changed,
        0,
        idle,
        Flag.CLOCK_BACK,
    ]


def test_time_goes_on_over_new_year() -> None:
    stamps = ["12-31 23:59:40", "12-31 23:59:50", "01-01 00:00:00", "01-01 00:00:10"]
    made = only("".join(speed(stamp) for stamp in stamps))
    assert np.diff(made.time_s).tolist() == [10.0, 10.0, 10.0]
    assert not made.flags.any()


def test_context_is_given_where_pool_and_usage_tell_it_well_enough() -> None:
    pool = "(EngineCore pid=9) INFO 07-20 18:00:00 [kv.py:1] GPU KV cache size: 100,000 tokens\n"
    made = only(
        speed(at(0))
        + pool
        + speed(at(10), running=2, usage=10.0)
        + speed(at(20), running=2, usage=0.4)
        + speed(at(30), running=6, usage=6.0, engine="2 Engines Aggregated: ")
    )
    assert np.isnan(made.context_tokens[[0, 2]]).all()  # no pool yet; 0.4 % is 0.35 to 0.45
    assert made.context_tokens[[1, 3]] == pytest.approx([5000.0, 2000.0])
    assert (made.notes & Note.CONTEXT_FROM_USAGE > 0).tolist() == [False, True, False, True]
    assert made.sources == ("pid=7 engine 000", "pid=7 2 engines")


def test_later_lines_of_v0_are_differences() -> None:
    def line(drafted: int, emitted: int) -> str:
        return (
            "INFO 08-08 10:00:00 metrics.py:390] Speculative metrics: Draft acceptance rate: 0.6, "
            "System efficiency: 0.5, Number of speculative tokens: 4, Number of accepted tokens: "
            f"{drafted}, Number of draft tokens tokens: {drafted}, Number of emitted tokens "
            f"tokens: {emitted}.\n"
        )

    rate = (
        "INFO 08-08 10:00:{} metrics.py:396] Avg prompt throughput: 0.0 tokens/s, Avg generation "
        "throughput: 60.0 tokens/s, Running: 2 reqs, Swapped: 0 reqs, Pending: 0 reqs, GPU KV "
        "cache usage: 1.2%, CPU KV cache usage: 0.0%.\n"
    )
    made = only(
        rate.format("00")
        + line(4000, 2000)
        + rate.format("05")
        + line(4800, 2600).replace("10:00:00", "10:00:05")
    )
    assert made.commit == pytest.approx([2.0, 3.0])  # 600 tokens in 200 steps
    assert np.isnan(made.step_ms[0])  # its counts are of more time than its rate
    assert made.step_ms[1] == pytest.approx(1000 * 3.0 * 2 / 60)
    assert made.flags.tolist() == [Flag.NO_RATE, 0]


def test_a_length_above_the_block_is_flagged() -> None:
    text = "".join(speed(at(10 * n)) + drafts(at(10 * n), length=4.01) for n in range(3))
    assert (only(text).flags & Flag.ABOVE_BLOCK > 0).all()


def test_servers_of_several_blocks_have_none_in_common() -> None:
    three = speed(at(0)) + drafts(at(0)) + speed(at(10)) + drafts(at(10))
    five = three.replace(
        "0.821, 0.609, 0.437", "0.8, 0.7, 0.6, 0.5, 0.4".replace(",", "00,") + "00"
    )
    assert (read(three)[0].block, read(five)[0].block) == (4, 6)
    seen, _ = read(three)
    _, [made] = read(five.replace("length: 2.87", "length: 5.50"), seen=seen)
    assert not (made.flags & Flag.ABOVE_BLOCK).any()
    assert (seen.block, seen.block_from, seen.blocks) == (None, "", [4, 6])
    assert read(three + five)[0].blocks == [4, 6]
    given = Seen(block=5, block_from=CALLER)
    _, [made] = read(five.replace("length: 2.87", "length: 5.50"), seen=given)
    assert (made.flags & Flag.ABOVE_BLOCK > 0).all()
    assert (given.block, given.block_from) == (5, CALLER)


def test_the_pool_of_one_file_is_not_that_of_another() -> None:
    pool = "(EngineCore pid=9) INFO 07-20 18:00:00 [kv.py:1] GPU KV cache size: 100,000 tokens\n"
    seen, [made] = read(pool + speed(at(0)))
    assert made.context_tokens == pytest.approx([10_100.0])
    _, [other] = read(speed(at(0)), seen=seen)
    assert np.isnan(other.context_tokens).all()
    anew = only(pool + speed(at(0)) + pool.replace("100,000", "50,000") + speed(at(10)))
    assert anew.context_tokens == pytest.approx([10_100.0, 5050.0])


@pytest.mark.parametrize(
    "line",
    [
        speed().replace("Running: 1 reqs", "Running: "),
        speed()[:120] + "\n",
        speed()[:-1] + speed(),
        speed()[:-1] + drafts(),
        drafts().replace("Accepted: 282 tokens", "Accepted: 28"),
        drafts().replace("length: 2.87", "length: 2."[:8]),
        drafts()[:-1] + drafts(),
        "Speculative metrics: Draft acceptance rate: 0.6, System efficiency: 0.5, Number of spec",
    ],
)
def test_a_cut_or_doubled_line_is_malformed_and_gives_no_window(line: str) -> None:
    parsed = parse(Scan(line.rstrip("\n").encode() + b"\n"))
    assert parsed is not None
    assert parsed.malformed.tolist() == [0]
    assert parsed.recognised.tolist() == []
    assert rows(line) == []


def test_a_window_whose_drafts_were_cut_is_not_taken_for_a_plain_one() -> None:
    cut = drafts().replace("Accepted: 282 tokens", "Accepted: 28")
    made = only(speed(at(0)) + drafts(at(0)) + speed(at(10)) + cut.replace("18:11:49", "18:00:10"))
    assert made.commit[0] == pytest.approx(433 / 151)
    assert np.isnan(made.commit[1])
    assert made.flags.tolist() == [0, Flag.NO_RATE]


def test_drafts_whose_throughput_was_cut_belong_to_no_other_line() -> None:
    cut = speed(at(1))[:130] + "\n"
    made = only(speed(at(0)) + cut + drafts(at(1)))
    assert made.commit[0] == 1.0
    assert np.isnan(made.commit[1])
    assert made.acceptance_length[1] == 2.87
    assert made.flags.tolist() == [0, Flag.NO_RATE]


def test_what_a_quoted_prompt_says_is_no_report() -> None:
    quoted = speed()[:-1].replace("(APIS", "Received request cmpl-1: prompt: '(APIS") + "'\n"
    assert rows(quoted) == []


def test_the_server_tells_its_version_and_how_much_it_drafts() -> None:
    text = (
        "(APIServer pid=1) INFO 07-20 18:00:00 [api.py:9] vLLM API server version 0.11.0\n"
        "INFO 07-20 18:00:00 [core.py:77] Initializing a V1 LLM engine (v0.11.0) with config: "
        "model='m', speculative_config=SpeculativeConfig(method='ngram', num_spec_tokens=3)\n"
    )
    seen, _ = read(text + speed() + drafts())
    assert "vLLM 0.11.0" in seen.version_hints
    assert (seen.block, seen.block_from) == (4, "the server's configuration")


def test_other_text_is_no_vllm() -> None:
    assert parse(Scan(b"")) is None
    assert (
        parse(Scan(b"[2025-01-01 00:00:00 TP0] Decode batch, #running-req: 1\nmetrics: 3\n"))
        is None
    )
