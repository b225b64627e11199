"""Stochastic gradient ascent on the ELBO by the modified Adam (Section S1.3.3).

Random draws come from a pool that is filled once; each step reads a stretch of it that begins at
a random place. Drawing anew at every step would cost as much as the rest of the step.
"""

from __future__ import annotations

import enum

import numpy as np

from sparing.kernels.variational import (
    STOPPED_AT_LIMIT,
    STOPPED_BY_PARAMETERS,
    STOPPED_BY_VALUE,
    STOPPED_NOT_FINITE,
    maximise_objective,
)
from sparing.numerics.arrays import Array
from sparing.variational.mixture import GaussianMixture
from sparing.variational.objective import Objective
from sparing.variational.parameterisation import from_parameters, normalised, to_parameters
from sparing.variational.settings import VariationalSettings

# The pool holds at least this many draws, and this many times what one step reads.
MIN_POOL = 1 << 16
POOL_STEPS = 4
# One unit of the means, in sds of q: the plausible box, the paper's unit, is that wide when it
# holds the central 87 % of the posterior.
SDS_PER_UNIT = 3.0


class AscentEnd(enum.Enum):
    """Why an ascent ended."""

    STEP_LIMIT = STOPPED_AT_LIMIT
    VALUE_SETTLED = STOPPED_BY_VALUE
    PARAMETERS_SETTLED = STOPPED_BY_PARAMETERS
    NOT_FINITE = STOPPED_NOT_FINITE


def maximise(
    objective: Objective,
    start: GaussianMixture,
    settings: VariationalSettings,
    *,
    equal_weights: bool,
    fast_learning: bool,
    generator: np.random.Generator,
) -> tuple[GaussianMixture, int, AscentEnd]:
    """Optimise from start; returns the mixture, the number of steps and why they ended.

    fast_learning takes the warm-up's learning rate; equal_weights leaves the weights alone.
    """
    n_components, dimension = start.means.shape
    n_samples = settings.entropy_samples(n_components)
    n_fresh = (n_samples + 1) // 2 if settings.mirrored_samples else n_samples
    per_step = n_components * dimension * n_fresh
    pool = generator.standard_normal(max(MIN_POOL, POOL_STEPS * per_step))
    max_steps = settings.max_steps(n_components)
    first = generator.integers(0, pool.size - per_step + 1, size=max_steps, dtype=np.int64)
    if settings.standardise_steps:
        unit = SDS_PER_UNIT * np.sqrt(np.diagonal(start.covariance))
    else:
        unit = np.ones(dimension)
    objective = objective.in_units(unit)
    phi = to_parameters(_scaled(start, 1.0 / unit))
    status, n_steps = maximise_objective(
        phi,
        n_components,
        objective.inputs,
        objective.alpha,
        objective.hyperparameters,
        pool,
        first,
        n_samples,
        n_fresh,
        objective.bounds,
        objective.penalties,
        _learning_constants(settings, fast_learning),
        settings.n_batch,
        0 if equal_weights else 1,
    )
    optimised = _scaled(from_parameters(phi, n_components, dimension), unit)
    return normalised(optimised), int(n_steps), AscentEnd(status)


def _scaled(mixture: GaussianMixture, factor: Array) -> GaussianMixture:
    """The distribution of x factor, coordinate by coordinate."""
    return GaussianMixture(
        mixture.weights, mixture.means * factor, mixture.scales, mixture.lengths * factor
    )


def _learning_constants(settings: VariationalSettings, fast_learning: bool) -> Array:
    """The constants in the kernel's order, LEARNING_FIELDS."""
    return np.array(
        [
            settings.rate_min,
            settings.rate_max_warm_up if fast_learning else settings.rate_max,
            settings.rate_decay,
            settings.momentum,
            settings.second_momentum,
            settings.epsilon,
            settings.value_tolerance,
            settings.parameter_tolerance,
        ]
    )
