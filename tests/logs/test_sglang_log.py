"""SGLang's decode lines as windows: right figures, and flags where a line is no decode rate."""

import json
import math
from pathlib import Path

import numpy as np
import pytest

from analysis.logs import sglang
from analysis.logs.scan import Scan
from analysis.logs.sglang_windows import LEARN_FROM, NEW_RATE, OLD_RATE, Reader, rate_meaning
from analysis.records.bins import joined
from analysis.records.seen import CALLER, Seen
from analysis.records.windows import Flag, Note, Windows, flag_names

DATA = Path(__file__).parent / "data"


def read(
    text: bytes, block_lines: int | None = None, seen: Seen | None = None
) -> tuple[Windows, Seen]:
    """All windows of a log, read in blocks of so many lines."""
    seen = seen or Seen()
    reader = Reader("a.log", seen)
    lines = text.splitlines(keepends=True)
    size = block_lines or len(lines)
    found, first = [], 1
    for start in range(0, len(lines), size):
        scan = Scan(b"".join(lines[start : start + size]))
        parsed = sglang.parse(scan)
        if parsed is not None:
            found += reader.feed(parsed, first)
        first += len(scan)
    found += reader.finish()
    return joined(found), seen


def committed(name: str) -> tuple[Windows, Seen]:
    return read((DATA / name).read_bytes())


def names(windows: Windows) -> list[list[str]]:
    return [flag_names(int(mask)) for mask in windows.flags]


def line(time: int, **fields: object) -> bytes:
    given = {"running": 1, "token": 100, "accept": None, "rate": None, "gen": 50.0, "rank": " TP0"}
    given |= fields
    accept = "" if given["accept"] is None else f"accept len: {given['accept']:.2f}, "
    if given["rate"] is not None:
        accept += f"accept rate: {given['rate']:.2f}, "
    return (
        f"[2026-01-01 10:00:{time:02d}{given['rank']}] Decode batch, #running-req: "
        f"{given['running']}, #token: {given['token']}, token usage: 0.01, {accept}"
        f"cuda graph: True, gen throughput (token/s): {given['gen']:.2f}, #queue-req: 0, \n"
    ).encode()


def prefill(time: int, running: int = 0, rank: str = " TP0") -> bytes:
    return (
        f"[2026-01-01 10:00:{time:02d}{rank}] Prefill batch, #new-seq: 1, #new-token: 28, "
        f"#cached-token: 0, token usage: 0.00, #running-req: {running}, #queue-req: 0, \n"
    ).encode()


def server(**given: object) -> bytes:
    """The line on which a server tells its arguments."""
    told = ", ".join(f"{name}={value!r}" for name, value in given.items())
    return f"[2026-01-01 10:00:00] server_args=ServerArgs(model_path='m', {told})\n".encode()


def run(lengths: list[float], steps: int = 40, rates: list[float] | None = None) -> bytes:
    """One request's lines after so many forwards each; ``token`` grows by what they commit."""
    tokens, text = 100.0, b""
    for i, accept in enumerate(lengths):
        tokens += steps * accept
        rate = None if rates is None else rates[i]
        text += line(i % 60, token=round(tokens), accept=accept, rate=rate)
    return text


def test_eagle3_steps_are_steady_and_the_first_line_is_idle_time() -> None:
    """sgl-project/sglang#11948."""
    windows, seen = committed("sgl-project-sglang-11948.log")
    assert names(windows)[0] == ["after idle gap", "prefill inside"]
    clean = windows.rows(windows.unflagged)
    assert len(clean) == 4
    assert clean.step_ms.min() == pytest.approx(10.86, abs=0.006)
    assert clean.step_ms.max() == pytest.approx(10.90, abs=0.006)
    assert (windows.notes == Note.OLD_ACCEPT_RATE).all()
    assert (seen.block, seen.verified_tokens) == (None, 4)
    assert (seen.steps_per_line, seen.steps_per_line_assumed) == (40, False)


def test_the_step_is_equal_on_every_rank_while_the_commit_moves() -> None:
    """sgl-project/sglang#6081: being the first line of its rank is no flag."""
    windows, _ = committed("sgl-project-sglang-6081.log")
    assert names(windows) == [[]] * 5
    assert windows.step_ms.min() >= 135.65
    assert windows.step_ms.max() <= 136.1
    assert (windows.commit.min(), windows.commit.max()) == (2.58, 2.94)
    assert windows.sources[windows.source[1]] == "DP6 TP6"


def test_a_prefill_inside_is_flagged() -> None:
    """sgl-project/sglang#4759: thirty requests were prefilled before the line."""
    windows, _ = committed("sgl-project-sglang-4759.log")
    assert "prefill inside" in names(windows)[0]
    assert "mixed batch" in names(windows)[0]


def test_without_speculation_a_step_commits_one_token_a_request() -> None:
    """sgl-project/sglang#3909: 8 requests at 183.54 tok/s."""
    windows, _ = committed("sgl-project-sglang-3909.log")
    assert windows.step_ms[0] == pytest.approx(1000 * 8 / 183.54)
    assert np.isnan(windows.acceptance_length).all()


@pytest.mark.parametrize("name", ["ngram", "standalone"])
def test_accept_len_of_clean_lines_is_the_growth_of_token(name: str) -> None:
    """Our captures of SGLang 0.5.23, a line every 10 forwards.

    On most lines to the token; on the others within the four tokens that one step verifies, for
    which the server holds memory before it knows which of them it keeps.
    """
    windows, seen = committed(f"sglang-0.5.23-{name}.log")
    assert (seen.steps_per_line, seen.steps_per_line_assumed) == (10, False)
    assert (seen.block, seen.verified_tokens) == (None, 4)
    clean = [i for i in range(len(windows)) if windows.flags[i] == 0]
    assert len(clean) >= 4
    grown = np.array([windows.context_tokens[i] - windows.context_tokens[i - 1] for i in clean])
    off = np.abs(grown - 10 * windows.commit[clean])
    assert (off < 0.06).sum() >= len(clean) - 1
    assert off.max() <= 4


@pytest.mark.parametrize("name", ["ngram", "standalone"])
def test_no_step_is_counted_that_the_server_did_not_take(name: str) -> None:
    """Lines of one capture cover no more forwards than the answers count (``spec_verify_ct``)."""
    windows, seen = committed(f"sglang-0.5.23-{name}.log")
    answers = json.loads((DATA / f"sglang-0.5.23-{name}.json").read_text())
    verified = sum(int(answer["spec_verify_ct"]) for answer in answers)
    assert seen.steps_per_line is not None
    assert 0 <= verified - len(windows) * seen.steps_per_line < 4 * seen.steps_per_line


def test_windows_do_not_depend_on_where_blocks_are_cut() -> None:
    text = b"".join(
        prefill(i % 60, running=i % 3)
        if i % 7 == 0
        else line(i % 60, token=100 + 40 * i, rank=rank)
        for i in range(120)
        for rank in (" TP0", " DP1 TP1")
    )
    whole, _ = read(text)
    for size in (1, 2, 7, 50):
        parts, _ = read(text, size)
        assert [parts.sources[i] for i in parts.source] == [whole.sources[i] for i in whole.source]
        for column in ("line", "flags", "step_ms", "commit", "notes"):
            assert np.array_equal(getattr(parts, column), getattr(whole, column), equal_nan=True)


def test_a_changed_running_count_is_flagged() -> None:
    windows, _ = read(line(1) + line(2, token=140) + line(3, token=500, running=2))
    assert names(windows) == [[], [], ["running count changed"]]


def test_other_requests_are_told_by_the_tokens_in_use() -> None:
    """Without prefill lines a new request shows as tokens that nobody committed."""
    windows, _ = read(line(1, token=900) + line(2, token=940) + line(3, token=200))
    assert names(windows)[2] == ["running count changed"]


def test_a_clock_that_went_back_is_flagged() -> None:
    windows, _ = read(line(9) + line(3, token=140))
    assert names(windows) == [[], ["clock went back"]]


def test_ranks_have_each_their_own_past() -> None:
    text = line(9) + line(3, rank=" TP1") + prefill(9, rank=" TP1") + line(9, token=140)
    windows, _ = read(text)
    assert names(windows) == [[], [], []]


def test_a_commit_above_the_block_is_flagged() -> None:
    args = b"server_args=ServerArgs(speculative_num_steps=3, speculative_num_draft_tokens=4)\n"
    windows, seen = read(args + line(1, accept=3.9) + line(2, accept=4.5, token=280))
    assert (seen.block, seen.block_from) == (4, "the server's arguments")
    assert names(windows)[1] == ["commit above block"]


TREE = {"speculative_num_steps": 3, "speculative_eagle_topk": 4}


@pytest.mark.parametrize(
    ("given", "block"),
    [
        ({"speculative_algorithm": "EAGLE", **TREE, "speculative_num_draft_tokens": 16}, 4),
        ({"speculative_num_steps": 5, "speculative_num_draft_tokens": 4}, 4),
        ({"speculative_num_steps": 3, "speculative_num_draft_tokens": None}, 4),
        ({"speculative_algorithm": "NGRAM", **TREE, "speculative_num_draft_tokens": 12}, 12),
        ({"speculative_num_steps": 0, "speculative_num_draft_tokens": 12}, 12),
        (
            {
                "speculative_algorithm": "DFLASH",
                "speculative_num_steps": 1,
                "speculative_num_draft_tokens": 16,
            },
            16,
        ),
    ],
)
def test_the_block_of_the_arguments(given: dict[str, object], block: int) -> None:
    windows, seen = read(server(**given) + run([block - 0.5, block + 0.5]))
    assert (seen.block, seen.verified_tokens) == (block, given["speculative_num_draft_tokens"])
    assert [bool(flags & Flag.ABOVE_BLOCK) for flags in windows.flags] == [False, True]


def test_verified_tokens_are_no_block_but_bound_the_commit() -> None:
    """A tree of sixteen drafts and four levels: what is verified says nothing of the levels."""
    lengths = [2.4, 3.2, 2.72, 3.6]
    windows, seen = read(run([*lengths, 17.0], rates=[*(round(x / 16, 2) for x in lengths), 0.0]))
    assert (seen.block, seen.block_from) == (None, "")
    assert (seen.verified_tokens, seen.verified_tokens_from) == (16, "accept len and accept rate")
    assert [bool(flags & Flag.ABOVE_BLOCK) for flags in windows.flags] == [False] * 4 + [True]


EAGLE_4 = server(speculative_num_steps=3, speculative_num_draft_tokens=4, decode_log_interval=40)
EAGLE_8 = server(speculative_num_steps=7, speculative_num_draft_tokens=8, decode_log_interval=10)


def test_what_one_file_says_does_not_count_for_another() -> None:
    _, seen = read(EAGLE_4 + run([2.5, 3.5]))
    windows, _ = read(EAGLE_8 + run([5.5, 6.5], steps=10), seen=seen)
    assert names(windows) == [[], []]
    assert (seen.block, seen.block_from, seen.blocks) == (None, "", [4, 8])
    assert (seen.verified_tokens, seen.steps_per_line) == (None, None)
    learned, _ = read(run([5.5, 6.5, 5.5, 6.5], steps=20), seen=seen)
    assert names(learned) == [[]] * 4
    assert seen.intervals == [40, 10, 20]


def test_files_that_agree_have_one_block() -> None:
    _, seen = read(EAGLE_4 + run([2.5, 3.5]))
    read(EAGLE_4 + run([2.5, 3.5]), seen=seen)
    read(run([2.5, 3.5, 3.0]), seen=seen)
    assert (seen.block, seen.block_from) == (4, "the server's arguments")
    assert (seen.steps_per_line, seen.steps_per_line_assumed) == (40, False)
    read(run([2.4, 3.2, 4.0], rates=[0.3, 0.4, 0.5]), seen=seen)
    assert seen.verified == [4, 8]
    assert seen.block is None


def test_a_server_that_is_started_anew_is_learned_anew() -> None:
    old, new = [2.0, 2.4, 3.2], [2.2, 2.8, 3.4, 4.6, 4.6, 5.8]
    text = EAGLE_4 + run([*old, 4.6], rates=[*(x / 4 for x in old), 0.0])
    text += EAGLE_8 + run(new, steps=10, rates=[(x - 1) / 7 for x in new])
    whole, seen = read(text)
    assert names(whole) == [[]] * 3 + [["commit above block"]] + [[]] * 6
    assert [bool(note) for note in whole.notes] == [True] * 4 + [False] * 6
    assert seen.blocks == [4, 8]
    for size in range(1, 12):
        parts, _ = read(text, size)
        for column in ("line", "flags", "step_ms", "commit", "notes"):
            assert np.array_equal(getattr(parts, column), getattr(whole, column), equal_nan=True)


def test_accept_rates_are_read_of_every_server_of_a_block() -> None:
    half = LEARN_FROM // 2 + 50
    text = server() + run([2.0, 2.4] * half, rates=[0.5, 0.6] * half)
    windows, seen = read(text + server() + run([2.2, 2.4, 3.2], rates=[0.2, 0.23, 0.37]))
    assert seen.verified == [4, 7]
    assert [bool(note) for note in windows.notes[-4:]] == [True, False, False, False]


def test_the_block_that_the_caller_gives_wins() -> None:
    seen = Seen(block=6, block_from=CALLER)
    windows, _ = read(EAGLE_4 + run([4.6, 6.5]) + EAGLE_8 + run([6.5], steps=10), seen=seen)
    assert [bool(flags & Flag.ABOVE_BLOCK) for flags in windows.flags] == [False, True, True]
    assert (seen.block, seen.block_from) == (6, CALLER)


def test_the_interval_of_the_arguments_is_taken() -> None:
    args = b"[2026-01-01 10:00:00] server_args=ServerArgs(decode_log_interval=7)\n"
    _, seen = read(args + line(1) + line(2, token=107))
    assert (seen.steps_per_line, seen.steps_per_line_assumed) == (7, False)


def test_idle_time_is_told_without_prefill_lines() -> None:
    """``grep Decode`` leaves no prefill lines: the next line shows how long forwards take."""
    text = line(1, gen=0.5) + line(2, token=140) + line(3, token=180)
    assert names(read(text)[0]) == [["after idle gap"], [], []]


def test_a_slow_context_is_not_idle_time() -> None:
    """The same requests, ten times slower: nothing says that the server waited."""
    text = line(1) + line(2, token=140) + line(59, token=180, gen=5.0)
    assert names(read(text)[0]) == [[], [], []]


@pytest.mark.parametrize("head", ["Decode batch.", "Decode batch,", "Decode batch [17],"])
def test_every_head_is_read(head: str) -> None:
    text = line(1, accept=2.5).replace(b"Decode batch,", head.encode())
    windows, seen = read(text)
    assert windows.commit[0] == 2.5
    assert len(seen.version_hints) == 1


@pytest.mark.parametrize(
    "prefix",
    [
        b"Oct 22 10:27:56 node7 sglang[812]: ",
        b"sglang-1  | ",
        b'{"log":"',
        b"2025-10-22T10:27:56.1Z stdout F ",
        b"2025-10-22 10:27:56,001 INFO [spawned] ",
    ],
)
def test_a_prefix_changes_nothing(prefix: bytes) -> None:
    plain, _ = read(line(1, accept=2.5))
    windows, _ = read(prefix + line(1, accept=2.5))
    assert windows.step_ms[0] == plain.step_ms[0]
    assert windows.time_s[0] == plain.time_s[0]
    assert windows.sources == plain.sources


def test_hybrid_models_count_full_tokens() -> None:
    text = line(1).replace(
        b"#token: 100,", b"#full token: 100, full token usage: 0.01, #swa token: 9,"
    )
    assert read(text)[0].context_tokens[0] == 100


def test_a_line_of_later_versions_is_read_past_its_new_fields() -> None:
    """0.5.18 and later print ``cap len`` and ``block accept len`` too."""
    text = line(1, accept=2.5).replace(
        b"cuda graph",
        b"cap len: 3.00, block accept len: 7.00, est. decode TFLOPS/s: 1.5, cuda graph",
    )
    assert read(text)[0].commit[0] == 2.5


@pytest.mark.parametrize("cut", ["#running-req", "gen through", "0, token usage", ", accept rate"])
def test_a_cut_line_gives_no_window(cut: str) -> None:
    whole = line(1, accept=2.5, rate=0.6)
    broken = whole[: whole.index(cut.encode())] + b"\n"
    parsed = sglang.parse(Scan(broken + whole))
    assert parsed is not None
    assert list(parsed.malformed) == [0]
    assert list(parsed.line) == [1]


def test_two_lines_in_one_give_no_window() -> None:
    """Interleaved writes of two processes."""
    parsed = sglang.parse(Scan(line(1).rstrip() + line(2)))
    assert parsed is not None
    assert len(parsed.line) == 0
    assert list(parsed.malformed) == [0]


def test_what_somebody_says_of_a_decode_line_is_no_decode_line() -> None:
    parsed = sglang.parse(Scan(b'# "Decode batch." lines, as printed\n' + line(1)))
    assert parsed is not None
    assert (list(parsed.line), list(parsed.malformed)) == ([1], [])


def test_nothing_running_has_no_rate() -> None:
    windows, _ = read(line(1, running=0, gen=0.0, token=0))
    assert "no rate" in names(windows)[0]
    assert math.isnan(windows.step_ms[0])


def test_the_meaning_of_the_accept_rate_is_told_from_the_numbers() -> None:
    length = np.array([2.17, 1.95, 1.80, 2.05])
    assert rate_meaning(length, np.round(length / 4, 2)) == (OLD_RATE, 4)
    assert rate_meaning(length, np.round((length - 1) / 3, 2)) == (NEW_RATE, 4)
    assert rate_meaning(length, np.array([0.9, 0.1, 0.5, 0.7])) is None
    assert rate_meaning(length, np.full(4, np.nan)) is None


def test_prefills_without_decode_lines_are_not_kept() -> None:
    """A prefill server of a disaggregated deployment prints millions of them."""
    seen = Seen()
    reader = Reader("a.log", seen)
    for block in range(40):
        parsed = sglang.parse(Scan(b"".join(prefill(i % 60) for i in range(100)) + line(1)))
        assert parsed is not None
        reader.feed(parsed, 1 + 101 * block)
    reader._server._learned = True
    parsed = sglang.parse(Scan(b"".join(prefill(i % 60) for i in range(1000))))
    assert parsed is not None
    reader.feed(parsed, 5000)
    assert sum(len(rows.line) for rows in reader._server._pending) < 10


def test_flags_are_named() -> None:
    assert flag_names(int(Flag.IDLE | Flag.MIXED)) == ["after idle gap", "mixed batch"]
