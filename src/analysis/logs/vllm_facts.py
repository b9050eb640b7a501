"""What a vLLM server says of itself when it starts: version, KV cache, drafts per step.

``vllm/v1/core/kv_cache_utils.py`` prints the pool (of each engine; times the ranks under context
parallelism), ``vllm/config/speculative.py`` its configuration as ``num_spec_tokens``, the arguments
that were given ``num_speculative_tokens``.
"""

import re
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from analysis.logs.scan import Scan

FACT_MARKS = (
    b" KV cache size: ",
    b"vLLM API server version ",
    b" LLM engine (v",
    b"peculative_config",
    b"peculative-config",
    b"--num-speculative-tokens",
)
_FACTS = {
    "pool": re.compile(r"\b[GC]PU KV cache size: ([\d,]+) tokens"),
    "drafts": re.compile(
        r"(?:[Ss]peculative[_-]config.*?\bnum_spec(?:ulative)?_tokens|--num-speculative-tokens)"
        r"""["']?(?:=|: ?| )(\d+)\b"""
    ),
    "version": re.compile(r"\bvLLM API server version v?(\d\S*)"),
    "engine": re.compile(r"\bInitializing an? (?:V\d )?LLM engine \(v([^\s)]+)\)"),
}


@dataclass(frozen=True)
class Fact:
    """On a line of the block: ``what`` is ``pool`` (tokens), ``drafts`` (a step) or ``version``."""

    line: int
    what: str
    value: str


def facts_of(scan: Scan, others: NDArray[np.bool_]) -> list[Fact]:
    """All facts on other lines of a block than reports and those that quote a prompt."""
    places = np.concatenate([scan.find(mark) for mark in FACT_MARKS])
    facts = []
    for line in np.unique(scan.lines_of(places)):
        text = scan.line(int(line)) if others[line] else ""
        for what, pattern in _FACTS.items():
            if found := pattern.search(text):
                value = found[1].replace(",", "") if what == "pool" else found[1]
                facts.append(Fact(int(line), "version" if what == "engine" else what, value))
    return facts
