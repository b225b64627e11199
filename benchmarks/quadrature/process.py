"""The surrogate's Gaussian process with a flat mean, and the fit of its hyperparameters.

The library's process has a negative quadratic mean (Eq. 7). The methods here know only a mean of
zero or a constant: they keep the peak at the origin and make it so wide that it is flat.

Notation (D dimensions, n points)
    X, y     inputs (n, D), in prior units, and values (n,)
    theta    what is fitted: [log ell_1..D, log sigma_f], then m_0 where the mean is a constant
    psi      the library's vector, (3D + 3,); order in sparing/surrogate/layout.py
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
from scipy.optimize import minimize

from sparing.numerics.arrays import Array
from sparing.numerics.linear_algebra import solve_cholesky, solve_lower, solve_lower_rows
from sparing.surrogate.gaussian_process import (
    GaussianProcess,
    condition,
    log_marginal_likelihood_and_gradient,
)
from sparing.surrogate.layout import Layout
from sparing.surrogate.training_set import TrainingSet

# Length scale of the mean function: over ten prior SDs it bends by 5e-11.
FLAT = 1e6
# Hard bounds of a scale about its prior's location, in factors: they keep matrices finite.
LARGEST_FACTOR = 1e3
# Stands in for an objective that overflowed: large, yet safe in the line search's arithmetic.
HUGE_OBJECTIVE = 1e100
MAX_EVALUATIONS = 60
RELATIVE_TOLERANCE = 1e-7
GRADIENT_TOLERANCE = 1e-3
# When to fit again: with fewer points there is nothing to fit; then as their number grows (about 80
# fits in a run of 600), or as the largest likelihood rises by so many nats.
FIRST_FIT = 4
GROWTH_TO_REFIT = 0.05
RISE_TO_REFIT = 1.0


@dataclass(frozen=True, eq=False)
class ScalePrior:
    """Independent normals of log ell_1..D and log sigma_f, (D + 1,) each; noise_sd is fixed.

    constant_mean: whether m_0 is fitted, with a flat prior; else it is zero.
    """

    location: Array
    sd: Array
    noise_sd: float
    constant_mean: bool = False

    @property
    def dimension(self) -> int:
        """Number of dimensions D."""
        return self.location.size - 1

    @property
    def n_fitted(self) -> int:
        """Length of theta."""
        return self.location.size + self.constant_mean

    @property
    def fitted(self) -> list[int]:
        """Where theta's entries stand in psi."""
        layout = Layout(self.dimension)
        scales = [*range(self.dimension), layout.log_output_scale]
        return scales + [layout.mean_maximum] * self.constant_mean

    def to_psi(self, theta: Array) -> Array:
        """The library's hyperparameters."""
        layout = Layout(self.dimension)
        psi = np.zeros(layout.size)
        psi[layout.log_noise_sd] = math.log(self.noise_sd)
        psi[layout.log_mean_scales] = math.log(FLAT)
        psi[self.fitted] = theta
        return psi

    def start(self, values: Array) -> Array:
        """theta before anything is fitted."""
        return np.append(self.location, [np.median(values)] * self.constant_mean)

    def log_posterior(self, training: TrainingSet, theta: Array) -> tuple[float, Array]:
        """log p(y | X, theta) + log p(theta), up to a constant, and its gradient."""
        psi = self.to_psi(theta)
        likelihood, gradient = log_marginal_likelihood_and_gradient(training, psi)
        scaled = (theta[: self.location.size] - self.location) / self.sd
        prior_gradient = np.zeros(self.n_fitted)
        prior_gradient[: self.location.size] = -scaled / self.sd
        return likelihood - 0.5 * float(scaled @ scaled), gradient[self.fitted] + prior_gradient


def fit(prior: ScalePrior, training: TrainingSet, previous: Array | None = None) -> Array:
    """The best theta, climbed to by L-BFGS-B from the prior's location or from an earlier fit."""
    start = prior.start(training.values)
    starts = [start] if previous is None else [previous, start]
    unit = _units(prior, training.values)
    reach = math.log(LARGEST_FACTOR)
    low = np.append(prior.location - reach, [-np.inf] * prior.constant_mean)
    high = np.append(prior.location + reach, [np.inf] * prior.constant_mean)
    begin = max(starts, key=lambda theta: prior.log_posterior(training, theta)[0])
    found = minimize(
        _objective(prior, training, unit),
        begin / unit,
        jac=True,
        method="L-BFGS-B",
        bounds=np.column_stack([low / unit, high / unit]),
        options={
            "maxfun": MAX_EVALUATIONS,
            "ftol": RELATIVE_TOLERANCE,
            "gtol": GRADIENT_TOLERANCE,
        },
    )
    return np.clip(np.asarray(found.x) * unit, low, high)


def _units(prior: ScalePrior, values: Array) -> Array:
    """The order of magnitude by which each entry of theta moves."""
    return np.append(np.ones(prior.location.size), [np.ptp(values) + 1.0] * prior.constant_mean)


def _objective(
    prior: ScalePrior, training: TrainingSet, unit: Array
) -> Callable[[Array], tuple[float, Array]]:
    def objective(scaled: Array) -> tuple[float, Array]:
        value, gradient = prior.log_posterior(training, scaled * unit)
        if math.isfinite(value) and np.isfinite(gradient).all():
            return -value, -gradient * unit
        return HUGE_OBJECTIVE, np.zeros_like(gradient)

    return objective


@dataclass(frozen=True)
class LastFit:
    """The number of points and the log of the largest likelihood when theta was fitted."""

    n: int
    log_scale: float

    def is_stale(self, n: int, log_scale: float) -> bool:
        """Whether so many points, with this largest likelihood, call for another fit.

        A fit costs O(n^3) and ten points more change it by little; a larger likelihood, though,
        rescales every other.
        """
        if n < FIRST_FIT:
            return False
        return n >= (1.0 + GROWTH_TO_REFIT) * self.n or log_scale > self.log_scale + RISE_TO_REFIT


def condition_on(prior: ScalePrior, theta: Array, inputs: Array, values: Array) -> GaussianProcess:
    """The process given the data, for one theta."""
    return condition(TrainingSet(inputs, values), prior.to_psi(theta)[None, :])


def with_values(gp: GaussianProcess, values: Array) -> GaussianProcess:
    """The same inputs and hyperparameters with other values: O(n^2)."""
    mean = gp.sample(0).mean_maximum
    alpha = solve_cholesky(gp.cholesky[0], values - mean)
    return replace(
        gp,
        training=TrainingSet(gp.training.inputs, values),
        alpha=np.ascontiguousarray(alpha[None, :]),
    )


def precisions(gp: GaussianProcess) -> Array:
    """1 / ell^2, (D,)."""
    return gp.sample(0).length_scales ** -2.0


def variance(gp: GaussianProcess) -> float:
    """sigma_f^2."""
    return gp.sample(0).output_scale ** 2


def half_solve(gp: GaussianProcess, vector: Array) -> Array:
    """L^-1 b for a vector (n,), or for each row of (m, n)."""
    lower = gp.cholesky[0]
    if vector.ndim == 1:
        return solve_lower(lower, vector)
    return solve_lower_rows(lower, np.array(vector, dtype=np.float64, order="C"))
