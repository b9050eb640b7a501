"""The parts of a diagnosis from a log."""

from dataclasses import dataclass, field

from analysis.model.linearity import Linearity
from analysis.model.regression import Interval
from analysis.records.seen import Seen
from analysis.records.windows import Flag, Windows

SUMMARISED = (
    "commit",
    "acceptance_length",
    "step_ms",
    "tok_per_s",
    "context_tokens",
    "running",
)


@dataclass(frozen=True)
class Middle:
    """A median with its 95 % confidence interval, and of which kind that is.

    The interval counts as many independent windows as their correlation in time leaves; it is
    undefined below two of them.
    """

    median: float
    low: float | None = None
    high: float | None = None
    kind: str = ""


@dataclass(frozen=True)
class StepFit:
    """``step_ms = intercept + slope * context`` over the windows that count, at one running count.

    Intervals are 95 % confidence intervals by Student's t, widened for correlation in time.
    ``linearity`` is undefined with fewer than three contexts.
    """

    intercept_ms: float
    intercept_ci95: Interval | None
    slope_us_per_token: float
    slope_ci95: Interval | None
    n: int
    running: float
    context_range: Interval
    linearity: Linearity | None
    of_bins: bool


@dataclass(frozen=True)
class Summary:
    """Medians over the windows without a flag; ``None`` where there is no such window."""

    windows_used: int
    windows_flagged: int
    commit: Middle | None
    acceptance_length: Middle | None
    step_ms: Middle | None
    tok_per_s: Middle | None
    context_tokens: Middle | None
    running: Middle | None


@dataclass(frozen=True)
class Diagnosis:
    """What a log says.

    ``windows`` hold one batch a file and engine: every window, or bins of equal count where there
    are more than ``BINS`` of them (``binned``). ``flags`` counts windows by flag; a window may
    carry several. ``verdict`` is one sentence and ``details`` are those that follow it.
    """

    engine: str
    version_hint: str
    windows_total: int
    windows: tuple[Windows, ...]
    binned: bool
    summary: Summary
    fit: StepFit | None
    flags: dict[Flag, int]
    seen: Seen
    verdict: str
    details: tuple[str, ...] = field(default=())
