"""The pictures on the page of a diagnosis: the split, the windows over time, the step."""

from math import prod

from matplotlib.figure import Figure

from analysis.findings.diagnosis_types import Diagnosis, StepFit, Summary
from analysis.report.page import paste
from analysis.report.page.words import count, number
from analysis.report.page.write import Picture, drawn
from analysis.report.plots.split import Stage, waterfall
from analysis.report.plots.windows import key, over_context, over_time
from analysis.report.style import new_figure

WIDTH = 5.6
"""Inches: whole on a phone, with text that is still read there."""
SAME = 0.01
"""Medians whose product is this close to the median throughput need no remark."""


def split_picture(summary: Summary) -> Picture | None:
    """Steps per second, times commit, times running requests: throughput."""
    speed, commit, step = summary.tok_per_s, summary.commit, summary.step_ms
    if speed is None or commit is None or step is None or step.median <= 0:
        return None
    pace = 1000 / step.median
    several = summary.running is not None and abs(summary.running.median - 1) > SAME
    fast = (1000 / step.high, 1000 / step.low) if step.low and step.high else (None, None)
    stages = [
        Stage(f"1 / step of {number(step.median)} ms", f"{number(pace)} steps/s", pace, pace, *fast)
    ]
    factors = [(f"× commit of {number(commit.median)} tokens/step", commit)]
    if several and summary.running is not None:
        factors.append((f"× {number(summary.running.median)} running", summary.running))
    at = pace
    for name, factor in factors:
        low = at * factor.low if factor.low else None
        high = at * factor.high if factor.high else None
        end = at * factor.median
        stages.append(Stage(name, f"{number(end)} tok/s", at, end, low, high))
        at = end
    stages.append(
        Stage(
            "throughput, measured",
            f"{number(speed.median)} tok/s",
            speed.median,
            speed.median,
            speed.low,
            speed.high,
        )
    )

    def draw() -> Figure:
        figure = new_figure(WIDTH, 0.42 * len(stages) + 0.85)
        waterfall(figure.subplots(), stages)
        return figure

    product = prod([pace, *(factor.median for _, factor in factors)])
    words = f"{number(pace)} steps per second, times " + ", times ".join(
        name.removeprefix("× ") for name, _ in factors
    )
    near = abs(product / speed.median - 1) <= SAME
    remark = "" if near else " Medians of different windows need not multiply exactly."
    bars = " Black bars: 95 % confidence intervals of the medians." if commit.low else ""
    return Picture(
        id="split",
        svg=drawn(draw),
        alt=f"The split of throughput on a log axis: {words}, gives {number(product)} tokens per "
        f"second; the median throughput measured is {number(speed.median)}.",
        caption=f"Throughput is commit over step: {words}.{remark}{bars}",
    )


def time_picture(result: Diagnosis) -> Picture | None:
    """Throughput and commit of every window over time."""
    if not result.windows or not result.windows_total:
        return None
    wanted = [("tok_per_s", "throughput\n(tok/s)"), ("commit", "commit\n(tokens/step)")]
    columns = [
        (name, label)
        for name, label in wanted
        if any(bool((getattr(batch, name) > 0).any()) for batch in result.windows)
    ]
    if not columns:
        return None

    def draw() -> Figure:
        figure = new_figure(WIDTH, 2.1 * len(columns) + 0.9)
        axes = figure.subplots(len(columns), 1, sharex=True, squeeze=False)[:, 0]
        for axis, (name, label) in zip(axes, columns, strict=True):
            middle = getattr(result.summary, name)
            over_time(axis, result.windows, name, label, middle.median if middle else None)
        for axis in axes[:-1]:
            axis.set_xlabel("")
        figure.align_ylabels()
        key(figure, result.windows, [name for name, _ in columns])
        return figure

    what = " and ".join(label.split("\n")[0] for _, label in columns)
    used, flagged = result.summary.windows_used, result.summary.windows_flagged
    return Picture(
        id="over-time",
        svg=drawn(draw),
        alt=f"{what.capitalize()} of {count(result.windows_total, 'window')} in the order of the "
        f"log: {used:,} count and are full markers, {flagged:,} are flagged and hollow.",
        caption=f"{what.capitalize()} over time. {_point(result)} "
        + (
            "Every window is flagged: none of them shows decoding alone."
            if not used
            else "The dashed line is the median of those that count."
        ),
    )


def context_picture(result: Diagnosis) -> Picture | None:
    """The step of every window over its context, with the line where one was fitted."""
    known = [
        batch
        for batch in result.windows
        if bool(((batch.step_ms > 0) & (batch.context_tokens > 0)).any())
    ]
    if not known:
        return None
    fit = result.fit

    def draw() -> Figure:
        figure = new_figure(WIDTH, 3.6)
        line = (fit.intercept_ms, fit.slope_us_per_token / 1000) if fit else None
        over_context(figure.subplots(), result.windows, line, fit.context_range if fit else None)
        key(figure, result.windows, ["step_ms"], "fitted line, over its range" if fit else "")
        return figure

    words = paste.fit(fit) if fit else "no line could be fitted"
    return Picture(
        id="over-context",
        svg=drawn(draw),
        alt=f"The step in milliseconds over the context of a running request: {words}.",
        caption=f"Step against context: {words}. {_point(result)}"
        + (f" {_bend(fit)}" if fit else ""),
    )


def _point(result: Diagnosis) -> str:
    most = max((int(batch.count.max()) for batch in result.windows if len(batch)), default=1)
    if most == 1:
        return "A point is a window of the log."
    return f"A point is the mean of up to {count(most, 'successive window')}."


def _bend(fit: StepFit) -> str:
    if fit.linearity is None or fit.linearity.p is None:
        return ""
    verdict = "bends" if fit.linearity.p < 0.05 else "does not visibly bend"
    return f"It {verdict} (nested F test, p = {fit.linearity.p:.2g})."
