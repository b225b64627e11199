"""A log likelihood from simulations alone: summary statistics, taken as normal.

n      simulated data sets              d     summary statistics of each
s_i    summaries of simulation i (d,)   s     those of the observed data (d,)
m, M   mean of the s_i, and their scatter, the sum of (s_i - m)(s_i - m)' (d, d)

The synthetic likelihood of Wood (2010) is log N(s; mu, Sigma), of which m and M / (n - 1) are
estimates. Put in their place they give a biased value; Ghurye and Olkin (1969), used by Price et
al. (2018), have an unbiased one of the density. A surrogate of log densities averages logarithms,
so what is unbiased here, for normal summaries, is the logarithm:

    E log|M| = log|Sigma| + d log 2 + sum_i psi((n - i) / 2),    i = 1..d
    E (s - m)' M^-1 (s - m) = ((s - mu)' Sigma^-1 (s - mu) + d / n) / (n - d - 2)

Its noise is found by leaving out one simulation at a time (the jackknife). Known formulas hold for
normal summaries only: on exponential ones they gave half of the true standard deviation.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.linalg import solve_triangular
from scipy.special import digamma

from sparing.errors import ProblemError, TargetError
from sparing.numerics.arrays import Array
from sparing.numerics.random_streams import RandomStreams
from sparing.problem.user_values import is_whole, numeric_array, short_text

# Simulations beyond the number of summaries: with fewer the noise has no finite variance once one
# of them is left out (n - 1 > d + 4).
FEWEST_BEYOND = 6
# Of the variance of a summary, given the others, to its own; below, it is rounding.
SMALLEST_SHARE = 1e-10


@dataclass(frozen=True, eq=False)
class SyntheticLikelihood:
    """x -> (log likelihood, standard deviation of its noise); see `synthetic_likelihood`."""

    simulate: Callable[[Array, np.random.Generator], Any]
    summaries: Callable[[Any], Any]
    observed: Array  # the summaries of the data (d,)
    n_simulations: int
    streams: RandomStreams

    def __call__(self, x: Array) -> tuple[float, float]:
        """The estimate at x: the same numbers whenever it is called there."""
        bits = np.asarray(x, dtype=np.float64).view(np.uint64)
        generator = self.streams.generator("synthetic likelihood", *bits.tolist())
        data = (self.simulate(np.array(x), generator) for _ in range(self.n_simulations))
        rows = [_read(self.summaries(one)) for one in data]
        if shapes := {row.shape for row in rows} - {self.observed.shape}:
            other, own = shapes.pop()[0], len(self.observed)
            raise TargetError(f"a simulation has {other} summaries, the observed data {own}")
        return _unbiased_with_noise(np.array(rows), self.observed)


def synthetic_likelihood(
    simulate: Callable[[Array, np.random.Generator], Any],
    summaries: Callable[[Any], Any],
    observed: Any,
    *,
    n_simulations: int = 100,
    seed: int = 0,
) -> SyntheticLikelihood:
    """A log density for `Problem` from a simulator: x -> (log likelihood, sd of its noise).

    simulate       (x, generator) -> one data set for all parameters x; its randomness comes from
                   the generator
    summaries      data set -> a few numbers that are roughly normal: means, logarithms of
                   variances, ...
    observed       the data set that was observed
    n_simulations  data sets for each value, at least six more than summaries. Where the model
                   fits, the noise of d summaries is about sqrt(d / (2 n_simulations))
    seed           the noise at x follows from the seed and x, so that a run can be repeated and
                   resumed; points have nothing in common, and other seeds give other noise

    The estimate is without bias where summaries are normal. It can be sent to workers where
    ``simulate`` and ``summaries`` can.

    >>> def simulate(x, generator):
    ...     return generator.normal(x[0], np.exp(x[1]), 50)
    >>> def summaries(data):
    ...     return [data.mean(), np.log(data.var())]
    >>> observed = simulate([1.0, 0.0], np.random.default_rng(1))
    >>> log_likelihood = sparing.synthetic_likelihood(simulate, summaries, observed, seed=1)
    >>> value, noise_sd = log_likelihood(np.array([1.0, 0.0]))
    >>> print(f"{value:.1f} with a noise of {noise_sd:.1f}")
    1.2 with a noise of 0.1
    >>> noisy = sparing.Problem(log_likelihood, [-1, -1], [3, 1], names=["mean", "log sd"])
    """
    functions = {"simulate": simulate, "summaries": summaries}
    faults = [
        f"{name} must be a function, not {short_text(function)}"
        for name, function in functions.items()
        if not callable(function)
    ]
    if faults:
        raise ProblemError(faults)
    try:
        own = _read(summaries(observed))
    except (TargetError, ValueError) as error:
        raise ProblemError([f"of the observed data: {error}"]) from error
    least = len(own) + FEWEST_BEYOND
    if not is_whole(n_simulations, least):
        wanted = f"a whole number >= {least}, six more than there are summaries"
        raise ProblemError([f"n_simulations must be {wanted}, not {short_text(n_simulations)}"])
    return SyntheticLikelihood(simulate, summaries, own, int(n_simulations), RandomStreams(seed))


def _read(given: object) -> Array:
    """The summaries of one data set (d,)."""
    try:
        numbers = numeric_array(given).reshape(-1)
    except ValueError as error:
        raise TargetError(f"what summaries returned {error}") from None
    if not numbers.size or not np.all(np.isfinite(numbers)):
        raise TargetError(f"summaries must return finite numbers, not {short_text(given)}")
    return numbers


def _unbiased_with_noise(simulated: Array, observed: Array) -> tuple[float, float]:
    """The log likelihood from the summaries s_i (n, d), and its standard deviation."""
    n, d = simulated.shape
    sds = simulated.std(axis=0)
    if not np.all(sds > 0.0):
        constant = ", ".join(str(i) for i in np.flatnonzero(sds == 0.0) + 1)
        raise TargetError(f"summary {constant} is the same in all {n} simulations: leave it out")
    deviations = (simulated - simulated.mean(axis=0)) / sds
    lower = _factor(deviations.T @ deviations)
    w = solve_triangular(lower, deviations.T, lower=True)  # M^-1/2 (s_i - m): (d, n)
    t = solve_triangular(lower, (observed - simulated.mean(axis=0)) / sds, lower=True)
    log_det = 2.0 * float(np.sum(np.log(np.diag(lower) * sds)))
    value = float(_log_likelihood(log_det, t @ t, n, d))
    # Without simulation i: M loses n / (n - 1) of its square, m moves by (s_i - m) / (n - 1).
    left = 1.0 - n / (n - 1) * np.sum(w**2, axis=0)
    if not np.all(left > SMALLEST_SHARE):
        raise TargetError(
            f"a single one of {n} simulations makes all the difference in a combination of the "
            "summaries: take more simulations, or other summaries"
        )
    moved = t[:, None] + w / (n - 1)
    squares = np.sum(moved**2, axis=0) + n / (n - 1) * np.sum(w * moved, axis=0) ** 2 / left
    others = _log_likelihood(log_det + np.log(left), squares, n - 1, d)
    return value, math.sqrt((n - 1) / n * float(np.sum((others - others.mean()) ** 2)))


def _log_likelihood(log_det: Any, square: Any, n: int, d: int) -> Any:
    """From log|M| and (s - m)' M^-1 (s - m) of n simulations: without bias."""
    expected = float(np.sum(digamma((n - np.arange(1, d + 1)) / 2.0)))
    constant = d * math.log(math.pi) - expected - d / n
    return -0.5 * (constant + log_det + (n - d - 2) * square)


def _factor(scatter: Array) -> Array:
    """The Cholesky factor of a scatter whose diagonal is n."""
    with suppress(np.linalg.LinAlgError):
        lower = np.linalg.cholesky(scatter).astype(np.float64)
        if np.diag(lower).min() ** 2 > SMALLEST_SHARE * scatter[0, 0]:
            return lower
    raise TargetError("the summaries depend on one another linearly: leave one of them out")
