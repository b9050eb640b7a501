"""Does commit length over step give the throughput that the client saw?

Only where the two were timed apart: the step by the engine's clock, the throughput by the
client's. Where the step was worked out from the throughput the identity is true by construction.
The number of steps cancels in it: a second count of them, by the engine's own counter, is the test
of that.
"""

from dataclasses import dataclass
from statistics import median

from analysis.model.step_time import throughput
from analysis.records.case import Case
from analysis.records.run import Sample


@dataclass(frozen=True)
class Identity:
    """The client's throughput over commit / step, minus one, per cent, of every request.

    ``recounted`` requests have a second count of steps, ``same_count`` of them the same one.
    """

    gaps_pct: tuple[float, ...]
    recounted: int
    same_count: int

    @property
    def n(self) -> int:
        """Requests that were timed by both clocks."""
        return len(self.gaps_pct)

    @property
    def median_pct(self) -> float:
        """Median gap."""
        return median(self.gaps_pct)

    @property
    def range_pct(self) -> tuple[float, float]:
        """Least and greatest gap."""
        return min(self.gaps_pct), max(self.gaps_pct)

    @property
    def says(self) -> str:
        """How well commit over step gives the client's throughput, in a sentence or two."""
        low, high = self.range_pct
        text = (
            f"In {self.n} requests the client's throughput differs from commit over step by "
            f"{self.median_pct:+.2f} % (median; {low:+.2f} to {high:+.2f} %)."
        )
        if self.recounted:
            text += (
                f" The number of steps cancels in that; the engine's counter of steps gives the "
                f"same number in {self.same_count} of {self.recounted} requests."
            )
        return text


def find(case: Case) -> Identity | None:
    """Compare both clocks over the unflagged requests of the context sweeps of a case's runs."""
    sweeps = [sample for run in case.runs for sample in run.of("context-sweep")]
    used = [sample for sample in sweeps if not sample.flags]
    gaps = tuple(gap for sample in used if (gap := _gap_pct(sample)) is not None)
    counted = [s for s in used if s.counter_steps is not None and s.steps is not None]
    same = sum(sample.counter_steps == sample.steps for sample in counted)
    return Identity(gaps, len(counted), same) if gaps else None


def _gap_pct(sample: Sample) -> float | None:
    commit, step, client = sample.commit_length, sample.step_ms, sample.client_step_ms
    if sample.engine_decode_ms is None or not commit or not step or not client:
        return None
    return 100 * (throughput(commit, client) / throughput(commit, step) - 1)
