"""One condition of break-even: plain and speculating decoding at the same context and batch."""

from dataclasses import dataclass, replace
from math import exp, log

import numpy as np

from analysis.findings.matching import Matched, cells, match
from analysis.findings.sides import Side
from analysis.model.log_ratio import LogRatio
from analysis.model.observed import Observed
from analysis.model.regression import Interval
from analysis.model.same_context import Adjustment, align
from analysis.model.speculation import can_reach, speed_up
from analysis.model.split import CLOSE
from analysis.model.step_line import SAME_CONTEXT, step_line


@dataclass(frozen=True)
class Row:
    """Plain and speculating decoding at one context, batch and text.

    ``context_tokens`` is the mean context while decoding; ``break_even`` and ``gain`` are ratios
    with what is known of their uncertainty. ``block`` is the most tokens that a step can commit.
    """

    label: str
    text: str
    context_tokens: float | None
    running: float
    base_step_ms: float
    spec_step_ms: float
    break_even: LogRatio
    gain: LogRatio | None
    commit: float | None
    block: int | None
    adjustment: Adjustment = "same contexts"

    @property
    def break_even_commit(self) -> float:
        """Commit length that only matches plain decoding, tokens per step."""
        return self.break_even.ratio

    @property
    def break_even_interval95(self) -> Interval | None:
        """Its 95 % confidence interval; ``None`` without repeats."""
        return self.break_even.interval95

    @property
    def reachable(self) -> bool | None:
        """Whether a block of this size can commit as much; ``None`` where none is known."""
        return None if self.block is None else can_reach(self.break_even_commit, self.block)

    @property
    def speedup(self) -> float | None:
        """Throughput over that of plain decoding; ``None`` without a commit length."""
        return None if self.commit is None else speed_up(self.commit, self.break_even_commit)

    @property
    def speedup_interval95(self) -> Interval | None:
        """Its 95 % confidence interval."""
        return None if self.gain is None else self.gain.interval95

    @property
    def pays(self) -> bool | None:
        """Whether speculation is faster here; ``None`` where undecided or without a commit length.

        Undecided is a speed-up whose interval holds 1 or, where it has none, one within 5 % of 1.
        """
        if self.speedup is None:
            return None
        interval = self.speedup_interval95
        if interval is None:
            return None if abs(log(self.speedup)) <= log(1 + CLOSE) else self.speedup > 1
        return None if interval[0] <= 1 <= interval[1] else self.speedup > 1


def speculating(side: Side, notes: list[str]) -> Side:
    """Without the series that commit one token in every row, where others commit more."""
    plain = {
        name
        for name in side.series_names
        if np.all(side.commit[np.array([s == name for s in side.series])] == 1)
    }
    if not plain or len(plain) == len(side.series_names):
        return side
    notes.append(f"plain rows of {side.name} are left out: {', '.join(sorted(plain))}")
    return side.rows(np.array([name not in plain for name in side.series]))


def conditions(side: Side) -> list[Side]:
    """Rows of one series, text, batch and context each; windows of one batch together."""
    names = ("",) * len(side)
    if not side.successive:
        names = cells(_unnamed(side), _unnamed(side))[0]
    keys = list(zip(side.series, side.text, names, side.running.tolist(), strict=True))
    groups = [side.rows(np.array([key == one for key in keys])) for one in dict.fromkeys(keys)]
    return [_by_request(group) for group in groups]


def _by_request(side: Side) -> Side:
    """One row a request where there are several: repeats of one prompt are no new text."""
    names = list(dict.fromkeys(side.request))
    if len(names) < 2:
        return side
    places = [[i for i, request in enumerate(side.request) if request == name] for name in names]
    kept = np.isin(np.arange(len(side)), [group[0] for group in places])
    means = [
        np.exp([float(np.log(column[group]).mean()) for group in places])
        for column in (side.commit, side.step_ms)
    ]
    return replace(side.rows(kept), commit=means[0], step_ms=means[1])


def row(base: Side, spec: Side, block: int | None) -> Row | str:
    """One row, or why there is none."""
    running = float(spec.running[0])
    label = ", ".join(part for part in (spec.series[0], spec.text[0]) if part)
    plain = base.rows(base.running == running)
    if not len(plain):
        return f"no plain decoding at {running:g} running{_of(label)}"
    drafted = np.isfinite(spec.commit)
    spec = spec.rows(drafted) if drafted.any() else replace(spec, commit=np.ones(len(spec)))
    if spec.text[0] in plain.text:
        plain = plain.rows(np.array([text == spec.text[0] for text in plain.text]))
    one, two = _observed(plain, spec)
    found = align(one, two)
    if found.adjustment == "none" or (found.contexts[0] is None) != (found.contexts[1] is None):
        return f"no plain decoding at {_tokens(found.contexts[1])}{_of(label)}"
    at = found.contexts[1] if found.adjustment == "same contexts" else found.at_context
    ratio = LogRatio(-found.step.value, found.step.variance, found.step.dof)
    step = _spec_step_ms(one, two, found.adjustment, at, ratio)
    own = spec.block[np.isfinite(spec.block)]
    return Row(
        label=label,
        text=spec.text[0],
        context_tokens=at,
        running=running,
        base_step_ms=step / ratio.ratio,
        spec_step_ms=step,
        break_even=ratio,
        gain=found.throughput if drafted.any() else None,
        commit=found.commit.ratio if drafted.any() else None,
        block=block if block is not None else int(own[0]) if len(own) else None,
        adjustment=found.adjustment,
    )


def at_commit(row: Row, commit: float) -> Row:
    """The same row at another commit length, which has no error of its own."""
    ratio = row.break_even
    gain = LogRatio(log(commit) - ratio.value, ratio.variance, ratio.dof)
    return replace(row, commit=commit, gain=gain)


def _observed(plain: Side, spec: Side) -> tuple[Observed, Observed]:
    """Both sides for the model. Plain decoding near the context of ``spec`` is its partner; its
    text does not matter, since nothing is drafted.
    """
    plain, spec = _unnamed(plain), _unnamed(spec)
    at = float(spec.context_tokens.mean())
    near = np.isnan(plain.context_tokens)
    if np.isfinite(at):
        near = np.abs(plain.context_tokens - at) <= SAME_CONTEXT * at
    if not near.any() or plain.successive or spec.successive:
        return match(plain, spec).observed()
    plain = plain.rows(near)
    here = ("here",) * len(plain), ("here",) * len(spec)
    return Matched(plain, spec, here, ()).observed()


def _unnamed(side: Side) -> Side:
    """Without texts and requests: told apart by batch and context alone."""
    return replace(side, text=("",) * len(side), request=("",) * len(side))


def _spec_step_ms(
    plain: Observed, spec: Observed, adjustment: Adjustment, at: float | None, ratio: LogRatio
) -> float:
    """The speculating step that a ratio belongs to."""
    if adjustment == "common context" and at is not None:
        line = step_line(spec.by_cell().context_tokens, spec.by_cell().step_ms, spec.successive)
        assert line is not None
        return line.fit.at(at)
    if adjustment == "after moved":
        return exp(float(np.log(plain.by_cell().step_ms).mean())) * ratio.ratio
    return exp(float(np.log(spec.by_cell().step_ms).mean()))


def _tokens(context: float | None) -> str:
    return "a context that is not given" if context is None else f"{context:,.0f} tokens of context"


def _of(label: str) -> str:
    return f" ({label})" if label else ""
