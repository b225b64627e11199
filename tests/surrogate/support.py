"""Training sets for the tests of the hyperparameters, ordinary and hard, and a dense reference."""

from dataclasses import dataclass, replace

import numpy as np

from sparing.surrogate.empirical_prior import EmpiricalPrior
from sparing.surrogate.hyperparameters import HyperparameterPrior
from sparing.surrogate.training_set import TrainingSet


@dataclass(frozen=True)
class GivenPrior(EmpiricalPrior):
    """A prior that does not depend on the data."""

    given: HyperparameterPrior | None = None

    def of(self, training):
        assert self.given is not None
        return self.given


def training_set(dimension: int, n: int, seed: int = 0) -> TrainingSet:
    """A log density that is neither quadratic nor wild."""
    generator = np.random.default_rng(seed)
    inputs = generator.normal(size=(n, dimension))
    values = -0.5 * (inputs**2).sum(axis=1) + np.sin(2.0 * inputs[:, 0]) - 10.0
    return TrainingSet(inputs, values)


def with_gradients(training: TrainingSet, every: int = 3) -> TrainingSet:
    """What `training_set` gives and its gradients, which each third point lacks; 0: none does."""
    gradients = -training.inputs
    gradients[:, 0] += 2.0 * np.cos(2.0 * training.inputs[:, 0])
    if every:
        gradients[every - 1 :: every] = np.nan
    return replace(training, gradients=gradients)


def samples_with_gradients(dimension: int, count: int, seed: int = 0) -> np.ndarray:
    """Hyperparameters of ordinary size, (count, 3D + 4)."""
    centre = [0.3, np.log(0.1), -9.0]
    psi = np.concatenate([np.zeros(dimension), centre, np.zeros(2 * dimension), [np.log(0.2)]])
    return psi + 0.2 * np.random.default_rng(seed).normal(size=(count, psi.size))


HARD = {
    "one point": TrainingSet(np.zeros((1, 2)), np.array([-3.0])),
    "two points": training_set(2, 2),
    "duplicates": TrainingSet(np.ones((6, 2)), np.ones(6)),
    "duplicates that disagree": TrainingSet(np.ones((6, 2)), np.arange(6.0)),
    "every point twice": TrainingSet(
        np.tile(training_set(2, 8).inputs, (2, 1)), np.tile(training_set(2, 8).values, 2)
    ),
    "equal values": TrainingSet(training_set(2, 12).inputs, np.full(12, -7.0)),
    "constant coordinate": TrainingSet(
        np.column_stack([training_set(2, 15).inputs[:, 0], np.zeros(15)]),
        training_set(2, 15).values,
    ),
    "a hollow": TrainingSet(
        training_set(2, 20).inputs, (training_set(2, 20).inputs ** 2).sum(axis=1)
    ),
    "range of 1e6": TrainingSet(
        training_set(2, 20).inputs, -1e5 * (training_set(2, 20).inputs ** 2).sum(axis=1)
    ),
    "range of 1e10": TrainingSet(
        training_set(2, 20).inputs, -1e9 * (training_set(2, 20).inputs ** 2).sum(axis=1)
    ),
    "one value of -1e10": TrainingSet(
        training_set(2, 20).inputs, np.append(training_set(2, 20).values[:-1], -1e10)
    ),
    "a cliff": TrainingSet(
        training_set(2, 20).inputs, np.where(training_set(2, 20).inputs[:, 0] > 0, 0.0, -1e4)
    ),
}


def dense_covariance(training: TrainingSet, theta: np.ndarray, sd: float) -> np.ndarray:
    """Covariance of the values, normal coefficients of 1, u and u^2 with that SD included.

    theta: log length scales, log output scale, log noise SD, (..., D + 2); u: inputs less their
    mean, over their extent.
    """
    dimension = training.dimension
    scaled = training.inputs / np.exp(theta[..., None, :dimension])
    squared = ((scaled[..., :, None, :] - scaled[..., None, :, :]) ** 2).sum(axis=-1)
    variance, noise = (np.exp(2.0 * theta[..., i, None, None]) for i in (dimension, dimension + 1))
    u = (training.inputs - training.inputs.mean(axis=0)) / np.ptp(training.inputs, axis=0)
    features = np.column_stack([np.ones(len(u)), u, u**2])
    known = np.diag(training.noise_variance) + sd**2 * features @ features.T
    return variance * np.exp(-0.5 * squared) + noise * np.eye(len(u)) + known


def dense_log_likelihood(training: TrainingSet, theta: np.ndarray, sd: float) -> np.ndarray:
    """log p(y | theta) for theta of any shape (..., D + 2), up to a constant."""
    root = np.linalg.cholesky(dense_covariance(training, theta, sd))
    values = np.broadcast_to(training.values[:, None], (*root.shape[:-1], 1))
    whitened = np.linalg.solve(root, values)[..., 0]
    log_determinant = np.log(np.diagonal(root, axis1=-2, axis2=-1)).sum(axis=-1)
    return -0.5 * (whitened**2).sum(axis=-1) - log_determinant


def wide_prior(training):
    """Bounds that the mean function does not meet, informative for theta."""
    prior, layout = EmpiricalPrior().of(training), training.layout
    lower, upper = prior.lower.copy(), prior.upper.copy()
    upper[layout.mean_maximum] += 1e3
    lower[layout.mean_location] -= 1e3
    upper[layout.mean_location] += 1e3
    upper[layout.log_mean_scales] += 10.0
    return HyperparameterPrior(prior.location, prior.scale, lower, upper)
