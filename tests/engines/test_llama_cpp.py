"""llama.cpp's server, the embedded one: what it is, exact lengths, and its two counts of steps."""

from pathlib import Path

import pytest

from analysis.engines import embedded
from analysis.engines.connect import connect
from analysis.engines.embedded import Settings
from analysis.engines.http import TextTooShortError
from analysis.engines.llama_cpp import LlamaCpp
from analysis.experiments.texts import load_text

REPEATED = "The cat sat on the mat. " * 20
DRAFTS = 7


def test_it_says_what_it_is(llama: LlamaCpp) -> None:
    server = llama.server
    assert (server.kind, server.model) == ("llama.cpp", embedded.MODEL)
    assert (server.context_limit, server.slots) == (embedded.CONTEXT_LIMIT, 2)
    assert (server.speculation, server.speculates) == ("ngram-simple", True)
    assert server.where == "this machine"


def test_a_prompt_has_the_length_that_was_asked_for(llama: LlamaCpp) -> None:
    for tokens in (1, 37):
        prompt = llama.prompt(f"{tokens}", REPEATED, tokens)
        assert (prompt.tokens, len(prompt.content)) == (tokens, tokens)
        assert llama.ask(prompt, 1, cold=True).prompt_tokens == tokens
    with pytest.raises(TextTooShortError, match="only 3 tokens of text, 37 wanted"):
        llama.prompt("short", "The cat sat", 37)


@pytest.mark.parametrize(
    ("text", "output_tokens"), [("repeated", 20), ("repeated", 22), ("prose", 17)]
)
def test_steps_are_what_the_server_decoded(llama: LlamaCpp, text: str, output_tokens: int) -> None:
    """A draft never reaches beyond the last token asked for, so that no accepted one is lost."""
    content = REPEATED if text == "repeated" else load_text(text).content[:800]
    prompt = llama.prompt(text, content, 40)
    before = llama.counters()
    reply = llama.ask(prompt, output_tokens, cold=True)
    after = llama.counters()
    assert before is not None
    assert after is not None
    assert before.decodes is not None
    assert after.decodes is not None
    assert reply.output_tokens == reply.chunks == output_tokens
    assert reply.accepted_tokens is not None
    prefills = 1
    steps = after.decodes - before.decodes - prefills
    assert steps == output_tokens - 1 - reply.accepted_tokens
    if text == "repeated":
        assert steps < output_tokens / 2, "repeated text is drafted"
        assert reply.accepted_tokens <= DRAFTS * steps
    for name in ("accepted_tokens", "drafted_tokens"):
        assert getattr(after, name) - getattr(before, name) == getattr(reply, name)
    assert after.generated_tokens == (before.generated_tokens or 0) + output_tokens
    assert before.running == after.running == 0


def test_the_cache_is_told_and_can_be_kept_out(llama: LlamaCpp) -> None:
    prompt = llama.prompt("cache", "A dog ran over the hill. " * 20, 50)
    assert not llama.holds(prompt)
    cold = llama.ask(prompt, 2, cold=True)
    warm = llama.ask(prompt, 2, cold=False)
    again = llama.ask(prompt, 2, cold=True)
    assert (cold.cached_tokens, warm.cached_tokens, again.cached_tokens) == (0, 49, 0)
    assert cold.accepted_source == "timings"
    assert llama.holds(prompt)


def test_a_slot_holds_its_last_prompt(llama: LlamaCpp) -> None:
    prompts = [llama.prompt(f"prompt {number}", REPEATED, 5 + number) for number in range(3)]
    for prompt in prompts:
        llama.ask(prompt, 1, cold=False)
    assert [llama.holds(prompt) for prompt in prompts] == [False, True, True], "two slots"


def test_the_length_is_forced_past_the_end_of_the_text(llama: LlamaCpp) -> None:
    """The model ends this reply itself unless it is told not to."""
    content = "<|im_start|>user\nSay yes.<|im_end|>\n<|im_start|>assistant\nYes.<|im_end|>\n"
    body = {"prompt": content, "n_predict": 24, "temperature": 0}
    unforced = llama._http.post("/completion", body)
    assert unforced["stop_type"] == "eos", unforced["content"]
    tokens = len(llama._http.post("/tokenize", {"content": content})["tokens"])
    reply = llama.ask(llama.prompt("ends", content, tokens), 24, cold=True)
    assert reply.output_tokens == 24


def test_times_are_in_their_order(llama: LlamaCpp) -> None:
    reply = llama.ask(llama.prompt("times", REPEATED, 30), 12, cold=True)
    assert reply.first_token_s is not None
    assert reply.decode_s is not None
    assert 0 < reply.first_token_s < reply.first_token_s + reply.decode_s <= reply.request_s
    assert reply.engine_decode_ms is not None
    assert reply.engine_prefill_ms is not None
    assert 0 < reply.engine_prefill_ms + reply.engine_decode_ms < 1000 * reply.request_s


def test_a_plain_server_does_not_speculate(tmp_path: Path) -> None:
    settings = Settings(speculation="none", slots=1)
    with embedded.running(settings, tmp_path / "server.log") as started:
        client = connect(started.url)
        assert (client.server.speculates, client.server.speculation) == (False, "none")
        reply = client.ask(client.prompt("plain", REPEATED, 12), 6, cold=True)
        assert (reply.output_tokens, reply.drafted_tokens, reply.accepted_tokens) == (6, None, None)
        client.close()
