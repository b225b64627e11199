"""Mixtures and Gaussian processes for the tests of the variational posterior."""

import numpy as np

from sparing.surrogate.gaussian_process import GaussianProcess, TrainingSet, condition
from sparing.variational.mixture import GaussianMixture


def random_mixture(n_components, dimension, seed):
    generator = np.random.default_rng(seed)
    return GaussianMixture(
        generator.dirichlet(np.full(n_components, 3.0)),
        generator.normal(size=(n_components, dimension)),
        np.exp(generator.uniform(-1.0, 0.3, n_components)),
        np.exp(generator.uniform(-0.7, 0.7, dimension)),
    )


def hyperparameters(lengths, output_scale, noise_sd, maximum, location, widths):
    return np.concatenate(
        [
            np.log(lengths),
            [np.log(output_scale), np.log(noise_sd), maximum],
            location,
            np.log(widths),
        ]
    )


def random_gp(n_points, dimension, n_samples, seed, offset=0.0) -> GaussianProcess:
    """A process through a bumpy function, hyperparameters differing between samples."""
    generator = np.random.default_rng(seed)
    inputs = generator.normal(size=(n_points, dimension))
    values = offset - 0.5 * (inputs**2).sum(axis=1) + np.sin(3.0 * inputs).sum(axis=1)
    rows = [
        hyperparameters(
            np.exp(generator.uniform(-0.5, 0.5, dimension)),
            np.exp(generator.uniform(-0.3, 0.7)),
            0.05,
            offset + generator.normal(),
            0.3 * generator.normal(size=dimension),
            np.exp(generator.uniform(-0.2, 0.5, dimension)),
        )
        for _ in range(n_samples)
    ]
    return condition(TrainingSet(inputs, values), np.array(rows))


def random_gradient_gp(n_points, dimension, n_samples, seed, offset=0.0) -> GaussianProcess:
    """The same function, gradients known at all points but every third."""
    plain = random_gp(n_points, dimension, n_samples, seed, offset)
    inputs = plain.training.inputs
    gradients = -inputs + 3.0 * np.cos(3.0 * inputs)
    gradients[2::3] = np.nan
    training = TrainingSet(inputs, plain.training.values, gradients=gradients)
    log_noise_sd = np.full((n_samples, 1), np.log(0.1))
    return condition(training, np.hstack([plain.parameters, log_noise_sd]))


def gaussian_gp(mean, sd, n_points, seed, offset=0.0) -> GaussianProcess:
    """A process whose posterior mean is the log of offset-shifted N(mean, diag(sd²)), exactly."""
    generator = np.random.default_rng(seed)
    inputs = mean + 3.0 * sd * generator.uniform(-1.0, 1.0, size=(n_points, mean.size))
    values = offset - 0.5 * (((inputs - mean) / sd) ** 2).sum(axis=1)
    psi = hyperparameters(2.0 * sd, 1.0, 1e-3, offset, mean, sd)
    return condition(TrainingSet(inputs, values), psi[None])


def bimodal_gp(seed) -> tuple[GaussianProcess, GaussianMixture]:
    """A process that has learned a mixture of two Gaussians in two dimensions, and that mixture."""
    target = GaussianMixture([0.35, 0.65], [[-1.0, 0.0], [1.2, 0.5]], [0.4, 0.6], [1.0, 1.0])
    generator = np.random.default_rng(seed)
    inputs = np.vstack(
        [target.sample(60, generator), 2.0 * generator.uniform(-1.5, 1.5, size=(100, 2))]
    )
    psi = hyperparameters([0.7, 0.7], 3.0, 1e-3, 0.0, [0.0, 0.0], [1.0, 1.0])
    return condition(TrainingSet(inputs, target.log_density(inputs)), psi[None]), target


def finite_difference(function, parameters, step=1e-5):
    """Central differences of a scalar function of a flat array."""
    gradient = np.empty(parameters.size)
    for j in range(parameters.size):
        shift = np.zeros(parameters.size)
        shift[j] = step
        gradient[j] = (function(parameters + shift) - function(parameters - shift)) / (2 * step)
    return gradient
