"""What a run knows of one or two hills in the plausible box, for the tests of looking elsewhere."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from sparing.problem.parameter_transform import ParameterTransform
from sparing.problem.problem import Problem
from sparing.surrogate.collapsed_training import Collapsed
from sparing.surrogate.gaussian_process import condition
from sparing.surrogate.training_data import CompressedDepths
from sparing.surrogate.training_set import TrainingSet
from sparing.variational.normal_mixture import NormalMixture
from sparing.vbmc.hidden_modes import Known

SD = 0.05  # of both hills; the box is [-1/2, 1/2]^2, and working coordinates are the user's
HOME, OTHER = np.array([-0.25, 0.0]), np.array([0.25, 0.1])
EAST = np.array([SD, 0.0])
TRANSFORM = ParameterTransform.from_problem(Problem(lambda x: 0.0, [-0.5, -0.5], [0.5, 0.5]))


def one_hill(u):
    """A normal at home, (m, D) -> (m,); its top is at 0."""
    return -0.5 * ((u - HOME) ** 2).sum(axis=1) / SD**2


def two_hills(u):
    """One of the same height at the other place, ten sds away."""
    return np.logaddexp(one_hill(u), one_hill(u - OTHER + HOME))


def normal_at(centre, sd=SD):
    centre = np.atleast_2d(centre)
    dimension = centre.shape[1]
    return NormalMixture.of_covariances(np.ones(1), centre, sd**2 * np.eye(dimension)[None])


def around(centre, n, seed, spread=1.5):
    return centre + spread * SD * np.random.default_rng(seed).normal(size=(n, 2))


def over_the_box(n, seed):
    return np.random.default_rng(seed).uniform(-0.5, 0.5, size=(n, 2))


def known(inputs, values, surrogate, posterior=None):
    posterior = normal_at(HOME) if posterior is None else posterior
    log_evidence = float(np.log(2.0 * np.pi * SD**2))
    rules = ("",) * len(inputs)
    return Known(TRANSFORM, surrogate, posterior, log_evidence, inputs, values, rules)


def learnt(target, *parts):
    """Evaluations of a target and a surrogate trained on them; the posterior is that at home."""
    inputs = np.vstack(parts)
    values = target(inputs)
    training = TrainingSet(inputs, *CompressedDepths().applied(values, 2))
    return known(inputs, values, Collapsed().train(training, 3, np.random.default_rng(1)))


def certain_of_home(inputs, values, *, length=0.08, output_scale=8.0, posterior=None):
    """A surrogate whose mean function is the hill at home, with known hyperparameters."""
    logs = np.log([length, length, output_scale, 1e-3])
    psi = np.concatenate([logs, [0.0], HOME, np.log([SD, SD])])
    return known(inputs, values, condition(TrainingSet(inputs, values), psi[None]), posterior)


def turned(seen):
    """The same, and a surrogate that has learnt the same values, in other coordinates."""
    centre, matrix = np.array([0.1, -0.2]), np.array([[1.0, 0.4], [0.0, 2.0]])
    inputs = (seen.inputs - centre) @ matrix.T
    training = TrainingSet(inputs, *CompressedDepths().applied(seen.values, 2))
    return replace(
        seen,
        transform=TRANSFORM.whitened(centre, matrix, 2),
        surrogate=Collapsed().train(training, 3, np.random.default_rng(1)),
        posterior=seen.posterior.image(matrix, -matrix @ centre),
        inputs=inputs,
    )
