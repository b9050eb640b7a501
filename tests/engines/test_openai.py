"""The client for any server with OpenAI's completions API, against the embedded server."""

from collections.abc import Iterator

import pytest

from analysis.engines.client import Prompt
from analysis.engines.embedded import MODEL, Embedded
from analysis.engines.http import Http, TextTooShortError
from analysis.engines.openai import OpenAi
from analysis.experiments.texts import load_text

AWKWARD = "The licence, a naïve 12345, above: you may copy. " * 40


@pytest.fixture
def openai(speculating: Embedded) -> Iterator[OpenAi]:
    http = Http(speculating.url)
    (model,) = http.get("/v1/models").json()["data"]
    client = OpenAi(http, model)
    yield client
    client.close()


def test_it_knows_only_what_the_api_tells(openai: OpenAi) -> None:
    server = openai.server
    assert (server.kind, server.model) == ("OpenAI-compatible", MODEL)
    assert (server.speculates, server.context_limit, server.version) == (None, None, "")
    assert openai.counters() is None


@pytest.mark.parametrize("tokens", [1, 9, 50, 100])
def test_a_prompt_is_found_by_the_servers_own_count(openai: OpenAi, tokens: int) -> None:
    prompt = openai.prompt(f"{tokens}", AWKWARD, tokens)
    assert prompt.tokens == tokens
    assert openai.ask(prompt, 1, cold=False).prompt_tokens == tokens


def test_a_length_that_no_cut_gives_is_met_as_near_as_there_is_one(openai: OpenAi) -> None:
    """One character of a script that the model never saw is several tokens."""
    text = "\u1341" * 40
    counts = {openai._count(text[:length]) for length in (1, 2, 3)}
    missed = next(tokens for tokens in range(2, max(counts)) if tokens not in counts)
    nearest = openai.prompt("script", text, missed).tokens
    assert abs(nearest - missed) == min(abs(count - missed) for count in counts)


def test_too_little_text_is_said(openai: OpenAi) -> None:
    with pytest.raises(TextTooShortError, match="tokens of text, 100 wanted"):
        openai.prompt("short", "The cat sat.", 100)


def test_the_length_is_forced_and_tokens_are_counted_by_usage(openai: OpenAi) -> None:
    prompt = openai.prompt("forced", AWKWARD, 30)
    assert not openai.holds(prompt)
    reply = openai.ask(prompt, 18, cold=False)
    assert openai.holds(prompt)
    assert (reply.output_tokens, reply.prompt_tokens) == (18, 30)
    assert (reply.accepted_tokens, reply.engine_decode_ms) == (None, None), "the API has none"
    assert reply.first_token_s is not None
    assert reply.decode_s is not None
    assert 0 < reply.first_token_s < reply.first_token_s + reply.decode_s <= reply.request_s


def test_the_end_of_the_text_does_not_end_the_reply(openai: OpenAi) -> None:
    content = "<|im_start|>user\nSay yes.<|im_end|>\n<|im_start|>assistant\nYes.<|im_end|>\n"
    body = {"model": openai.model, "prompt": content, "max_tokens": 24, "temperature": 0}
    (choice,) = openai.http.post("/v1/completions", body)["choices"]
    assert choice["finish_reason"] == "stop"
    prompt = Prompt("ends", content, openai._count(content))
    assert openai.ask(prompt, 24, cold=False).output_tokens == 24


def test_a_cold_prompt_is_new_and_hardly_longer(openai: OpenAi) -> None:
    prompt = openai.prompt("cold", load_text("prose").content[:2000], 80)
    openai.ask(prompt, 1, cold=False)
    warm = openai.ask(prompt, 1, cold=False)
    first, second = openai.ask(prompt, 1, cold=True), openai.ask(prompt, 1, cold=True)
    assert warm.cached_tokens == 79
    for reply in (first, second):
        assert reply.cached_tokens is not None
        assert reply.cached_tokens <= 5, "as many digits of the first word may be the same"
        assert reply.prompt_tokens is not None
        assert abs(reply.prompt_tokens - 80) <= 6
