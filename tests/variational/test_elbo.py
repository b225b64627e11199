import numpy as np
import pytest
from tests.variational.gradients import expected_log_joint_gradient
from tests.variational.support import (
    finite_difference,
    gaussian_gp,
    hyperparameters,
    random_gp,
    random_gradient_gp,
    random_mixture,
)

from sparing.surrogate.gaussian_process import (
    TrainingSet,
    condition,
)
from sparing.variational.elbo import (
    combine_components,
    evaluate_elbo,
    expected_log_joint,
    sampled_elbo,
)
from sparing.variational.entropy import entropy_monte_carlo
from sparing.variational.mixture import GaussianMixture
from sparing.variational.normal_mixture import NormalMixture

MAKERS = [random_gp, random_gradient_gp]


@pytest.mark.parametrize("make", MAKERS)
@pytest.mark.parametrize(("dimension", "n_samples"), [(1, 1), (2, 3), (4, 2)])
def test_mean_against_monte_carlo(dimension, n_samples, make):
    mixture, gp = random_mixture(4, dimension, 1), make(25, dimension, n_samples, 2)
    joint = expected_log_joint(mixture, gp)
    values, _ = gp.predict_each(mixture.sample(200_000, np.random.default_rng(3)))
    error = values.std(axis=1) / np.sqrt(values.shape[1])
    assert np.all(np.abs(joint.mean_by_sample - values.mean(axis=1)) < 4.0 * error)
    assert joint.mean == pytest.approx(joint.mean_by_sample.mean())


@pytest.mark.parametrize("make", MAKERS)
@pytest.mark.parametrize(("dimension", "n_samples"), [(1, 1), (2, 2), (4, 1)])
def test_variance_against_monte_carlo(dimension, n_samples, make):
    mixture, gp = random_mixture(4, dimension, 4), make(8, dimension, n_samples, 5)
    joint = expected_log_joint(mixture, gp)
    # E over independent x, x' from q of C(f(x), f(x')): an average over blocks of pairs.
    generator = np.random.default_rng(6)
    blocks = np.array(
        [
            gp.covariance(mixture.sample(300, generator), mixture.sample(300, generator)).mean(
                axis=(1, 2)
            )
            for _ in range(150)
        ]
    )
    error = blocks.std(axis=0, ddof=1) / np.sqrt(blocks.shape[0])
    assert np.all(np.abs(joint.variance_by_sample - blocks.mean(axis=0)) < 4.0 * error)
    assert np.all(error < 0.1 * joint.variance_by_sample)  # the comparison means something


def test_component_covariances_by_monte_carlo():
    mixture, gp = random_mixture(2, 1, 7), random_gp(4, 1, 1, 8)
    covariance = expected_log_joint(mixture, gp).component_covariances[0]
    generator = np.random.default_rng(9)
    noise = generator.normal(size=(2, 3000, 1))
    points = mixture.means[:, None] + mixture.scales[:, None, None] * mixture.lengths * noise
    expected = gp.covariance(points[0], points[1])[0].mean()
    assert covariance[0, 1] == pytest.approx(expected, abs=0.02)
    np.testing.assert_allclose(covariance, covariance.T, rtol=1e-10)


def test_samples_combine_by_the_law_of_total_variance():
    means = np.array([[1.0, 3.0], [2.0, 4.0], [6.0, 2.0]])
    covariances = np.array([np.eye(2) * v for v in (0.1, 0.2, 0.3)])
    joint = combine_components(np.array([0.5, 0.5]), means, covariances)
    np.testing.assert_allclose(joint.mean_by_sample, [2.0, 3.0, 4.0])
    assert joint.mean == pytest.approx(3.0)
    assert joint.variance == pytest.approx(0.1 + 1.0)  # mean of 0.05, 0.1, 0.15, and 1 = Var
    single = combine_components(np.array([0.5, 0.5]), means[:1], covariances[:1])
    assert single.variance == pytest.approx(0.05)


def test_variance_is_clipped_at_zero():
    negative = np.array([[[-1.0]]])
    assert combine_components(np.ones(1), np.zeros((1, 1)), negative).variance == 0.0


@pytest.mark.parametrize("make", MAKERS)
@pytest.mark.parametrize(
    ("n_components", "dimension", "n_samples"), [(1, 1, 1), (4, 1, 2), (1, 3, 1), (4, 3, 3)]
)
def test_gradient(n_components, dimension, n_samples, make):
    mixture = random_mixture(n_components, dimension, 10)
    gp = make(15, dimension, n_samples, 11)
    value, gradient = expected_log_joint_gradient(mixture, gp)
    assert value == pytest.approx(expected_log_joint(mixture, gp).mean, rel=1e-10)

    def changed(**parts):
        arrays = {
            "weights": mixture.weights,
            "means": mixture.means,
            "scales": mixture.scales,
            "lengths": mixture.lengths,
        }
        return expected_log_joint(GaussianMixture(**(arrays | parts)), gp).mean

    expected = finite_difference(
        lambda p: changed(means=p.reshape(mixture.means.shape)), mixture.means.ravel()
    )
    np.testing.assert_allclose(gradient.means.ravel(), expected, rtol=1e-5, atol=1e-7)
    expected = finite_difference(lambda p: changed(scales=p), mixture.scales)
    np.testing.assert_allclose(gradient.scales, expected, rtol=1e-5, atol=1e-7)
    expected = finite_difference(lambda p: changed(lengths=p), mixture.lengths)
    np.testing.assert_allclose(gradient.lengths, expected, rtol=1e-5, atol=1e-7)
    integrals = expected_log_joint(mixture, gp).component_means.mean(axis=0)
    np.testing.assert_allclose(gradient.weights, integrals, rtol=1e-10)


def test_elbo_of_the_exact_posterior_is_the_log_evidence():
    mean, sd = np.array([0.5, -1.0]), np.array([0.3, 2.0])
    gp = gaussian_gp(mean, sd, 30, 12, offset=1e5)
    posterior = GaussianMixture([1.0], mean[None], [1.0], sd)
    elbo = evaluate_elbo(posterior, gp, 10, np.random.default_rng(0))
    exact = 1e5 + np.log(2 * np.pi) + np.log(sd).sum()
    assert elbo.value == pytest.approx(exact, abs=1e-6)
    assert entropy_monte_carlo(posterior, 10, np.random.default_rng(0))[1] == 0.0
    assert elbo.elcbo(3.0) == pytest.approx(elbo.value - 3.0 * elbo.sd)
    assert elbo.sd == pytest.approx(np.sqrt(elbo.expected_log_joint.variance))


@pytest.mark.parametrize("value", [-1e10, 1e5])
def test_extreme_values_and_one_point(value):
    psi = hyperparameters([1.0], 1.0, 0.01, value, [0.0], [1.0])
    gp = condition(TrainingSet(np.zeros((1, 1)), np.array([value])), psi[None])
    mixture = GaussianMixture([1.0], [[0.0]], [1e-8], [1.0])
    elbo = evaluate_elbo(mixture, gp, 10, np.random.default_rng(0))
    assert elbo.expected_log_joint.mean == pytest.approx(value, rel=1e-12)
    assert np.isfinite(elbo.sd)


@pytest.mark.parametrize("seed", range(4))
def test_the_bound_of_normals_of_any_shape_is_that_of_the_same_ones_of_one_shape(seed):
    mixture, gp = random_mixture(4, 2, seed), random_gp(8, 2, 1, seed + 10)
    exact = evaluate_elbo(mixture, gp, 20_000, np.random.default_rng(seed))
    factors = mixture.scales[:, None, None] * np.diag(mixture.lengths)
    found = sampled_elbo(NormalMixture(mixture.weights, mixture.means, factors), gp)
    assert found.value == pytest.approx(exact.value, abs=0.05)
    assert found.sd == pytest.approx(exact.sd, rel=0.1)
