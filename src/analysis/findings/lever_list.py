"""The levers of one server: what each changes, what it is worth, and what that rests on."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from math import sqrt
from statistics import median
from typing import Literal

from scipy.optimize import brentq

from analysis.findings.dcp_ratios import DcpRatio, dcp_ratios
from analysis.findings.plain_step import PlainStep, plain_step, with_speculation
from analysis.findings.series import Axis, LineFit, SeriesFit, fit_series
from analysis.findings.step_time import neighbour_slope_us
from analysis.findings.ways_to_fit import draft_caches
from analysis.model.draft_cache import draft_bytes_per_token
from analysis.model.levers import Change
from analysis.model.regression import Interval
from analysis.model.speculation import block_limit, expected_commit
from analysis.records.case import Case

Basis = Literal["measured", "published", "assumed"]
Kind = Literal["speculation", "drafter", "width", "slope", "intercept", "layout", "batch"]
LINE = "95 % confidence, line"
PUBLISHED = "range of published figures"
BOUNDS = "best and worst case"
NONE = "none: a single figure"
DRAFTER, KERNEL = "drafter 2 times as good", "slope vanishes"


@dataclass(frozen=True)
class Worth:
    """Factor on throughput at a context, and its interval or bounds where there are any."""

    gain: float
    bounds: Interval | None = None


@dataclass(frozen=True)
class Lever:
    """One thing to change. ``bounds_are`` says what the bounds of its worth mean.

    ``kind`` names the factor that it works on: of one kind, the best is chosen. ``change`` holds
    its factors where it is one change of the line; ``alone`` is false where it is worth something
    to all streams together and not to one.
    """

    name: str
    kind: Kind
    basis: Basis
    bounds_are: str
    worth: Callable[[float], Worth]
    note: str = ""
    change: Change | None = None
    plain: PlainStep | None = None
    alone: bool = True


def levers(case: Case, main: SeriesFit, axis: Axis, commit: float) -> list[Lever]:
    """Every lever that the facts of a case allow, for its first series at a commit length."""
    line = main.line(axis)
    found: list[Lever] = []
    if main.speculation == "none":
        found += with_speculation_on(case, main)
    else:
        found += speculation_off(case, main, axis, commit)
        found += drafters(case, main, line, commit)
    found += kernels(case, main, line)
    found += layouts(case, main, line)
    found += batches(case)
    return found


def speculation_off(case: Case, main: SeriesFit, axis: Axis, commit: float) -> Iterator[Lever]:
    """Plain decoding of the same server, measured, or published for the same kind of GPUs."""
    plain = plain_step(case, main, axis)
    if plain is None:
        return
    line = main.line(axis)

    def worth(context: float) -> Worth:
        return Worth(*plain.worth(line.fit, commit, context))

    basis: Basis = "measured" if plain.line is not None else "published"
    yield Lever(
        "speculation off", "speculation", basis, plain.bounds_are, worth, plain.note, plain=plain
    )


def with_speculation_on(case: Case, main: SeriesFit) -> Iterator[Lever]:
    """Speculating series of the same tables, as throughput over throughput."""
    pairs = with_speculation(case, main)
    if pairs is None:
        return

    def worth(context: float) -> Worth:
        gains = pairs.at(context)
        return Worth(median(gains), (min(gains), max(gains)))

    bounds = "range over published runs"
    yield Lever("speculation on", "speculation", "published", bounds, worth, pairs.note)


def drafters(case: Case, main: SeriesFit, line: LineFit, commit: float) -> Iterator[Lever]:
    """A drafter that commits more, and fewer drafts of the same one."""
    verified = case.facts.speculation.verified_tokens if case.facts.speculation else None
    block = verified[1] if verified else None
    if block is None or 2 * commit <= block:
        note = "no drafter is known to do it: an assumption, on the same text and step"
        yield _change(DRAFTER, "drafter", "assumed", line, Change(2.0), note)
    published = sorted(row.commit_length for row in case.accept)
    if published:
        ends = published[0] / commit, published[-1] / commit
        middle = median(published) / commit
        note = (
            f"{len(published)} published commit lengths of this family, {published[0]:g} to "
            f"{published[-1]:g} by task and drafter; the step is taken to stay"
        )
        change = Change(middle)
        worth = _constant(middle, ends)
        yield Lever("drafter as published", "drafter", "published", PUBLISHED, worth, note, change)
    if block is not None and 1 < commit < block and block > 2:
        yield _fewer_drafts(line, commit, block)
    if block is not None and 1 < 2 * commit <= block:
        yield _between_one_and(
            "half the verify width, same commit",
            "width",
            line,
            Change(slope=0.5),
            "from nothing to a halved slope: how the step grows with the width was not measured",
        )


def _fewer_drafts(line: LineFit, commit: float, block: int) -> Lever:
    """Half as many drafts: a constant acceptance rate gives the commit, bounds give the step."""
    drafts = block - 1
    fewer = max(1, drafts // 2)
    rate = brentq(lambda a: expected_commit(a, drafts) - commit, 0.0, 1.0)
    left = expected_commit(rate, fewer) / commit
    width = block_limit(fewer) / block

    def worth(context: float) -> Worth:
        low = Change(left).gain(line.fit, context).ratio
        high = Change(left, slope=width).gain(line.fit, context).ratio
        return Worth(sqrt(low * high), (low, high))

    note = (
        f"{fewer} instead of {drafts} drafts at an acceptance of {rate:.2f} each commit "
        f"{left * commit:.2f}; from an unchanged step to a slope that shrinks with the width"
    )
    return Lever("half as many drafts", "width", "assumed", BOUNDS, worth, note)


def kernels(case: Case, main: SeriesFit, line: LineFit) -> Iterator[Lever]:
    """Less slope or less intercept: the upper bounds of another kernel or a leaner step."""
    if line.slope_us > 0:
        note = "the most that any attention kernel can do; split-KV or another backend"
        yield _change(KERNEL, "slope", "assumed", line, Change(slope=0.0), note)
        share = draft_share(case, main)
        if share is not None:
            note = (
                f"the drafter's share is taken to be that of its cache, {100 * share:.1f} % of the "
                "bytes; the sweep does not split the slope"
            )
            name = "the target's share of the slope vanishes"
            yield _change(name, "slope", "assumed", line, Change(slope=share), note)
        note = "a kernel twice as fast over the prefix, for target and drafter alike"
        yield _change("slope halved", "slope", "assumed", line, Change(slope=0.5), note)
        beside = neighbour_slope_us(case, main)
        if beside is not None:
            note = f"{beside:.3g} us per token, from {case.compared[0].facts.engine.name}"
            change = Change(slope=beside / line.slope_us)
            name = "slope as in the case beside"
            yield _change(name, "slope", "published", line, change, note)
    if line.intercept_ms > 0:
        note = "fewer or faster weights, launches or draft steps: what no context adds to"
        change = Change(intercept=0.5)
        yield _change("intercept halved", "intercept", "assumed", line, change, note)


def layouts(case: Case, main: SeriesFit, line: LineFit) -> Iterator[Lever]:
    """Fewer bytes of cache on each GPU."""
    layout = case.facts.layout
    if case.gpu is not None and layout.kv_dtype in ("bf16", "fp16") and line.slope_us > 0:
        note = "from nothing to half the slope: only a slope set by bytes falls with them"
        yield _between_one_and("fp8 cache", "layout", line, Change(slope=0.5), note)
    if main.dcp > 1 or layout.tp == 1:
        return
    fits = (*fit_series(case), *(fit for other in case.compared for fit in fit_series(other)))
    for ratio in dcp_ratios(fits):
        if layout.tp % ratio.dcp == 0:
            yield _dcp(ratio, line, case.name)


def _dcp(ratio: DcpRatio, line: LineFit, case: str) -> Lever:
    """Intercept and slope change as they did in published runs; their scatter is added."""
    changes = [
        Change(intercept=a, slope=b) for a, b in zip(ratio.intercepts, ratio.slopes, strict=True)
    ]
    change = Change(intercept=ratio.intercept.value, slope=ratio.slope.value)

    def worth(context: float) -> Worth:
        gains = [each.gain(line.fit, context).ratio for each in changes]
        gain = change.gain(line.fit, context).ratio
        return Worth(gain, (min(gains), max(gains)) if len(gains) > 1 else None)

    note = (
        f"intercept times {change.intercept:.2f} and slope times {change.slope:.2f}, as in "
        f"{len(changes)} published run{'s' if len(changes) > 1 else ''} without speculation"
        + ("" if ratio.case == case else f" of {ratio.case}")
    )
    bounds = "published runs, line as fitted" if len(changes) > 1 else NONE
    return Lever(f"DCP {ratio.dcp}", "layout", "published", bounds, worth, note, change)


def batches(case: Case) -> Iterator[Lever]:
    """Published plain decoding of the first system of the table at larger batches."""
    rows = [row for row in case.plain if case.facts.engine.name.lower() in row.system.lower()]
    first = next((row for row in rows if row.batch == 1), None)
    if first is None:
        return
    for row in rows:
        if row.batch == 1 or row.system != first.system:
            continue
        every = row.tok_per_s / first.tok_per_s
        note = f"published without speculation at {row.prompt_tokens:,} tokens of prompt"
        for name, gain, alone in (
            (f"batch of {row.batch}, for one stream", every / row.batch, True),
            (f"batch of {row.batch}, for all streams", every, False),
        ):
            worth = _constant(gain)
            yield Lever(name, "batch", "published", NONE, worth, note, alone=alone)


def draft_share(case: Case, main: SeriesFit) -> float | None:
    """The draft cache's share of all cache bytes of a token, where the drafter is known."""
    speculation, target = case.facts.speculation, case.model
    if speculation is None or not speculation.draft_model or target is None:
        return None
    if main.bytes_per_token is None:
        return None
    ranks = case.facts.layout.parallelism(main.dcp)
    drafter = draft_caches(case)[-1]
    draft = draft_bytes_per_token(target.cache, drafter, case.facts.layout.kv_dtype, ranks)
    return draft / (draft + main.bytes_per_token)


def _constant(gain: float, bounds: Interval | None = None) -> Callable[[float], Worth]:
    return lambda _: Worth(gain, bounds)


def _change(name: str, kind: Kind, basis: Basis, line: LineFit, change: Change, note: str) -> Lever:
    """A change of the line with fixed factors: only the line is uncertain."""

    def worth(context: float) -> Worth:
        found = change.gain(line.fit, context)
        return Worth(found.ratio, found.interval95)

    exact = change.intercept == change.slope
    return Lever(
        name,
        kind,
        basis,
        "exact by assumption" if exact else LINE,
        _constant(change.commit / change.slope) if exact else worth,
        note,
        change,
    )


def _between_one_and(name: str, kind: Kind, line: LineFit, most: Change, note: str) -> Lever:
    def worth(context: float) -> Worth:
        gain = most.gain(line.fit, context).ratio
        return Worth(sqrt(gain), (min(1.0, gain), max(1.0, gain)))

    return Lever(name, kind, "assumed", BOUNDS, worth, note)
