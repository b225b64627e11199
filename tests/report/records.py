"""Results for the tests of what a person sees: tiny runs, and others made from them by hand."""

from dataclasses import replace
from functools import cache

import numpy as np
from scipy import stats

import sparing
from sparing.problem.evaluations import Evaluation, Outcome, Status
from sparing.problem.parameter_transform import ParameterTransform
from sparing.results.result import Result
from sparing.surrogate.empirical_prior import EmpiricalPrior
from sparing.surrogate.gaussian_process import condition
from sparing.surrogate.training_data import MeasuredValues, training_set
from sparing.variational.mixture import GaussianMixture
from sparing.variational.posterior import Posterior
from sparing.vbmc.state import TrainedSurrogate
from sparing.vbmc.stopping import StopReason

COVARIANCE = np.array([[1.0, 0.6], [0.6, 1.0]])
MEAN = np.array([0.5, -0.3])
LOG_EVIDENCE = -3.0


def log_joint(x):
    return float(stats.multivariate_normal.logpdf(x, MEAN, COVARIANCE)) + LOG_EVIDENCE


def make_problem(names=("slope", "offset")):
    return sparing.Problem(log_joint, [-2, -2], [2, 2], names=names)


@cache
def converged():
    """A correlated normal, run until it is stable."""
    return sparing.infer(make_problem(), seed=1, progress=False)


def good():
    """A run of which every check thinks well, whatever the algorithm makes of the target."""
    result = with_evidence(converged(), sd=0.01, inflation=1.2, pareto_k=0.2)
    quiet = replace(result.history[-1], warm_up=False, posterior_error=1e-3, n_held_out=6)
    history = (*result.history[:-2], quiet, quiet)
    reason = StopReason.STABLE
    return replace(result, history=history, converged=True, stop_reason=reason, warnings=())


@cache
def too_short():
    """The same, stopped by its budget during the search."""
    return sparing.infer(make_problem(), seed=1, max_evaluations=12, progress=False)


@cache
def one_dimensional():
    """A normal in one dimension."""
    problem = sparing.Problem(lambda x: -0.5 * float(x @ x), [-2], [2], names=["location"])
    return sparing.infer(problem, seed=1, max_evaluations=20, progress=False)


@cache
def failing():
    """One parameter of each kind and a target that raises on one side."""

    def log_likelihood(x):
        if x[0] > 2.5:
            raise RuntimeError("the <solver> diverged")
        return -0.5 * float((x[1] - 0.5) ** 2 / 0.04 + (x[2] - 1.0) ** 2)

    problem = sparing.Problem(
        log_likelihood,
        [0.2, 0.2, -1.0],
        [3.0, 0.8, 3.0],
        lower=[0.0, 0.0, -np.inf],
        upper=[np.inf, 1.0, np.inf],
        names=["rate $k$", "<b>share</b>", "σ"],
        prior=[stats.gamma(2.0, scale=0.5), stats.beta(2.0, 2.0), stats.norm(1.0, 2.0)],
    )
    return sparing.infer(problem, seed=1, max_evaluations=25, progress=False)


def with_last(result, **changes):
    """The result with another last iteration."""
    *earlier, last = result.history
    return replace(result, history=(*earlier, replace(last, **changes)))


def with_evidence(result, **changes):
    """The result with another evidence."""
    return replace(result, evidence=replace(result.evidence, **changes))


def made_by_hand(dimension, n_evaluations=60, n_components=5, whitened=True):
    """A result whose posterior is a given mixture: parameters with no, one and two bounds."""
    generator = np.random.default_rng(dimension)
    kinds = [(-np.inf, np.inf), (0.0, np.inf), (0.0, 1.0)]
    lower, upper = np.transpose([kinds[i % 3] for i in range(dimension)])
    boxes = [(-2.0, 2.0), (0.5, 3.0), (0.2, 0.8)]
    low, high = np.transpose([boxes[i % 3] for i in range(dimension)])
    names = [f"parameter {i + 1}" for i in range(dimension)]
    problem = sparing.Problem(log_joint, low, high, lower=lower, upper=upper, names=names)
    transform = ParameterTransform.from_problem(problem)
    if whitened:
        mixing = np.eye(dimension) + 0.4 * np.tril(generator.normal(size=(dimension,) * 2), -1)
        transform = transform.whitened(np.full(dimension, 0.1), mixing)
    mixture = GaussianMixture(
        weights=np.full(n_components, 1.0 / n_components),
        means=0.15 * generator.normal(size=(n_components, dimension)),
        scales=np.linspace(0.1, 0.2, n_components),
        lengths=np.linspace(0.8, 1.2, dimension),
    )
    posterior = Posterior(mixture, transform, problem.names)
    points = posterior.sample(n_evaluations, seed=1)
    values = [float(posterior.log_density(x)) + LOG_EVIDENCE for x in points]
    evaluations = tuple(
        Evaluation(i, None, x, Outcome(value, Status.OK, 0.1))
        for i, (x, value) in enumerate(zip(points, values, strict=True))
    )
    base = converged()
    training = training_set(evaluations, transform, MeasuredValues())
    process = condition(training, EmpiricalPrior().of(training).location)
    indices = tuple(entry.index for entry in evaluations)
    return Result(
        problem=problem,
        posterior=posterior,
        elbo=base.elbo,
        elbo_sd=base.elbo_sd,
        evidence=base.evidence,
        converged=True,
        stop_reason=base.stop_reason,
        evaluations=evaluations,
        history=tuple(replace(info, posterior=posterior) for info in base.history),
        warnings=(),
        settings=base.settings,
        seed=1,
        surrogate=TrainedSurrogate(transform, process, indices, retrained=True),
    )
