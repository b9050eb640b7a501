"""What could make up the gap between a slope and its bandwidth limit, and what would decide it.

Each factor is the most that one explanation could account for. None was measured: a product of
ceilings that reaches the gap shows that they could, and no more.
"""

from dataclasses import dataclass

from analysis.findings.missing import Missing
from analysis.findings.roofline import Roofline, SeriesRate
from analysis.model.roofline import occupancy_ceiling


@dataclass(frozen=True)
class Gap:
    """The gap of the first series; ``blocks`` are the thread blocks of one request on one GPU."""

    rate: SeriesRate
    multiprocessors: int
    factor: float
    memory_us: float

    @property
    def blocks(self) -> int:
        """One for each head: a kernel without a split over the context has no more."""
        return self.rate.limit.cost.heads

    @property
    def occupancy_limit(self) -> float:
        """What too few blocks explain at most."""
        return occupancy_ceiling(self.blocks, self.multiprocessors)

    @property
    def occupancy_us(self) -> float:
        """The slope of a kernel at that ceiling, us per token."""
        return self.occupancy_limit * self.memory_us

    @property
    def unexplained(self) -> float:
        """The factor that the occupancy ceiling leaves."""
        return self.factor / self.occupancy_limit

    @property
    def by_query(self) -> int | None:
        """What reading the cache anew for each verified token explains at most."""
        return self.rate.queries[1] if self.rate.queries else None

    @property
    def by_head(self) -> int:
        """What reading it anew for each head that could share it explains at most."""
        return self.rate.limit.cost.sharing

    @property
    def together(self) -> float:
        """All three at their most."""
        return self.occupancy_limit * (self.by_query or 1) * self.by_head

    @property
    def full_from(self) -> int:
        """Requests at once from which every multiprocessor has a block."""
        return -(-self.multiprocessors // self.blocks)

    @property
    def says(self) -> str:
        """The candidates in words."""
        ceiling = (
            f"**Too few thread blocks.** A kernel that walks the context in one block for each "
            f"sequence and head has {self.blocks} of them on each GPU at one request. On "
            f"{self.multiprocessors} multiprocessors that explains at most a factor of "
            f"{self.occupancy_limit:.1f}: a slope of {self.occupancy_us:.3g} us per token."
        )
        if self.unexplained <= 1:
            return (
                f"{ceiling} The measured factor is {self.factor:.3g}, within that. Whether too "
                "few blocks are the cause is not decided by it."
            )
        return f"{ceiling} A factor of {self.unexplained:.3g} is left.\n\n{self._reading_says}"

    @property
    def _reading_says(self) -> str:
        query = f"{self.by_query} times for its tokens" if self.by_query else "once for each token"
        reach = "more than" if self.together > self.factor else "less than"
        return (
            f"**Reading the cache more than once.** A step whose tokens and heads do not share one "
            f"reading reads it up to {query} and {self.by_head} times for its heads, as far as the "
            f"GPU's own cache does not serve the repeats. All ceilings together reach "
            f"{self.together:,.0f}, {reach} the gap of {self.factor:.3g}"
            + (
                ": they could make it up, in many ways, and one slope does not tell which."
                if self.together > self.factor
                else ": something else is at work too."
            )
        )

    @property
    def decides(self) -> str:
        """What would tell the candidates apart, each with what it predicts."""
        return "\n".join(
            [
                f"- **More requests at once.** If too few blocks are the cause, the slope of a "
                f"step hardly grows until {self.full_from} requests fill the multiprocessors.",
                "- **Another number of drafts.** If each token reads the cache alone, the slope "
                "grows in proportion to the tokens that a step verifies; if they share one "
                "reading, it does not.",
                "- **Another attention kernel**, one that splits the context. The part that too "
                "few blocks explain goes away, and the rest stays.",
                "- **A profile of the kernel**: bytes read from memory for each step over the "
                "bytes of the cache is how often it was read.",
            ]
        )


def find(found: Roofline | Missing) -> Gap | Missing:
    """The gap, where the limit and the multiprocessors of the GPU are known; silent if not."""
    if isinstance(found, Missing):
        return found
    memory, factor, gpu = found.main.limit.memory_us, found.slope_over_memory, found.main.limit.gpu
    if gpu is None or memory is None or factor is None:
        return Missing("")
    if gpu.multiprocessors is None:
        return Missing(
            "How many multiprocessors this GPU has is not known, so no ceiling is given."
        )
    return Gap(found.main, gpu.multiprocessors, factor, memory)
