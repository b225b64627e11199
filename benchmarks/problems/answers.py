"""Exact answers of densities that are not a normal likelihood under a normal prior.

Most of the shapes are normal once a single number t is known (the funnel's width, a banana's long
coordinate, the scale behind a Student's t): one quadrature over t gives everything.

Notation
--------
t       (n,) nodes of a quadrature, with log weights that sum to one: the distribution of t
m, C    (n, D) and (n, D, D) mean and covariance of x given t; a coordinate may be t itself, its
        variance zero
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from scipy.special import ndtr

from benchmarks.problems.base import (
    Array,
    BenchmarkProblem,
    HardBox,
    Marginal,
    Modes,
    normal_gradient,
    normal_log_density,
)

PANELS, ORDER = 100, 8  # of the quadrature over t
NEGLIGIBLE = 1e-14  # mass of a node that no marginal shows
MARGINAL_REACH = 8.0  # sds about each node's mean
TABULATED_NODES, POINTS_PER_NODE = 100, 41  # whose union is the grid of a marginal


@dataclass(frozen=True, eq=False)
class Answers:
    """What a problem's posterior is."""

    log_evidence: float
    mean: Array  # (D,)
    covariance: Array  # (D, D)
    marginals: tuple[Marginal, ...]
    modes: Modes | None = None

    @property
    def sd(self) -> Array:
        return np.sqrt(np.diag(self.covariance))


def density_problem(
    name: str,
    log_density: Callable[[Array], float],
    answers: Answers,
    plausible_lower: Array,
    plausible_upper: Array,
    bounds: tuple[Array, Array] | None = None,
    gradient: Callable[[Array], Array] | None = None,
) -> BenchmarkProblem:
    """The problem whose log joint is this log density, with log evidence as it integrates.

    The prior is uniform within the bounds or, without any, normal about the plausible box; the
    likelihood is what remains of the density, and its gradient of the density's.
    """
    if bounds is None:
        box = None
        mean = 0.5 * (plausible_lower + plausible_upper)
        sd = 0.5 * (plausible_upper - plausible_lower)
    else:
        box = HardBox(*bounds, plausible_lower, plausible_upper)
        mean, sd = box.mean, box.sd

    def log_likelihood(x: Array) -> float:
        prior = normal_log_density(x, mean, sd) if box is None else box.log_density(x)
        return log_density(x) - prior

    def likelihood_gradient(x: Array) -> Array:
        assert gradient is not None
        return gradient(x) - (normal_gradient(x, mean, sd) if box is None else 0.0)

    return BenchmarkProblem(
        name=name,
        log_likelihood=log_likelihood,
        prior_mean=mean,
        prior_sd=sd,
        log_evidence=answers.log_evidence,
        posterior_mean=answers.mean,
        posterior_covariance=answers.covariance,
        marginals=answers.marginals,
        hard_box=box,
        modes=answers.modes,
        gradient=None if gradient is None else likelihood_gradient,
    )


def quadrature(lower: float, upper: float, panels: int = PANELS) -> tuple[Array, Array]:
    """Nodes and weights of Gauss-Legendre quadrature in equal panels."""
    nodes, weights = np.polynomial.legendre.leggauss(ORDER)
    edges = np.linspace(lower, upper, panels + 1)
    half = 0.5 * (edges[1] - edges[0])
    centres = 0.5 * (edges[1:] + edges[:-1])
    return (centres[:, None] + half * nodes).ravel(), np.tile(half * weights, panels)


@dataclass(frozen=True, eq=False)
class Latent:
    """The distribution of t: nodes (n,), their masses (n,), and the density's integral."""

    nodes: Array
    masses: Array
    density: Array
    log_integral: float

    @classmethod
    def integrate(cls, log_density: Callable[[Array], Array], lower: float, upper: float) -> Latent:
        """From an unnormalised log density of t, whose mass lies between the limits."""
        nodes, weights = quadrature(lower, upper)
        values = log_density(nodes)
        top = values.max()
        density = np.exp(values - top)
        integral = float(weights @ density)
        masses = weights * density / integral
        return cls(nodes, masses, density / integral, top + float(np.log(integral)))


def normal_given(latent: Latent, means: Array, covariances: Array, offset: float = 0.0) -> Answers:
    """Answers when x is normal given t; offset is added to the log evidence."""
    masses = latent.masses
    mean = masses @ means
    centred = means - mean
    covariance = (
        np.einsum("n,nij->ij", masses, covariances) + (masses[:, None] * centred).T @ centred
    )
    sds = np.sqrt(np.maximum(np.diagonal(covariances, axis1=1, axis2=2), 0.0))
    marginals = []
    for d in range(len(mean)):
        if np.all(sds[:, d] <= 1e-6 * np.sqrt(covariance[d, d])):  # it is t itself
            step = np.gradient(means[:, d], latent.nodes)
            order = np.argsort(means[:, d])
            density = latent.density / np.abs(step)
            marginals.append(Marginal.tabulate(means[order, d], density[order]))
        else:
            marginals.append(mixture_marginal(masses, means[:, d], sds[:, d]))
    return Answers(latent.log_integral + offset, mean, covariance, tuple(marginals))


def mixture_marginal(masses: Array, means: Array, sds: Array) -> Marginal:
    """The exact marginal of a mixture of many normals, on a grid that is fine where they are."""
    kept = masses > NEGLIGIBLE
    masses, means, sds = masses[kept], means[kept], sds[kept]
    shown = np.unique(np.linspace(0, len(masses) - 1, TABULATED_NODES).astype(int))
    steps = np.linspace(-MARGINAL_REACH, MARGINAL_REACH, POINTS_PER_NODE)
    grid = np.unique(means[shown, None] + sds[shown, None] * steps)
    density, cumulative = np.zeros(len(grid)), np.zeros(len(grid))
    for mass, mean, sd in zip(masses, means, sds, strict=True):
        z = (grid - mean) / sd
        density += mass / sd * np.exp(-0.5 * z * z)
        cumulative += mass * ndtr(z)
    return Marginal(grid, density / np.sqrt(2 * np.pi), cumulative / cumulative[-1])
