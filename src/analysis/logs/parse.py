"""What one block of a log says in every dialect. Workers import this, so it needs NumPy only."""

import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from analysis.logs import llama_cpp_lines, sglang, vllm_lines
from analysis.logs.blocks import Span
from analysis.logs.scan import Scan
from analysis.records.seen import EXAMPLES

SHOWN = 300
"""Characters of a line that are kept as an example."""
_COLOUR = re.compile(rb"\x1b\[[0-9;]*[A-Za-z]")
_DIGITS = re.compile(r"\d+")
_DIALECTS = (
    (sglang.parse, sglang.MARKS),
    (vllm_lines.parse, vllm_lines.MARKS),
    (llama_cpp_lines.parse, llama_cpp_lines.MARKS),
)
MOSTLY = 0.8
"""Share of a block's lines that one dialect understands and the next then does not look at."""


@dataclass(frozen=True)
class Parsed:
    """What one block says: an entry a dialect, and its lines that no dialect understood."""

    lines: int
    dialects: tuple[Any, ...]
    unparsed: int
    malformed: int
    examples: tuple[str, ...]
    malformed_examples: tuple[str, ...]


def parse(block: bytes | Span) -> Parsed:
    """Parse one block of whole lines."""
    scan = Scan(block.read() if isinstance(block, Span) else block)
    if b"\x1b" in scan.text:
        scan = Scan(_COLOUR.sub(b"", bytes(scan.block)))
    found, known, rest = [], scan.mask(), scan.text
    for dialect, marks in _DIALECTS:
        parsed = dialect(scan) if any(mark in rest for mark in marks) else None
        found.append(parsed)
        if parsed is not None:
            known[parsed.recognised] = True
            if known.mean() > MOSTLY:
                rest = b"\n".join(line for _, line in scan.lines(~known))
    broken = scan.mask(*(one.malformed for one in found if one is not None)) & ~known
    known |= _blank(scan)
    passed_over = (~known).nonzero()[0]
    return Parsed(
        lines=len(scan),
        dialects=tuple(found),
        unparsed=len(passed_over),
        malformed=int(broken.sum()),
        examples=_examples(scan, (~known & ~broken).nonzero()[0]),
        malformed_examples=_examples(scan, broken.nonzero()[0]),
    )


def _blank(scan: Scan) -> Any:
    """Empty lines say nothing that could be understood."""
    blank = scan.mask()
    if len(scan):
        blank[1:] = scan.ends[1:] == scan.ends[:-1] + 1
    return blank


def _examples(scan: Scan, lines: Iterable[int]) -> tuple[str, ...]:
    """Some lines, one of a shape."""
    shapes: dict[str, str] = {}
    for index in list(lines)[: 4 * EXAMPLES]:
        line = scan.line(int(index))[:SHOWN].strip()
        shapes.setdefault(shape(line), line)
    return tuple(shapes.values())[:EXAMPLES]


def shape(line: str) -> str:
    """A line with its numbers left out."""
    return _DIGITS.sub("0", line)[:80]
