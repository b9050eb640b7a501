"""The page of `analysis compare`: whether a change lies in the step or in the commit."""

from dataclasses import replace
from pathlib import Path

import numpy as np
from matplotlib.figure import Figure

from analysis.findings.comparison import Comparison
from analysis.findings.sides import Side
from analysis.model.log_ratio import LogRatio
from analysis.model.regression import Interval
from analysis.report.page import paste
from analysis.report.page.diagnose_pictures import WIDTH
from analysis.report.page.words import (
    UNDEFINED,
    count,
    made_by,
    number,
    short_names,
    span,
    with_short_name,
    with_span,
)
from analysis.report.page.write import Page, Picture, Table, drawn, redacted, write_page
from analysis.report.plots.split import Ratio, Values, ratios, two_sides
from analysis.report.style import legend_below, new_figure

SCOPE = (
    "Each ratio is a factor on the throughput of one stream: after over before for throughput and "
    "commit, before over after for the step, so that commit times step is throughput exactly. The "
    "comparison is of these two sessions; what else differed between them is not known here."
)
SIDE_COLUMNS = (
    ("tok_per_s_per_stream", "throughput per stream", "tok/s"),
    ("commit", "commit", "tokens/step"),
    ("step_ms", "step", "ms"),
    ("context_tokens", "context", "tokens"),
    ("running", "running requests", ""),
)


def write(result: Comparison, out: Path, *, redact: bool = True) -> None:
    """Write the page of one comparison; ``redact`` takes hosts, people and paths out."""
    page = page_of(named(result))
    write_page(redacted(page) if redact else page, out)


def named(result: Comparison) -> Comparison:
    """The same, with files named without their folders."""
    return replace(
        result,
        before=with_short_name(result.before),
        after=with_short_name(result.after),
        notes=short_names(result.notes, (result.before, result.after)),
    )


def page_of(result: Comparison) -> Page:
    """All that the page says, nothing taken out of it yet."""
    return Page(
        command="compare",
        title="What changed: the step or the commit?",
        verdict=result.sentence,
        details=result.details,
        lead=ratio_picture(result),
        numbers=(_ratios(result), _sides(result)),
        scope=SCOPE,
        pictures=tuple(filter(None, (sides_picture(result),))),
        flags=(),
        flags_text="",
        passed_over=(),
        paste=paste.for_comparison(result, redact=False),
        made_from=(
            f"Before: {result.before.name} ({result.before.kind})",
            f"After: {result.after.name} ({result.after.kind})",
            f"Made by {made_by('compare')}",
        ),
    )


def ratio_picture(result: Comparison) -> Picture:
    """Throughput, commit and step as factors, with their intervals."""
    factors = paste.factors(result)

    def draw() -> Figure:
        figure = new_figure(WIDTH, 0.5 * len(factors) + 0.9)
        rows = [_row(name, ratio) for name, ratio in factors]
        ratios(figure.subplots(), rows)
        return figure

    said = "; ".join(
        f"{name} × {with_span(ratio.ratio, ratio.interval95)}" for name, ratio in factors
    )
    bars = any(ratio.interval95 for _, ratio in factors)
    caption = (
        "Commit times step is throughput; a step factor above 1 is a faster step."
        if result.split is not None
        else "A commit length is not known on both sides, so that the change cannot be split."
    )
    return Picture(
        id="ratios",
        svg=drawn(draw),
        alt=f"Factors from before to after on a log axis, with a line at 1: {said}.",
        caption=caption + (" Black bars: 95 % confidence intervals." if bars else ""),
    )


def sides_picture(result: Comparison) -> Picture | None:
    """Step and commit of every value of both sides over context."""
    wanted = [("step_ms", "step (ms)"), ("commit", "commit (tokens/step)")]
    if result.split is None:
        wanted = [("tok_per_s_per_stream", "throughput per stream (tok/s)")]
    named = (("before", result.before), ("after", result.after))

    def draw() -> Figure:
        figure = new_figure(WIDTH, 3.2)
        axes = figure.subplots(1, len(wanted), squeeze=False)[0]
        for axis, (column, label) in zip(axes, wanted, strict=True):
            sides = [
                Values(name, side.context_tokens, getattr(side, column)) for name, side in named
            ]
            two_sides(axis, sides, label)
        legend_below(axes[0])
        return figure

    sizes = " and ".join(f"{count(len(side), 'value')} {name}" for name, side in named)
    what = " and ".join(label.split(" (")[0] for _, label in wanted)
    return Picture(
        id="sides",
        svg=drawn(draw),
        alt=f"{what.capitalize()} over the context of a request, {sizes}; before full circles, "
        "after hollow diamonds.",
        caption=f"{what.capitalize()} of what was compared: {sizes}.",
    )


def _row(name: str, ratio: LogRatio) -> Ratio:
    low, high = ratio.interval95 or (None, None)
    return Ratio(name, f"× {with_span(ratio.ratio, ratio.interval95)}", ratio.ratio, low, high)


def _ratios(result: Comparison) -> Table:
    shares: dict[str, tuple[float | None, Interval | None]] = {}
    if result.split is not None:
        one = result.split
        shares = {
            "commit": (one.commit_share, one.commit_share_interval95),
            "step, before / after": (one.step_share, one.step_share_interval95),
        }
    detectable = result.smallest_detectable_pct
    power = (
        ""
        if detectable is None
        else f"; a change of {number(detectable)} % would have shown with 80 % power"
    )
    return Table(
        "ratios",
        f"Factors on the throughput of one stream{power}",
        ("factor", "ratio", "95 % confidence interval (Student's t)", "share of the change"),
        tuple(
            (
                name,
                f"× {number(ratio.ratio)}",
                span(ratio.interval95, ratio.ratio),
                _share(*shares.get(name, (None, None))),
            )
            for name, ratio in paste.factors(result)
        ),
    )


def _share(share: float | None, ends: Interval | None) -> str:
    """A share in per cent, with its interval in brackets."""
    if share is None:
        return UNDEFINED
    between = "" if ends is None else f" ({100 * ends[0]:.0f} to {100 * ends[1]:.0f})"
    return f"{100 * share:.0f}{between} %".replace("-", "−")


def _sides(result: Comparison) -> Table:
    rows: list[tuple[str, ...]] = [
        ("values compared", f"{len(result.before):,}", f"{len(result.after):,}")
    ]
    for column, name, unit in SIDE_COLUMNS:
        cells = [_median(side, column, unit) for side in (result.before, result.after)]
        if set(cells) != {UNDEFINED}:
            rows.append((f"median {name}", *cells))
    return Table("sides", "Both sides, as compared", ("quantity", "before", "after"), tuple(rows))


def _median(side: Side, column: str, unit: str) -> str:
    values = getattr(side, column)
    if not np.isfinite(values).any():
        return UNDEFINED
    return f"{number(float(np.nanmedian(values)))} {unit}".strip()
