"""Tables of the step-time model: lines, bands, slopes beside limits, levers, extrapolations."""

import numpy as np
import pandas as pd

from analysis.findings.series import LineFit, SeriesFit
from analysis.findings.step_time import StepTimes

DRAFTER_GAIN = 2.0


def parameters(found: StepTimes) -> pd.DataFrame:
    """Intercept and slope of every line of the case."""
    return pd.DataFrame(
        [
            {
                "series": _name(series),
                "axis": line.axis,
                "weights": line.weights,
                "n": line.fit.n,
                "intercept_ms": line.intercept_ms,
                "intercept_ci95": line.intercept_ci95,
                "slope_us": line.slope_us,
                "slope_ci95": line.slope_ci95,
            }
            for series in found.series
            for line in series.lines
        ]
    )


def straightness(found: StepTimes) -> pd.DataFrame:
    """The F test, the size of the bend and the power, of every series."""
    rows = []
    for series in found.series:
        for line in series.lines:
            if line.axis == "prompt" and line.linearity is not None:
                evidence = line.linearity
                rows.append(
                    {
                        "series": _name(series),
                        "weights": line.weights,
                        "n": line.fit.n,
                        "f": evidence.f,
                        "p": evidence.p,
                        "bend_pct": evidence.bend_pct,
                        "bend_ci95": evidence.bend_ci95,
                        "power": evidence.power,
                    }
                )
    return pd.DataFrame(rows)


def lines(found: StepTimes) -> pd.DataFrame:
    """Points, lines, confidence and prediction bands of the first repeat, per context axis."""
    rows: list[dict[str, object]] = []
    for series in _first_repeat(found):
        for axis in ("prompt", "mean") if series.has_mean_axis else ("prompt",):
            line = series.line(axis)
            rows += [
                {
                    "axis": axis,
                    "series": series.series,
                    "kind": "measured",
                    "context_tokens": c,
                    "step_ms": s,
                }
                for c, s in zip(line.contexts, line.steps, strict=True)
            ]
            rows += [
                {
                    "axis": axis,
                    "series": series.series,
                    "kind": "line",
                    "context_tokens": float(c),
                    "step_ms": line.fit.at(c),
                    "confidence_low": (line.fit.confidence_interval(c) or (None, None))[0],
                    "confidence_high": (line.fit.confidence_interval(c) or (None, None))[1],
                    "prediction_low": (line.fit.prediction_interval(c) or (None, None))[0],
                    "prediction_high": (line.fit.prediction_interval(c) or (None, None))[1],
                }
                for c in np.linspace(0, 1.08 * max(line.contexts), 40)
            ]
    table = pd.DataFrame(rows)
    if found.main.measured:
        table["step_kind"] = "measured"
    return table


def slopes(found: StepTimes) -> pd.DataFrame:
    """Measured slopes of this case and of those beside it, with their bandwidth limits."""
    rows = []
    for series in (*found.series, *found.compared):
        rows.append(
            {
                "series": f"{series.case}: {_name(series)}",
                "n": series.n,
                "bytes_per_token": series.bytes_per_token,
                "slope_us": series.prompt.slope_us,
                "slope_ci95": series.prompt.slope_ci95,
                "counted_slope_us": series.counted_slope_us,
                "bandwidth_us": series.bandwidth_us,
                "limit_ratio": series.over_bandwidth,
            }
        )
    return pd.DataFrame(rows).dropna(axis="columns", how="all")  # no limit without a GPU


def slope_dots(found: StepTimes) -> pd.DataFrame:
    """The same for drawing: interval ends in columns of their own."""
    table = slopes(found)
    ends = table.pop("slope_ci95")
    table["slope_low"] = [end[0] if end else None for end in ends]
    table["slope_high"] = [end[1] if end else None for end in ends]
    table["case"] = [str(name).split(":")[0] for name in table["series"]]
    return table


def pooled(found: StepTimes) -> pd.DataFrame:
    """Slopes of speculative series that follow only with one pooled commit length."""
    return pd.DataFrame(
        [
            {
                "series": f"{p.series} {p.repeat}".strip(),
                "n": p.n,
                "commit_length": p.commit_length,
                "interval": (p.commit_low, p.commit_high),
                "slope_us": p.slope_us,
            }
            for p in found.pooled
        ],
        columns=["series", "n", "commit_length", "interval", "slope_us"],
    )


def levers(found: StepTimes) -> pd.DataFrame:
    """What a vanished slope, a slope like the best neighbour's and a 2x drafter are worth."""
    rows = []
    for axis in ("prompt", "mean") if found.main.has_mean_axis else ("prompt",):
        line: LineFit = found.main.line(axis)
        named = {"slope vanishes": 0.0}
        if found.neighbour_slope_us is not None:
            named["slope as in the case beside"] = found.neighbour_slope_us
        for context in np.linspace(0, 1.08 * max(line.contexts), 40):
            rows += [
                {
                    "axis": axis,
                    "lever": name,
                    "context_tokens": float(context),
                    "gain": line.gain_of_slope(slope, context),
                }
                for name, slope in named.items()
            ]
            rows.append(
                {
                    "axis": axis,
                    "lever": "drafter twice as good",
                    "context_tokens": float(context),
                    "gain": DRAFTER_GAIN,
                }
            )
    return pd.DataFrame(rows)


def extrapolations(found: StepTimes) -> pd.DataFrame:
    """Line, quadratic and weighted quadratic from the data out to the wished context."""
    inside = found.longest_context
    outside = np.geomspace(inside, max(found.wished_tokens, 2 * inside), 30)
    rows = []
    for context in (*np.linspace(0, inside, 12), *outside[1:]):
        for kind, value in zip(
            ("line", "quadratic", "weighted quadratic"),
            found.extrapolated(float(context)),
            strict=True,
        ):
            rows.append(
                {
                    "kind": kind,
                    "context_tokens": float(context),
                    "step_ms": value,
                    "measured": bool(context <= inside),
                }
            )
    return pd.DataFrame(rows)


def far_steps(found: StepTimes) -> pd.DataFrame:
    """The three models at contexts beyond the data."""
    rows = []
    for context in sorted(
        {float(found.longest_context), float(found.far_tokens), float(found.wished_tokens)}
    ):
        straight, curve, weighted = found.extrapolated(context)
        rows.append(
            {
                "context_tokens": context,
                "line_ms": straight,
                "quadratic_ms": curve,
                "weighted_quadratic_ms": weighted,
            }
        )
    return pd.DataFrame(rows)


def _first_repeat(found: StepTimes) -> list[SeriesFit]:
    return [series for series in found.series if series.repeat == found.main.repeat]


def _name(series: SeriesFit) -> str:
    return f"{series.series} {series.repeat}".strip()
