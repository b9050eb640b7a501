"""What the lines of a llama.cpp server say of its requests: columns, one row a line."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from analysis.logs.scan import Numbers, Places

Mask = NDArray[np.bool_]
LAUNCH, HEAD, EVAL, TOTAL, DRAFTS, STATISTICS, RELEASE = range(7)
"""What a line says: a task begins; its times follow; they stand here; drafts; the slot is free."""


@dataclass(frozen=True)
class Events:
    """Lines of requests, in the order of the log. ``kind`` says what the others are.

    ``source`` is the process that printed it; ``slot`` and ``task`` are NaN where the line does not
    name them. ``one`` and ``two`` are of EVAL milliseconds and tokens, of TOTAL milliseconds, of
    DRAFTS accepted and drafted tokens, of STATISTICS the same since the start, of RELEASE tokens in
    the slot. ``three`` is of DRAFTS the mean acceptance length, of STATISTICS the drafts that were
    not empty, since the start. ``drafter`` is of STATISTICS.
    """

    line: Places
    kind: Places
    source: Places
    time_s: Numbers
    slot: Numbers
    task: Numbers
    one: Numbers
    two: Numbers
    three: Numbers
    drafter: Places

    def at(self, chosen: Mask | Places) -> "Events":
        """These rows."""
        return Events(**{name: column[chosen] for name, column in vars(self).items()})


def joined(one: Events, other: Events) -> Events:
    """The rows of both."""
    both = {name: np.concatenate([column, vars(other)[name]]) for name, column in vars(one).items()}
    return Events(**both)
