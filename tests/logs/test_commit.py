"""A logged commit length agrees with the server's own counters, or there is none."""

import json
from datetime import UTC, datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import pytest

from analysis.logs.commit import commit_from_log

DATA = Path(__file__).parent / "data"


def lines_of(name: str) -> list[str]:
    return (DATA / name).read_text().splitlines()


def at(clock: str) -> datetime:
    """A time of the day on which the captures were made."""
    return datetime.fromisoformat(f"2026-11-30T{clock}").replace(tzinfo=UTC)


def sglang(drafts: str, number: int) -> tuple[Any, datetime, datetime]:
    """A request of a capture: what ``/generate`` answered, when it was sent and when it ended."""
    answer = json.loads((DATA / f"sglang-0.5.23-{drafts}.json").read_text())[number]
    sent, ended = answer["request_received_ts"], answer["response_sent_to_client_ts"]
    return answer, datetime.fromtimestamp(sent, UTC), datetime.fromtimestamp(ended, UTC)


@pytest.mark.parametrize(
    ("drafts", "number", "how_many"),
    [("ngram", 0, 3), ("ngram", 2, 1), ("ngram", 3, 1), ("standalone", 0, 1), ("standalone", 1, 1)],
)
def test_sglang_by_the_lines_that_are_wholly_the_requests(
    drafts: str, number: int, how_many: int
) -> None:
    answer, sent, ended = sglang(drafts, number)
    logged = commit_from_log(lines_of(f"sglang-0.5.23-{drafts}.log"), sent, ended, 96, UTC)
    assert logged is not None
    assert logged.how == f"accept len of {how_many} SGLang log lines"
    counted = (answer["completion_tokens"] - 1) / answer["spec_verify_ct"]
    # A line is ten steps; what the others did bounds how far they can be from the whole.
    seen = 10 * how_many / answer["spec_verify_ct"]
    assert seen * logged.commit_length < counted < seen * logged.commit_length + (1 - seen) * 5


def test_sglang_uses_no_line_that_reaches_back_before_the_request() -> None:
    """Its first line holds forwards of the request before: 3.70 at 900 tokens."""
    _, sent, ended = sglang("ngram", 1)
    log = lines_of("sglang-0.5.23-ngram.log")
    assert "accept len: 3.70" in "".join(log)
    logged = commit_from_log(log, sent, ended, 96, UTC)
    assert logged is not None
    assert (logged.commit_length, logged.how) == (4.0, "accept len of 1 SGLang log lines")


def test_sglang_at_a_line_every_40_forwards_says_nothing_of_a_short_request() -> None:
    """Of the capture's lines, every fourth."""
    _, sent, ended = sglang("ngram", 3)
    log = [line for line in lines_of("sglang-0.5.23-ngram.log") if "Prefill" in line]
    log += [line for line in lines_of("sglang-0.5.23-ngram.log") if "Decode" in line][3::4]
    assert commit_from_log(sorted(log), sent, ended, 96, UTC) is None


def test_sglang_with_another_request_in_the_batch_says_nothing() -> None:
    _, sent, ended = sglang("ngram", 0)
    log = lines_of("sglang-0.5.23-ngram.log")
    crowded = [line.replace("#running-req: 1, #token: 106", "#running-req: 2") for line in log]
    assert crowded != log
    assert commit_from_log(crowded, sent, ended, 96, UTC) is None


def test_sglang_that_served_another_first_uses_only_what_followed_the_prefill() -> None:
    _, earlier, _ = sglang("ngram", 0)
    _, sent, ended = sglang("ngram", 2)
    log = lines_of("sglang-0.5.23-ngram.log")
    assert commit_from_log(log, earlier, ended, 96, UTC) == commit_from_log(
        log, sent, ended, 96, UTC
    )


def test_sglang_in_another_zone_than_the_one_given_says_nothing() -> None:
    _, sent, ended = sglang("ngram", 0)
    log = lines_of("sglang-0.5.23-ngram.log")
    assert commit_from_log(log, sent, ended, 96, UTC) is not None
    assert commit_from_log(log, sent, ended, 96, timezone(timedelta(hours=1))) is None


def test_sglang_without_speculation_says_nothing() -> None:
    log = lines_of("sgl-project-sglang-3909.log")
    sent = datetime(2025, 2, 27, 4, 0, tzinfo=UTC)
    assert commit_from_log(log, sent, sent + timedelta(hours=1), 600, UTC) is None


def test_llama_cpp_by_the_accepted_drafts_of_the_request() -> None:
    log = lines_of("ggml-org-llama.cpp-24536.log")
    logged = commit_from_log(log, at("10:00:00"), at("10:00:03"), 256, UTC)
    assert logged is not None
    assert (logged.accepted_tokens, logged.steps) == (167, 88)
    assert logged.commit_length == 255 / 88  # its mean acceptance length, 2.92, is of 87 drafts


@pytest.mark.parametrize(
    ("keep", "output_tokens"),
    [
        (slice(0, 10), 96),  # two requests finished
        (slice(0, 5), 97),  # a request of another length
        (slice(0, 4), 96),  # no line about drafts
        (slice(4, 5), 96),  # no line about the output
    ],
)
def test_llama_cpp_says_nothing_where_the_lines_are_not_the_requests(
    keep: slice, output_tokens: int
) -> None:
    log = lines_of("llama.cpp-b10434-ngram.log")
    whole = commit_from_log(log[:5], at("10:00:00"), at("10:00:03"), 96, UTC)
    assert whole is not None
    assert whole.steps == 66
    assert commit_from_log(log[keep], at("10:00:00"), at("10:00:03"), output_tokens, UTC) is None


def test_vllm_by_the_accepted_drafts_where_all_output_was_the_requests() -> None:
    """By ``/metrics`` it took 15 steps; its last one was cut, which costs the count one."""
    log = lines_of("vllm-0.32-ngram.log")
    logged = commit_from_log(log, at("21:43:00"), at("21:43:07"), 120, UTC)
    assert logged is not None
    assert (logged.accepted_tokens, logged.steps) == (105, 14)
    assert logged.commit_length == 119 / 14


@pytest.mark.parametrize(
    ("sent", "ended", "output_tokens", "why"),
    [
        ("21:42:41", "21:42:48", 120, "the lines hold a part of this request only"),
        ("21:43:00", "21:43:07", 119, "there was one token more than the request's"),
        ("21:43:00", "21:43:09", 120, "the next line may hold some of it, and holds another's"),
        ("21:43:20", "21:43:28", 120, "the line with its tokens was not there yet"),
        ("22:43:00", "22:43:07", 120, "no line is of its time"),
    ],
)
def test_vllm_says_nothing_where_the_lines_are_not_all_the_requests(
    sent: str, ended: str, output_tokens: int, why: str
) -> None:
    log = lines_of("vllm-0.32-ngram.log")
    assert commit_from_log(log, at(sent), at(ended), output_tokens, UTC) is None, why


def test_vllm_over_several_windows_sums_them() -> None:
    """The first two requests as if they were one of 240 tokens: 66 accepted drafts."""
    log = lines_of("vllm-0.32-ngram.log")
    logged = commit_from_log(log, at("21:42:40"), at("21:42:57"), 240, UTC)
    assert logged is not None
    assert (logged.accepted_tokens, logged.steps) == (66, 173)


def test_vllm_with_several_engines_or_without_lines_on_drafts_says_nothing() -> None:
    log = lines_of("vllm-0.32-ngram.log")
    other = [line.replace("Engine 000", "Engine 001") for line in log if "43:09" in line]
    plain = [line for line in log if "SpecDecoding" not in line]
    for lines in (log + other, plain):
        assert commit_from_log(lines, at("21:43:00"), at("21:43:07"), 120, UTC) is None


def test_a_log_of_two_engines_and_an_empty_one_say_nothing() -> None:
    both = lines_of("vllm-0.32-ngram.log") + lines_of("ggml-org-llama.cpp-24536.log")
    for lines in (both, [], ["\x00\ufffd nothing of interest"]):
        assert commit_from_log(lines, at("21:43:00"), at("21:43:07"), 120, UTC) is None


def test_more_accepted_drafts_than_output_say_nothing() -> None:
    log = [
        line.replace("167 accepted", "256 accepted")
        for line in lines_of("ggml-org-llama.cpp-24536.log")
    ]
    assert commit_from_log(log, at("10:00:00"), at("10:00:03"), 256, UTC) is None
