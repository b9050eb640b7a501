"""What a reader of logs saw besides the windows: counts, facts, and what it passed over."""

from dataclasses import dataclass, field

EXAMPLES = 5
"""Shapes of lines that are shown of those that were passed over."""


@dataclass
class Seen:
    """Filled while a log is read. Examples are whole lines, cut; the caller redacts them.

    ``malformed`` counts lines that look like a report on decoding and could not be read: their
    examples come first. ``unparsed`` counts all lines that are no report on decoding, those too.
    ``block`` is the most tokens that one step can commit (drafts and the bonus token),
    ``steps_per_line`` SGLang's decode log interval; ``None`` where the log does not tell.
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
    steps_per_line: int | None = None
    steps_per_line_assumed: bool = False
    window_s: float | None = None
    window_s_assumed: bool = False
    pool_tokens: int | None = None
    notes: list[str] = field(default_factory=list)
