"""What a reader of logs saw besides the windows: counts, facts, and what it passed over."""

from dataclasses import dataclass, field

EXAMPLES = 5
"""Shapes of lines that are shown of those that were passed over."""
CALLER = "the caller"
"""``block_from`` of a block that the user gave: it counts for all servers."""


@dataclass
class Seen:
    """Filled while a log is read. Examples are whole lines, cut; the caller redacts them.

    ``malformed`` counts lines that look like a report on decoding and could not be read: their
    examples come first. ``unparsed`` counts all lines that are no report on decoding, those too.
    ``block`` is the most tokens that one step can commit (drafts and the bonus token),
    ``verified_tokens`` how many it verifies (more, where drafts are trees), ``steps_per_line``
    SGLang's decode log interval; ``None`` where no log tells, or where servers differ. What each
    server says is in ``blocks``, ``verified`` and ``intervals``.
    """

    lines: int = 0
    unparsed: int = 0
    malformed: int = 0
    examples: list[str] = field(default_factory=list)
    malformed_examples: list[str] = field(default_factory=list)
    engines: list[str] = field(default_factory=list)
    version_hints: list[str] = field(default_factory=list)
    block: int | None = None
    block_from: str = ""
    verified_tokens: int | None = None
    verified_tokens_from: str = ""
    steps_per_line: int | None = None
    steps_per_line_assumed: bool = False
    window_s: float | None = None
    window_s_assumed: bool = False
    pool_tokens: int | None = None
    notes: list[str] = field(default_factory=list)
    blocks: list[int] = field(default_factory=list)
    verified: list[int] = field(default_factory=list)
    intervals: list[int] = field(default_factory=list)

    @property
    def given_block(self) -> int | None:
        """The block that the caller gave, which counts for all servers."""
        return self.block if self.block_from == CALLER else None

    def tell_block(self, block: int, told_by: str) -> None:
        """Take what one server says of its block."""
        if self.given_block is not None:
            return
        if self.block is not None:  # of recorded answers, perhaps
            _add(self.blocks, self.block)
        _add(self.blocks, block)
        if self.block is None:
            self.block, self.block_from = block, told_by
        self._settle()

    def tell_verified(self, tokens: int, told_by: str) -> None:
        """Take what one server says of the tokens that its steps verify."""
        _add(self.verified, tokens)
        if self.verified_tokens is None:
            self.verified_tokens, self.verified_tokens_from = tokens, told_by
        self._settle()

    def tell_interval(self, steps: int, assumed: bool) -> None:
        """Take the decode log interval of one server."""
        also = not self.intervals or self.steps_per_line_assumed
        _add(self.intervals, steps)
        one = len(self.intervals) == 1
        self.steps_per_line = steps if one else None
        self.steps_per_line_assumed = one and assumed and also

    def _settle(self) -> None:
        """Servers that differ have no block in common."""
        if len(self.verified) > 1:
            self.verified_tokens, self.verified_tokens_from = None, ""
        if self.given_block is None and max(len(self.blocks), len(self.verified)) > 1:
            self.block, self.block_from = None, ""


def _add(values: list[int], value: int) -> None:
    if value not in values:
        values.append(value)
