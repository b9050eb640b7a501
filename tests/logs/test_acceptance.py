"""Real lines of three engines become entries; all other lines become nothing."""

from datetime import UTC, datetime, timedelta, timezone
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from analysis.logs.acceptance import Decode, Drafting, Finished, Prefill, Throughput, parse

DATA = Path(__file__).parent / "data"
NEAR = datetime(2026, 8, 1, tzinfo=UTC)


def entries(name: str) -> list[object]:
    return list(parse((DATA / name).read_text().splitlines(), UTC, NEAR))


@pytest.mark.parametrize(
    ("log", "kinds", "lengths"),
    [
        ("sgl-project-sglang-11948.log", "PDDDDD", [2.17, 1.95, 1.80, 2.05, 1.80]),
        ("sgl-project-sglang-4759.log", "PPPDPPPPP", [2.54]),
        ("sgl-project-sglang-6081.log", "DDDDD", [2.90, 2.86, 2.94, 2.65, 2.58]),
        ("sgl-project-sglang-3909.log", "DD", [None, None]),
    ],
)
def test_sglang_prints_a_commit_length_where_it_speculates(
    log: str, kinds: str, lengths: list[float | None]
) -> None:
    found = entries(log)
    assert "".join(type(entry).__name__[0] for entry in found) == kinds
    assert [entry.commit_length for entry in found if isinstance(entry, Decode)] == lengths


def test_sglang_names_the_rank_that_printed() -> None:
    ranks = [entry.rank for entry in entries("sgl-project-sglang-6081.log")]  # type: ignore[attr-defined]
    assert ranks == ["DP0 TP0", "DP6 TP6", "DP5 TP5", "DP7 TP7", "DP2 TP2"]
    first = entries("sgl-project-sglang-4759.log")[3]
    assert first == Decode(datetime(2025, 3, 24, 2, 56, 41, tzinfo=UTC), "TP0", 32, 2.54)


def test_sglang_with_iteration_numbers_and_more_accept_fields() -> None:
    line = (
        "[2026-03-01 10:00:00] Decode batch [812], #running-req: 1, #full token: 90, "
        "block accept len: 3.10, accept len: 2.50, cap len: 4.00, gen throughput (token/s): 9.1,"
    )
    time = datetime(2026, 3, 1, 10, tzinfo=UTC)
    assert parse([line], UTC, NEAR) == [Decode(time, "", 1, 2.5)]


def test_vllm_counts_in_every_order_of_its_fields() -> None:
    transitional = entries("vllm-project-vllm-24127.log")
    assert transitional == [Drafting(datetime(2026, 9, 9, 11, 51, 35, tzinfo=UTC), 262, 295, 5.44)]
    speed, drafting = entries("vllm-project-vllm-43295.log")[:2]
    time = datetime(2026, 5, 19, 10, 28, 53, tzinfo=UTC)
    assert speed == Throughput(time, "000", 994.8, 9)
    assert drafting == Drafting(time, 6232, 7438, 2.68)


def test_the_mean_acceptance_length_of_vllm_is_over_drafted_steps() -> None:
    """1 + accepted / drafts, with every draft of seven tokens: the counts and it agree."""
    full = [e for e in entries("vllm-0.32-ngram.log") if isinstance(e, Drafting)][2]
    assert full.acceptance_length == 1 + full.accepted_tokens / (full.drafted_tokens / 7)


def test_engines_beside_each_other_keep_their_numbers() -> None:
    speeds = [e for e in entries("vllm-project-vllm-ascend-12521.log") if isinstance(e, Throughput)]
    assert [speed.engine for speed in speeds] == ["002", "004"]


def test_old_counters_of_vllm_and_lines_without_a_time_are_passed_over() -> None:
    assert entries("vllm-project-vllm-7301.log") == []
    assert entries("vllm-project-vllm-15902.log") == []


def test_the_year_that_vllm_leaves_out_is_the_nearest() -> None:
    line = (
        "INFO 12-31 23:59:58 [loggers.py:1] Engine 000: "
        "Avg generation throughput: 1.0 tokens/s, Running: 1 reqs"
    )
    (entry,) = parse([line], UTC, datetime(2027, 1, 1, 0, 0, 3, tzinfo=UTC))
    assert entry == Throughput(datetime(2026, 12, 31, 23, 59, 58, tzinfo=UTC), "000", 1.0, 1)
    leap = line.replace("12-31", "02-29")
    assert parse([leap], UTC, datetime(2026, 3, 1, tzinfo=UTC)) == []
    assert parse([leap], UTC, datetime(2028, 3, 1, tzinfo=UTC))


def test_times_are_of_the_servers_zone() -> None:
    zone = timezone(timedelta(hours=5, minutes=30))
    line = "[2026-03-01 10:00:00 TP0] Prefill batch, #new-seq: 1, #running-req: 0"
    (entry,) = parse([line], zone, NEAR)
    assert entry == Prefill(datetime(2026, 3, 1, 4, 30, tzinfo=UTC), "TP0")


@pytest.mark.parametrize(
    ("log", "finished"),
    [
        ("ggml-org-llama.cpp-24536.log", Finished("0", 256, 167, 259, 2.92)),
        ("am17an-llama.cpp-6.log", Finished("0", 57, 36, 36, None)),
    ],
)
def test_llama_cpp_says_what_a_request_accepted(log: str, finished: Finished) -> None:
    assert entries(log) == [finished]


def test_llama_cpp_requests_one_after_the_other_are_kept_apart() -> None:
    assert entries("llama.cpp-b10434-ngram.log") == [
        Finished("0", 96, 29, 112, 2.38),
        Finished("68", 96, 54, 81, 5.50),
        Finished("111", 96, 49, 108, 4.06),
    ]


def test_drafts_of_another_task_are_not_a_requests_own() -> None:
    lines = (DATA / "llama.cpp-b10434-ngram.log").read_text().splitlines()
    mixed = [lines[1], lines[9]]
    assert parse(mixed, UTC, NEAR) == [Finished("0", 96)]


@given(st.lists(st.text(max_size=80)))
def test_any_other_text_is_passed_over(lines: list[str]) -> None:
    assert parse(lines, UTC, NEAR) == []


@given(st.data())
def test_a_damaged_line_is_read_or_passed_over_but_never_fatal(data: st.DataObject) -> None:
    names = sorted(path.name for path in DATA.glob("*.log"))
    lines = (DATA / data.draw(st.sampled_from(names))).read_text().splitlines()
    line = data.draw(st.sampled_from(lines))
    at = data.draw(st.integers(0, len(line)))
    damaged = line[:at] + data.draw(st.text(max_size=3)) + line[at + data.draw(st.integers(0, 9)) :]
    assert len(parse([damaged], UTC, NEAR)) <= 1
