"""The slice sampler against known densities, with broken samplers that the same test rejects."""

import math

import numpy as np
import pytest
from scipy import stats

from sparing.numerics import slice_sampling
from sparing.numerics.slice_sampling import (
    SliceBox,
    slice_sample,
    update_coordinate,
)

N_DRAWS = 4000
# A correct sampler fails one of the tests below with about this probability per seed; seeds fixed.
SIGNIFICANCE = 1e-3


class FunctionDensity:
    """An ordinary log density (P,) -> float."""

    def __init__(self, function):
        self.function = function

    def along(self, point, index):
        moved = point.copy()

        def conditional(value):
            moved[index] = value
            return self.function(moved)

        return conditional


def unbounded(size: int, max_widths: int = 50) -> SliceBox:
    return SliceBox(np.full(size, -np.inf), np.full(size, np.inf), max_widths)


def draws_of(log_density, start, width, *, max_widths=50, bounds=(-math.inf, math.inf), seed=0):
    """Nearly independent draws of a single coordinate: five updates apart."""
    generator = np.random.default_rng(seed)
    position, value = start, log_density(start)
    draws = np.empty(N_DRAWS)
    for i in range(N_DRAWS):
        for _ in range(5):
            position, value = slice_sampling.update_coordinate(
                log_density, position, value, width, bounds, max_widths, generator
            )
        draws[i] = position
    return draws


def log_gamma_density(x: float) -> float:
    """Gamma with shape 1.5: skewed, with an edge at zero."""
    return 0.5 * math.log(x) - x if x > 0.0 else -math.inf


TARGETS = {
    "normal": (stats.norm(1.0, 2.0), lambda x: -0.125 * (x - 1.0) ** 2),
    "student": (stats.t(4), lambda x: -2.5 * math.log1p(0.25 * x * x)),
    "gamma": (stats.gamma(1.5), log_gamma_density),
}


@pytest.mark.parametrize("name", TARGETS)
@pytest.mark.parametrize(("width", "max_widths"), [(0.5, 100), (2.0, 3), (20.0, 50), (8.0, 1)])
def test_one_coordinate_follows_its_density(name, width, max_widths):
    target, log_density = TARGETS[name]
    draws = draws_of(log_density, 1.0, width, max_widths=max_widths)
    assert stats.kstest(draws, target.cdf).pvalue > SIGNIFICANCE
    # Twice the standard error of independent draws, for what correlation is left.
    assert abs(draws.mean() - target.mean()) < 2.0 * 3.5 * target.std() / math.sqrt(N_DRAWS)


def test_bounds_truncate_the_density():
    target = stats.truncnorm(-0.5, 1.0)
    draws = draws_of(lambda x: -0.5 * x * x, 0.0, 1.0, bounds=(-0.5, 1.0))
    assert draws.min() >= -0.5
    assert draws.max() <= 1.0
    assert stats.kstest(draws, target.cdf).pvalue > SIGNIFICANCE


def centred_interval(conditional, position, log_density, width, bounds, max_widths, generator):
    """A broken update: neither stepping out nor a random placement of the interval."""
    level = log_density - generator.exponential()
    left, right = position - 0.5 * width, position + 0.5 * width
    while True:
        proposal = generator.uniform(left, right)
        value = conditional(proposal)
        if value > level:
            return proposal, value
        left, right = (proposal, right) if proposal < position else (left, proposal)


def one_sided(conditional, position, log_density, width, bounds, max_widths, generator):
    """A broken update: steps out to the right only."""
    level = log_density - generator.exponential()
    left = position - width * generator.uniform()
    right = left + width
    while conditional(right) > level:
        right += width
    while True:
        proposal = generator.uniform(left, right)
        value = conditional(proposal)
        if value > level:
            return proposal, value
        left, right = (proposal, right) if proposal < position else (left, proposal)


@pytest.mark.parametrize("broken", [centred_interval, one_sided])
def test_the_test_rejects_broken_samplers(monkeypatch, broken):
    target, log_density = TARGETS["gamma"]
    monkeypatch.setattr(slice_sampling, "update_coordinate", broken)
    draws = draws_of(log_density, 1.0, 1.0)
    assert stats.kstest(draws, target.cdf).pvalue < SIGNIFICANCE


@pytest.mark.slow
def test_correlated_normal_in_three_dimensions():
    covariance = np.array([[1.0, 0.6, 0.0], [0.6, 2.0, -0.3], [0.0, -0.3, 0.5]])
    precision = np.linalg.inv(covariance)
    density = FunctionDensity(lambda x: -0.5 * float(x @ precision @ x))
    points, _ = slice_sample(
        density, np.zeros(3), np.ones(3), unbounded(3), 3000, 50, 4, np.random.default_rng(3)
    )
    np.testing.assert_allclose(points.mean(axis=0), 0.0, atol=0.12)
    np.testing.assert_allclose(np.cov(points.T), covariance, atol=0.15)
    for column, variance in zip(points.T[:, ::5], np.diag(covariance), strict=True):
        assert stats.kstest(column, stats.norm(0, math.sqrt(variance)).cdf).pvalue > SIGNIFICANCE


def test_widths_are_tuned_to_the_scale_of_each_coordinate():
    scales = np.array([1e-3, 1.0, 1e3])
    density = FunctionDensity(lambda x: -0.5 * float(np.sum((x / scales) ** 2)))
    _, widths = slice_sample(
        density, np.zeros(3), np.ones(3), unbounded(3, 2000), 10, 200, 1, np.random.default_rng(0)
    )
    assert (widths / scales > 0.5).all()
    assert (widths / scales < 20.0).all()


def test_a_repeated_run_gives_the_same_samples():
    density = FunctionDensity(lambda x: -0.5 * float(x @ x))
    runs = [
        slice_sample(
            density, np.zeros(2), np.ones(2), unbounded(2), 20, 5, 2, np.random.default_rng(7)
        )[0]
        for _ in range(2)
    ]
    np.testing.assert_array_equal(*runs)


def test_an_inconsistent_level_keeps_the_position():
    """A rounding error may put even the current position below the level."""
    position, value = update_coordinate(
        lambda _: -math.inf, 0.3, 0.0, 1.0, (-1.0, 1.0), 5, np.random.default_rng(0)
    )
    assert (position, value) == (0.3, 0.0)


def test_bad_starts_are_errors():
    density = FunctionDensity(lambda x: -math.inf)
    box = SliceBox(np.zeros(1), np.ones(1), 5)
    generator = np.random.default_rng(0)
    with pytest.raises(ValueError, match="positive and finite"):
        slice_sample(density, np.full(1, 0.5), np.ones(1), box, 1, 0, 1, generator)
    with pytest.raises(ValueError, match="within the bounds"):
        slice_sample(density, np.full(1, 2.0), np.ones(1), box, 1, 0, 1, generator)
