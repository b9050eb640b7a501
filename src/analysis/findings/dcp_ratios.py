"""What decode context parallelism did to the step of a server: intercept and slope, as ratios."""

from collections import defaultdict
from dataclasses import dataclass

from analysis.findings.series import SeriesFit
from analysis.model.over_runs import OverRuns, over_runs


@dataclass(frozen=True)
class DcpRatio:
    """Plain decoding at one DCP size over that at DCP 1, paired within each published run."""

    case: str
    dcp: int
    intercepts: tuple[float, ...]
    slopes: tuple[float, ...]

    @property
    def intercept(self) -> OverRuns:
        """Ratio of the intercepts, over the runs."""
        return over_runs(self.intercepts)

    @property
    def slope(self) -> OverRuns:
        """Ratio of the slopes, over the runs."""
        return over_runs(self.slopes)


def dcp_ratios(fits: tuple[SeriesFit, ...]) -> tuple[DcpRatio, ...]:
    """Ratios for every DCP size that a run measured beside DCP 1, without speculation."""
    plain = [fit for fit in fits if fit.speculation == "none"]
    base = {(fit.case, fit.repeat): fit.prompt for fit in plain if fit.dcp == 1}
    found = defaultdict(list)
    for fit in plain:
        if fit.dcp > 1 and (fit.case, fit.repeat) in base:
            one = base[fit.case, fit.repeat]
            pair = fit.prompt.intercept_ms / one.intercept_ms, fit.prompt.slope_us / one.slope_us
            found[fit.case, fit.dcp].append(pair)
    return tuple(
        DcpRatio(case, dcp, *(tuple(values) for values in zip(*pairs, strict=True)))
        for (case, dcp), pairs in sorted(found.items())
    )
