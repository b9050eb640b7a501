"""How much a measurement will send, said before anything is sent."""

from collections.abc import Sequence
from dataclasses import dataclass

from analysis.records.run import Planned

WARMUP_OUTPUT_TOKENS = 16
PREFILL_TOK_PER_S = 100.0
DECODE_TOK_PER_S = 30.0
"""Speeds assumed for the time: those of a small model on one CPU core, a slow server."""


@dataclass(frozen=True)
class Load:
    """What is to be sent. ``prompt_tokens`` counts a prompt again where no cache can hold it."""

    requests: int
    warmups: int
    prompt_tokens: int
    output_tokens: int
    caches: bool

    @property
    def more(self) -> str:
        """What an unknown server may have to read besides."""
        if self.caches:
            return ""
        return (
            " (each request reads its prompt again where a server does not cache it, "
            "and a few more where it counts prompts only by usage)"
        )

    @property
    def minutes(self) -> float:
        """Time that a slow server would take."""
        seconds = self.prompt_tokens / PREFILL_TOK_PER_S + self.output_tokens / DECODE_TOK_PER_S
        return seconds / 60

    @property
    def says(self) -> str:
        """The same in a line."""
        return (
            f"{self.requests} requests and {self.warmups} warm-ups: {self.prompt_tokens:,} prompt "
            f"tokens{self.more} and {self.output_tokens:,} output tokens; about {self.minutes:.0f} "
            f"min where prefill runs at {PREFILL_TOK_PER_S:.0f} tok/s and decoding at "
            f"{DECODE_TOK_PER_S:.0f}, less on a faster server"
        )


def load(planned: Sequence[Planned], slots: int | None = None) -> Load:
    """What ``planned`` amounts to on a server that keeps ``slots`` prompts (``None``: all)."""
    prompts = {prompt_name(p): p.asked_prompt_tokens for p in planned}
    kept = slots is None or slots >= len(prompts)
    once = sum(prompts.values())
    resent = [p for p in planned if p.cold or not kept]
    return Load(
        requests=len(planned),
        warmups=len(prompts),
        prompt_tokens=once + sum(p.asked_prompt_tokens for p in resent),
        output_tokens=sum(p.asked_output_tokens for p in planned)
        + len(prompts) * WARMUP_OUTPUT_TOKENS,
        caches=slots is not None,
    )


def prompt_name(planned: Planned) -> str:
    """What tells the prompts of a run apart."""
    return f"{planned.text} {planned.excerpt} {planned.asked_prompt_tokens}"
