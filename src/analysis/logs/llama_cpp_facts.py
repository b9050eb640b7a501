"""What a llama.cpp server says of itself when it starts: its build, and drafts per step.

``build_info`` is of ``tools/server/server.cpp`` (older: ``build: 4567 (…)``). How many tokens are
drafted at most is not printed as such: it stands in a quoted command line (``common/arg.cpp``), or
as ``n_max`` of a drafter (``common/speculative.cpp``).
"""

import re
from dataclasses import dataclass

import numpy as np

from analysis.logs.scan import Scan

_BUILD = re.compile(r"\bbuild(?:_info)?: b?(\d+)\b")
_LIMITS = {
    "--draft-max": re.compile(r"--(?:spec-)?draft(?:-n)?(?:-max)?[ =](\d+)\b"),
    "--spec-ngram-simple-size-m": re.compile(r"--spec-ngram-(?:\w+-)*size-m[ =](\d+)\b"),
    "n_max": re.compile(r"\bn_max *[=:] *(\d+)\b"),
}
_LIMIT_MARKS = (b"--draft", b"--spec-", b"n_max")
_BUILD_MARKS = (b"build: ", b"build_info: ")


@dataclass(frozen=True)
class Limit:
    """The most drafts of a step, as a line of the block tells it."""

    line: int
    drafts: int
    told_by: str


def limits_of(scan: Scan) -> list[Limit]:
    """All that a block says of the most drafts of a step."""
    limits = []
    for line in _lines(scan, _LIMIT_MARKS):
        text = scan.line(line)
        for name, pattern in _LIMITS.items():
            limits += [Limit(line, int(number), name) for number in pattern.findall(text)]
    return limits


def builds_of(scan: Scan) -> list[str]:
    """The numbers of builds; one that was built without git has none."""
    found = (_BUILD.search(scan.line(line)) for line in _lines(scan, _BUILD_MARKS))
    return [one[1] for one in found if one and int(one[1])]


def _lines(scan: Scan, marks: tuple[bytes, ...]) -> list[int]:
    places = np.concatenate([scan.find(mark) for mark in marks])
    return [int(line) for line in np.unique(scan.lines_of(places))]
