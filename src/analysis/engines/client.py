"""What every engine client offers, and what it reads back."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from analysis.records.run import Server, StepsSource


@dataclass(frozen=True)
class Prompt:
    """A prompt of an exact length: token ids where the server takes them, else text.

    ``name`` tells prompts apart, for servers that keep one prompt in each slot.
    """

    name: str
    content: Sequence[int] | str
    tokens: int


@dataclass(frozen=True)
class Counters:
    """What a server counts over all requests; ``None`` where it does not tell.

    ``decodes`` are forwards of the target model, prefill's included; ``steps`` are those that
    committed decoded tokens, prefill's excluded. ``decode_s`` is the time from first to last token
    of the requests that are ``finished``.
    """

    running: int | None = None
    generated_tokens: int | None = None
    accepted_tokens: int | None = None
    drafted_tokens: int | None = None
    cached_tokens: int | None = None
    decodes: int | None = None
    steps: int | None = None
    decode_s: float | None = None
    finished: int | None = None


@dataclass(frozen=True)
class Reply:
    """One reply: times by the client's clock in seconds, the rest as the server counted it.

    ``steps`` stands where ``output_tokens - 1 - accepted_tokens`` would not be the decode steps.
    """

    request_s: float
    first_token_s: float | None
    decode_s: float | None
    chunks: int
    prompt_tokens: int | None
    cached_tokens: int | None
    output_tokens: int | None
    drafted_tokens: int | None = None
    accepted_tokens: int | None = None
    accepted_source: StepsSource | None = None
    steps: int | None = None
    engine_decode_ms: float | None = None
    engine_prefill_ms: float | None = None


class Client(Protocol):
    """A server that can be measured."""

    server: Server

    def prompt(self, name: str, text: str, tokens: int) -> Prompt:
        """A prompt of exactly ``tokens`` tokens from the start of ``text``."""

    def ask(self, prompt: Prompt, output_tokens: int, cold: bool) -> Reply:
        """Decode exactly ``output_tokens`` greedily; ``cold`` keeps any cache out of it."""

    def holds(self, prompt: Prompt) -> bool:
        """Whether the server is believed to hold this prompt in a cache."""

    def counters(self) -> Counters | None:
        """The server's own counters, or ``None`` where it has none."""

    def close(self) -> None:
        """Close the connection."""


class Clock:
    """First and last token of a stream, and how many chunks held one."""

    def __init__(self, sent: float) -> None:
        self.sent = sent
        self.chunks = 0
        self._first: float | None = None
        self._last: float | None = None

    def token(self, came: float) -> None:
        """A chunk with at least one token came."""
        self.chunks += 1
        self._last = came
        if self._first is None:
            self._first = came

    @property
    def first_token_s(self) -> float | None:
        """From sending to the first token."""
        return None if self._first is None else self._first - self.sent

    @property
    def decode_s(self) -> float | None:
        """From the first token to the last."""
        if self._first is None or self._last is None or self.chunks < 2:
            return None
        return self._last - self._first
