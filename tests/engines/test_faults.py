"""Faults during a session: the request is kept as an error with its reason, the rest goes on."""

import os
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from tests.engines.fault_server import (
    PROMPT_TOKENS,
    TOKEN,
    Answer,
    FaultServer,
    Received,
    last_event,
    llama_cpp,
    says,
    streams,
)

from analysis.engines.connect import connect
from analysis.engines.http import KEY_VARIABLE
from analysis.errors import InputError
from analysis.experiments.designs import checked
from analysis.experiments.sender import IN_A_ROW
from analysis.experiments.session import Outcome, Request, measure, resume
from analysis.records.run import Sample, load_run

SECRET = "not-to-be-published-5c1f"
OUTPUT_TOKENS = 41
ACCEPTED = 15
LAST = last_event(OUTPUT_TOKENS, draft_n=30, draft_n_accepted=ACCEPTED)
GOOD = streams(*[TOKEN] * 3, LAST)
WARM_UP = streams(*[TOKEN] * 3, last_event(16))
ERROR_EVENT = {"error": {"code": 500, "message": "slot\n unavailable"}}
LENGTHS = {"prompt_tokens": (PROMPT_TOKENS,), "output_tokens": (OUTPUT_TOKENS,)}

FAULTS: dict[str, tuple[Answer, str]] = {
    "400": (says({"error": {"message": "no ignore_eos"}}, 400), "HTTP 400 (no ignore_eos)"),
    "401": (says({}, 401), f"HTTP 401; a valid key is read from {KEY_VARIABLE}"),
    "403": (says({"detail": "no"}, 403), f"HTTP 403 (no); a valid key is read from {KEY_VARIABLE}"),
    "404": (says({"error": "gone"}, 404), "HTTP 404 (gone)"),
    "429": (says({}, 429, **{"Retry-After": "30"}), "HTTP 429; Retry-After: 30"),
    "500": (Answer(b"Internal Server Error", 500, "text/plain"), "HTTP 500"),
    "503": (says({"error": {"message": "busy"}}, 503), "HTTP 503 (busy)"),
    "moved": (Answer(b"", 302), "HTTP 302"),
    "JSON, no stream": (says({"content": "all at once"}), "a reply that is no event stream"),
    "malformed": (streams(TOKEN, "{oops"), "a reply that is not JSON ('{oops')"),
    "no object": (streams("[1, 2]"), "a reply that is no JSON object ('[1, 2]')"),
    "nested without end": (streams("[" * 100_000), f"a reply that is not JSON ('{'[' * 40}')"),
    "broken": (streams(TOKEN, ending="broken"), "a reply that broke off, or is not HTTP"),
    "ended early": (streams(TOKEN), "a stream that was cut short"),
    "done early": (streams(TOKEN, "[DONE]"), "a stream that was cut short"),
    "nothing": (streams(), "a stream that was cut short"),
    "hanging": (streams(TOKEN, ending="hang"), "no answer for 0.5 s"),
    "reported": (streams(TOKEN, ERROR_EVENT), "the server reported an error (slot unavailable)"),
    "no timings": (streams({"stop": True}), "a reply without predicted_n"),
    "timings of the wrong kind": (
        streams({"stop": True, "timings": [1]}),
        "a reply without predicted_n",
    ),
    "half a token": (
        streams(last_event(1) | {"timings": {"predicted_n": 1.5}}),
        "a reply whose predicted_n is 1.5, not a whole number",
    ),
    "negative time": (
        streams(last_event(OUTPUT_TOKENS, predicted_ms=-1)),
        "a reply whose predicted_ms is '-1', not a count or a time",
    ),
    "no number": (
        streams(last_event(OUTPUT_TOKENS, predicted_ms="fast")),
        "a reply whose predicted_ms is 'fast', not a count or a time",
    ),
    "more accepted than decoded": (
        streams(last_event(OUTPUT_TOKENS, draft_n=50, draft_n_accepted=41)),
        f"counts that cannot be: 41 accepted drafts in {OUTPUT_TOKENS} output tokens",
    ),
    "all accepted": (
        streams(last_event(OUTPUT_TOKENS, draft_n=50, draft_n_accepted=40)),
        f"counts that cannot be: 40 accepted drafts in {OUTPUT_TOKENS} output tokens",
    ),
}
IMPOSSIBLE = {"more accepted than decoded", "all accepted"}
REFUSED_FOR_GOOD = {"400", "404"}


def request_to(url: str, **changes: Any) -> Request:
    design = checked("context-sweep", {"repeats": 3} | LENGTHS | changes)
    return Request(url, {"context-sweep": design}, timeout_s=0.5)


def session(folder: Path, completions: Sequence[Answer], **changes: Any) -> Outcome:
    """A session with one prompt on a scripted server."""
    with FaultServer(llama_cpp(completions)) as server:
        return measure(request_to(server.url, **changes), folder)


def measured(outcome: Outcome) -> list[Sample]:
    return outcome.run.of("context-sweep")


@pytest.mark.parametrize("fault", FAULTS)
def test_one_failure_is_kept_with_its_reason_and_the_rest_too(fault: str, tmp_path: Path) -> None:
    answer, reason = FAULTS[fault]
    outcome = session(tmp_path / "run", [WARM_UP, GOOD, answer, GOOD])
    first, failed, last, *again = measured(outcome)
    assert failed.error == reason
    assert "error" in failed.flags
    assert failed.steps is None
    if fault in IMPOSSIBLE:  # what the server said is kept, however wrong
        assert failed.output_tokens == OUTPUT_TOKENS
        assert failed.request_s is not None
    else:
        assert (failed.output_tokens, failed.request_s) == (None, None)
    lasting = fault in IMPOSSIBLE or fault in REFUSED_FOR_GOOD
    assert ("refused" in failed.flags) == lasting
    assert [s.number for s in again] == ([] if lasting else [failed.number]), "sent once more"
    for good in (first, last, *again):
        assert good.error == ""
        assert (good.output_tokens, good.steps) == (OUTPUT_TOKENS, OUTPUT_TOKENS - 1 - ACCEPTED)
    assert outcome.stopped == ""
    assert load_run(tmp_path / "run").samples == outcome.run.samples


def test_a_warm_up_that_fails_is_made_up_for(tmp_path: Path) -> None:
    outcome = session(tmp_path / "run", [says({}, 500), WARM_UP, GOOD, GOOD])
    assert [(s.repeat, s.warmup, s.error) for s in outcome.run.samples] == [
        (0, False, "HTTP 500"),
        (1, True, ""),
        (1, False, ""),
        (2, False, ""),
        (0, False, ""),
    ]


def test_three_failures_in_a_row_stop_a_session_that_can_be_resumed(tmp_path: Path) -> None:
    bad = says({"error": {"message": "out of memory"}}, 500)
    stopped = session(tmp_path / "run", [WARM_UP, GOOD, *[bad] * IN_A_ROW, GOOD], repeats=6)
    assert stopped.stopped == "3 requests in a row failed: HTTP 500 (out of memory)"
    assert [s.error != "" for s in measured(stopped)] == [False, True, True, True]
    assert not stopped.run.ended
    assert len(stopped.run.left()) == 5, "the failed ones too"
    with FaultServer(llama_cpp([WARM_UP, GOOD])) as server:
        outcome = resume(request_to(server.url, repeats=6), load_run(tmp_path / "run"))
    assert outcome.stopped == ""
    assert outcome.run.ended
    assert outcome.run.left() == []
    assert sum(not s.error for s in measured(outcome)) == 6


def test_failures_that_are_not_in_a_row_do_not_stop(tmp_path: Path) -> None:
    bad = says({}, 500)
    completions = [WARM_UP, bad, bad, GOOD, bad, bad, GOOD]
    outcome = session(tmp_path / "run", completions, repeats=6)
    assert outcome.stopped == ""
    first_round = measured(outcome)[:6]
    assert [s.error != "" for s in first_round] == [True, True, False, True, True, False]
    assert outcome.run.ended
    assert outcome.run.left() == [], "sent once more, each was answered"


def test_what_fails_twice_is_left_to_be_resumed(tmp_path: Path) -> None:
    bad = says({}, 500)
    completions = [WARM_UP, GOOD, bad, GOOD, bad]
    outcome = session(tmp_path / "run", completions)
    assert outcome.stopped == "1 requests failed twice"
    assert not outcome.run.ended
    assert [p.number for p in outcome.run.left()] == [1]


def test_what_a_server_refuses_for_good_does_not_stop_a_session(tmp_path: Path) -> None:
    refused = says({"error": {"message": "context too long"}}, 400)
    completions = [WARM_UP, *[refused] * (IN_A_ROW + 1), GOOD]
    outcome = session(tmp_path / "run", completions, repeats=6)
    assert outcome.stopped == ""
    assert outcome.run.ended
    flags = [s.flags for s in measured(outcome)]
    assert flags == [("error", "refused")] * (IN_A_ROW + 1) + [(), ()]


def test_a_server_that_goes_leaves_a_run_that_can_be_resumed(tmp_path: Path) -> None:
    def go(received: Received) -> None:
        if len([r for r in server.received if r.path == "/completion"]) > 3:
            server.stop()

    with FaultServer(llama_cpp([WARM_UP, GOOD]), go) as server:
        outcome = measure(request_to(server.url, repeats=6), tmp_path / "run")
    assert outcome.stopped == "the server is gone: connection refused"
    assert not outcome.run.ended
    answered = measured(outcome)
    assert {s.output_tokens for s in answered} == {OUTPUT_TOKENS}, "what was answered is kept"
    assert 0 < len(answered) < 6
    assert len(outcome.run.left()) == 6 - len(answered)


def test_a_server_that_fails_while_it_describes_itself_leaves_no_run(tmp_path: Path) -> None:
    with FaultServer(llama_cpp([], props=says({}, 503))) as server:
        request = request_to(server.url)
        with pytest.raises(InputError, match="HTTP 503 at /props"):
            measure(request, tmp_path / "run")
    assert not (tmp_path / "run").exists()


def test_counters_that_stand_still_confirm_no_steps(tmp_path: Path) -> None:
    """As from a page of metrics that a proxy keeps."""
    page = Answer(b"llamacpp:n_decode_total 7\nllamacpp:tokens_predicted_total 9\n")
    with FaultServer(llama_cpp([WARM_UP, GOOD], metrics=page)) as server:
        outcome = measure(request_to(server.url), tmp_path / "run")
    assert {s.counter_steps for s in measured(outcome)} == {None}
    assert {s.steps for s in measured(outcome)} == {OUTPUT_TOKENS - 1 - ACCEPTED}


OPENAI_MODELS = says({"data": [{"id": "some-model"}]})
COUNTED = {"usage": {"prompt_tokens": PROMPT_TOKENS, "completion_tokens": 1}}
CHOICE = {"choices": [{"text": " a", "finish_reason": None}]}
FINAL = {"choices": [{"text": " b", "finish_reason": "length"}], "usage": None}
OPENAI_FAULTS: dict[str, tuple[Answer, str]] = {
    "no usage": (
        streams(CHOICE, FINAL, "[DONE]"),
        "a reply without usage: how many tokens came is not known",
    ),
    "empty usage": (
        streams(CHOICE, FINAL, {"choices": [], "usage": {}}),
        "a reply without usage: how many tokens came is not known",
    ),
    "cut short": (streams(CHOICE, COUNTED), "a stream that was cut short"),
    "choices that are none": (streams({"choices": [1, None]}), "a stream that was cut short"),
    "reported": (
        streams({"error": {"message": "aborted"}}),
        "the server reported an error (aborted)",
    ),
    "404": (says({"detail": "Not Found"}, 404), "HTTP 404 (Not Found)"),
}


@pytest.mark.parametrize("fault", OPENAI_FAULTS)
def test_any_openai_server_that_fails_is_kept_with_its_reason(fault: str, tmp_path: Path) -> None:
    answer, reason = OPENAI_FAULTS[fault]
    usage = {"prompt_tokens": PROMPT_TOKENS, "completion_tokens": OUTPUT_TOKENS}
    whole = streams(CHOICE, FINAL, {"usage": usage})
    good = replace(whole, body=b": keep-alive\n\nevent: ping\ndata:\n\n" + whole.body)
    pages = {
        "/v1/models": OPENAI_MODELS,
        "/v1/completions": [says(COUNTED), good, good, answer, good],
    }
    with FaultServer(pages) as server:
        outcome = measure(request_to(server.url), tmp_path / "run")
    first, failed, last = measured(outcome)[:3]
    assert failed.error == reason
    assert [s.output_tokens for s in (first, last)] == [OUTPUT_TOKENS] * 2
    assert [(s.steps, s.commit_length) for s in (first, last)] == [(None, None)] * 2


def test_a_server_that_does_not_count_prompts_cannot_be_measured(tmp_path: Path) -> None:
    pages = {"/v1/models": OPENAI_MODELS, "/v1/completions": says({"choices": []})}
    with FaultServer(pages) as server:
        outcome = measure(request_to(server.url), tmp_path / "run")
    assert "a reply without usage: how long the prompt was is not known" in outcome.stopped


def test_a_key_that_a_server_repeats_is_left_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(KEY_VARIABLE, SECRET)
    padding = "x" * 110
    told = says({"error": {"message": f"{padding} {SECRET} is no key"}}, 401)
    repeated = streams(f"no JSON but {SECRET}")
    outcome = session(tmp_path / "run", [WARM_UP, told, repeated, GOOD])
    assert [s.error for s in measured(outcome)][:3] == [
        f"HTTP 401 ({padding} [key] is); a valid key is read from {KEY_VARIABLE}",
        "a reply that is not JSON ('no JSON but [key]')",
        "",
    ]


def test_the_command_line_shows_and_writes_no_key(tmp_path: Path) -> None:
    told = says({"error": {"message": f"quota of {SECRET} exceeded"}}, 429)
    completions = [WARM_UP, GOOD, told, told, told]
    with FaultServer(llama_cpp(completions)) as server:
        command = [sys.executable, "-c", "from analysis.cli.main import run; run()", "measure"]
        command += ["context-sweep", "--server", server.url, "--out", str(tmp_path / "run")]
        command += ["--prompts", f"{PROMPT_TOKENS}", "--outputs", f"{OUTPUT_TOKENS}"]
        ended = subprocess.run(
            [*command, "--repeats", "5"],
            env=os.environ | {KEY_VARIABLE: SECRET},
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
        )
    assert {r.headers.get("Authorization") for r in server.received} == {f"Bearer {SECRET}"}
    assert ended.returncode == 2, ended.stderr
    assert "3 requests in a row failed: HTTP 429 (quota of [key] exceeded)" in ended.stderr
    assert SECRET not in ended.stdout + ended.stderr
    files = [path for path in (tmp_path / "run").rglob("*") if path.is_file()]
    assert {path.name for path in files} >= {"manifest.json", "plan.jsonl", "requests.jsonl"}
    for path in files:
        assert SECRET.encode() not in path.read_bytes(), path.name


def test_a_credential_in_the_address_reaches_no_file(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="more than an address") as why:
        measure(request_to(f"http://user:{SECRET}@127.0.0.1:1"), tmp_path / "run")
    assert SECRET not in str(why.value)
    assert list(tmp_path.iterdir()) == []


def test_a_proxy_of_the_environment_stays_out_of_a_local_connection(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("HTTP_PROXY", "http://127.0.0.1:1")
    monkeypatch.setenv("ALL_PROXY", "http://127.0.0.1:1")
    with FaultServer(llama_cpp([])) as server:
        assert connect(server.url).server.kind == "llama.cpp"
