"""Which of vLLM's lines belong together, and what was before each."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from analysis.logs.scan import Numbers, Places
from analysis.logs.vllm_tables import Drafts, Mask, Speeds

FAR = np.int64(1) << 40
"""More lines than a log has."""
NEAR_S = 2.0
NEAR_LINES = 1000
"""A line on drafts follows its throughput line at once; other processes may print in between."""


def pairs(speeds: Speeds, drafts: Drafts, process: Places) -> Places:
    """The throughput line that each line on drafts belongs to, -1 for none.

    It is the last one of the process, if that is near and has no such line yet.
    """
    if not len(speeds.line) or not len(drafts.line):
        return np.full(len(drafts.line), -1, dtype=np.int64)
    key = process[speeds.source] * FAR + speeds.line
    order = np.argsort(key)
    wanted = process[drafts.source] * FAR + drafts.line
    before = np.searchsorted(key[order], wanted) - 1
    pair = order[np.maximum(before, 0)]
    near = (before >= 0) & (process[speeds.source[pair]] == process[drafts.source])
    near &= drafts.line - speeds.line[pair] <= NEAR_LINES
    near &= ~(np.abs(drafts.time_s - speeds.time_s[pair]) > NEAR_S)
    pair = np.where(near, pair, -1)
    found, first = np.unique(pair, return_index=True)
    only = np.full(len(pair), -1, dtype=np.int64)
    only[first] = found
    return only


def earlier(
    before: dict[int, tuple[float, float]],
    group: Places,
    member: Mask,
    one: Numbers,
    other: Numbers,
) -> tuple[Numbers, Numbers]:
    """Both values of the member before in the same group; ``before`` has and gets the last ones."""
    earlier_one, earlier_other = np.full(len(group), np.nan), np.full(len(group), np.nan)
    members = np.flatnonzero(member)
    members = members[np.argsort(group[members], kind="stable")]
    if not len(members):
        return earlier_one, earlier_other
    of = group[members]
    same = of[1:] == of[:-1]
    earlier_one[members[1:][same]] = one[members[:-1][same]]
    earlier_other[members[1:][same]] = other[members[:-1][same]]
    for begin in np.flatnonzero(np.concatenate([[True], ~same])).tolist():
        if int(of[begin]) in before:
            index = members[begin]
            earlier_one[index], earlier_other[index] = before[int(of[begin])]
    for end in np.flatnonzero(np.concatenate([~same, [True]])).tolist():
        before[int(of[end])] = (float(one[members[end]]), float(other[members[end]]))
    return earlier_one, earlier_other


def at(column: NDArray[Any], index: Places) -> NDArray[Any]:
    """The values at these places; where one is negative, NaN or zero."""
    missing = np.nan if column.dtype.kind == "f" else 0
    if not len(column):
        return np.full(len(index), missing, dtype=column.dtype)
    return np.where(index >= 0, column[np.maximum(index, 0)], missing)
