"""Whether servers printed the KV pools that were predicted, and which caches their ranks share.

vLLM is judged by its tokens, which are whole; SGLang by its gauge of each rank, which is a float of
the bytes, and by its log line, which has two decimals.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from math import isclose
from pathlib import Path

from analysis import paths
from analysis.findings.missing import Missing
from analysis.logs.kv_buffers import KvBuffer, kv_buffers
from analysis.logs.printed_pool import PoolGauges, logged_tokens, pool_gauges
from analysis.model.kv_cache import GIB
from analysis.records.case import Case
from analysis.records.kv_layout import KvLayout, Prediction, load_kv_layouts

EXACT = 1e-9
"""Relative: of a gauge that is a float of a whole number of bytes."""
SAME = 1e-3
"""Relative: costs of two servers whose pools are whole blocks; a block is below a thousandth."""


@dataclass(frozen=True)
class Server:
    """One server: what was predicted, and what it printed. ``None`` where it printed nothing."""

    engine: str
    version: str
    predicted: Prediction
    logged_tokens: int | None
    gauges: PoolGauges
    buffers: tuple[KvBuffer, ...]

    @property
    def name(self) -> str:
        """Engine, attention and ranks in words."""
        ranks = "1 rank" if self.predicted.tp == 1 else f"{self.predicted.tp} ranks"
        return f"{self.engine}, {self.predicted.attention}, {ranks}"

    @property
    def prints_tokens(self) -> bool:
        """Whether bytes were given and tokens printed; else it is the other way round."""
        return self.predicted.given_bytes is not None

    @property
    def printed_tokens(self) -> int | None:
        """Tokens of the pool by the log, else by the gauges."""
        return self.logged_tokens if self.logged_tokens is not None else self.gauges.tokens

    @property
    def gauge_tokens(self) -> int | None:
        """Tokens of the pool by the page of metrics: blocks times their size where it has them."""
        if self.gauges.blocks is not None and self.gauges.block_tokens is not None:
            return self.gauges.blocks * self.gauges.block_tokens
        return self.gauges.tokens

    @property
    def printed_gib(self) -> float | None:
        """GiB of one rank by its gauge, the greatest of all ranks."""
        return max(self.gauges.rank_gib.values(), default=None)

    @property
    def predicted_gib(self) -> float:
        """GiB of one rank."""
        return self.predicted.rank_bytes / GIB

    @property
    def printed_bytes_per_token(self) -> float | None:
        """Bytes of a token on one rank by what was printed, padding rows taken into account.

        Of tokens in given bytes it is an upper bound: the bytes left over hold no block.
        """
        if self.prints_tokens:
            assert self.predicted.given_bytes is not None
            tokens = self.printed_tokens
            return self.predicted.given_bytes / tokens if tokens else None
        if self.printed_gib is None or not self.printed_tokens:
            return None
        return self.printed_gib * GIB / (self.printed_tokens + self.predicted.page_tokens)

    @property
    def compared(self) -> tuple[float, float | None]:
        """Predicted and printed, in what was not given: tokens, or GiB of a rank."""
        if self.prints_tokens:
            return self.predicted.tokens, self.printed_tokens
        return self.predicted_gib, self.printed_gib

    @property
    def error_pct(self) -> float | None:
        """Printed over predicted, minus one, per cent."""
        predicted, printed = self.compared
        return None if printed is None else 100 * (printed / predicted - 1)

    @property
    def agrees(self) -> bool | None:
        """Whether log and gauges, on every rank, are what was predicted."""
        tokens = [self.logged_tokens, self.gauge_tokens]
        if self.prints_tokens:
            told = [one for one in tokens if one is not None]
            return all(one == self.predicted.tokens for one in told) if told else None
        if not self.gauges.rank_gib:
            return None
        return (
            len(self.gauges.rank_gib) == self.predicted.tp
            and all(
                isclose(gib, self.predicted_gib, rel_tol=EXACT)
                for gib in self.gauges.rank_gib.values()
            )
            and all(one.holds(self.predicted.rank_bytes) for one in self.buffers)
            and all(one.tokens == self.predicted.tokens for one in self.buffers)
            and all(one in (None, self.predicted.tokens) for one in tokens)
        )

    @property
    def verdict(self) -> str:
        """In a word."""
        return {True: "as predicted", False: "not as predicted", None: "not printed"}[self.agrees]


@dataclass(frozen=True)
class Sharing:
    """What a second rank did to the cost of a token on each, for one engine and attention."""

    engine: str
    attention: str
    ratio: float

    @property
    def word(self) -> str:
        """Replicated, halved or neither."""
        if isclose(self.ratio, 1, rel_tol=SAME):
            return "replicated"
        return "halved" if isclose(self.ratio, 0.5, rel_tol=SAME) else "neither"


@dataclass(frozen=True)
class Layouts:
    """The finding: all servers that were read, in order, and those that were not."""

    servers: tuple[Server, ...]
    unread: tuple[str, ...]
    hosts: tuple[str, ...]
    written: str

    @property
    def engines(self) -> list[str]:
        """Engines with their versions."""
        return list(dict.fromkeys(f"{one.engine} {one.version}" for one in self.servers))

    @property
    def sharing(self) -> list[Sharing]:
        """What the second rank did, where both servers were read."""
        found = []
        for engine in dict.fromkeys(one.engine for one in self.servers):
            for attention in dict.fromkeys(one.predicted.attention for one in self.servers):
                cost = {
                    one.predicted.tp: one.printed_bytes_per_token
                    for one in self.servers
                    if (one.engine, one.predicted.attention) == (engine, attention)
                }
                one, two = cost.get(1), cost.get(2)
                if one and two:
                    found.append(Sharing(engine, attention, two / one))
        return found

    @property
    def agreeing(self) -> int:
        """How many servers printed what was predicted."""
        return sum(bool(one.agrees) for one in self.servers)

    @property
    def verdict(self) -> str:
        """The chapter's answer."""
        if not self.sharing:
            return f"No two servers of one model were read yet. {self.agreement}"
        parts = []
        for attention in dict.fromkeys(one.attention for one in self.sharing):
            of = [one for one in self.sharing if one.attention == attention]
            for word in dict.fromkeys(one.word for one in of):
                where = " and on ".join(one.engine for one in of if one.word == word)
                meaning = {
                    "replicated": "replicated: a second rank keeps the whole of it again",
                    "halved": "halved: a second rank takes half of its heads",
                    "neither": "neither replicated nor halved by a second rank",
                }[word]
                parts.append(f"The {attention} cache is {meaning} (on {where}).")
        return f"{' '.join(parts)} {self.agreement}"

    @property
    def agreement(self) -> str:
        """How many servers printed what was predicted before they started."""
        unread = f"; not read: {', '.join(self.unread)}" if self.unread else ""
        return (
            f"{self.agreeing} of {len(self.servers)} servers printed the pool that was predicted "
            f"before they started{unread}."
        )

    @property
    def setting(self) -> str:
        """What ran where, in a sentence."""
        return (
            f"{' and '.join(self.engines)} on {'; '.join(self.hosts)}. The predictions were "
            f"written at {self.written} (UTC), before the first server of their engine started."
        )

    @property
    def sharing_says(self) -> str:
        """The cost of a token on each of two ranks over that on one, for each pair."""
        said = [f"{one.engine} {one.attention} {one.ratio:.4f}" for one in self.sharing]
        return f"{'; '.join(said)}."


def find(case: Case, layout: str = "") -> Layouts | Missing:
    """The servers of the measurements that a case refers to, or of ``layout``.

    ``layout`` is a folder that ``analysis measure kv-layout`` wrote, as a path from the project
    root.
    """
    if not layout and not case.kv_layouts:
        return Missing("No KV layout measurement belongs to this case.")
    return read(case.kv_layouts if not layout else [paths.ROOT / layout])


def read(folders: Sequence[Path]) -> Layouts | Missing:
    """The servers of all measurements in ``folders``."""
    layouts = [layout for folder in folders for layout in load_kv_layouts(folder)]
    servers = tuple(
        _server(layout, one)
        for layout in layouts
        for one in layout.predictions.servers
        if one.server in layout.readings
    )
    unread = tuple(
        f"{layout.predictions.engine} {one.server}" for layout in layouts for one in layout.left
    )
    if not servers:
        return Missing("No server of a KV layout measurement was read.")
    hosts = [layout.predictions.host for layout in layouts]
    times = [layout.predictions.written_utc for layout in layouts]
    return Layouts(
        servers,
        unread,
        tuple(
            dict.fromkeys(f"{h.processor}, {h.cores} cores, {h.memory_gib:g} GiB" for h in hosts)
        ),
        " and ".join(f"{time:%Y-%m-%d %H:%M:%S}" for time in times),
    )


def _server(layout: KvLayout, predicted: Prediction) -> Server:
    reading = layout.readings[predicted.server]
    return Server(
        engine=layout.predictions.engine,
        version=layout.predictions.version,
        predicted=predicted,
        logged_tokens=logged_tokens(reading.log),
        gauges=pool_gauges("".join(f"{line}\n" for line in reading.metrics)),
        buffers=tuple(kv_buffers(reading.log)),
    )
