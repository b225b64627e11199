"""Conditioning and fitting the three processes of doubly-Bayesian quadrature.

Notation and models: doubly_bayesian.py.
"""

from __future__ import annotations

import numpy as np

from benchmarks.quadrature.doubly_bayesian import (
    THETA_STEP,
    DoublyBayesianLikelihood,
    Fit,
    correction_prior,
    likelihood_prior,
    log_transform,
    transformed_prior,
)
from benchmarks.quadrature.evidence import scaled_likelihoods
from benchmarks.quadrature.process import LastFit, ScalePrior, condition_on, fit, with_values
from sparing.numerics.arrays import Array
from sparing.surrogate.gaussian_process import GaussianProcess
from sparing.surrogate.training_set import TrainingSet

# Candidates: as many as points and at least so many (the authors' program), the farthest from the
# points and from each other out of four times their number.
FEWEST_CANDIDATES = 100
POOL_FACTOR = 4


def extended(
    model: DoublyBayesianLikelihood | None,
    inputs: Array,
    log_likelihoods: Array,
    generator: np.random.Generator,
    *,
    marginalise_scales: bool,
) -> DoublyBayesianLikelihood:
    """The model of these points; model: that of all but the last, None when there is one point."""
    likelihoods, log_scale = scaled_likelihoods(log_likelihoods)
    transformed = log_transform(likelihoods)
    n, dimension = inputs.shape
    l_prior, t_prior = likelihood_prior(dimension), transformed_prior(dimension)
    if model is not None and not model.fit.last.is_stale(n, log_scale):
        l_gp = with_values(model.likelihood.append(inputs[-1], 0.0), likelihoods)
        t_gp = with_values(model.transformed.append(inputs[-1], 0.0), transformed)
        d_training = _differences(l_gp, t_gp, generator)
        d_gp = _correction(model.fit, d_training)
        return DoublyBayesianLikelihood(l_gp, t_gp, d_gp, log_scale, model.fit)
    if model is None:
        l_theta, t_theta = l_prior.location, t_prior.location
    else:
        l_theta = fit(l_prior, TrainingSet(inputs, likelihoods), model.fit.likelihood)
        t_theta = fit(t_prior, TrainingSet(inputs, transformed), model.fit.transformed)
    l_gp = condition_on(l_prior, l_theta, inputs, likelihoods)
    t_gp = condition_on(t_prior, t_theta, inputs, transformed)
    d_training = _differences(l_gp, t_gp, generator)
    d_theta = fit(correction_prior(t_theta), d_training)
    # With one or two likelihoods above zero nothing bounds the lengths of delta, and its integral
    # would exceed that of the likelihood (the authors' program takes the same precaution).
    d_theta[:dimension] = np.minimum(d_theta[:dimension], l_theta[:dimension])
    scale_variances = _scale_variances(t_prior, t_gp, t_theta) if marginalise_scales else None
    new_fit = Fit(l_theta, t_theta, d_theta, scale_variances, LastFit(n, log_scale))
    return DoublyBayesianLikelihood(
        l_gp, t_gp, _correction(new_fit, d_training), log_scale, new_fit
    )


def _correction(found: Fit, training: TrainingSet) -> GaussianProcess:
    prior = correction_prior(found.transformed)
    return condition_on(prior, found.correction, training.inputs, training.values)


def _differences(
    l_gp: GaussianProcess, t_gp: GaussianProcess, generator: np.random.Generator
) -> TrainingSet:
    """delta at the points, where it is zero but for the noise, and at candidates."""
    points = l_gp.training.inputs
    both = np.vstack([points, candidates(points, l_gp.sample(0).length_scales, generator)])
    l_mean, _ = l_gp.predict(both)
    t_mean, _ = t_gp.predict(both)
    return TrainingSet(both, t_mean - log_transform(np.maximum(l_mean, 0.0)))


def candidates(points: Array, lengths: Array, generator: np.random.Generator) -> Array:
    """Places within a length scale of the points, far from them and from each other, (c, D)."""
    count = max(FEWEST_CANDIDATES, len(points))
    centres = points[generator.integers(len(points), size=POOL_FACTOR * count)] / lengths
    pool = centres + generator.uniform(-1.0, 1.0, size=centres.shape)
    scaled = points / lengths
    squares = (pool * pool).sum(axis=1)[:, None] + (scaled * scaled).sum(axis=1)
    distance = (squares - 2.0 * pool @ scaled.T).min(axis=1)  # squared, to the nearest taken
    chosen = np.empty(count, dtype=np.intp)
    for i in range(count):
        chosen[i] = np.argmax(distance)
        steps = pool - pool[chosen[i]]
        distance = np.minimum(distance, np.einsum("md,md->m", steps, steps))
    return pool[chosen] * lengths


def _scale_variances(prior: ScalePrior, gp: GaussianProcess, theta: Array) -> Array:
    """Posterior variances of the log lengths, each taken alone: -1 / the curvature, (D,).

    Where the fit stopped short of the maximum the prior's curvature takes its place.
    """
    steps = THETA_STEP * np.eye(theta.size)[: prior.dimension]
    slopes = [
        (
            prior.log_posterior(gp.training, theta + step)[1][d]
            - prior.log_posterior(gp.training, theta - step)[1][d]
        )
        / (2.0 * THETA_STEP)
        for d, step in enumerate(steps)
    ]
    return 1.0 / np.maximum(-np.array(slopes), prior.sd[: prior.dimension] ** -2.0)
