"""The Student family (Section 4.1): a product of one-dimensional Student's t likelihoods.

Degrees of freedom are 2 + i/2 for i = 1..D. The plausible box is -+(1 + 2 sd) about zero with
sd = scale sqrt(df / (df - 2)), the SD of each coordinate's t distribution (finite as df > 2);
its scale parameter alone would be 1.2 to 2.2 times narrower.

Notation: z = (x - loc) / scale; prior N(0, s^2) on x with s = 1 + 2 sd, coordinate by coordinate.
"""

from __future__ import annotations

import numpy as np
from scipy.integrate import quad_vec
from scipy.special import gammaln

from benchmarks.problems.base import Array, BenchmarkProblem, Marginal

PRIOR_REACH = 12.0  # prior SDs to integrate over; beyond them less than 1e-25 of the integral
QUADRATURE_TOLERANCE = 1e-12
MARGINAL_POINTS = 8001
# The paper leaves locations and scales open; the published ones fill [0, 5] and look log-normal.
GENERATED_LOCATIONS = (0.0, 5.0)


def student_problem(name: str, loc: Array, scale: Array, df: Array) -> BenchmarkProblem:
    """The problem with these numbers, each (D,)."""
    prior_sd = 1 + 2 * scale * np.sqrt(df / (df - 2))
    log_constants = gammaln((df + 1) / 2) - gammaln(df / 2) - 0.5 * np.log(df * np.pi)
    log_constant = float(np.sum(log_constants - np.log(scale)))

    def log_likelihood(x: Array) -> float:
        z = (x - loc) / scale
        return log_constant - float(np.sum(0.5 * (df + 1) * np.log1p(z * z / df)))

    def gradient(x: Array) -> Array:
        z = (x - loc) / scale
        return -(df + 1) * z / (df + z * z) / scale

    coordinates = [_posterior_1d(*row) for row in zip(loc, scale, df, prior_sd, strict=True)]
    return BenchmarkProblem(
        name=name,
        log_likelihood=log_likelihood,
        gradient=gradient,
        prior_mean=np.zeros(len(loc)),
        prior_sd=prior_sd,
        log_evidence=float(sum(np.log(evidence) for evidence, *_ in coordinates)),
        posterior_mean=np.array([mean for _, mean, _, _ in coordinates]),
        posterior_covariance=np.diag([variance for _, _, variance, _ in coordinates]),
        marginals=tuple(marginal for *_, marginal in coordinates),
    )


def _posterior_1d(
    loc: float, scale: float, df: float, prior_sd: float
) -> tuple[float, float, float, Marginal]:
    """Evidence, posterior mean, posterior variance and marginal of one coordinate."""
    log_constant = gammaln((df + 1) / 2) - gammaln(df / 2) - 0.5 * np.log(df * np.pi)
    log_constant -= np.log(np.sqrt(2 * np.pi) * prior_sd)

    def joint(z: Array) -> Array:
        """Likelihood times prior, as a density of z."""
        prior_z = (loc + scale * z) / prior_sd
        return np.exp(log_constant - 0.5 * (df + 1) * np.log1p(z * z / df) - 0.5 * prior_z**2)

    reach = PRIOR_REACH * prior_sd + abs(loc)
    lower, upper = (-reach - loc) / scale, (reach - loc) / scale
    # Dyadic splits about the t's peak and splits about the prior's: neither can be missed.
    splits = np.concatenate([[0.0], 2.0 ** np.arange(-2, 12)])
    splits = np.concatenate([splits, -splits, np.arange(-3, 4) * prior_sd / scale - loc / scale])
    splits = np.unique(splits[(splits > lower) & (splits < upper)])
    moments, _ = quad_vec(
        lambda z: joint(z) * np.array([1.0, z, z * z]),
        lower,
        upper,
        epsabs=0.0,
        epsrel=QUADRATURE_TOLERANCE,
        points=splits,
        limit=2000,
    )
    evidence = float(moments[0])
    mean_z = moments[1] / evidence
    variance_z = moments[2] / evidence - mean_z**2
    # Even in asinh(z): fine about the peak, coarse in the tails.
    z = np.sinh(np.linspace(np.arcsinh(lower), np.arcsinh(upper), MARGINAL_POINTS))
    marginal = Marginal.tabulate(loc + scale * z, joint(z))
    return evidence, loc + scale * mean_z, scale**2 * variance_z, marginal


def generate_student(name: str, D: int, generator: np.random.Generator) -> BenchmarkProblem:
    """A new member of the family."""
    loc = generator.uniform(*GENERATED_LOCATIONS, size=D)
    scale = np.exp(generator.standard_normal(D))
    return student_problem(name, loc, scale, 2 + np.arange(1, D + 1) / 2)
