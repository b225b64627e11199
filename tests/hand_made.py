"""Results with a known posterior and evidence, for the tests of what is computed from results."""

from __future__ import annotations

from dataclasses import replace
from functools import cache

import numpy as np

import sparing
from sparing.executors import Outcome
from sparing.problem.parameter_transform import ParameterTransform
from sparing.surrogate.support import Support
from sparing.variational.mixture import GaussianMixture
from sparing.variational.posterior import Posterior


def flat(x):
    return 0.0


def unbounded_problem(dimension=1):
    return sparing.Problem(flat, np.full(dimension, -2.0), np.full(dimension, 2.0))


def normal_posterior(problem, mean, sd):
    """Independent normals; for a bounded parameter, normal in its unbounded coordinate."""
    transform = ParameterTransform.from_problem(problem, sparing.BoundedMap.PROBIT)
    centre = np.atleast_1d(mean).astype(float)
    mixture = GaussianMixture(
        weights=np.ones(1),
        means=((centre - transform.centre) / transform.width)[None, :],
        scales=np.ones(1),
        lengths=np.broadcast_to(sd, centre.shape) / transform.width,
    )
    return Posterior(mixture, transform, problem.names)


@cache
def short_run():
    """A real result, whose fields are replaced by known ones."""
    problem = sparing.Problem(lambda x: -0.5 * float(x @ x), -2, 2)
    return sparing.infer(problem, seed=1, max_evaluations=12, progress=False)


def with_outcome(entry, **changes):
    """The evaluation as if its outcome had been another."""
    return replace(entry, outcome=replace(entry.outcome, **changes))


def make_result(
    problem=None,
    *,
    mean=0.0,
    sd=1.0,
    log_evidence=0.0,
    error=0.01,
    posterior_error=0.0,
    converged=True,
    seed=0,
):
    """A result whose posterior is normal; the seed tells runs apart by what they evaluated."""
    problem = unbounded_problem() if problem is None else problem
    x = np.full(problem.dimension, float(seed))
    stable = sparing.StopReason.STABLE
    return replace(
        short_run(),
        problem=problem,
        posterior=normal_posterior(problem, np.broadcast_to(mean, (problem.dimension,)), sd),
        evidence=replace(short_run().evidence, log_evidence=log_evidence, sd=error),
        converged=converged,
        stop_reason=stable if converged else sparing.StopReason.BUDGET,
        history=tuple(
            replace(row, posterior_error=posterior_error, warm_up=False)
            for row in short_run().history
        ),
        evaluations=(sparing.Evaluation(0, None, x, Outcome(-1.0, sparing.Status.OK, 0.1)),),
        seed=seed,
        surrogate=None,
    )


def half_space(transform, normal, offset, sd=1e-3):
    """The support offset + normal . s > 0 in standardised coordinates, with its weights' sd."""
    weights = np.array([[offset, *normal]], dtype=float)
    dimension = transform.dimension
    return Support(
        transform,
        in_user_coordinates=False,
        centre=np.zeros(dimension),
        matrix=np.eye(dimension),
        quadratic=False,
        bumps=np.empty((0, dimension)),
        weights=weights,
        factors=sd * np.eye(dimension + 1)[None],
    )
