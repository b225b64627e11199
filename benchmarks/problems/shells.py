"""Thin shells and crescents: rings in two dimensions, spheres in three.

    log f(x) = -(rho - r)^2 / (2 w^2) + g(c),  rho = |x - centre|, c the cosine to an axis

g is zero for a shell; a crescent has g = kappa c (its ends fade) or log sigmoid(kappa c) (half a
shell). Radius and direction are independent, so that two quadratures give the moments; marginals
are those of a quasi-random sample.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from scipy.integrate import cumulative_trapezoid
from scipy.stats import qmc

from benchmarks.problems.answers import Answers, Latent, density_problem
from benchmarks.problems.base import Array, BenchmarkProblem, Marginal

RADII = (2.0, 10.0)
RELATIVE_WIDTHS = (0.012, 0.12)  # of the radius
FADING = (1.0, 6.0)  # kappa of a crescent whose ends fade
EDGE = (8.0, 20.0)  # kappa of half a shell
BOX = 1.4  # half the plausible box, in radii
HARD_BOX = 3.0
SAMPLE_EXPONENT = 15  # 2^15 quasi-random points behind the marginals

Angular = Callable[[Array], Array]


def generate_shell(name: str, D: int, generator: np.random.Generator) -> BenchmarkProblem:
    """A whole shell."""
    return _generate(name, D, generator, np.zeros_like)


def generate_crescent(name: str, D: int, generator: np.random.Generator) -> BenchmarkProblem:
    """A shell on one side only."""
    if generator.uniform() < 0.5:
        kappa = float(generator.uniform(*FADING))
        return _generate(name, D, generator, lambda c: kappa * c)
    kappa = float(generator.uniform(*EDGE))
    return _generate(name, D, generator, lambda c: -np.logaddexp(0.0, -kappa * c))


def _generate(
    name: str, D: int, generator: np.random.Generator, angular: Angular
) -> BenchmarkProblem:
    radius = float(np.exp(generator.uniform(*np.log(RADII))))
    width = radius * float(np.exp(generator.uniform(*np.log(RELATIVE_WIDTHS))))
    centre = generator.normal(scale=radius, size=D)
    axis = generator.standard_normal(D)
    axis /= np.linalg.norm(axis)
    offset = float(generator.uniform(-20, 20))

    def log_density(x: Array) -> float:
        rho = float(np.linalg.norm(x - centre))
        cosine = np.array((x - centre) @ axis / rho if rho > 0 else 0.0)
        return offset - 0.5 * ((rho - radius) / width) ** 2 + float(angular(cosine))

    answers = _answers(radius, width, centre, axis, angular, offset)
    middle = centre + generator.uniform(-0.2, 0.2, size=D) * radius
    bounds = None
    if generator.uniform() < 0.5:
        bounds = centre - HARD_BOX * radius, centre + HARD_BOX * radius
    return density_problem(
        name, log_density, answers, middle - BOX * radius, middle + BOX * radius, bounds
    )


def _answers(
    radius: float, width: float, centre: Array, axis: Array, angular: Angular, offset: float
) -> Answers:
    D = len(centre)
    radial = Latent.integrate(
        lambda rho: (D - 1) * np.log(rho) - 0.5 * ((rho - radius) / width) ** 2,
        max(radius - 9 * width, 1e-9),
        radius + 9 * width,
    )
    # t is the angle to the axis; around the axis there are two points or a circle.
    around = np.log(2.0 if D == 2 else 2 * np.pi)
    polar = Latent.integrate(
        lambda t: angular(np.cos(t)) + (D - 2) * np.log(np.sin(t)) + around, 0.0, np.pi
    )
    cosine = np.cos(polar.nodes)
    rho, rho2 = (float(radial.masses @ radial.nodes**k) for k in (1, 2))
    c, c2 = (float(polar.masses @ cosine**k) for k in (1, 2))
    along = np.outer(axis, axis)
    across = np.eye(D) - along
    covariance = (rho2 * c2 - (rho * c) ** 2) * along + rho2 * (1 - c2) / (D - 1) * across
    points = centre + _sample(radial, polar, axis)
    return Answers(
        offset + radial.log_integral + polar.log_integral,
        centre + rho * c * axis,
        covariance,
        tuple(Marginal.of_draws(column) for column in points.T),
    )


def _sample(radial: Latent, polar: Latent, axis: Array) -> Array:
    """Quasi-random points of the shell about zero, (n, D)."""
    D = len(axis)
    uniform = qmc.Sobol(3, rng=0).random_base2(SAMPLE_EXPONENT)
    rho, angle = _quantile(radial, uniform[:, 0]), _quantile(polar, uniform[:, 1])
    basis = np.linalg.qr(np.column_stack([axis, np.eye(D)]))[0]
    basis[:, 0] = axis  # QR may have turned it round
    if D == 2:
        side = np.where(uniform[:, 2] < 0.5, 1.0, -1.0)[:, None] * basis[:, 1]
    else:
        turn = 2 * np.pi * uniform[:, 2:]
        side = np.cos(turn) * basis[:, 1] + np.sin(turn) * basis[:, 2]
    direction = np.cos(angle)[:, None] * axis + np.sin(angle)[:, None] * side
    return rho[:, None] * direction


def _quantile(latent: Latent, levels: Array) -> Array:
    cumulative = np.asarray(cumulative_trapezoid(latent.density, latent.nodes, initial=0.0))
    return np.interp(levels, cumulative / cumulative[-1], latent.nodes)
