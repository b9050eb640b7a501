"""Least squares against certified data, against statsmodels, and against its own coverage."""

import csv
from collections.abc import Sequence
from functools import cache
from math import log10, sqrt
from pathlib import Path

import numpy as np
import pytest
import statsmodels.api as sm
from hypothesis import given
from hypothesis import strategies as st

from analysis.model import regression
from analysis.model.regression import PolynomialFit, fit_polynomial, least_squares, t_quantile

NIST = Path(__file__).parent / "nist"
CONTEXTS = (13, 1663, 3333, 5553, 8200)
STEPS = (34.0, 62.8, 101.4, 144.0, 190.5)


def nist(name: str) -> tuple[list[float], list[float]]:
    lines = (NIST / f"{name}.csv").read_text().splitlines()
    rows = list(csv.DictReader(line for line in lines if not line.startswith("#")))
    return [float(row["x"]) for row in rows], [float(row["y"]) for row in rows]


def matching_digits(value: float, certified: float) -> float:
    """The log relative error of NIST: how many significant digits agree, 15 at most."""
    error = abs(value - certified) / abs(certified)
    return 15.0 if error == 0 else min(15.0, -log10(error))


# Certified values: the pages named at the head of each file in nist/, to 15 digits. Norris also
# stands in SciPy's stats/tests/data/nist_linregress/Norris.dat.
CERTIFIED = [
    ("norris", 0, "coefficient", -0.262323073774029),
    ("norris", 1, "coefficient", 1.00211681802045),
    ("norris", 0, "standard deviation", 0.232818234301152),
    ("norris", 1, "standard deviation", 0.429796848199937e-03),
    ("norris", None, "residual standard deviation", 0.884796396144373),
    ("norris", None, "residual sum of squares", 26.6173985294224),
    ("pontius", 0, "coefficient", 0.673565789473684e-03),
    ("pontius", 1, "coefficient", 0.732059160401003e-06),
    ("pontius", 2, "coefficient", -0.316081871345029e-14),
    ("pontius", 0, "standard deviation", 0.107938612033077e-03),
    ("pontius", 1, "standard deviation", 0.157817399981659e-09),
    ("pontius", 2, "standard deviation", 0.486652849992036e-16),
    ("pontius", None, "residual standard deviation", 0.205177424076185e-03),
    ("pontius", None, "residual sum of squares", 0.155761768796992e-05),
]


def measured(fit: PolynomialFit, quantity: str, power: int | None) -> float:
    if quantity == "residual standard deviation":
        return sqrt(fit.residual_variance)
    if quantity == "residual sum of squares":
        return fit.residual_sum_of_squares
    assert power is not None
    if quantity == "coefficient":
        return fit.coefficients[power]
    return sqrt(fit.covariance[power, power])


@pytest.mark.parametrize(("data", "power", "quantity", "certified"), CERTIFIED)
def test_nine_digits_agree_with_nist(
    data: str, power: int | None, quantity: str, certified: float
) -> None:
    x, y = nist(data)
    fit = fit_polynomial(x, y, degree=1 if data == "norris" else 2)
    assert matching_digits(measured(fit, quantity, power), certified) >= 9


@pytest.mark.parametrize(("data", "n", "dof"), [("norris", 36, 34), ("pontius", 40, 37)])
def test_degrees_of_freedom_are_those_of_nist(data: str, n: int, dof: int) -> None:
    x, y = nist(data)
    fit = fit_polynomial(x, y, degree=n - dof - 1)
    assert (fit.n, fit.dof, fit.x_range) == (n, dof, (min(x), max(x)))


def oracle(x: Sequence[float], y: Sequence[float], degree: int, weights: str):
    design = np.vander(np.asarray(x, dtype=float), degree + 1, increasing=True)
    each = 1 / np.asarray(y) ** 2 if weights == "relative" else 1.0
    return sm.WLS(np.asarray(y), design, weights=each).fit()


FITS = [
    (degree, weights, level)
    for degree in (1, 2)
    for weights in ("none", "relative")
    for level in (0.95, 0.8)
]


@pytest.mark.parametrize(("degree", "weights", "level"), FITS)
def test_coefficients_and_t_intervals_are_those_of_statsmodels(
    degree: int, weights: regression.Weights, level: float
) -> None:
    fit = fit_polynomial(CONTEXTS, STEPS, degree, weights)
    other = oracle(CONTEXTS, STEPS, degree, weights)
    assert fit.coefficients == pytest.approx(other.params, rel=1e-8)
    assert fit.covariance == pytest.approx(other.cov_params(), rel=1e-7)
    assert fit.residual_variance == pytest.approx(other.scale, rel=1e-8)
    assert (fit.n, fit.dof) == (other.nobs, other.df_resid)
    for power, interval in enumerate(other.conf_int(alpha=1 - level)):
        assert fit.coefficient_interval(power, level) == pytest.approx(interval, rel=1e-7)


@pytest.mark.parametrize(("degree", "weights", "level"), FITS)
@pytest.mark.parametrize("at", [0.0, 3500.0, 20_000.0])
def test_confidence_and_prediction_intervals_are_those_of_statsmodels(
    degree: int, weights: regression.Weights, level: float, at: float
) -> None:
    fit = fit_polynomial(CONTEXTS, STEPS, degree, weights)
    other = oracle(CONTEXTS, STEPS, degree, weights)
    row = np.vander([at], degree + 1, increasing=True)
    weight = 1 / fit.at(at) ** 2 if weights == "relative" else 1.0
    frame = other.get_prediction(row, weights=weight).summary_frame(alpha=1 - level).iloc[0]
    assert fit.at(at) == pytest.approx(frame["mean"], rel=1e-9)
    assert fit.confidence_interval(at, level) == pytest.approx(
        (frame["mean_ci_lower"], frame["mean_ci_upper"]), rel=1e-7
    )
    assert fit.prediction_interval(at, level) == pytest.approx(
        (frame["obs_ci_lower"], frame["obs_ci_upper"]), rel=1e-7
    )


def test_a_weighted_prediction_interval_does_not_leave_out_the_weight_of_the_new_point() -> None:
    fit = fit_polynomial(CONTEXTS, STEPS, 1, "relative")
    row = np.vander([3500.0], 2, increasing=True)
    trap = oracle(CONTEXTS, STEPS, 1, "relative").get_prediction(row).summary_frame(alpha=0.05)
    low, high = fit.prediction_interval(3500.0)
    too_narrow = float(trap["obs_ci_upper"].iloc[0] - trap["obs_ci_lower"].iloc[0])
    confidence = np.subtract(*reversed(fit.confidence_interval(3500.0)))
    assert too_narrow == pytest.approx(confidence, rel=0.01)  # the trap adds next to nothing
    assert high - low > 1.5 * too_narrow


def test_a_prediction_interval_holds_the_confidence_interval() -> None:
    fit = fit_polynomial(CONTEXTS, STEPS)
    confidence, prediction = fit.confidence_interval(3500), fit.prediction_interval(3500)
    assert prediction[0] < confidence[0] < fit.at(3500) < confidence[1] < prediction[1]


# Table of Student's t, two-sided 95 %: Draper and Smith (1998), appendix.
@pytest.mark.parametrize(
    ("dof", "printed"), [(1, "12.706"), (2, "4.303"), (3, "3.182"), (10, "2.228"), (120, "1.980")]
)
def test_t_quantiles_are_those_of_the_printed_table(dof: int, printed: str) -> None:
    assert f"{t_quantile(dof):.3f}" == printed


def test_without_a_degree_of_freedom_there_is_no_interval() -> None:
    fit = fit_polynomial([1000, 2000], [50, 70])
    assert fit.coefficients == pytest.approx((30, 0.02))
    assert fit.dof == 0
    assert fit.coefficient_interval(1) is None
    assert fit.confidence_interval(1500) is None
    assert fit.prediction_interval(1500) is None


@pytest.mark.parametrize(
    ("x", "y", "degree", "weights", "says"),
    [
        ([5, 5, 5], [1, 2, 3], 1, "none", "1 distinct x cannot determine 2"),
        ([1, 2, 2], [1, 2, 3], 2, "none", "2 distinct x cannot determine 3"),
        ([], [], 1, "none", "0 distinct x"),
        ([1, 2, 3], [1, 2], 1, "none", "not two equal lists"),
        ([[1, 2]], [[1, 2]], 1, "none", "not two equal lists"),
        ([1, 2, 3], [1, 0, 2], 1, "relative", "every y above zero"),
        ([1, 2, 3], [1, -1, 2], 1, "relative", "every y above zero"),
    ],
)
def test_what_cannot_be_fitted_is_refused(x, y, degree, weights, says: str) -> None:
    with pytest.raises(ValueError, match=says):
        fit_polynomial(x, y, degree, weights)


def test_the_quadratic_keeps_its_digits_at_contexts_of_a_hundred_thousand_tokens() -> None:
    x = np.array([16_384, 32_768, 65_536, 131_072, 262_144], dtype=float)
    fit = fit_polynomial(x, 11.5 + 8e-5 * x + 3e-10 * x**2, 2)
    for found, true in zip(fit.coefficients, (11.5, 8e-5, 3e-10), strict=True):
        assert matching_digits(found, true) >= 10


def test_least_squares_passes_a_column_of_zeros_to_the_solver_without_dividing_by_it() -> None:
    with pytest.raises(np.linalg.LinAlgError):
        least_squares(np.array([[1.0, 0.0], [1.0, 0.0], [1.0, 0.0]]), np.array([1.0, 2.0, 3.0]))


contexts = st.lists(st.integers(0, 2000), min_size=4, max_size=8, unique=True).map(
    lambda hundreds: [100.0 * h for h in hundreds]
)


@st.composite
def tables(draw: st.DrawFn) -> tuple[list[float], list[float]]:
    x = draw(contexts)
    y = draw(st.lists(st.floats(5, 500), min_size=len(x), max_size=len(x)))
    return x, y


@given(tables(), st.sampled_from(["none", "relative"]), st.sampled_from([1e-3, 0.1, 7.0, 1e3]))
def test_a_change_of_units_scales_coefficients_and_intervals(table, weights, unit) -> None:
    x, y = table
    fit = fit_polynomial(x, y, 1, weights)
    in_other_time = fit_polynomial(x, [unit * v for v in y], 1, weights)
    in_other_length = fit_polynomial([unit * v for v in x], y, 1, weights)
    for power in (0, 1):
        ends = np.array([fit.coefficients[power], *fit.coefficient_interval(power)])
        size = 1e-9 * max(y) / max(x) ** power  # what cancels is as large as the data
        time = [in_other_time.coefficients[power], *in_other_time.coefficient_interval(power)]
        length = [in_other_length.coefficients[power], *in_other_length.coefficient_interval(power)]
        assert np.array(time) / unit == pytest.approx(ends, rel=1e-8, abs=size)
        assert np.array(length) * unit**power == pytest.approx(ends, rel=1e-8, abs=size)


@given(tables(), st.sampled_from(["none", "relative"]), st.randoms(use_true_random=False))
def test_the_order_of_the_rows_does_not_matter(table, weights, random) -> None:
    rows = list(zip(*table, strict=True))
    fit = fit_polynomial(*table, 1, weights)
    random.shuffle(rows)
    shuffled = fit_polynomial(*zip(*rows, strict=True), 1, weights)
    size = 1e-8 * max(table[1])
    assert shuffled.at(1000) == pytest.approx(fit.at(1000), rel=1e-8, abs=size)


@pytest.mark.parametrize("shift", [300.0, 5000.0])
def test_shifting_the_context_axis_moves_the_intercept_alone(shift: float) -> None:
    prompt = fit_polynomial(CONTEXTS, STEPS)
    mean = fit_polynomial([c + shift for c in CONTEXTS], STEPS)
    slope = prompt.coefficients[1]
    assert mean.coefficients[1] == pytest.approx(slope)
    assert prompt.coefficients[0] - mean.coefficients[0] == pytest.approx(shift * slope)
    assert mean.coefficient_interval(1) == pytest.approx(prompt.coefficient_interval(1))


@pytest.mark.parametrize(
    ("n", "weights"), [(4, "none"), (5, "none"), (6, "none"), (4, "relative"), (6, "relative")]
)
def test_95_per_cent_intervals_cover_93_to_97_per_cent(
    monkeypatch: pytest.MonkeyPatch, n: int, weights: regression.Weights
) -> None:
    """2500 simulated sweeps: the standard error of a coverage of 95 % is then 0.44 %."""
    monkeypatch.setattr(regression, "t_quantile", cache(t_quantile))
    rng = np.random.default_rng(20260 + n)
    x, new = np.linspace(0, 8000, n), 3500.0
    intercept, slope = 30.0, 0.02

    def scatter(line: np.ndarray | float) -> np.ndarray | float:
        return 0.04 * line if weights == "relative" else 3.0

    repeats, slopes, predictions = 2500, 0, 0
    line, at_new = intercept + slope * x, intercept + slope * new
    for noise in rng.standard_normal((repeats, n + 1)):
        fit = fit_polynomial(x, line + scatter(line) * noise[:n], 1, weights)
        low, high = fit.coefficient_interval(1)
        slopes += low <= slope <= high
        low, high = fit.prediction_interval(new)
        predictions += low <= at_new + scatter(at_new) * noise[n] <= high
    assert 0.93 <= slopes / repeats <= 0.97
    assert 0.93 <= predictions / repeats <= 0.97
