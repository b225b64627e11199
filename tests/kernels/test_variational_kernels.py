"""Each kernel of the variational posterior against plain NumPy, and the optimiser's conduct."""

import numpy as np
import pytest
from scipy import stats
from scipy.special import logsumexp
from tests.variational.gradients import empty_gradient
from tests.variational.support import finite_difference, random_gp, random_mixture

from sparing.kernels import expected_log_joint as joint_kernels
from sparing.kernels import mixture as mixture_kernels
from sparing.kernels import variational as variational_kernels
from sparing.variational.objective import NoPenalties, Objective, SoftPenalties
from sparing.variational.parameterisation import to_parameters

SIZES = [(1, 1), (1, 4), (3, 1), (5, 3), (12, 6)]  # (K, D)


def reference_log_terms(points, mixture):
    """log w_k N_k(x), (m, K)."""
    terms = [
        np.log(w) + stats.norm.logpdf(points, m, s * mixture.lengths).sum(axis=1)
        for w, m, s in zip(mixture.weights, mixture.means, mixture.scales, strict=True)
    ]
    return np.array(terms).T


def reference_integrals(mixture, gp):
    """I_k (S, K) by the formulas of Section S1.2, one loop per index."""
    inputs, dimension = gp.training.inputs, gp.dimension
    result = np.empty((gp.n_samples, mixture.n_components))
    for s, psi in enumerate(gp.parameters):
        lengths, output_scale = np.exp(psi[:dimension]), np.exp(psi[dimension])
        maximum, location = psi[dimension + 2], psi[dimension + 3 : 2 * dimension + 3]
        widths = np.exp(psi[2 * dimension + 3 :])
        for k in range(mixture.n_components):
            variance = (mixture.scales[k] * mixture.lengths) ** 2
            tau = np.sqrt(variance + lengths**2)
            big_lambda = (2 * np.pi) ** (dimension / 2) * lengths.prod()
            z = output_scale**2 * big_lambda
            z = z * stats.norm.pdf(mixture.means[k], inputs, tau).prod(axis=1)
            nu = -0.5 * (((mixture.means[k] - location) ** 2 + variance) / widths**2).sum()
            result[s, k] = z @ gp.alpha[s] + maximum + nu
    return result


@pytest.mark.parametrize(("n_components", "dimension"), SIZES)
@pytest.mark.parametrize("n_points", [1, 127, 300])
def test_log_density(n_components, dimension, n_points):
    mixture = random_mixture(n_components, dimension, 1)
    points = 3.0 * np.random.default_rng(2).normal(size=(n_points, dimension))
    value = mixture_kernels.mixture_log_density(points, *mixture.arrays)
    expected = logsumexp(reference_log_terms(points, mixture), axis=1)
    np.testing.assert_allclose(value, expected, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize(("n_components", "dimension"), SIZES)
def test_component_integrals(n_components, dimension):
    mixture, gp = random_mixture(n_components, dimension, 3), random_gp(20, dimension, 3, 4)
    value = joint_kernels.component_integrals(*mixture.arrays[1:], *gp.expansion.arrays)
    np.testing.assert_allclose(value, reference_integrals(mixture, gp), rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize(("n_components", "dimension"), SIZES)
def test_gradient_kernel_returns_the_same_integrals(n_components, dimension):
    mixture, gp = random_mixture(n_components, dimension, 3), random_gp(20, dimension, 3, 4)
    gradient = empty_gradient(mixture)
    value = joint_kernels.expected_log_joint_and_gradient(
        *mixture.arrays, *gp.expansion.arrays, gradient
    )
    integrals = reference_integrals(mixture, gp).mean(axis=0)
    np.testing.assert_allclose(gradient[3], integrals, rtol=1e-9, atol=1e-9)
    assert value == pytest.approx(integrals @ mixture.weights, rel=1e-9)


@pytest.mark.parametrize(("n_components", "dimension"), SIZES)
@pytest.mark.parametrize("mirrored", [False, True])
def test_entropy_and_gradient(n_components, dimension, mirrored):
    mixture = random_mixture(n_components, dimension, 5)
    n_fresh, first = 7, 11
    n_samples = 2 * n_fresh if mirrored else n_fresh
    pool = np.random.default_rng(6).normal(size=first + n_components * dimension * n_fresh)
    gradient = empty_gradient(mixture)
    value = mixture_kernels.entropy_and_gradient(
        *mixture.arrays, pool, first, n_samples, n_fresh, gradient
    )
    noise = pool[first:].reshape(n_components, dimension, n_fresh)
    if mirrored:
        noise = np.concatenate([noise, -noise], axis=2)
    expected_value, expected = reference_entropy_gradient(mixture, noise)
    assert value == pytest.approx(expected_value, rel=1e-11, abs=1e-11)
    for part, reference in zip(gradient, expected, strict=True):
        np.testing.assert_allclose(part, reference, rtol=1e-9, atol=1e-10)


def reference_entropy_gradient(mixture, noise):
    """Section S1.1 term by term, noise (K, D, N_s)."""
    w, mu, sigma, lam = mixture.arrays
    n_components, dimension = noise.shape[:2]
    value = 0.0
    by_mean, by_log_scale = np.zeros_like(mu), np.zeros(n_components)
    by_log_length, by_weight = np.zeros(dimension), np.zeros(n_components)
    for k in range(n_components):
        xi = mu[k] + sigma[k] * lam * noise[k].T
        terms = reference_log_terms(xi, mixture)
        log_q = logsumexp(terms, axis=1)
        responsibility = np.exp(terms - log_q[:, None])
        component = stats.norm.entropy(scale=sigma[k] * lam).sum() - np.log(w[k])
        component += np.mean(terms[:, k] - log_q)
        value += w[k] * component
        by_weight[k] += component
        by_weight -= w[k] * responsibility.mean(axis=0) / w
        precision = 1.0 / (sigma[:, None] * lam) ** 2
        force = np.einsum("sl,sli->si", responsibility, (xi[:, None] - mu) * precision)
        by_mean[k] += w[k] * force.mean(axis=0)
        stretch = w[k] * (force * (xi - mu[k])).mean(axis=0)
        by_log_scale[k] += stretch.sum()
        by_log_length += stretch
    return value, (by_mean, by_log_scale, by_log_length, by_weight)


@pytest.mark.parametrize(("n_components", "dimension"), SIZES)
def test_entropy_lower_bound(n_components, dimension):
    mixture = random_mixture(n_components, dimension, 7)
    value = mixture_kernels.entropy_lower_bound(*mixture.arrays)
    expected = 0.0
    for k in range(n_components):
        spread = np.sqrt(mixture.scales**2 + mixture.scales[k] ** 2)[:, None] * mixture.lengths
        overlap = stats.norm.pdf(mixture.means, mixture.means[k], spread).prod(axis=1)
        expected -= mixture.weights[k] * np.log(overlap @ mixture.weights)
    assert value == pytest.approx(expected, rel=1e-11)


def penalised_objective(dimension, seed):
    """Bounds tight enough that a random mixture violates all four kinds."""
    penalties = SoftPenalties(box_margin=-0.3, smallest_sd=0.1, largest_sd=0.2)
    return Objective.create(random_gp(10, dimension, 1, seed), penalties)


def test_penalty_gradient():
    objective, mixture = penalised_objective(3, 1), random_mixture(4, 3, 2)
    n_components, dimension = mixture.means.shape

    def penalty(phi, gradient):
        weights, means = np.empty(n_components), np.empty((n_components, dimension))
        variational_kernels.unpack_parameters(
            phi, weights, means, np.empty(n_components), np.empty(dimension)
        )
        return variational_kernels.add_penalty_gradient(
            phi, weights, means, objective.bounds, objective.penalties, gradient
        )

    phi = to_parameters(mixture)
    gradient = np.zeros(phi.size)
    assert penalty(phi, gradient) > 1.0
    expected = -finite_difference(lambda p: penalty(p, np.zeros(p.size)), phi)
    np.testing.assert_allclose(gradient, expected, rtol=1e-6, atol=1e-7)
    assert np.all(gradient[-n_components:] != 0.0)


def test_no_penalty_inside_the_bounds():
    gp = random_gp(10, 2, 1, 3)
    objective = Objective.create(gp, SoftPenalties(weight_pressure=0.0))
    mixture = random_mixture(2, 2, 4)
    centre = gp.training.inputs.mean(axis=0)
    inside = type(mixture)(mixture.weights, centre + 0 * mixture.means, [0.1, 0.2], [1.0, 1.0])
    assert objective.penalty(inside) == 0.0


def run_optimiser(objective, phi, n_components, n_steps, **changes):
    constants = {
        "rate_min": 0.001,
        "rate_max": 0.05,
        "rate_decay": 100.0,
        "momentum": 0.9,
        "second_momentum": 0.99,
        "epsilon": 1e-8,
        "value_tolerance": 0.0,
        "parameter_tolerance": 0.0,
    }
    optimise_weights = changes.pop("optimise_weights", 1)
    constants.update(changes)
    learning = np.array([constants[name] for name in variational_kernels.LEARNING_FIELDS])
    pool = np.random.default_rng(0).normal(size=4000)
    first = np.random.default_rng(1).integers(0, 1000, n_steps)
    return variational_kernels.maximise_objective(
        phi, n_components, *objective.expansion.arrays, pool, first, 20, 10,
        objective.bounds, objective.penalties, learning, 20, optimise_weights,
    )  # fmt: skip


def test_optimiser_stops_at_the_step_limit_without_tolerances():
    objective = Objective.create(random_gp(10, 2, 2, 5), SoftPenalties())
    phi = to_parameters(random_mixture(3, 2, 6))
    assert run_optimiser(objective, phi, 3, 100) == (variational_kernels.STOPPED_AT_LIMIT, 100)


def test_optimiser_stops_by_value_and_by_parameters():
    objective = Objective.create(random_gp(10, 2, 2, 5), SoftPenalties())
    phi = to_parameters(random_mixture(3, 2, 6))
    status, steps = run_optimiser(objective, phi, 3, 5000, value_tolerance=1e-2)
    assert status == variational_kernels.STOPPED_BY_VALUE
    assert 40 <= steps < 5000
    status, steps = run_optimiser(objective, phi, 3, 5000, parameter_tolerance=0.05)
    assert status == variational_kernels.STOPPED_BY_PARAMETERS
    assert steps < 5000


def test_noise_does_not_stop_the_optimiser():
    # The tolerance is far below the noise of 200 steps, whatever their slope happens to be.
    objective = Objective.create(random_gp(10, 2, 2, 5), SoftPenalties())
    phi = to_parameters(random_mixture(3, 2, 6))
    status, _ = run_optimiser(objective, phi, 3, 200, value_tolerance=1e-4)
    assert status == variational_kernels.STOPPED_AT_LIMIT


def test_optimiser_leaves_equal_weights_alone():
    objective = Objective.create(random_gp(10, 2, 2, 5), SoftPenalties())
    phi = to_parameters(random_mixture(3, 2, 6))
    phi[-3:] = 0.0
    run_optimiser(objective, phi, 3, 60, optimise_weights=0)
    np.testing.assert_array_equal(phi[-3:], 0.0)
    run_optimiser(objective, phi, 3, 60)
    assert np.all(phi[-3:] != 0.0)


def test_optimiser_returns_the_start_where_nothing_is_finite():
    objective = Objective.create(random_gp(10, 2, 2, 5), SoftPenalties())
    objective.expansion.coefficients[0, 0] = np.nan
    phi = to_parameters(random_mixture(3, 2, 6))
    start = phi.copy()
    status, steps = run_optimiser(objective, phi, 3, 60)
    assert (status, steps) == (variational_kernels.STOPPED_NOT_FINITE, 0)
    np.testing.assert_array_equal(phi, start)


def test_optimiser_takes_back_steps_into_overflow():
    # An absurd rate drives log σ beyond exp's range within a few steps.
    objective = Objective.create(random_gp(10, 2, 2, 5), NoPenalties())
    phi = to_parameters(random_mixture(3, 2, 6))
    run_optimiser(objective, phi, 3, 400, rate_min=400.0, rate_max=400.0)
    assert np.isfinite(phi).all()


def test_trend_of_noisy_values():
    generator = np.random.default_rng(8)
    index = np.arange(100.0)
    values = 0.3 * index + generator.normal(size=100)
    slope, error = variational_kernels._trend(values)
    expected = stats.linregress(index, values)
    assert slope == pytest.approx(expected.slope)
    assert error == pytest.approx(expected.stderr)
