"""Surrogates in one and two dimensions, and what quadrature on a grid says of their posteriors."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

import numpy as np

from sparing.surrogate.collapsed_training import Collapsed
from sparing.surrogate.gaussian_process import condition
from sparing.surrogate.training_set import TrainingSet
from sparing.vbmc.surrogate_posterior import Density


@dataclass(frozen=True, eq=False)
class Quadrature:
    """The believed posterior of a surrogate on a grid, (M, D)."""

    points: np.ndarray
    probabilities: np.ndarray
    log_evidence: float

    @property
    def mean(self):
        return self.probabilities @ self.points

    @property
    def covariance(self):
        offsets = self.points - self.mean
        return (offsets.T * self.probabilities) @ offsets

    def sample(self, n, seed):
        generator = np.random.default_rng(seed)
        return self.points[generator.choice(len(self.points), p=self.probabilities, size=n)]


def quadrature(surrogate, lower, upper, n):
    """With n points along each dimension."""
    axes = [np.linspace(*ends, n) for ends in zip(lower, upper, strict=True)]
    points = np.stack(np.meshgrid(*axes), axis=-1).reshape(-1, len(axes))
    density = Density(surrogate)
    log_density = density.log_density(*density.moments(points))
    total = np.logaddexp.reduce(log_density)
    cell = np.prod([axis[1] - axis[0] for axis in axes])
    return Quadrature(points, np.exp(log_density - total), float(total + np.log(cell)))


@cache
def wavy():
    """One dimension, two samples, and too few points: V is a nat squared between some of them."""
    inputs = np.array([-3.0, -1.6, -0.4, 0.3, 1.2, 3.4])[:, None]
    values = -0.5 * inputs[:, 0] ** 2 + np.sin(3.0 * inputs[:, 0]) - 20.0
    psi = np.array([np.log(0.5), np.log(1.3), np.log(1e-3), -20.0, 0.0, np.log(1.2)])
    surrogate = condition(TrainingSet(inputs, values), np.array([psi, psi + 0.1]))
    return surrogate, quadrature(surrogate, [-9.0], [9.0], 4001)


@cache
def bent():
    """Two dimensions and three samples, trained on a banana: x_1 = x_0^2 / 2, give or take."""
    generator = np.random.default_rng(1)
    inputs = np.column_stack([generator.uniform(-3, 3, 60), generator.uniform(-2, 5, 60)])
    inputs[:30, 1] = 0.5 * inputs[:30, 0] ** 2 + 0.6 * generator.normal(size=30)
    values = -0.5 * (inputs[:, 0] ** 2 + (inputs[:, 1] - 0.5 * inputs[:, 0] ** 2) ** 2 / 0.1)
    surrogate = Collapsed().train(TrainingSet(inputs, values), 3, generator)
    return surrogate, quadrature(surrogate, [-5.0, -3.0], [5.0, 11.0], 300)
