"""The change in throughput as commit ratio times step ratio, and what its intervals promise."""

from math import exp, log, sqrt

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from analysis.model.log_ratio import LogRatio, mean_of_logs, share_interval
from analysis.model.observed import Observed
from analysis.model.same_context import Aligned, align
from analysis.model.split import Split, differs
from analysis.model.step_line import step_line


def split(before: Observed, after: Observed) -> Split:
    return Split(align(before, after))


def side(
    commit: list[float],
    step_ms: list[float],
    contexts: list[float] | None = None,
    names: list[str] | None = None,
    successive: bool = False,
) -> Observed:
    n = len(commit)
    known = [1000.0] * n if contexts is None else contexts
    cells = ["here"] * n if names is None else names
    return Observed(
        np.array(commit, dtype=float),
        np.array(step_ms, dtype=float),
        np.array(known, dtype=float),
        tuple(cells),
        successive,
    )


rows = st.lists(st.tuples(st.floats(1, 8), st.floats(1, 200)), min_size=1, max_size=12)


def of_rows(given_rows: list[tuple[float, float]]) -> Observed:
    return side([c for c, _ in given_rows], [s for _, s in given_rows])


@given(rows, rows)
def test_the_product_of_the_factors_is_the_throughput_ratio(before, after) -> None:
    found = split(of_rows(before), of_rows(after))
    product = found.commit.ratio * found.step.ratio
    assert product == pytest.approx(found.throughput.ratio, rel=1e-9)


@given(rows, rows)
def test_shares_sum_to_one_or_do_not_exist(before, after) -> None:
    found = split(of_rows(before), of_rows(after))
    if found.commit_share is None:
        assert found.step_share is None
        assert found.commit_share_interval95 is found.step_share_interval95 is None
    else:
        assert found.step_share is not None
        assert differs(found.throughput)
        assert found.commit_share + found.step_share == pytest.approx(1)


@given(rows, rows)
def test_swapping_the_sides_inverts_the_ratios_and_their_intervals(before, after) -> None:
    there = split(of_rows(before), of_rows(after))
    back = split(of_rows(after), of_rows(before))
    assert there.verdict == back.verdict
    for one, two in (
        (there.throughput, back.throughput),
        (there.commit, back.commit),
        (there.step, back.step),
    ):
        assert one.ratio == pytest.approx(1 / two.ratio)
        assert (one.interval95 is None) == (two.interval95 is None)
        if one.interval95 and two.interval95 and one.variance and one.variance < 1:
            assert one.interval95[0] == pytest.approx(1 / two.interval95[1], rel=1e-6)


def lines(contexts: list[float], intercept: float, slope: float, commit: float) -> Observed:
    steps = [intercept + slope * x for x in contexts]
    names = [f"context {x:g}" for x in contexts]
    return side([commit] * len(steps), steps, contexts, names)


def test_at_the_same_contexts_the_context_drops_out() -> None:
    before = lines([1000, 2000, 4000], 20, 0.01, 3.0)
    after = lines([1000, 2000, 4000], 10, 0.005, 3.6)
    found = split(before, after)
    assert (found.adjustment, found.verdict) == ("same contexts", "both")
    assert (found.commit.ratio, found.step.ratio) == pytest.approx((1.2, 2.0))
    assert found.at_context == pytest.approx(7000 / 3)


def test_two_lines_meet_at_a_context_that_both_hold() -> None:
    before = lines([1000, 2000, 3000, 4000], 20, 0.01, 3.0)
    after = lines([2100, 3100, 4100, 5100], 10, 0.005, 3.6)
    found = split(before, after)
    assert found.adjustment == "common context"
    assert found.at_context == pytest.approx((2500 + 3600) / 2)
    assert (found.commit.ratio, found.step.ratio) == pytest.approx((1.2, 2.0))


@pytest.mark.parametrize("moved", ["before moved", "after moved"])
def test_one_line_goes_to_where_the_other_side_was_measured(moved: str) -> None:
    line = lines([1000, 2000, 3000, 4000], 20, 0.01, 3.0)
    point = lines([2500.0], 10, 0.005, 3.6)
    pair = (line, point) if moved == "before moved" else (point, line)
    found = split(*pair)
    assert found.adjustment == moved
    assert found.at_context == 2500
    ratio = found.step.ratio if moved == "before moved" else 1 / found.step.ratio
    assert ratio == pytest.approx(2.0)


def test_a_line_is_never_used_beyond_its_contexts() -> None:
    line = lines([1000, 2000, 3000, 4000], 20, 0.01, 3.0)
    found = split(line, lines([9000.0], 10, 0.005, 3.6))
    assert (found.adjustment, found.at_context) == ("none", None)
    assert found.aligned.contexts == (2500, 9000)
    apart = split(line, lines([5000, 6000, 7000], 10, 0.005, 3.6))
    assert apart.adjustment == "none"


def test_contexts_that_are_not_known_are_not_called_the_same() -> None:
    nowhere = [float("nan")] * 2
    found = split(side([3, 3], [20, 21], nowhere), side([3, 3], [10, 11], nowhere))
    assert (found.adjustment, found.at_context) == ("contexts not known", None)


def test_one_value_a_side_has_no_interval_and_is_judged_by_five_per_cent() -> None:
    found = split(side([2.38], [74.4]), side([2.56], [37.6]))
    assert found.verdict == "both"
    for ratio in (found.throughput, found.commit, found.step):
        assert ratio.interval95 is None
    assert found.commit_share_interval95 is found.smallest_detectable_pct is None
    assert split(side([3.0], [100]), side([3.1], [98])).verdict == "no difference shown"


def test_repeats_that_commit_the_same_tokens_are_no_evidence_on_commit() -> None:
    """Greedy decoding of one prompt commits the same tokens each time."""
    found = split(side([7.96] * 3, [100, 101, 102]), side([7.5] * 3, [50, 51, 52]))
    assert found.commit.interval95 is None
    assert found.throughput.interval95 is not None
    plain = split(side([1] * 3, [100, 101, 102]), side([1] * 3, [50, 51, 52]))
    assert plain.commit.interval95 == (1, 1)
    assert plain.verdict == "step"


def test_a_wide_interval_that_holds_one_shows_no_difference() -> None:
    found = split(side([3, 3.1, 2.9], [50, 150, 90]), side([3, 2.9, 3.1], [60, 120, 100]))
    low, high = found.step.interval95
    assert low < 0.7 < 1.3 < high
    assert found.verdict == "no difference shown"
    assert found.smallest_detectable_pct > 100


def test_the_smallest_detectable_change_is_that_of_the_sample_size_formula() -> None:
    """Two groups of 1000 with sd 0.1: (1.960 + 0.842) x 0.1 x sqrt(2/1000) = 1.253 %."""
    ratio = LogRatio(0.0, 2 * 0.1**2 / 1000, 1998)
    assert ratio.detectable_pct == pytest.approx(
        100 * (exp((1.9611 + 0.8418) * 0.1 * sqrt(2 / 1000)) - 1), rel=1e-3
    )


def test_an_effect_that_grows_with_context_is_told() -> None:
    contexts = [1000.0, 2000, 4000, 8000, 16000]
    before = lines(contexts, 20, 0.01, 3.0)
    assert split(before, lines(contexts, 24, 0.005, 3.0)).aligned.step_moves
    same = lines(contexts, 20.2, 0.0101, 3.0)
    assert not split(before, same).aligned.step_moves


def test_a_share_has_no_bounds_where_the_throughput_may_not_have_changed() -> None:
    certain = LogRatio(0.5, 0.01, 20), LogRatio(0.1, 0.01, 20), LogRatio(0.6, 0.02, 20)
    low, high = share_interval(*certain)
    assert low < 0.5 / 0.6 < high
    assert share_interval(LogRatio(0.1, 0.01, 20), *certain[1:2], LogRatio(0.2, 0.02, 20)) is None
    assert share_interval(LogRatio(0.5), *certain[1:]) is None


def test_there_is_no_share_of_a_change_that_is_not_shown() -> None:
    found = split(side([3, 3.1, 2.9], [50, 150, 90]), side([3, 2.9, 3.1], [60, 120, 100]))
    assert abs(found.throughput.value) > log(1.01)
    low, high = found.throughput.interval95
    assert low < 1 < high
    assert found.commit_share is found.step_share is None
    near = split(side([3.0], [100]), side([3.1], [101]))
    assert near.commit_share is None
    assert split(side([3.0], [100]), side([3.6], [101])).commit_share is not None


def test_there_is_no_share_where_its_interval_is_unbounded() -> None:
    """The throughput differs with many degrees of freedom, and a factor has but one."""
    certain, loose = LogRatio(0.2, 0.002, 30), LogRatio(0.15, 0.0015, 1)
    aligned = Aligned(
        throughput=certain,
        commit=loose,
        step=LogRatio(0.05, 0.0005, 30),
        adjustment="same contexts",
        at_context=1000,
        contexts=(1000, 1000),
        n_before=3,
        n_after=3,
    )
    found = Split(aligned)
    assert found.throughput_changed
    assert found.commit_share is found.step_share is found.commit_share_interval95 is None


def test_a_throughput_can_be_shown_to_differ_where_neither_factor_is() -> None:
    """Commit and step of one window err together, so that their product is the clearer."""
    noise = np.array([-0.2, -0.1, 0.0, 0.1, 0.2, -0.15, 0.15, 0.05])
    own = 0.01 * np.array([1, -1, 1, -1, -1, 1, 1, -1])
    before = side(list(3 * np.exp(noise)), list(50 * np.exp(noise + own)))
    after = side(list(3.15 * np.exp(noise[::-1])), list(47.6 * np.exp(noise[::-1] + own)))
    found = split(before, after)
    assert found.throughput_changed
    assert found.verdict == "no difference shown"
    assert found.throughput.interval95[0] > 1
    assert found.commit.detectable_pct > 10


@pytest.mark.parametrize("n", [3, 5, 7])
def test_few_windows_are_not_widened_by_a_correlation_that_they_cannot_show(n: int) -> None:
    rising = np.linspace(1.0, 1.2, n)
    mean = mean_of_logs([np.log(rising)], successive=True)
    assert (mean.dof, mean.variance) == (
        pytest.approx(n - 1),
        pytest.approx(np.var(np.log(rising), ddof=1) / n),
    )
    bowed = 20 + 0.01 * np.linspace(0, 1, n) ** 2
    line = step_line(np.linspace(1000, 2000, n), bowed, successive=True)
    assert (line.widened, line.dof) == (1, n - 2)


def windows(
    rng: np.random.Generator, n: int, phi: float, commit: float, step: float, grows: bool
) -> Observed:
    """A log: correlated windows at one context, or while the context grows."""
    noise = np.empty((2, n))
    noise[:, 0] = rng.standard_normal(2)
    for i in range(1, n):
        noise[:, i] = phi * noise[:, i - 1] + sqrt(1 - phi**2) * rng.standard_normal(2)
    contexts = np.linspace(1000, 4000, n) if grows else np.full(n, 2000.0)
    own = rng.integers(1 << 40)
    return Observed(
        commit * np.exp(0.08 * noise[0]),
        step * (20 + 0.005 * contexts) * np.exp(0.03 * noise[1]),
        contexts,
        tuple(f"{own} {i}" if grows else "here" for i in range(n)),
        True,
    )


def cells(
    rng: np.random.Generator, repeats: int, commit: float, step: float, shift: float = 0
) -> Observed:
    """A run: repeats at five contexts."""
    contexts = np.repeat(np.linspace(500, 4500, 5), repeats) + shift
    n = len(contexts)
    return Observed(
        commit * np.exp(0.05 * rng.standard_normal(n)),
        step * (20 + 0.005 * contexts) * np.exp(0.03 * rng.standard_normal(n)),
        contexts,
        tuple(f"{x:g}" for x in contexts),
    )


DESIGNS = {
    "seven independent windows": lambda rng, c, s: windows(rng, 7, 0.0, c, s, False),
    "seven windows of growing context": lambda rng, c, s: windows(rng, 7, 0.0, c, s, True),
    "30 independent windows": lambda rng, c, s: windows(rng, 30, 0.0, c, s, False),
    "30 correlated windows": lambda rng, c, s: windows(rng, 30, 0.6, c, s, False),
    "60 correlated windows of growing context": lambda rng, c, s: windows(rng, 60, 0.6, c, s, True),
    "five cells with three repeats": lambda rng, c, s: cells(rng, 3, c, s),
    "five cells with one value": lambda rng, c, s: cells(rng, 1, c, s),
}
TRIALS = 600
LEAST, MOST = 0.92, 0.985
"""Three standard errors of 600 trials about 95 %, and room for the caution of Welch's t."""


@pytest.mark.parametrize("design", DESIGNS)
def test_intervals_cover_about_95_per_cent(design: str) -> None:
    rng = np.random.default_rng(20)
    covered = {"throughput": 0, "commit": 0, "step": 0, "share": 0}
    for _ in range(TRIALS):
        found = split(DESIGNS[design](rng, 3.0, 1.0), DESIGNS[design](rng, 3.6, 0.7))
        covered["throughput"] += _holds(found.throughput.interval95, 1.2 / 0.7)
        covered["commit"] += _holds(found.commit.interval95, 1.2)
        covered["step"] += _holds(found.step.interval95, 1 / 0.7)
        share = found.commit_share_interval95
        covered["share"] += share is None or _holds(share, log(1.2) / log(1.2 / 0.7))
    for what, count in covered.items():
        assert LEAST <= count / TRIALS <= MOST, what


@pytest.mark.parametrize("design", DESIGNS)
def test_sides_that_do_not_differ_are_called_so_about_95_times_in_100(design: str) -> None:
    rng = np.random.default_rng(21)
    found = [
        split(DESIGNS[design](rng, 3.0, 1.0), DESIGNS[design](rng, 3.0, 1.0)) for _ in range(TRIALS)
    ]
    silent = sum(one.verdict == "no difference shown" for one in found) / TRIALS
    assert 0.92 <= silent <= 0.99


@pytest.mark.parametrize("n", [5, 6, 7])
def test_what_few_windows_cover_is_what_is_said(n: int) -> None:
    """95 % if independent; correlation that they cannot show is not in the interval."""
    rng = np.random.default_rng(23)
    for phi, least, most in ((0.0, 0.93, 0.985), (0.3, 0.82, 0.92), (0.6, 0.64, 0.82)):
        held = 0
        for _ in range(TRIALS):
            sides = (windows(rng, n, phi, 3.0, step, False) for step in (1.0, 0.7))
            held += _holds(split(*sides).step.interval95, 1 / 0.7)
        assert least <= held / TRIALS <= most, phi


def test_lines_and_moved_sides_cover_too() -> None:
    rng = np.random.default_rng(22)
    kinds: dict[str, list[Split]] = {}
    for _ in range(TRIALS):
        before = cells(rng, 2, 3.0, 1.0)
        for after in (cells(rng, 2, 3.6, 0.7, 450.0), _point(rng)):
            found = split(before, after)
            kinds.setdefault(found.adjustment, []).append(found)
    assert set(kinds) == {"common context", "before moved"}
    for several in kinds.values():
        steps = sum(_holds(one.step.interval95, 1 / 0.7) for one in several) / TRIALS
        rates = sum(_holds(one.throughput.interval95, 1.2 / 0.7) for one in several) / TRIALS
        assert LEAST <= steps <= MOST
        assert LEAST <= rates <= MOST


def _point(rng: np.random.Generator) -> Observed:
    commit = 3.6 * np.exp(0.05 * rng.standard_normal(6))
    step = 0.7 * (20 + 0.005 * 2100) * np.exp(0.03 * rng.standard_normal(6))
    return Observed(commit, step, np.full(6, 2100.0), ("one",) * 6)


def _holds(interval: tuple[float, float] | None, value: float) -> bool:
    return interval is not None and interval[0] <= value <= interval[1]


@pytest.mark.parametrize(
    ("commit", "step", "says"),
    [([], [], "0"), ([1.0], [0.0], "not above zero"), ([1.0, 2.0], [3.0], "rows")],
)
def test_rows_that_cannot_be_are_refused(commit, step, says) -> None:
    with pytest.raises(ValueError, match=says):
        Observed(np.array(commit), np.array(step), np.array(commit), ("x",) * len(commit))
