import numpy as np
import pytest
from tests.variational.gradients import entropy_monte_carlo_gradient
from tests.variational.support import finite_difference, random_mixture

from sparing.kernels.mixture import entropy_lower_bound
from sparing.variational.entropy import entropy_monte_carlo
from sparing.variational.mixture import GaussianMixture


def flatten(gradient):
    return np.concatenate(
        [gradient.weights, gradient.means.ravel(), gradient.scales, gradient.lengths]
    )


def unflatten(parameters, n_components, dimension):
    """(w, μ, σ, λ) from one vector; the weights need not sum to one."""
    sizes = np.cumsum([n_components, n_components * dimension, n_components])
    weights, means, scales, lengths = np.split(parameters, sizes)
    return weights, means.reshape(n_components, dimension), scales, lengths


def log_density(points, weights, means, scales, lengths):
    scaled = (points[:, None] - means) / (scales[:, None] * lengths)
    terms = np.log(weights) - 0.5 * (scaled**2).sum(axis=2)
    terms -= np.log(scales[:, None] * lengths * np.sqrt(2 * np.pi)).sum(axis=1)
    return np.logaddexp.reduce(terms, axis=1)


def entropy_estimate(sampled, density, noise):
    """-(1/N) Σ_k w_k Σ_s log q(ξ_sk): ξ and w_k from `sampled`, q from `density` (Eq. S3)."""
    weights, means, scales, lengths = sampled
    return -sum(
        w * log_density(m + s * lengths * e.T, *density).mean()
        for w, m, s, e in zip(weights, means, scales, noise, strict=True)
    )


def test_one_component_is_exact():
    mixture = random_mixture(1, 3, 1)
    exact = np.log(mixture.scales[0] * mixture.lengths * np.sqrt(2 * np.pi * np.e)).sum()
    value, sd = entropy_monte_carlo(mixture, 10, np.random.default_rng(0))
    assert value == pytest.approx(exact, rel=1e-14)
    assert sd == 0.0


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_monte_carlo_against_plain_monte_carlo(seed):
    mixture = random_mixture(5, 2, seed)
    value, sd = entropy_monte_carlo(mixture, 20_000, np.random.default_rng(seed))
    draws = -mixture.log_density(mixture.sample(400_000, np.random.default_rng(seed + 10)))
    error = np.hypot(sd, draws.std() / np.sqrt(draws.size))
    assert abs(value - draws.mean()) < 4.0 * error
    assert sd < draws.std() / np.sqrt(100_000)  # less noise than as many plain draws


def test_reported_sd_is_the_spread_of_estimates():
    mixture = random_mixture(4, 2, 4)
    estimates = [entropy_monte_carlo(mixture, 50, np.random.default_rng(s)) for s in range(400)]
    values, sds = np.array(estimates).T
    assert values.std() == pytest.approx(np.sqrt(np.mean(sds**2)), rel=0.15)


@pytest.mark.parametrize(("n_components", "dimension"), [(1, 1), (1, 3), (4, 1), (5, 3)])
def test_path_gradient_is_that_of_the_estimator_with_the_density_held_fixed(
    n_components, dimension
):
    mixture = random_mixture(n_components, dimension, 6)
    noise = np.random.default_rng(7).normal(size=(n_components, dimension, 9))
    _, gradient = entropy_monte_carlo_gradient(mixture, noise)
    parameters = np.concatenate([a.ravel() for a in mixture.arrays])

    def estimate(p):
        sampled = unflatten(p, n_components, dimension)
        return entropy_estimate(sampled, mixture.arrays, noise)

    expected = finite_difference(estimate, parameters)
    np.testing.assert_allclose(
        flatten(gradient)[n_components:], expected[n_components:], rtol=1e-6, atol=1e-8
    )


def test_weight_gradient_is_that_of_the_estimator():
    mixture = random_mixture(4, 2, 8)
    draws = np.random.default_rng(9).normal(size=(4, 2, 100_000))
    _, gradient = entropy_monte_carlo_gradient(mixture, draws)

    def estimate(weights):
        changed = (weights, *mixture.arrays[1:])
        return entropy_estimate(changed, changed, draws)

    # The kernel puts exact component entropies in place of their averages: equal up to noise.
    expected = finite_difference(estimate, mixture.weights, step=1e-4)
    np.testing.assert_allclose(gradient.weights, expected, atol=0.02)


@pytest.mark.slow
def test_gradient_in_expectation_is_the_total_derivative():
    n_components, dimension = 3, 2
    mixture = random_mixture(n_components, dimension, 10)
    noise = np.random.default_rng(11).normal(size=(n_components, dimension, 150_000))
    _, gradient = entropy_monte_carlo_gradient(mixture, noise)
    parameters = np.concatenate([a.ravel() for a in mixture.arrays])

    def estimate(p):
        changed = unflatten(p, n_components, dimension)
        return entropy_estimate(changed, changed, noise)

    expected = finite_difference(estimate, parameters, step=1e-4)
    np.testing.assert_allclose(flatten(gradient), expected, atol=0.03)


def test_estimates_agree_with_the_gradient_kernel():
    mixture = random_mixture(4, 2, 12)
    noise = np.random.default_rng(13).normal(size=(4, 2, 20_000))
    value, _ = entropy_monte_carlo_gradient(mixture, noise)
    reference, sd = entropy_monte_carlo(mixture, 20_000, np.random.default_rng(14))
    assert abs(value - reference) < 4.5 * np.sqrt(2.0) * sd


@pytest.mark.parametrize("seed", range(8))
def test_lower_bound_is_below(seed):
    mixture = random_mixture(1 + seed, 2, seed)
    value, sd = entropy_monte_carlo(mixture, 5_000, np.random.default_rng(seed))
    assert entropy_lower_bound(*mixture.arrays) < value + 3.0 * sd


def test_lower_bound_of_one_component():
    mixture = random_mixture(1, 3, 1)
    exact, _ = entropy_monte_carlo(mixture, 1, np.random.default_rng(0))
    assert exact - entropy_lower_bound(*mixture.arrays) == pytest.approx(1.5 * (1.0 - np.log(2.0)))


@pytest.mark.parametrize(("n_components", "dimension"), [(1, 1), (1, 3), (4, 1), (5, 3)])
def test_lower_bound_is_that_of_its_definition(n_components, dimension):
    mixture = random_mixture(n_components, dimension, 15)
    weights, means, scales, lengths = mixture.arrays
    bound = 0.0
    for k in range(n_components):
        spread = np.sqrt(scales**2 + scales[k] ** 2)
        others = log_density(means[k][None], weights, means, spread, lengths)
        bound -= weights[k] * others[0]
    assert entropy_lower_bound(*mixture.arrays) == pytest.approx(bound, rel=1e-12)


def test_extreme_scales_stay_finite():
    mixture = GaussianMixture([0.5, 0.5], [[0.0], [1.0]], [1e-8, 1e8], [1.0])
    value, _ = entropy_monte_carlo(mixture, 100, np.random.default_rng(0))
    exact = np.log(2.0) + np.log(np.sqrt(2 * np.pi * np.e))  # disjoint: log 2 + mean of the two
    assert value == pytest.approx(exact, abs=1e-6)
    assert np.isfinite(entropy_lower_bound(*mixture.arrays))
