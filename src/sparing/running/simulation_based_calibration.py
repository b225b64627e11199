"""Simulation-based calibration: are posteriors as wide as they should be, on average?

Parameters are drawn from the prior, data are simulated from them, and the posterior of the data is
inferred. If that is right, the true parameter is one more draw from it, so its rank among draws is
uniform (Talts et al., "Validating Bayesian inference algorithms with simulation-based
calibration", 2018).

    x*_d     the true parameter d of one simulation        L   posterior draws per simulation
    r_d      rank, the number of draws below x*_d, 0..L    n   simulations
    u_d      (r_d + 1/2) / (L + 1)
    z_d      normal score, the standard normal quantile of u_d

Two tests for each parameter, both exact up to the grid of the ranks: Kolmogorov and Smirnov's of u
against the uniform distribution, and the sum of z^2 against chi-squared with n degrees of freedom
(Cook, Gelman and Rubin, "Validation of software for Bayesian models using posterior quantiles",
2006), which notices posteriors that are too narrow or too wide.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import chdtr, ndtri

from sparing.errors import SettingsError
from sparing.numerics.arrays import Array
from sparing.numerics.random_streams import RandomStreams
from sparing.problem.problem import Problem
from sparing.running.infer import infer

SIGNIFICANCE = 0.01  # of all tests together, when `calibrated` is False
FEWEST_SIMULATIONS = 10

Simulate = Callable[[np.random.Generator], tuple[ArrayLike, Any]]
MakeProblem = Callable[[Any], Problem]


@dataclass(frozen=True, eq=False)
class CalibrationCheck:
    """Ranks of the true parameters among posterior draws, and what they say.

    ``ranks`` (n, D) in 0..``n_draws``, ``truths`` (n, D), ``converged`` (n,).
    """

    names: tuple[str, ...]
    ranks: NDArray[np.int64]
    truths: Array
    n_draws: int
    converged: NDArray[np.bool_]

    @property
    def fractions(self) -> Array:
        """u, the ranks on (0, 1): (n, D)."""
        return (self.ranks.astype(np.float64) + 0.5) / (self.n_draws + 1.0)

    @property
    def spread(self) -> Array:
        """Root mean square of the normal scores: (D,).

        Near 1 when calibrated; 2 means posteriors half as wide as they should be.
        """
        return np.sqrt(np.mean(ndtri(self.fractions) ** 2, axis=0))

    @property
    def uniformity_p_values(self) -> Array:
        """Kolmogorov and Smirnov's test of uniform ranks: (D,)."""
        from scipy.stats import kstest  # slow to import, and nothing else here needs it

        return np.array([kstest(column, "uniform").pvalue for column in self.fractions.T])

    @property
    def spread_p_values(self) -> Array:
        """Test of the spread, both ways: (D,)."""
        n = len(self.ranks)
        below = chdtr(n, n * self.spread**2)
        return 2.0 * np.minimum(below, 1.0 - below)

    @property
    def p_value(self) -> float:
        """The smallest p value, corrected for the number of tests (Bonferroni)."""
        values = np.concatenate([self.uniformity_p_values, self.spread_p_values])
        return float(min(1.0, values.min() * values.size))

    @property
    def calibrated(self) -> bool:
        """Whether the ranks could be those of exact posteriors."""
        return self.p_value >= SIGNIFICANCE

    def __str__(self) -> str:
        n = len(self.ranks)
        word = "no sign of miscalibration" if self.calibrated else "NOT calibrated"
        width = max([9, *(len(name) for name in self.names)])
        lines = [
            f"{word} in {n} simulations (p = {self.p_value:.2g}); "
            f"{int(self.converged.sum())} of {n} runs converged",
            f"{'parameter':<{width}}  spread  p of spread  p of uniform ranks",
        ]
        rows = zip(
            self.names, self.spread, self.spread_p_values, self.uniformity_p_values, strict=True
        )
        lines += [
            f"{name:<{width}}  {spread:>6.2f}  {of_spread:>11.2g}  {uniform:>18.2g}"
            for name, spread, of_spread, uniform in rows
        ]
        if not self.calibrated:
            lines.append(
                "a spread above 1 means posteriors that are too narrow, below 1 too wide; near 1, "
                "look at a histogram of the ranks for a shift"
            )
        return "\n".join(lines)


def simulation_based_calibration(
    simulate: Simulate,
    make_problem: MakeProblem,
    n: int = 50,
    *,
    seed: int = 0,
    n_draws: int = 999,
    **options: Any,
) -> CalibrationCheck:
    """Infer n simulated data sets and rank the true parameters among posterior draws.

    simulate      generator -> (parameters (D,), data): parameters from the prior, data given them
    make_problem  data -> the `Problem` of inferring the parameters, with that same prior
    n             simulations; 50 notice posteriors that are too narrow by a third
    seed          of everything random
    n_draws       posterior draws per simulation, among which the truth is ranked
    options       arguments of ``infer``, such as ``max_evaluations`` and ``workers``

    >>> import numpy as np, scipy.stats as st, sparing
    >>> def simulate(generator):
    ...     x = generator.normal(0.0, 1.0)
    ...     return x, generator.normal(x, 0.5)
    >>> def make_problem(y):
    ...     return sparing.Problem(
    ...         lambda x: st.norm.logpdf(y, x[0], 0.5), -2, 2, prior=st.norm(0.0, 1.0)
    ...     )
    >>> check = sparing.simulation_based_calibration(simulate, make_problem, 10, max_evaluations=15)
    >>> check.ranks.shape, check.calibrated
    ((10, 1), True)
    """
    _check(n, n_draws, options)
    streams = RandomStreams(seed)
    arguments: dict[str, Any] = {"progress": False, **options}
    names: tuple[str, ...] = ()
    truths, ranks, converged = [], [], []
    for i in range(n):
        parameters, data = simulate(streams.generator("simulation", i))
        truth = np.atleast_1d(np.asarray(parameters, dtype=np.float64))
        problem = make_problem(data)
        _check_simulation(i, truth, problem, names)
        names = problem.names
        run_seed = int(streams.generator("inference", i).integers(2**32))
        result = infer(problem, seed=run_seed, **arguments)
        draws = result.posterior.sample(n_draws, seed=streams.generator("posterior draws", i))
        truths.append(truth)
        ranks.append(np.sum(draws < truth, axis=0))
        converged.append(result.converged)
    return CalibrationCheck(names, np.array(ranks), np.array(truths), n_draws, np.array(converged))


def _check(n: int, n_draws: int, options: dict[str, Any]) -> None:
    faults = []
    if n < FEWEST_SIMULATIONS:
        faults.append(f"n must be at least {FEWEST_SIMULATIONS} simulations, got {n}")
    if n_draws < 1:
        faults.append(f"n_draws must be at least 1, got {n_draws}")
    if options.get("store") is not None:
        faults.append("store cannot be given: every simulation is another problem")
    if faults:
        raise SettingsError(faults)


def _check_simulation(i: int, truth: Array, problem: Problem, names: tuple[str, ...]) -> None:
    if not isinstance(problem, Problem):
        fault = f"make_problem must return a sparing.Problem, got {type(problem).__name__}"
    elif names and problem.names != names:
        fault = f"make_problem must return the same parameters each time ({', '.join(names)})"
    elif truth.shape != (problem.dimension,):
        wanted = f"one number for each of the {problem.dimension} parameters"
        fault = f"simulate must return {wanted}, got shape {truth.shape}"
    elif not np.all((truth >= problem.lower) & (truth <= problem.upper)):
        fault = f"simulate returned parameters outside the problem's bounds: {truth}"
    else:
        return
    raise SettingsError([f"simulation {i + 1}: {fault}"])
