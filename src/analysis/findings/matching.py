"""Which rows of two sides are set beside each other: same request, or text, batch and context."""

from collections import Counter
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from analysis.findings.sides import Side
from analysis.model.observed import Observed
from analysis.model.step_line import SAME_CONTEXT


@dataclass(frozen=True)
class Matched:
    """Both sides as far as they can be compared, the cell of each row, and what was left out."""

    before: Side
    after: Side
    cells: tuple[tuple[str, ...], tuple[str, ...]]
    notes: tuple[str, ...]

    def observed(self, splits: bool = True) -> tuple[Observed, Observed]:
        """What the model needs to know of them; without ``splits`` a token stands for a step."""
        one, two = (
            Observed(
                commit=s.commit if splits else np.ones(len(s)),
                step_ms=s.step_ms if splits else 1000 / s.tok_per_s_per_stream,
                context_tokens=s.context_tokens,
                cells=names,
                successive=s.successive,
            )
            for s, names in zip((self.before, self.after), self.cells, strict=True)
        )
        return one, two


def match(before: Side, after: Side) -> Matched:
    """Match the rows of two sides; contexts are the same within 2 %."""
    notes: list[str] = []
    notes += [f"before: {note}" for note in without_context(before)]
    notes += [f"after: {note}" for note in without_context(after)]
    before, after = _known_contexts(before), _known_contexts(after)
    before, after = _same_texts(before, after, notes)
    before, after = _same_running(before, after, notes)
    names = cells(before, after)
    if len(_shared_running(before, after)) > 1 and not set(names[0]) & set(names[1]):
        before, after = _one_running(before, after, notes)
        names = cells(before, after)
    return Matched(before, after, names, tuple(notes))


def without_context(side: Side) -> list[str]:
    """What is to be said of rows that ``match`` leaves out since only others tell a context."""
    known = int(np.isfinite(side.context_tokens).sum())
    if known in (0, len(side)):
        return []
    return [f"{len(side) - known:,} of {len(side):,} rows tell no context and are left out"]


def _known_contexts(side: Side) -> Side:
    """Without the rows whose context is not known, if any is."""
    known = np.isfinite(side.context_tokens)
    return side.rows(known) if known.any() else side


def _same_texts(before: Side, after: Side, notes: list[str]) -> tuple[Side, Side]:
    texts = set(before.text), set(after.text)
    if "" in texts[0] | texts[1] or texts[0] == texts[1]:
        return before, after
    shared = texts[0] & texts[1]
    if not shared:
        notes.append(
            f"the texts differ ({_listed(texts[0])} before, {_listed(texts[1])} after), and commit "
            "depends on text: the commit ratio holds that difference"
        )
        return before, after
    notes.append(f"only the text that both sides have is compared: {_listed(shared)}")
    return _with_text(before, shared), _with_text(after, shared)


def _same_running(before: Side, after: Side, notes: list[str]) -> tuple[Side, Side]:
    """Rows at the running counts that both have; of windows those of one count."""
    shared = _shared_running(before, after)
    alone = len(set(before.running.tolist()) | set(after.running.tolist())) == 1
    if alone or not shared:
        return before, after
    if before.successive or after.successive:
        return _one_running(before, after, notes)
    kept = [side.rows(np.isin(side.running, list(shared))) for side in (before, after)]
    if len(kept[0]) < len(before) or len(kept[1]) < len(after):
        notes.append(f"only rows at {_counts(shared)} running, which both sides have, are compared")
    return kept[0], kept[1]


def _one_running(before: Side, after: Side, notes: list[str]) -> tuple[Side, Side]:
    counts = [Counter(side.running.tolist()) for side in (before, after)]
    chosen = max(sorted(_shared_running(before, after)), key=lambda r: min(c[r] for c in counts))
    notes.append(
        f"only values at {chosen:g} running are compared: {counts[0][chosen]:,} of "
        f"{len(before):,} before and {counts[1][chosen]:,} of {len(after):,} after"
    )
    return before.rows(before.running == chosen), after.rows(after.running == chosen)


def cells(before: Side, after: Side) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """The cell of each row: the same on both sides where the conditions are."""
    requests = set(before.request) & set(after.request) - {""}
    if requests:
        return before.request, after.request
    same_text = "" not in before.text and "" not in after.text
    places = _places(_contexts(before), _contexts(after))
    return (
        _labels(before, places[0], same_text, "before"),
        _labels(after, places[1], same_text, "after"),
    )


def _contexts(side: Side) -> NDArray[np.float64]:
    """The context of each row; windows at about one context are all at their mean."""
    known = side.context_tokens
    if side.successive and _narrow(known):
        return np.full(len(known), known.mean())
    return known


def _narrow(contexts: NDArray[np.float64]) -> bool:
    return bool(contexts.max() <= contexts.min() * (1 + SAME_CONTEXT))


def _places(*sides: NDArray[np.float64]) -> list[list[float]]:
    """The least context of the group that each context is in; groups are 2 % wide."""
    starts: list[float] = []
    for context in sorted({float(c) for side in sides for c in side if np.isfinite(c)}):
        if not starts or context > starts[-1] * (1 + SAME_CONTEXT):
            starts.append(context)
    return [
        [
            starts[int(np.searchsorted(starts, c, "right")) - 1] if np.isfinite(c) else np.nan
            for c in side
        ]
        for side in sides
    ]


def _labels(side: Side, places: list[float], same_text: bool, own: str) -> tuple[str, ...]:
    """A name for the cell of each row; windows of a growing context share none."""
    known = side.context_tokens
    if side.successive and np.isfinite(known).all() and not _narrow(known):
        return tuple(f"{own} {i}" for i in range(len(side)))
    return tuple(
        ", ".join(
            [
                *([text] if same_text else []),
                *([f"{running:g} running"] if running != 1 else []),
                "context not known" if np.isnan(place) else f"context {place:,.0f}",
            ]
        )
        for text, running, place in zip(side.text, side.running, places, strict=True)
    )


def _shared_running(before: Side, after: Side) -> set[float]:
    return set(before.running.tolist()) & set(after.running.tolist())


def _with_text(side: Side, texts: set[str]) -> Side:
    return side.rows(np.array([text in texts for text in side.text]))


def _listed(names: set[str]) -> str:
    return ", ".join(sorted(names))


def _counts(values: set[float]) -> str:
    return ", ".join(f"{value:g}" for value in sorted(values))
