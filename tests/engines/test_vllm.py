"""The vLLM client on what a real vLLM 0.32.0 sent; see ``data/README.md``."""

import json
import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from tests.engines.fault_server import Answer, FaultServer, says

from analysis.engines.connect import connect
from analysis.engines.vllm import SPECULATION, Vllm

DATA = Path(__file__).parent / "data" / "vllm-0.32.0"
OUTPUT_TOKENS = 24
STEPS = 19
"""By the server's own ``inter_token_latency_seconds_count``."""
ACCEPTED, DRAFTED = 9, 74

Change = Callable[[str], str]


def replay(variant: str, change: Change = lambda page: page) -> FaultServer:
    """A server that sends what the real one sent; ``change`` edits its pages of metrics."""
    folder = DATA / variant
    before, after = (
        Answer(change((folder / f"{name}.txt").read_text()).encode(), content_type="text/plain")
        for name in ("before", "after")
    )
    pages: dict[str, Any] = {
        f"/{path}": Answer((DATA / file).read_bytes())
        for path, file in (
            ("version", "version.json"),
            ("v1/models", "models.json"),
            ("tokenize", "tokenize.json"),
        )
    }
    connecting, asking = before, before
    pages["/metrics"] = [connecting, asking, after]
    stream = (folder / "stream.txt").read_bytes()
    pages["/v1/completions"] = Answer(stream, content_type="text/event-stream; charset=utf-8")
    return FaultServer(pages)


def connected(server: FaultServer) -> Vllm:
    client = connect(server.url)
    assert isinstance(client, Vllm)
    return client


def test_it_says_what_it_is() -> None:
    with replay("counters") as server:
        facts = connected(server).server
    assert (facts.kind, facts.version, facts.model) == ("vLLM", "0.32.0", "smollm2-135m")
    assert (facts.context_limit, facts.speculates) == (8192, True)


@pytest.mark.parametrize(
    ("variant", "source"), [("per-request", "timings"), ("counters", "metrics")]
)
def test_counts_and_times_are_the_servers(variant: str, source: str) -> None:
    with replay(variant) as server:
        client = connected(server)
        prompt = client.prompt("code", "not read by this server", 48)
        reply = client.ask(prompt, OUTPUT_TOKENS, cold=False)
    assert (reply.prompt_tokens, reply.output_tokens) == (48, OUTPUT_TOKENS)
    assert (reply.accepted_tokens, reply.drafted_tokens) == (ACCEPTED, DRAFTED)
    assert (reply.steps, reply.accepted_source) == (STEPS, source)
    assert reply.steps != OUTPUT_TOKENS - 1 - ACCEPTED, "the last block was cut"
    assert reply.chunks == STEPS + 1, "one chunk from prefill"
    assert reply.cached_tokens == 0
    seconds = decode_seconds(variant)
    assert reply.engine_decode_ms == pytest.approx(1000 * seconds)
    assert 30 < reply.engine_decode_ms / STEPS < 60, "milliseconds a step, on two busy cores"


def decode_seconds(variant: str) -> float:
    """How much ``/metrics`` gained in decode time."""
    name = "vllm:request_decode_time_seconds_sum"
    before, after = (
        float(line.rsplit(" ", 1)[1])
        for page in ("before", "after")
        for line in (DATA / variant / f"{page}.txt").read_text().splitlines()
        if line.startswith(name)
    )
    return after - before


def test_both_ways_to_count_agree_and_so_does_the_histogram_of_forwards() -> None:
    with replay("per-request") as server:
        client = connected(server)
        before = client.counters()
        told = client.ask(client.prompt("code", "", 48), OUTPUT_TOKENS, cold=False)
        after = client.counters()
    assert before is not None
    assert after is not None
    assert before.steps is not None
    assert after.steps is not None
    assert before.decodes is not None
    assert after.decodes is not None
    assert told.steps == after.steps - before.steps == after.decodes - before.decodes - 1


def test_another_request_meanwhile_leaves_its_counters_unused() -> None:
    """Two requests were finished, so the counters are not this request's alone."""

    def foreign(page: str) -> str:
        finished = re.compile(r"^(vllm:request_decode_time_seconds_count\S+) (\S+)$", re.MULTILINE)
        return finished.sub(lambda found: f"{found[1]} {2 * float(found[2])}", page)

    with replay("counters", foreign) as server:
        client = connected(server)
        reply = client.ask(client.prompt("code", "", 48), OUTPUT_TOKENS, cold=False)
    assert (reply.output_tokens, reply.chunks) == (OUTPUT_TOKENS, STEPS + 1)
    assert (reply.accepted_tokens, reply.steps, reply.engine_decode_ms) == (None, None, None)


@pytest.mark.parametrize(
    ("page", "speculates", "speculation"),
    [
        (lambda text: text, True, "speculation"),
        (lambda text: without(text, SPECULATION), False, "none"),
        (lambda text: "", None, ""),
    ],
    ids=["drafts", "plain", "no statistics"],
)
def test_speculation_is_known_by_its_counter(
    page: Change, speculates: bool | None, speculation: str
) -> None:
    with replay("counters", page) as server:
        facts = connected(server).server
    assert (facts.speculates, facts.speculation) == (speculates, speculation)


def without(text: str, name: str) -> str:
    return "".join(line for line in text.splitlines(True) if not line.startswith(name))


def test_without_any_statistics_only_the_reply_is_known() -> None:
    with replay("counters", lambda page: "") as server:
        client = connected(server)
        reply = client.ask(client.prompt("code", "", 48), OUTPUT_TOKENS, cold=False)
    assert reply.output_tokens == OUTPUT_TOKENS
    assert (reply.accepted_tokens, reply.cached_tokens, reply.engine_decode_ms) == (None,) * 3


def test_a_cold_prompt_is_the_same_with_a_salt_that_is_new_each_time() -> None:
    with replay("counters") as server:
        client = connected(server)
        prompt = client.prompt("code", "", 48)
        for cold in (False, True, True):
            client.ask(prompt, OUTPUT_TOKENS, cold)
    bodies = [r.body for r in server.received if r.path == "/v1/completions"]
    assert {json.dumps(body["prompt"]) for body in bodies} == {json.dumps(list(prompt.content))}
    assert "cache_salt" not in bodies[0]
    assert bodies[1]["cache_salt"] != bodies[2]["cache_salt"]
    assert {(body["max_tokens"], body["ignore_eos"]) for body in bodies} == {(OUTPUT_TOKENS, True)}


def test_merged_chunks_do_not_make_steps_fewer_than_drafts() -> None:
    """Where chunks were merged, the drafted steps and the accepted drafts still bound the steps."""
    lines = (DATA / "per-request" / "stream.txt").read_text().split("\n\n")
    last_tokens, usage = lines[-4], lines[-3]
    with replay("per-request") as server:
        merged = replace(answer_of(server), body="\n\n".join([last_tokens, usage, ""]).encode())
        server._script["/v1/completions"] = merged  # type: ignore[index]
        client = connected(server)
        reply = client.ask(client.prompt("code", "", 48), OUTPUT_TOKENS, cold=False)
    assert (reply.chunks, reply.steps) == (1, OUTPUT_TOKENS - 1 - ACCEPTED)


def answer_of(server: FaultServer) -> Answer:
    answer = server._script["/v1/completions"]
    assert isinstance(answer, Answer)
    return answer


def test_a_text_that_is_too_short_is_said() -> None:
    with replay("counters") as server:
        client = connected(server)
        with pytest.raises(Exception, match="only 48 tokens of text, 49 wanted"):
            client.prompt("code", "", 49)
        server._script["/tokenize"] = says({"tokens": "none"})  # type: ignore[index]
        with pytest.raises(Exception, match="only 0 tokens"):
            client.prompt("code", "", 49)
