"""The memory model against all pools of a table, and what the table could tell apart.

Rows with a printed size are judged one by one (``pool_check``). Rows without one only serve in
ratios, where two servers had the same memory.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path

from analysis.findings.missing import Missing
from analysis.findings.pool_check import PoolCheck, check
from analysis.model.kv_cache import LatentCache
from analysis.records.case import Case
from analysis.records.tables import PoolRow, read_table

RATIO_PCT = 0.1
"""Two starts of a server with the same setting leave memory that differs by some MiB."""


@dataclass(frozen=True)
class RatioCheck:
    """Two servers that differ in one thing and had the same memory: their tokens as a ratio."""

    one: PoolCheck
    other: PoolCheck

    @property
    def differs(self) -> str:
        """What differs: ``DCP 1 : 4`` or ``KV dtype bf16 : fp8``."""
        one, other = self.one.row, self.other.row
        parts = []
        if one.dcp != other.dcp:
            parts.append(f"DCP {one.dcp} : {other.dcp}")
        if one.kv_dtype != other.kv_dtype:
            parts.append(f"KV dtype {one.kv_dtype} : {other.kv_dtype}")
        return ", ".join(parts) or "nothing that the row says"

    @property
    def expected(self) -> float:
        """Times as many tokens by the model."""
        return (self.one.bytes_per_token or 0) / (self.other.bytes_per_token or 1)

    @property
    def printed(self) -> float:
        """Times as many tokens as printed."""
        return self.other.row.tokens / self.one.row.tokens

    @property
    def error_pct(self) -> float:
        """Printed over expected, minus one, per cent."""
        return 100 * (self.printed / self.expected - 1)

    @property
    def inside(self) -> bool:
        """Whether they agree."""
        return abs(self.error_pct) <= RATIO_PCT


@dataclass(frozen=True)
class KvValidation:
    """The finding: every row of the table, and the ratios between them."""

    checks: tuple[PoolCheck, ...]
    ratios: tuple[RatioCheck, ...]

    @property
    def sized(self) -> tuple[PoolCheck, ...]:
        """Rows that can be judged: a size was printed and the layout is known."""
        return tuple(c for c in self.checks if c.outcome in ("inside", "outside"))

    @property
    def outside(self) -> tuple[PoolCheck, ...]:
        """Rows that disagree."""
        return tuple(c for c in self.checks if c.outcome == "outside")

    @property
    def inside(self) -> int:
        """Rows that agree."""
        return len(self.sized) - len(self.outside)

    @property
    def sized_count(self) -> int:
        """How many can be judged."""
        return len(self.sized)

    @property
    def unjudged(self) -> tuple[PoolCheck, ...]:
        """Rows that nothing can be predicted for."""
        return tuple(c for c in self.checks if c.reason)

    @property
    def verdict(self) -> str:
        """The chapter's answer."""
        if not self.sized:
            return f"None of the {len(self.checks)} rows has a printed size and a known layout."
        text = (
            f"{self.inside} of {len(self.sized)} printed pools agree with the memory model to "
            "within the rounding of their own figures and one page."
        )
        for off in self.outside:
            text += f" Outside: {off.name}, by {abs(off.error_pct or 0):.1f} %."
        return text

    @property
    def largest_error_says(self) -> str:
        """The largest error of the rows that agree."""
        agreeing = [c for c in self.sized if c.outcome == "inside"]
        if not agreeing:
            return ""
        worst = max(agreeing, key=lambda c: abs(c.error_pct or 0))
        return (
            f"Of those that agree, the largest error is {abs(worst.error_pct or 0):.3f} % "
            f"({worst.name}). "
        )

    @property
    def power_says(self) -> str:
        """Whether this table could tell a latent that plain TP divides from one that it copies."""
        latent = [
            c
            for c in self.sized
            if isinstance(c.cache, LatentCache) and c.row.dcp == 1 and c.row.tp > 1
        ]
        if not latent:
            return "No row is of MLA on several ranks, so replication is not tested here."
        low = min((c.printed_bytes_per_token or 0) / _divided(c) for c in latent)
        return (
            f"Rows of MLA under plain tensor parallelism: {len(latent)}. If that divided the "
            f"latent, their printed sizes would be too large by a factor of {low:.1f} or more; "
            "the table tells the two apart."
        )

    @property
    def ratios_say(self) -> str:
        """How many ratios agree."""
        agree = sum(ratio.inside for ratio in self.ratios)
        return (
            f"{agree} of {len(self.ratios)} ratios agree to {RATIO_PCT:g} %. A ratio alone does "
            "not prove a size; it shows what decode context parallelism and the KV dtype do to it."
        )

    @property
    def alone_says(self) -> str:
        """Rows that serve for nothing, and why."""
        used = {id(c) for ratio in self.ratios for c in (ratio.one, ratio.other)}
        alone = [c for c in self.checks if c.outcome == "no size" and id(c) not in used]
        parts = [f"{c.name} ({c.row.tokens:,} tokens)" for c in alone]
        if not parts:
            return ""
        return (
            "Neither a size nor a second server with the same memory is given for "
            f"{'; '.join(parts)}. They test nothing here."
        )

    @property
    def sources_say(self) -> str:
        """Every row with its source, the lines as they stand there, and what is assumed."""
        return "\n".join(_source(check.row, check.name) for check in self.checks)

    @property
    def unsettled_say(self) -> str:
        """Every row outside, with what could explain it; every row that cannot be predicted."""
        unknown = [f"{c.name}: {c.outcome}, {c.reason}." for c in self.unjudged]
        return "\n\n".join([*(c.could_explain for c in self.outside), *unknown])


def find(case: Case, pools: str = "") -> KvValidation | Missing:
    """Check every row of the table ``pools``, or of the case's."""
    rows = read_table(Path(pools), PoolRow) if pools else case.pools
    if not rows:
        return Missing("This case refers to no table of pools that servers printed.")
    checks = tuple(check(row) for row in rows)
    return KvValidation(checks, tuple(_ratios(checks)))


def with_ratios(found: KvValidation | Missing) -> KvValidation | Missing:
    """The finding, if two of its servers had the same memory; silent if not."""
    return Missing("") if isinstance(found, KvValidation) and not found.ratios else found


def with_sizes(found: KvValidation | Missing) -> KvValidation | Missing:
    """The finding, if any row has a size to judge; silent if not."""
    return Missing("") if isinstance(found, KvValidation) and not found.sized else found


def unsettled(found: KvValidation | Missing) -> KvValidation | Missing:
    """The finding, if a row disagrees or cannot be predicted; silent if not."""
    settled = isinstance(found, KvValidation) and not (found.outside or found.unjudged)
    return Missing("") if settled else found


def _source(row: PoolRow, name: str) -> str:
    """A line of a list; double backticks, as a quoted line may hold single ones."""
    version = f" ({row.version})" if row.version else ""
    line = f" It says `` {row.line} ``." if row.line else ""
    note = f" {row.note[:1].upper()}{row.note[1:]}." if row.note else ""
    return f"- {name}, {row.tokens:,} tokens{version}: `` {row.source} ``.{line}{note}"


def _divided(check: PoolCheck) -> float:
    """What the cell would be if plain tensor parallelism divided the latent."""
    return (check.bytes_per_token or 0) / check.row.tp


def _ratios(checks: Iterable[PoolCheck]) -> Iterable[RatioCheck]:
    """Servers that had the same memory, each beside the one whose token costs most."""

    def server(check: PoolCheck) -> tuple[str, ...]:
        row = check.row
        same = (row.engine, row.version, row.model, row.config, row.memory)
        return (*same, f"{row.layers} {row.tp} {row.pp} {row.dp_attention}")

    known = [c for c in checks if c.bytes_per_token is not None and c.row.memory]
    for _, group in groupby(sorted(known, key=server), server):
        first, *others = sorted(group, key=lambda c: -(c.bytes_per_token or 0))
        yield from (RatioCheck(first, other) for other in others)
