"""Fitting and sampling the hyperparameters with the mean function integrated out (collapsed.py).

The maximum of log p(theta | y) is climbed to by L-BFGS-B in D + 2 dimensions. Samples come from
importance resampling: candidates from a Student-t around the maximum with the inverse Hessian for
scale, weighted by the posterior; for each one kept the mean function is drawn given it. A few dozen
likelihoods thus give samples that are independent, where a chain of coordinate-wise slice moves
needs thousands (docs/decisions/0009).

Notation (D dimensions)
    theta    [log ell_1..D, log sigma_f, log sigma_obs], and log sigma_g where gradients are known
    psi      all hyperparameters; order in layout.py
    H        Hessian of -log p(theta | y) at the maximum
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import product

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize

from sparing.numerics.arrays import Array
from sparing.surrogate.collapsed import CollapsedPosterior, CollapsedValue
from sparing.surrogate.empirical_prior import EmpiricalPrior, require_positive
from sparing.surrogate.gaussian_process import GaussianProcess, condition
from sparing.surrogate.hyperparameters import (
    HyperparameterPrior,
    high_posterior_density_set,
    shifted_to_zero,
    with_offset,
)
from sparing.surrogate.interface import Surrogate
from sparing.surrogate.training_set import TrainingSet

# Stands in for a value that overflowed: large, yet safe in the line search's arithmetic.
HUGE_OBJECTIVE = 1e100
# Nats, and projected gradient, at which the ascent stops: hyperparameters matter to two digits.
RELATIVE_TOLERANCE = 1e-7
GRADIENT_TOLERANCE = 1e-2
MAX_EVALUATIONS = 100
# Spread of random starting points about the guesses, in the logarithms that theta holds.
PERTURBATION = 1.0
# Average correlation of a point with its nearest below which a kernel counts as joining no two
# points: 0.5 and more on exact log densities, 0.3 and less where noise was taken for one.
LEAST_CORRELATION = 0.4
# Noise sds, in nats, from which an ascent begins then.
NOISE_SDS = (0.1, 0.5, 2.0)
# Shortest length scale beside noise, in units of the shortest guess: the points' spread, mostly.
SHORTEST_WITH_NOISE = 0.3
# Nats by which such a kernel must be better than noise: more than the prior charges for noise.
UNJOINED = 15.0
# Step of the finite differences of the gradient that give H.
DIFFERENCE_STEP = 1e-3
# Of values that are left out, in sds, typically: 0.67 where a process is right about itself, 1.4 at
# most on smooth targets, and 4 or more where gradients contradict it (docs/decisions/0017).
LARGEST_SURPRISE = 2.0
# Entries this close to a bound they are pressed against are not sampled but stay there.
AT_BOUND = 1e-6
# SD to which a direction that the data leave open is limited: a factor of e^1.5 in a scale.
LARGEST_SD = 1.5
# Degrees of freedom of the candidates' distribution: heavier tails than a normal, as
# importance sampling wants.
CANDIDATE_FREEDOM = 6.0


@dataclass(frozen=True)
class Collapsed:
    """Train with the mean function integrated out; an implementation of `SurrogateTraining`."""

    prior: EmpiricalPrior = EmpiricalPrior()
    # Starting points scored beside the guesses, ascents from the best of them, and candidates
    # among which the samples are chosen by their importance weights.
    n_random_starts: int = 4
    n_ascents: int = 2
    n_weighted_candidates: int = 40
    # Rows of values and derivatives that hyperparameters are trained on, and that the process is
    # conditioned on: beyond them the gradients of the points with the lowest values are left out.
    n_rows_trained: int = 400
    n_rows: int = 1200

    def __post_init__(self) -> None:
        require_positive(self, "n_ascents", "n_weighted_candidates", "n_rows_trained", "n_rows")
        if self.n_random_starts < 0:
            raise ValueError("n_random_starts must not be negative")

    def train(
        self,
        training: TrainingSet,
        n_samples: int | None,
        generator: np.random.Generator,
        previous: Surrogate | None = None,
    ) -> GaussianProcess:
        """A process with n_samples samples of psi, or with None the best one."""
        posterior, offset = self._posterior(training, training)
        guesses = _guesses(posterior.training, posterior.prior, self.prior.hpd_fraction)
        starts, n_ascents = guesses, self.n_ascents
        if previous is not None and previous.parameters.shape[1] == posterior.layout.size:
            earlier = previous.parameters[:, posterior.layout.theta]
            starts = [*guesses, *earlier, earlier.mean(axis=0)]
            n_ascents = 1  # the optimum has hardly moved
        maximum = _maximise(posterior, starts, self.n_random_starts, n_ascents, generator)
        if posterior.correlation_with_nearest(maximum.theta) < LEAST_CORRELATION:
            maximum = _noise_if_as_good(posterior, maximum, guesses)
        if n_samples is None:
            psi = maximum.with_mean(maximum.mean)[None, :]
        else:
            psi = _sample(posterior, maximum, n_samples, self.n_weighted_candidates, generator)
        return self.condition(training, with_offset(psi, offset))

    def condition(self, training: TrainingSet, parameters: Array) -> GaussianProcess:
        """The process with hyperparameters that an earlier training found.

        Gradients that these were not trained on count as long as it still foresees its own values.
        """
        whole = training.with_best_gradients(self.n_rows)
        trained_on = training.with_best_gradients(self.n_rows_trained)
        process = condition(whole, parameters)
        if trained_on is whole or typical_surprise(process) <= LARGEST_SURPRISE:
            return process
        return condition(trained_on, parameters)

    def score(self, surrogate: Surrogate, training: TrainingSet) -> float:
        """The largest log p(y | theta) + log p(theta) among the samples.

        A density of gradients has units: here those of the coordinates without whitening.
        """
        posterior, _ = self._posterior(training, surrogate.training)
        thetas = surrogate.parameters[:, posterior.layout.theta]
        best = max(posterior.at(theta).value for theta in thetas)
        training = posterior.training
        return best - float(training.log_determinants[training.has_gradient].sum())

    def _posterior(
        self, training: TrainingSet, whole: TrainingSet
    ) -> tuple[CollapsedPosterior, float]:
        """log p(theta | y) of values less an offset, which is returned too.

        ``whole``: the set that the prior is of.
        """
        prior = self.prior.of(whole.with_best_gradients(self.n_rows_trained))
        few = training.with_best_gradients(self.n_rows_trained)
        offset, shifted, prior = shifted_to_zero(few, prior)
        return CollapsedPosterior(shifted, prior), offset


def typical_surprise(process: GaussianProcess) -> float:
    """The median of what values differ by from the prediction without them, in its sds."""
    residuals, variances = process.left_out(0)
    noise = process.training.noise_variance + process.noise_variance
    return float(np.median(np.abs(residuals) / np.sqrt(variances + noise)))


def _maximise(
    posterior: CollapsedPosterior,
    guesses: list[Array],
    n_random: int,
    n_starts: int,
    generator: np.random.Generator,
) -> CollapsedValue:
    """Climb from the best of the guesses (theta each) and of perturbations of them."""
    prior = posterior.prior
    chosen = generator.integers(len(guesses), size=n_random)
    steps = PERTURBATION * generator.standard_normal((n_random, posterior.n_theta))
    perturbed = [guesses[c] + step for c, step in zip(chosen, steps, strict=True)]
    thetas = [prior.clip(theta) for theta in guesses + perturbed]
    scored = sorted((-_finite(posterior.at(theta).value), i) for i, theta in enumerate(thetas))
    risen = [_climb(posterior, thetas[i]) for _, i in scored[:n_starts]]
    return max(risen, key=lambda maximum: maximum.value)


def _noise_if_as_good(
    posterior: CollapsedPosterior, short: CollapsedValue, guesses: list[Array]
) -> CollapsedValue:
    """A kernel that joins no two points, or the noise that explains the values as well.

    No ascent leads from one to the other. The priors favour the kernel, so it is charged for: its
    surrogate would know nothing between the points (docs/decisions/0012).
    """
    prior = posterior.prior
    lower = prior.lower.copy()
    lengths = posterior.layout.log_lengths
    shortest = np.min([guess[lengths] for guess in guesses], axis=0) + math.log(SHORTEST_WITH_NOISE)
    lower[lengths] = np.clip(shortest, lower[lengths], prior.upper[lengths])
    thetas = []
    for guess, sd in product(guesses, NOISE_SDS):
        theta = guess.copy()
        theta[posterior.layout.log_noise_sd] = math.log(sd)
        thetas.append(np.clip(theta, lower, prior.upper))
    values = [_finite(posterior.at(theta).value) for theta in thetas]
    found = _climb(posterior, thetas[int(np.argmax(values))], lower)
    return found if found.value > short.value - UNJOINED else short


def _climb(
    posterior: CollapsedPosterior, start: Array, lower: Array | None = None
) -> CollapsedValue:
    """The maximum that is reached from a start; lower: tighter bounds than the prior's."""
    prior = posterior.prior
    lower = prior.lower if lower is None else lower

    def objective(theta: Array) -> tuple[float, Array]:
        found, gradient = posterior.with_gradient(prior.clip(theta))
        if math.isfinite(found.value) and np.isfinite(gradient).all():
            return -found.value, -gradient
        return HUGE_OBJECTIVE, np.zeros_like(gradient)

    result = minimize(
        objective,
        start,
        jac=True,
        method="L-BFGS-B",
        bounds=np.column_stack([lower, prior.upper]),
        options={
            "maxfun": MAX_EVALUATIONS,
            "ftol": RELATIVE_TOLERANCE,
            "gtol": GRADIENT_TOLERANCE,
        },
    )
    return posterior.at(prior.clip(np.asarray(result.x)))


def _sample(
    posterior: CollapsedPosterior,
    maximum: CollapsedValue,
    n_samples: int,
    n_candidates: int,
    generator: np.random.Generator,
) -> Array:
    """Samples of psi, (n_samples, p)."""
    free, root = _laplace(posterior, maximum.theta)
    chosen = [maximum] * n_samples
    if free.size:
        candidates, log_weights = _candidates(
            posterior, maximum, free, root, n_candidates, generator
        )
        if candidates:
            weights = _tempered_weights(log_weights, n_samples)
            positions = (np.arange(n_samples) + generator.random()) / n_samples
            indices = np.searchsorted(np.cumsum(weights), positions)
            chosen = [candidates[min(i, len(candidates) - 1)] for i in indices]
    return np.array([each.with_mean(posterior.draw_mean(each, generator)) for each in chosen])


def _laplace(posterior: CollapsedPosterior, theta: Array) -> tuple[NDArray[np.intp], Array]:
    """Indices of the entries that vary, and a root of their covariance: S S^T = H^-1 there."""
    prior = posterior.prior
    gradient = posterior.with_gradient(theta)[1]
    held = ((theta <= prior.lower + AT_BOUND) & (gradient < 0.0)) | (
        (theta >= prior.upper - AT_BOUND) & (gradient > 0.0)
    )
    free = np.flatnonzero(~held)
    hessian = np.empty((free.size, free.size))
    for row, index in enumerate(free):
        moved = theta.copy()
        step = DIFFERENCE_STEP
        if theta[index] + step > prior.upper[index]:
            step = -step
        moved[index] += step
        hessian[row] = (gradient - posterior.with_gradient(moved)[1])[free] / step
    values, vectors = np.linalg.eigh(0.5 * (hessian + hessian.T))
    sd = 1.0 / np.sqrt(np.maximum(values, 1.0 / LARGEST_SD**2))
    return free, vectors * sd


def _candidates(
    posterior: CollapsedPosterior,
    maximum: CollapsedValue,
    free: NDArray[np.intp],
    root: Array,
    n_candidates: int,
    generator: np.random.Generator,
) -> tuple[list[CollapsedValue], Array]:
    """Student-t draws around the maximum that lie within the bounds, and their log weights."""
    dimension = root.shape[0]
    nu = CANDIDATE_FREEDOM
    normals = generator.standard_normal((n_candidates, dimension))
    stretch = np.sqrt(nu / generator.chisquare(nu, size=n_candidates))
    shifts = normals * stretch[:, None]
    thetas = np.tile(maximum.theta, (n_candidates, 1))
    thetas[:, free] += shifts @ root.T
    squared = (shifts * shifts).sum(axis=1)
    log_proposal = -0.5 * (nu + dimension) * np.log1p(squared / nu)
    candidates, log_weights = [], []
    for theta, log_density in zip(thetas, log_proposal, strict=True):
        if not math.isfinite(posterior.prior.log_density(theta)):
            continue
        found = posterior.at(theta)
        if math.isfinite(found.value):
            candidates.append(found)
            log_weights.append(found.value - log_density)
    return candidates, np.array(log_weights)


def _tempered_weights(log_weights: Array, n_samples: int) -> Array:
    """Weights to the first power in 1, 0.8, 0.64, ... with n_samples effective candidates.

    A few dozen candidates cannot cover a skewed posterior in ten dimensions; wider samples are
    better than one sample many times.
    """
    shifted = log_weights - log_weights.max()
    wanted = min(n_samples, 0.5 * log_weights.size)
    power = 1.0
    while True:
        weights = np.exp(power * shifted)
        weights /= weights.sum()
        if 1.0 / float(weights @ weights) >= wanted:
            return weights
        power *= 0.8


def _finite(value: float) -> float:
    return value if math.isfinite(value) else -HUGE_OBJECTIVE


def _guesses(training: TrainingSet, prior: HyperparameterPrior, fraction: float) -> list[Array]:
    """theta with ell from the prior or from the spread of the best points, and sigma_f from
    the spread of their values or a tenth of it: a quadratic explains most of a log density.
    """
    dimension = training.dimension
    inputs, values = high_posterior_density_set(training, fraction)
    spread = max(float(np.std(values)), 1e-2)
    lengths = prior.location[:dimension]
    inner = np.log(np.maximum(inputs.std(axis=0), 1e-3 * np.exp(lengths)))
    guesses = []
    for log_lengths in (lengths, inner):
        for scale in (spread, 0.1 * spread):
            theta = prior.location.copy()
            theta[:dimension], theta[dimension] = log_lengths, math.log(scale)
            guesses.append(theta)
    return guesses
