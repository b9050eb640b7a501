"""One prompt of a wished length, however long, from a short text that is repeated.

Where the server has a tokenizer (``/tokenize``: llama.cpp, vLLM, SGLang) the text's tokens are
repeated and the length is exact, at the price of one short request. Elsewhere the text itself is
repeated as often as two counts of short prompts say, and the length is short by less than a piece.
"""

from typing import Any

from analysis.engines import fields
from analysis.engines.client import Prompt
from analysis.engines.http import Http, RefusedError, RequestError
from analysis.engines.limits import Limits

NAME = "near the limit"
PIECE_CHARACTERS = 400


def long_prompt(http: Http, limits: Limits, text: str, tokens: int) -> Prompt:
    """A prompt of ``tokens`` tokens, or of up to a piece less where there is no tokenizer.

    Raises ``RequestError`` or ``ServerGoneError`` where the server does not count.
    """
    if limits.engine != "OpenAI-compatible":
        found = _token_ids(http, limits, text)
        if found:
            return Prompt(NAME, (found * -(-tokens // len(found)))[:tokens], tokens)
    return _by_pieces(http, limits.model, text, tokens)


def _token_ids(http: Http, limits: Limits, text: str) -> list[Any]:
    """The text's tokens without any special one; empty where the server has no tokenizer."""
    body: dict[str, Any] = {"content": text}
    if limits.engine != "llama.cpp":
        body = {"model": limits.model, "prompt": text, "add_special_tokens": False}
    try:
        return fields.items(http.post("/tokenize", body), "tokens")
    except RefusedError:
        return []


def _by_pieces(http: Http, model: str, text: str, tokens: int) -> Prompt:
    """As many pieces of text as fit; a further piece is taken to add what the second did."""
    piece = f"{text[:PIECE_CHARACTERS].strip()}\n"
    one, two = (_count(http, model, piece * pieces) for pieces in (1, 2))
    each = max(1, two - one)
    pieces = max(1, 1 + (tokens - one) // each)
    return Prompt(NAME, piece * pieces, one + each * (pieces - 1))


def _count(http: Http, model: str, text: str) -> int:
    body = {"model": model, "prompt": text, "max_tokens": 1, "temperature": 0}
    usage = fields.group(http.post("/v1/completions", body), "usage")
    counted = fields.count(usage, "prompt_tokens")
    if counted is None:
        raise RequestError("a reply without usage: how long the prompt was is not known")
    return counted
