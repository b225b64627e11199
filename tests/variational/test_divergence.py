import numpy as np
import pytest
from scipy import stats

from sparing.variational.divergence import gaussianised_symmetric_kl


def random_moments(dimension, seed):
    generator = np.random.default_rng(seed)
    root = generator.normal(size=(dimension, dimension + 2))
    return generator.normal(size=dimension), root @ root.T


def test_against_monte_carlo():
    (mean_a, cov_a), (mean_b, cov_b) = random_moments(3, 1), random_moments(3, 2)
    a, b = stats.multivariate_normal(mean_a, cov_a), stats.multivariate_normal(mean_b, cov_b)
    from_a, from_b = a.rvs(200_000, random_state=3), b.rvs(200_000, random_state=4)
    one = a.logpdf(from_a) - b.logpdf(from_a)
    other = b.logpdf(from_b) - a.logpdf(from_b)
    error = 0.5 * np.hypot(one.std(), other.std()) / np.sqrt(one.size)
    value = gaussianised_symmetric_kl(mean_a, cov_a, mean_b, cov_b)
    assert abs(value - 0.5 * (one.mean() + other.mean())) < 4.0 * error


def test_zero_for_equal_symmetric_and_unchanged_by_units():
    (mean_a, cov_a), (mean_b, cov_b) = random_moments(4, 5), random_moments(4, 6)
    assert gaussianised_symmetric_kl(mean_a, cov_a, mean_a, cov_a) == pytest.approx(0, abs=1e-12)
    value = gaussianised_symmetric_kl(mean_a, cov_a, mean_b, cov_b)
    assert gaussianised_symmetric_kl(mean_b, cov_b, mean_a, cov_a) == pytest.approx(value)
    unit = np.array([1e-6, 1e6, 1.0, 1e3])
    scaled = gaussianised_symmetric_kl(
        mean_a * unit, cov_a * np.outer(unit, unit), mean_b * unit, cov_b * np.outer(unit, unit)
    )
    assert scaled == pytest.approx(value, rel=1e-9)


@pytest.mark.parametrize(
    "cov", [np.zeros((2, 2)), np.ones((2, 2)), np.full((2, 2), np.nan), -np.eye(2)]
)
def test_infinite_when_singular_or_not_finite(cov):
    assert gaussianised_symmetric_kl(np.zeros(2), cov, np.zeros(2), np.eye(2)) == np.inf
    assert gaussianised_symmetric_kl(np.zeros(2), np.eye(2), np.zeros(2), cov) == np.inf
    assert (
        gaussianised_symmetric_kl(np.full(2, np.nan), np.eye(2), np.zeros(2), np.eye(2)) == np.inf
    )
