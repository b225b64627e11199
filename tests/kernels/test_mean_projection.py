"""The mean function's fit against scipy, and draws of it against quadrature of coefficients."""

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import pytest
from scipy.optimize import least_squares

from sparing.kernels.mean_projection import project_mean
from sparing.kernels.mean_sampling import sample_mean


@dataclass(frozen=True, eq=False)
class Problem:
    """A quadratic fit with correlated residuals, and the bounds of its maximum and widths."""

    inputs: np.ndarray
    values: np.ndarray
    covariance: np.ndarray
    coefficient_sd: float
    lower: np.ndarray
    upper: np.ndarray

    @property
    def dimension(self):
        return self.inputs.shape[1]

    @cached_property
    def centre(self):
        return self.inputs.mean(axis=0)

    @cached_property
    def unit(self):
        return np.ptp(self.inputs, axis=0)

    @cached_property
    def root(self):
        return np.linalg.cholesky(self.covariance)

    @cached_property
    def triangle(self):
        u = (self.inputs - self.centre) / self.unit
        features = np.column_stack([np.ones(len(u)), u, u**2, self.values])
        prior = np.eye(2 * self.dimension + 1, 2 * self.dimension + 2) / self.coefficient_sd
        return np.linalg.qr(np.vstack([np.linalg.solve(self.root, features), prior]), mode="r")

    def coefficients(self, p):
        """Of 1, u and u^2 in the mean function with maximum, location and log widths p."""
        d = self.dimension
        mu, tau = (p[1 : d + 1] - self.centre) / self.unit, (self.unit / np.exp(p[d + 1 :])) ** 2
        return np.concatenate([[p[0] - 0.5 * tau @ mu**2], tau * mu, -0.5 * tau])

    def residuals(self, p):
        """Half their sum of squares is F."""
        d = self.dimension
        mean = p[0] - 0.5 * (((self.inputs - p[1 : d + 1]) / np.exp(p[d + 1 :])) ** 2).sum(axis=1)
        whitened = np.linalg.solve(self.root, self.values - mean)
        return np.concatenate([whitened, self.coefficients(p) / self.coefficient_sd])

    def loss(self, p):
        return 0.5 * float((self.residuals(p) ** 2).sum())

    def project(self):
        p = np.empty(2 * self.dimension + 1)
        loss = project_mean(self.triangle, self.centre, self.unit, self.lower, self.upper, p)
        return loss, p


def problem(kind, dimension, seed, scale=1.0):
    """Which bound binds: peaked none; low the maximum's; sloped locations'; hollow widths'."""
    generator = np.random.default_rng(seed)
    n = 6 * dimension + 6
    inputs = generator.normal(size=(n, dimension)) * np.exp(generator.normal(size=dimension))
    extent = np.ptp(inputs, axis=0)
    u = (inputs - inputs.mean(axis=0)) / extent
    curvature = generator.uniform(-60.0, -20.0, dimension)
    slope = 3.0 * generator.normal(size=dimension)
    if kind == "hollow":
        curvature[0], slope[0] = 40.0, 0.0
    if kind == "sloped":
        slope[0], curvature[0] = 60.0, -1.0
    values = u**2 @ curvature + u @ slope + generator.normal(size=n)
    values = scale * (values - values.max())
    shape = generator.normal(size=(n, n))
    covariance = shape @ shape.T / n + 0.1 * np.eye(n)
    highest = -5.0 if kind == "low" else 100.0
    spread = float(np.ptp(values))
    lower = [[-100.0 * spread], inputs.min(axis=0) - extent, np.log(1e-6 * extent)]
    widest = (0.3 if kind == "hollow" else 10.0) * extent
    upper = [[highest * scale], inputs.max(axis=0) + extent, np.log(widest)]
    bounds = np.concatenate(lower), np.concatenate(upper)
    return Problem(inputs, values, covariance, 10.0 * spread, *bounds)


def fitted_by_scipy(item):
    """The least F of bounded least squares from three starts."""
    span = item.upper - item.lower
    inside = item.lower + 1e-6 * span, item.upper - 1e-6 * span
    best = item.inputs[np.argmax(item.values)]
    starts = [
        np.concatenate([[item.values.max()], location, np.log(width * item.unit)])
        for location, width in ((item.centre, 1.0), (item.centre, 0.2), (best, 0.5))
    ]
    fits = [
        least_squares(
            item.residuals,
            np.clip(start, *inside),
            bounds=(item.lower, item.upper),
            x_scale="jac",
            ftol=1e-12,
            xtol=1e-12,
            gtol=1e-12,
            max_nfev=200,
        )
        for start in starts
    ]
    return min(fit.cost for fit in fits)


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("dimension", [1, 2, 5])
@pytest.mark.parametrize("kind", ["peaked", "low", "sloped", "hollow"])
def test_the_fit_is_at_least_as_good_as_scipys(kind, dimension, seed):
    item = problem(kind, dimension, seed)
    loss, p = item.project()
    assert loss == pytest.approx(item.loss(p), rel=1e-9)
    assert ((p >= item.lower) & (p <= item.upper)).all()
    assert loss <= fitted_by_scipy(item) + 1e-5 * (1.0 + loss)
    near = 1e-4 * (item.upper - item.lower)
    binding = (p <= item.lower + near) | (p >= item.upper - near)
    expected = {"peaked": None, "low": 0, "sloped": 1, "hollow": dimension + 1}[kind]
    assert binding[expected] if expected is not None else not binding.any()


@pytest.mark.parametrize("dimension", [1, 4])
def test_a_fit_within_the_bounds_is_that_of_linear_least_squares(dimension):
    item = problem("peaked", dimension, 5)
    u = (item.inputs - item.centre) / item.unit
    features = np.linalg.solve(item.root, np.column_stack([np.ones(len(u)), u, u**2]))
    precision = features.T @ features + np.eye(features.shape[1]) / item.coefficient_sd**2
    whitened = np.linalg.solve(item.root, item.values)
    expected = np.linalg.solve(precision, features.T @ whitened)
    np.testing.assert_allclose(item.coefficients(item.project()[1]), expected, rtol=1e-9)


@pytest.mark.parametrize("kind", ["low", "sloped", "hollow"])
def test_no_feasible_step_lowers_the_loss(kind):
    """In ten dimensions, where scipy's fit stops early."""
    item = problem(kind, 10, 1)
    loss, p = item.project()
    generator = np.random.default_rng(0)
    for size in (1e-4, 1e-2, 1.0):
        for _ in range(200):
            step = size * generator.normal(size=p.size) * generator.integers(2, size=p.size)
            other = np.clip(p + step, item.lower, item.upper)
            assert item.loss(other) > loss - 1e-5 * (1.0 + loss)


@pytest.mark.parametrize("scale", [1e-4, 1e8])
@pytest.mark.parametrize("kind", ["peaked", "low", "sloped", "hollow"])
def test_values_of_any_size(kind, scale):
    item = problem(kind, 2, 2, scale)
    loss, p = item.project()
    assert ((p >= item.lower) & (p <= item.upper)).all()
    assert loss == pytest.approx(item.loss(p), rel=1e-7)
    assert loss <= fitted_by_scipy(item) * (1.0 + 1e-6) + 1e-6


def test_the_result_is_clipped_to_the_lowest_maximum():
    item = problem("peaked", 2, 3)
    lower = item.lower.copy()
    lower[0] = item.project()[1][0] + 3.0
    raised = Problem(
        item.inputs, item.values, item.covariance, item.coefficient_sd, lower, item.upper
    )
    loss, p = raised.project()
    assert p[0] == lower[0]
    assert loss == pytest.approx(raised.loss(p), rel=1e-9)


def few_points(highest):
    """One dimension, wide posterior of the mean function, maximum at most highest."""
    inputs = np.array([-1.3, -0.4, 0.1, 0.9, 1.4])[:, None]
    values = np.array([-1.5, 0.0, -0.4, -0.9, -2.5])
    lower = np.array([-2.0, -1.0, np.log(0.3)])
    upper = np.array([highest, 1.5, np.log(3.0)])
    return Problem(inputs, values, 0.5 * np.eye(5) + 0.3, 10.0, lower, upper)


def moments_by_quadrature(item):
    """Mean and covariance of p: normal coefficients, cut off by the bounds of p."""
    axis = np.linspace(-6.0, 6.0, 121)
    noise = np.stack(np.meshgrid(axis, axis, axis, indexing="ij")).reshape(3, -1)
    root = item.triangle[:3, :3]
    best = np.linalg.solve(root, item.triangle[:3, 3])
    constant, linear, quadratic = best[:, None] + np.linalg.solve(root, noise)
    tau = np.where(quadratic < 0.0, -2.0 * quadratic, np.nan)
    mu = linear / tau
    p = np.array(
        [
            constant + 0.5 * tau * mu**2,
            item.centre[0] + item.unit[0] * mu,
            np.log(item.unit[0]) - 0.5 * np.log(tau),
        ]
    )
    inside = ((p >= item.lower[:, None]) & (p <= item.upper[:, None])).all(axis=0)
    weights = np.exp(-0.5 * (noise[:, inside] ** 2).sum(axis=0))
    share = weights.sum() / np.exp(-0.5 * (noise**2).sum(axis=0)).sum()
    mean = p[:, inside] @ weights / weights.sum()
    deviations = p[:, inside] - mean[:, None]
    return mean, (deviations * weights) @ deviations.T / weights.sum(), share


@pytest.mark.slow
@pytest.mark.parametrize("step", [0.3, 1.0])
@pytest.mark.parametrize("highest", [0.3, 4.0])
def test_draws_follow_the_truncated_normal_of_the_coefficients(highest, step):
    """Also with steps far shorter than the posterior is wide, when stepping out meets its limit."""
    item = few_points(highest)
    mean, covariance, share = moments_by_quadrature(item)
    assert 0.2 < share < 0.97  # the bounds matter
    sd = np.sqrt(np.diagonal(covariance))
    directions = step * np.diag(sd)
    generator = np.random.default_rng(1)
    p = mean.copy()
    draws = np.empty((8000, 3))
    for draw in draws:
        sample_mean(
            item.triangle,
            item.centre,
            item.unit,
            item.lower,
            item.upper,
            directions,
            p,
            generator.random(80),
        )
        draw[:] = p
    assert ((draws >= item.lower) & (draws <= item.upper)).all()
    np.testing.assert_allclose((draws.mean(axis=0) - mean) / sd, 0.0, atol=0.06)
    scale = np.outer(sd, sd)
    np.testing.assert_allclose(np.cov(draws.T) / scale, covariance / scale, atol=0.07)


def test_moves_are_made_while_uniform_numbers_last():
    item = few_points(4.0)
    p = item.project()[1]
    arguments = item.triangle, item.centre, item.unit, item.lower, item.upper, 0.3 * np.eye(3), p
    start = p.copy()
    assert sample_mean(*arguments, np.full(18, 0.5)) == 0
    np.testing.assert_array_equal(p, start)
    assert sample_mean(*arguments, np.random.default_rng(0).random(100)) > 10
    assert (p != start).all()
