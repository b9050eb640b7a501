"""llama.cpp's lines become one window a request: steps, commit, context, and what ran beside it."""

import json
import pickle
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from analysis.logs import llama_cpp
from analysis.logs.llama_cpp import Reader, parse
from analysis.logs.scan import Scan
from analysis.model.decode_steps import commit_length
from analysis.records.seen import CALLER, Seen
from analysis.records.windows import COLUMNS, Flag, Note, Windows

DATA = Path(__file__).parent / "data"
RUNS = Path(__file__).parents[2] / "data" / "runs"
LOGS = {
    path.name if path.parent == DATA else path.parent.name: path
    for path in [
        *DATA.glob("*llama.cpp*.log"),
        RUNS / "smollm2-ngram" / "server.log",
        RUNS / "smollm2-plain" / "server.log",
    ]
}


def read(
    text: str, cuts: list[int] | None = None, seen: Seen | None = None
) -> tuple[Seen, list[Windows]]:
    """Windows of a log; ``cuts`` are lines before which a new block begins."""
    seen, lines = seen or Seen(), text.splitlines(keepends=True)
    reader, found = Reader("a.log", seen), []
    for begin, end in pairwise([0, *(cuts or []), len(lines)]):
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
    return LOGS[name].read_text()


def stamp(seconds: float) -> str:
    minutes, rest = divmod(round(seconds * 1e6), 60_000_000)
    return f"{minutes}.{rest // 1_000_000:02d}.{rest // 1000 % 1000:03d}.{rest % 1000:03d}"


def request(
    task: int,
    end: float,
    slot: int = 0,
    prompt_ms: float = 100.0,
    eval_ms: float = 1000.0,
    output: int = 101,
    accepted: int | None = 60,
    drafted: int = 80,
    held: int | None = 300,
) -> list[str]:
    """The lines of a request that ended at a number of seconds, as builds of 2026 print them."""
    head = f"I slot print_timing: id {slot:2d} | task {task} | "
    lines = [
        f"{head}prompt eval time = {prompt_ms:10.2f} ms / {200:5d} tokens (  1.00 ms per token)",
        f"{head}       eval time = {eval_ms:10.2f} ms / {output:5d} tokens (  9.99 ms per token)",
        f"{head}      total time = {prompt_ms + eval_ms:10.2f} ms / {200 + output:5d} tokens",
        f"{head}   graphs reused = {85:10d}",
    ]
    if accepted is not None:
        lines.append(
            f"{head}draft acceptance = {accepted / drafted:0.5f} ({accepted:5d} accepted / "
            f"{drafted:5d} generated), mean len = {1 + accepted / 30:5.2f}"
        )
    if held is not None:
        lines.append(
            f"I slot      release: id {slot:2d} | task {task} | stop processing: n_tokens = {held}"
            ", truncated = 0"
        )
    return [f"{stamp(end)} {line}\n" for line in lines]


def old(
    task: int,
    slot: int = 0,
    output: int = 57,
    accepted: int = 36,
    statistics: tuple[int, int, int, int] | None = None,
) -> list[str]:
    """The lines of a request as builds of 2025 print them; the slot is released first."""
    lines = [
        f"slot      release: id {slot:2d} | task {task} | stop processing: n_past = 100, "
        "truncated = 0",
        f"slot print_timing: id {slot:2d} | task {task} | ",
        "prompt eval time =    8584.47 ms /  3258 tokens (    2.63 ms per token,   379.52 t/s)",
        f"       eval time =    1287.69 ms / {output:5d} tokens (   22.59 ms per token, 44.27 t/s)",
        "      total time =    9872.17 ms /  3315 tokens",
        f"draft acceptance rate = 1.00000 ({accepted:5d} accepted / {accepted:5d} generated)",
    ]
    if statistics is not None:
        begun, count, tokens, good = statistics
        lines.append(
            f"statistics mtp: #calls(b,g,a) = {begun} 20 18, #gen drafts = {count}, #acc drafts = "
            f"{count}, #gen tokens = {tokens}, #acc tokens = {good}, dur(b,g,a) = 0.0, 1.0, 0.0 ms"
        )
    return [line + "\n" for line in lines]


def test_24536_has_one_step_without_a_draft() -> None:
    made = only(log("ggml-org-llama.cpp-24536.log"))
    assert made.acceptance_length.tolist() == [2.92]  # 1 + 167 / 87
    assert made.commit == pytest.approx([255 / 88])
    assert made.commit[0] == pytest.approx(2.90, abs=0.005)
    assert made.step_ms[0] == pytest.approx(26.1, abs=0.05)
    assert made.tok_per_s == pytest.approx([1000 * 255 / 2296.72])
    assert made.context_tokens.tolist() == [20 + 256 / 2]
    assert made.running.tolist() == [1.0]
    assert made.flags.tolist() == [0]
    assert made.notes.tolist() == [Note.STEPS_WITHOUT_DRAFT]
    assert (made.clock, made.sources) == ("since start", ("slot 1",))
    assert made.time_s == pytest.approx([6.895998])


def test_the_prototype_of_am17an_takes_twenty_steps_and_drafts_in_eighteen() -> None:
    made = only(log("am17an-llama.cpp-6.log"))
    assert made.step_ms == pytest.approx([1287.69 / 20])
    assert made.commit == pytest.approx([56 / 20])
    assert made.acceptance_length == pytest.approx([1 + 36 / 18])  # from `statistics`
    assert made.context_tokens.tolist() == [3258 + 57 / 2]
    assert made.flags.tolist() == [0]
    assert made.notes.tolist() == [Note.STEPS_WITHOUT_DRAFT]
    assert made.clock == "none"


def recorded(run: str) -> dict[tuple[int, float], dict[str, object]]:
    """The requests of a run of ours by output tokens and decode time, as its server answered."""
    lines = (RUNS / run / "requests.jsonl").read_text().splitlines()
    records = [json.loads(line) for line in lines]
    return {(r["output_tokens"], round(r["engine_decode_ms"], 2)): r for r in records}


@pytest.mark.parametrize("run", ["smollm2-ngram", "smollm2-plain"])
def test_each_request_of_our_runs_is_as_its_server_answered(run: str) -> None:
    known = recorded(run)
    made, text = only(log(run)), log(run).splitlines()
    compared = 0
    for i in range(len(made)):
        output, ms = text[made.line[i] - 1].partition("eval time = ")[2].split(" ms / ")[::-1]
        tokens = int(output.split()[0])
        if tokens == 1 or np.isnan(made.commit[i]):  # one of these, whose end was left out
            continue
        record = known[tokens, float(ms)]
        steps = record["steps"] if "steps" in record else tokens - 1
        assert made.commit[i] == commit_length(tokens, int(str(steps)))
        assert made.step_ms[i] == pytest.approx(float(ms) / int(str(steps)))
        assert made.running[i] == 1
        assert not made.flags[i]
        if not np.isnan(made.context_tokens[i]):
            assert made.context_tokens[i] == record["prompt_tokens"] + tokens / 2
        compared += 1
    assert compared == (5 if run == "smollm2-ngram" else 8)


def test_a_request_whose_end_was_left_out_is_not_taken_for_a_plain_one() -> None:
    made = only(log("smollm2-ngram"))
    cut = [line for line, flags in zip(made.line, made.flags, strict=True) if flags & Flag.NO_RATE]
    lines = log("smollm2-ngram").splitlines()
    assert [lines[line + 1][:3] for line in cut] == ["0.0", "..."]  # one token; the gap


def test_our_capture_of_b10434_steps_as_counted() -> None:
    made = only(log("llama.cpp-b10434-ngram.log"))
    assert made.commit[:3] == pytest.approx([95 / 66, 95 / 41, 95 / 46])
    assert made.acceptance_length[:3] == pytest.approx([2.38, 5.50, 4.06])
    assert made.step_ms[0] == pytest.approx(2390.65 / 66)
    assert np.isnan(made.context_tokens).all()  # the slot's tokens at the end were left out


@pytest.mark.parametrize("name", LOGS)
def test_windows_do_not_depend_on_where_blocks_are_cut(name: str) -> None:
    lines = len(log(name).splitlines())
    assert rows(log(name), list(range(1, lines))) == rows(log(name))


@given(st.data())
@settings(max_examples=40, deadline=None)
def test_any_log_may_be_cut_anywhere(data: st.DataObject) -> None:
    lines: list[str] = []
    for task in range(data.draw(st.integers(1, 8))):
        slot = data.draw(st.integers(0, 2))
        if data.draw(st.booleans()):
            lines += request(task, 2.0 * task + 5, slot, held=data.draw(st.sampled_from([None, 9])))
        else:
            lines += old(task, slot, statistics=(task + 1, 18 * task + 18, 36, 36))
        if data.draw(st.booleans()):
            lines.append(f"slot launch_slot_: id {slot:2d} | task {task + 1} | processing task\n")
    text = "".join(lines)
    cuts = sorted(data.draw(st.sets(st.integers(1, len(lines) - 1), max_size=8)))
    assert rows(text, cuts) == rows(text)
    assert rows(text, list(range(1, len(lines)))) == rows(text)


def test_long_logs_are_put_together_piece_by_piece(monkeypatch: pytest.MonkeyPatch) -> None:
    text = "".join("".join(request(n, 2.0 * n + 2, n % 3)) for n in range(60))
    whole = rows(text)
    monkeypatch.setattr(llama_cpp, "REQUESTS", 7)
    lines = text.count("\n")
    assert rows(text) == whole
    assert rows(text, list(range(1, lines))) == whole
    assert rows(text, list(range(100, lines, 100))) == whole
    assert [row[1] for row in whole] == [6.0 * n + 2 for n in range(60)]


PREFIXES = {
    "journald": "Oct 22 10:27:5{n} host llama[12]: {line}",
    "docker compose": "llama-1  | {line}",
    "docker logs -t": "2025-10-22T10:27:5{n}.123456789Z {line}",
    "kubernetes CRI": "2025-10-22T10:27:5{n}.123456789Z stdout F {line}",
    "llama.cpp router": "[60713] {line}",
    "supervisor": "2025-10-22 10:27:5{n},123 DEBG 'llama' stdout output: {line}",
}


@pytest.mark.parametrize("shape", PREFIXES.values(), ids=PREFIXES)
@pytest.mark.parametrize("name", ["am17an-llama.cpp-6.log", "smollm2-ngram"])
def test_what_stands_before_a_line_does_not_matter(name: str, shape: str) -> None:
    text = log(name)
    put = "".join(
        shape.format(n=n % 10, line=line) + "\n" for n, line in enumerate(text.splitlines())
    )
    assert [row[1:] for row in rows(put)] == [row[1:] for row in rows(text)]


@pytest.mark.parametrize("name", ["am17an-llama.cpp-6.log", "smollm2-ngram"])
def test_docker_json_does_not_matter(name: str) -> None:
    put = "".join(
        f'{{"log":"{line}\\n","stream":"stderr","time":"2025-10-22T10:27:5{n % 10}.1Z"}}\n'
        for n, line in enumerate(log(name).splitlines())
    )
    assert rows(put) == rows(log(name))


def test_servers_behind_one_router_are_kept_apart() -> None:
    one, two = request(0, 10.0), request(0, 10.0, accepted=80, drafted=90)
    text = "".join(f"[1111] {a}[2222] {b}" for a, b in zip(one, two, strict=True))
    made = only(text)
    assert made.sources == ("[1111] slot 0", "[2222] slot 0")
    assert made.commit == pytest.approx([100 / 40, 100 / 20])
    assert made.running.tolist() == [1.0, 1.0]


def test_requests_that_ran_at_once_are_mixed() -> None:
    text = [*request(1, 10.0, 0), *request(2, 10.4, 1), *request(3, 13.0, 0)]
    text += [*request(4, 13.0, 1), *request(5, 13.0, 2)]
    made = only("".join(text))
    assert made.running.tolist() == [2.0, 2.0, 3.0, 3.0, 3.0]
    assert made.flags.tolist() == [Flag.MIXED] * 5
    assert made.step_ms == pytest.approx([25.0] * 5)


def test_a_cancelled_request_ran_beside_others_too() -> None:
    launch = f"{stamp(9.5)} I slot launch_slot_: id  1 | task 9 | processing task\n"
    release = (
        f"{stamp(9.9)} I slot      release: id  1 | task 9 | stop processing: n_tokens = 7, "
        "truncated = 0\n"
    )
    alone = only("".join(request(1, 10.0)))
    beside = only(launch + release + "".join(request(1, 10.0)))
    assert alone.running.tolist() == [1.0]
    assert beside.running.tolist() == [2.0]


def test_one_after_the_other_in_two_slots_is_not_at_once() -> None:
    made = only("".join([*request(1, 10.0, 0), *request(2, 11.1, 1), *request(3, 12.2, 0)]))
    assert made.running.tolist() == [1.0, 1.0, 1.0]
    assert made.unflagged.all()


def test_a_server_that_was_started_anew_counts_from_zero() -> None:
    made = only("".join([*request(1, 100.0), *request(1, 1.2, accepted=80, drafted=90)]))
    assert made.commit == pytest.approx([100 / 40, 100 / 20])
    assert made.running.tolist() == [1.0, 1.0]


def test_without_stamps_several_slots_tell_overlap_by_their_launches_only() -> None:
    launch = "slot launch_slot_: id {} | task {} | processing task\n"
    unknown = only("".join([*old(1, 0), *old(2, 1)]))
    assert np.isnan(unknown.running).all()
    assert (unknown.flags & Flag.MIXED > 0).all()
    after = only("".join([launch.format(" 0", 1), *old(1, 0), launch.format(" 1", 2), *old(2, 1)]))
    assert after.running.tolist() == [1.0, 1.0]
    beside = only("".join([launch.format(" 0", 1), launch.format(" 1", 2), *old(1, 0), *old(2, 1)]))
    assert (beside.running > 1).all()


def test_statistics_count_since_the_start_and_give_a_length_only_by_difference() -> None:
    text = [*old(1, statistics=(1, 18, 36, 36)), *old(2, statistics=(2, 30, 72, 72))]
    made = only("".join([*text, *old(3, accepted=30, statistics=(9, 90, 300, 200))]))
    assert made.acceptance_length[:2] == pytest.approx([1 + 36 / 18, 1 + 36 / 12])
    assert np.isnan(made.acceptance_length[2])  # 300 - 72 tokens are not the 30 that it drafted


def test_a_request_without_a_line_on_drafts_is_plain() -> None:
    made = only("".join(request(1, 10.0, accepted=None)))
    assert made.commit.tolist() == [1.0]
    assert np.isnan(made.acceptance_length[0])
    assert made.step_ms == pytest.approx([10.0])
    assert made.unflagged.all()


def test_a_commit_above_the_block_of_the_command_line_is_flagged() -> None:
    command = "+ llama-server -m m.gguf -md d.gguf --draft-max 3 --draft-min 1\n"
    seen, [made] = read(command + "".join([*request(1, 10.0, accepted=80, drafted=90)]))
    assert (seen.block, seen.block_from) == (4, "--draft-max")
    assert made.flags.tolist() == [Flag.ABOVE_BLOCK]  # 5 tokens a step


EIGHT = "+ llama-server -m m.gguf -md d.gguf --draft-max 8\n"
THREE = EIGHT.replace("8", "3")


def test_a_server_with_fewer_drafts_has_its_own_block() -> None:
    text = EIGHT + "".join(request(1, 10.0, accepted=80, drafted=90))
    text += THREE + "n_max = 2\n" + "".join(request(1, 2.0, accepted=80, drafted=90))
    seen, [made] = read(text)
    assert made.flags.tolist() == [0, Flag.ABOVE_BLOCK]  # 5 tokens a step
    assert (seen.block, seen.block_from, seen.blocks) == (None, "", [9, 4])
    assert rows(text, list(range(1, text.count("\n")))) == rows(text)


def test_what_one_file_says_does_not_count_for_another() -> None:
    seen, _ = read(THREE + "".join(request(1, 10.0)))
    _, [made] = read("".join(request(1, 10.0, accepted=80, drafted=90)), seen=seen)
    assert made.flags.tolist() == [0]
    assert (seen.block, seen.block_from) == (4, "--draft-max")
    read(EIGHT + "".join(request(1, 10.0)), seen=seen)
    assert (seen.block, seen.blocks) == (None, [4, 9])


def test_a_model_that_a_router_loads_later_takes_no_drafts_from_the_others() -> None:
    one, two = request(0, 10.0, accepted=80, drafted=90), request(1, 20.0, accepted=80, drafted=90)
    begun = "".join(f"[1111] {line}" for line in one) + "[2222] " + request(5, 12.0)[1]
    text = f"[1111] {EIGHT}{begun}[2222] {THREE}" + "".join(f"[1111] {line}" for line in two)
    made = only(text)
    assert not (made.flags & Flag.ABOVE_BLOCK).any()
    assert rows(text, list(range(1, text.count("\n")))) == rows(text)


def test_the_block_that_the_caller_gives_wins() -> None:
    seen = Seen(block=4, block_from=CALLER)
    _, [made] = read(EIGHT + "".join(request(1, 10.0, accepted=80, drafted=90)), seen=seen)
    assert made.flags.tolist() == [Flag.ABOVE_BLOCK]
    assert (seen.block, seen.block_from) == (4, CALLER)


def test_a_shifted_context_is_not_prompt_and_answer() -> None:
    text = "".join(request(1, 10.0)).replace("truncated = 0", "truncated = 1")
    assert np.isnan(only(text).context_tokens).all()


def test_spaces_may_have_been_lost() -> None:
    text = "".join(request(1, 10.0))
    lean = "\n".join(" ".join(line.split()) for line in text.splitlines()) + "\n"
    assert only(lean).commit.tolist() == only(text).commit.tolist()


@pytest.mark.parametrize(
    "line",
    [
        request(1, 10.0)[1][:70] + "\n",
        request(1, 10.0)[1][:90] + "\n",
        request(1, 10.0)[1][:-1] + request(2, 10.0)[1],
        request(1, 10.0)[4][:80] + "\n",
        request(1, 10.0)[5][:-17] + "\n",
    ],
)
def test_a_cut_or_doubled_line_is_malformed_and_gives_no_window(line: str) -> None:
    parsed = parse(Scan(line.encode()))
    assert parsed is not None
    assert parsed.malformed.tolist() == [0]
    assert parsed.recognised.tolist() == []
    assert rows(line) == []


def test_a_request_whose_drafts_were_cut_has_no_commit() -> None:
    whole, cut = request(1, 10.0), request(2, 20.0)
    cut[4] = cut[4][:90] + "\n"
    made = only("".join([*whole, *cut]))
    assert made.commit[0] == pytest.approx(2.5)
    assert np.isnan(made.commit[1])
    assert made.flags.tolist() == [0, Flag.NO_RATE]


def test_a_tool_of_llama_cpp_is_no_server() -> None:
    text = (
        "llama_perf_context_print: prompt eval time =  300.11 ms / 20 tokens (  15.01 ms a token)\n"
        "llama_perf_context_print:        eval time = 2296.72 ms / 255 runs (   9.01 ms a token)\n"
        "llama_perf_context_print:       total time = 2596.83 ms / 276 tokens\n"
    )
    assert rows(text) == []


def test_other_text_is_no_llama_cpp() -> None:
    assert parse(Scan(b"")) is None
    assert parse(Scan(b"progress 3 / 10 done\n")) is None
