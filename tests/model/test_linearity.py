"""Evidence on straightness: the F test, the size of the bend, and the power of the design."""

import numpy as np
import pytest
import statsmodels.api as sm
from hypothesis import assume, given
from hypothesis import strategies as st

from analysis.model.linearity import POWER_BEND_PCT, linearity
from analysis.model.regression import fit_polynomial

X = np.array([0, 1000, 2000, 4000, 6000, 9000, 12000], dtype=float)
NOISE = np.array([0.6, -1.1, 0.3, 1.4, -0.9, -0.6, 0.4])
LINE = 30 + 0.02 * X


def largest_gap_pct(coefficients, low: float, high: float) -> float:
    """The bend by brute force: the largest relative gap to the chord, on a fine grid."""
    at = np.linspace(low, high, 20_001)
    curve = np.polynomial.polynomial.polyval(at, coefficients)
    chord = curve[0] + (curve[-1] - curve[0]) * (at - low) / (high - low)
    gap = 100 * (curve - chord) / chord
    return float(gap[np.argmax(np.abs(gap))])


def quadratic(y, weights: str):
    each = 1 / np.asarray(y) ** 2 if weights == "relative" else 1.0
    design = np.vander(X, 3, increasing=True)
    return sm.WLS(y, design, weights=each).fit(), sm.WLS(y, design[:, :2], weights=each).fit()


@pytest.mark.parametrize("weights", ["none", "relative"])
@pytest.mark.parametrize("curvature", [0.0, 2e-7, -1e-6])
def test_f_and_p_are_those_of_statsmodels(weights, curvature: float) -> None:
    y = LINE + curvature * X**2 + NOISE
    curve, line = quadratic(y, weights)
    f, p, _ = curve.compare_f_test(line)
    found = linearity(X, y, weights)
    assert found.f == pytest.approx(f, rel=1e-6)
    assert found.p == pytest.approx(p, rel=1e-6)


@given(
    st.floats(1, 200),
    st.floats(1e-4, 1.0),
    st.lists(st.integers(0, 500), min_size=3, max_size=7, unique=True),
)
def test_an_exact_line_has_no_bend_and_leaves_nothing_to_test(intercept, slope, hundreds) -> None:
    x = [100.0 * h for h in hundreds]
    found = linearity(x, [intercept + slope * v for v in x])
    assert found.bend_pct == pytest.approx(0, abs=1e-6)
    assert (found.f, found.p, found.bend_ci95, found.power) == (None, None, None, None)


# y = 100 (1 +- share) at the middle of a level chord, a parabola: the bend is the share itself.
@pytest.mark.parametrize("pct", [-30.0, -10.0, -0.5, 0.5, 10.0, 30.0])
@pytest.mark.parametrize("weights", ["none", "relative"])
def test_the_bend_of_a_parabola_over_a_level_chord_is_its_height(pct: float, weights) -> None:
    u = X / X[-1]
    found = linearity(X, 100 + 4 * pct * u * (1 - u), weights)
    assert found.bend_pct == pytest.approx(pct, rel=1e-6)


@given(st.floats(5, 200), st.floats(0, 0.1), st.floats(-0.9, 3.0))
def test_the_bend_over_a_rising_chord_is_the_largest_relative_gap(start, slope, bow) -> None:
    low, high = X[0], X[-1]
    c2 = bow * start / (high - low) ** 2
    coefficients = (start + c2 * low * high, slope - c2 * (low + high), c2)
    y = np.polynomial.polynomial.polyval(X, coefficients)
    assume(float(y.min()) > 0.1)
    found = linearity(X, y)
    expected = largest_gap_pct(coefficients, low, high)
    assert found.bend_pct == pytest.approx(expected, rel=1e-5, abs=1e-7)


@pytest.mark.parametrize(("curvature", "sign"), [(1e-6, -1), (-1e-6, 1)])
def test_a_step_that_grows_faster_and_faster_bends_below_its_chord(curvature, sign) -> None:
    assert np.sign(linearity(X, LINE + curvature * X**2).bend_pct) == sign


@pytest.mark.parametrize("weights", ["none", "relative"])
def test_the_interval_of_the_bend_is_the_delta_method_on_statsmodels_covariance(weights) -> None:
    y = LINE - 4e-7 * X**2 + NOISE
    curve, _ = quadratic(y, weights)
    gradient = []
    for power in range(3):
        step = np.zeros(3)
        step[power] = 1e-4 * abs(curve.params[power])
        up, down = (largest_gap_pct(curve.params + s * step, X[0], X[-1]) for s in (1.0, -1.0))
        gradient.append((up - down) / (2 * step[power]))
    error = float(np.sqrt(np.array(gradient) @ curve.cov_params() @ np.array(gradient)))
    found = linearity(X, y, weights)
    low, high = found.bend_ci95
    assert (high - low) / 2 == pytest.approx(2.776 * error, rel=1e-3)  # t, 4 degrees of freedom
    assert (high + low) / 2 == pytest.approx(found.bend_pct)


def test_the_power_is_the_share_of_simulated_sweeps_that_reject_a_line() -> None:
    """Truth: the fitted chord with a bend of 10 %; 20,000 simulated sweeps, vectorised."""
    y = LINE + 4 * NOISE
    found, curve = linearity(X, y), fit_polynomial(X, y, 2)
    low, high = X[0], X[-1]
    chord = curve.at(low) + (curve.at(high) - curve.at(low)) * (X - low) / (high - low)
    shape = (X - low) * (X - high)
    at = np.linspace(low, high, 20_001)
    grid = np.interp(at, [low, high], [chord[0], chord[-1]])
    largest = np.max(np.abs((at - low) * (at - high)) / grid)
    truth = chord - POWER_BEND_PCT / 100 / largest * shape
    rng = np.random.default_rng(7)
    ys = truth + np.sqrt(curve.residual_variance) * rng.standard_normal((20_000, len(X)))
    rss = []
    for parameters in (2, 3):
        q, _ = np.linalg.qr(np.vander(X / high, parameters, increasing=True))
        rss.append(np.sum((ys - ys @ q @ q.T) ** 2, axis=1))
    f = (rss[0] - rss[1]) / (rss[1] / (len(X) - 3))
    rejected = float(np.mean(f > 7.709))  # F(1, 4) at 5 %, printed tables
    assert 0.2 < rejected < 0.9  # a power that could be got wrong in either direction
    assert found.power == pytest.approx(rejected, abs=0.015)


@given(st.floats(1e-9, 30), st.floats(1.5, 100))
def test_less_noise_gives_more_power_between_5_per_cent_and_1(noise, quieter) -> None:
    powers = []
    for scatter in (noise, noise / quieter):
        found = linearity(X, LINE + scatter * NOISE)
        powers.append(1.0 if found.power is None else found.power)
    assert 0.05 <= powers[0] <= 1
    assert powers[0] <= powers[1] + 1e-9


@pytest.mark.parametrize("scatter", [0.1758, 0.0879, 1e-3, 1e-5, 1e-8])
def test_a_design_with_hardly_any_noise_has_a_power_of_one_and_not_nan(scatter: float) -> None:
    assert linearity(X, LINE + scatter * NOISE).power == pytest.approx(1)


def test_four_points_of_the_first_case_have_almost_no_power() -> None:
    steps = [1000 * c / t for c, t in ((4.75, 139.6), (7.17, 114.2), (7.90, 77.9), (7.85, 54.5))]
    found = linearity([13, 1663, 3333, 5553], steps)
    assert found.p > 0.5
    assert 0.05 < found.power < 0.2
    assert found.bend_ci95[0] < -50 < 50 < found.bend_ci95[1]


@pytest.mark.parametrize("x", [[], [1000, 1000, 1000], [1000, 2000, 2000]])
def test_two_contexts_cannot_bend(x: list[float]) -> None:
    assert linearity(x, [30.0 + v for v in range(len(x))]) is None


def test_three_points_show_a_bend_and_nothing_about_it() -> None:
    found = linearity([0, 5000, 10_000], [100, 110, 100])
    assert found.bend_pct == pytest.approx(10)
    assert (found.f, found.p, found.bend_ci95, found.power) == (None, None, None, None)


def test_a_curve_through_every_repeat_is_a_bend_without_scatter_and_proves_nothing() -> None:
    found = linearity([0, 1, 2, 1, 0, 2], [1.0, 2, 4, 2, 1, 4])
    assert found.bend_pct == pytest.approx(-100 * 2 / 9)
    assert found.p is None
