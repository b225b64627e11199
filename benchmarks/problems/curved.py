"""Curved ridges: bananas and Rosenbrock's function.

banana      t ~ N(0, s^2); each other coordinate is b (t^2 - s^2) plus normal noise, b different for
            each and zero for some; half of the members are rotated
rosenbrock  log f = -sum_{i<D} (x_{i+1} - x_i^2)^2 / (2 s^2) - sum_{i<D} (x_i - 1)^2 / (2 r^2);
            each coordinate depends on the one before it alone, so that products with a matrix on a
            grid give marginals and covariances
"""

from __future__ import annotations

import numpy as np

from benchmarks.problems.answers import (
    Answers,
    Latent,
    density_problem,
    mixture_marginal,
    normal_given,
)
from benchmarks.problems.base import Array, BenchmarkProblem, Marginal
from benchmarks.problems.cigar import random_rotation

REACH = 9.0  # sds over which a quadrature extends
GRID_REACH, GRID_POINTS = 7.0, 1501  # of Rosenbrock's grid, in units of r
PLAUSIBLE_SDS = 2.0  # half the plausible box, in posterior sds


def generate_banana(name: str, D: int, generator: np.random.Generator) -> BenchmarkProblem:
    """A banana in D dimensions."""
    s = float(generator.uniform(1.0, 3.0))
    curvature = generator.uniform(0.3, 1.0, size=D - 1) * generator.choice([-1, 1], size=D - 1)
    curvature[1:] *= generator.uniform(size=D - 2) < 0.5
    noise = generator.uniform(0.2, 1.0, size=D - 1)
    rotation = random_rotation(D, generator) if generator.uniform() < 0.5 else np.eye(D)
    offset = float(generator.uniform(-20, 20))
    constant = offset - 0.5 * D * np.log(2 * np.pi) - np.log(s) - float(np.sum(np.log(noise)))

    def log_density(x: Array) -> float:
        t, *others = rotation.T @ x
        z = (np.array(others) - curvature * (t * t - s * s)) / noise
        return constant - 0.5 * float((t / s) ** 2 + z @ z)

    def gradient(x: Array) -> Array:
        t, *others = rotation.T @ x
        pull = (np.array(others) - curvature * (t * t - s * s)) / noise**2
        return rotation @ np.append(-t / s**2 + 2.0 * t * (curvature @ pull), -pull)

    latent = Latent.integrate(
        lambda t: -0.5 * (t / s) ** 2 - 0.5 * np.log(2 * np.pi * s * s), -REACH * s, REACH * s
    )
    t = latent.nodes
    unrotated = np.column_stack([t, curvature * (t * t - s * s)[:, None]])
    within = rotation @ np.diag(np.concatenate([[0.0], noise**2])) @ rotation.T
    covariances = np.broadcast_to(within, (len(t), D, D))
    answers = normal_given(latent, unrotated @ rotation.T, covariances, offset)
    half = PLAUSIBLE_SDS * answers.sd
    lower, upper = answers.mean - half, answers.mean + half
    return density_problem(name, log_density, answers, lower, upper, gradient=gradient)


def generate_rosenbrock(name: str, D: int, generator: np.random.Generator) -> BenchmarkProblem:
    """Rosenbrock's function in D dimensions."""
    s = float(generator.uniform(0.15, 0.5))
    r = float(generator.uniform(0.5, 1.0))
    offset = float(generator.uniform(-20, 20))

    def log_density(x: Array) -> float:
        steps, places = (x[1:] - x[:-1] ** 2) / s, (x[:-1] - 1) / r
        return offset - 0.5 * float(steps @ steps + places @ places)

    def gradient(x: Array) -> Array:
        pull = (x[1:] - x[:-1] ** 2) / s**2
        return np.append(2.0 * x[:-1] * pull - (x[:-1] - 1) / r**2, 0.0) - np.append(0.0, pull)

    answers = _rosenbrock_answers(D, s, r, offset)
    half = PLAUSIBLE_SDS * answers.sd
    lower, upper = answers.mean - half, answers.mean + half
    bounds = None
    if generator.uniform() < 0.5:  # cuts off nothing
        reach = np.append(np.full(D - 1, GRID_REACH * r), (1 + GRID_REACH * r) ** 2 + REACH * s)
        bounds = 1 - reach, 1 + reach
    return density_problem(name, log_density, answers, lower, upper, bounds, gradient)


def _rosenbrock_answers(D: int, s: float, r: float, offset: float) -> Answers:
    grid = np.linspace(1 - GRID_REACH * r, 1 + GRID_REACH * r, GRID_POINTS)
    spacing = grid[1] - grid[0]
    place = np.exp(-0.5 * ((grid - 1) / r) ** 2) * spacing
    # Backwards: what all coordinates after one integrate to, given it; the last is normal.
    beyond = np.full(GRID_POINTS, np.sqrt(2 * np.pi) * s)
    transitions: list[Array] = []  # (m, m), rows sum to one
    kernel = np.exp(-0.5 * ((grid[None] - grid[:, None] ** 2) / s) ** 2) if D > 2 else None
    for _ in range(D - 2):
        assert kernel is not None
        joint = kernel * (place * beyond)
        beyond = joint.sum(axis=1)
        transitions.insert(0, joint / np.maximum(beyond, np.finfo(float).tiny)[:, None])
    evidence = float(place @ beyond)
    masses = [place * beyond / evidence]
    for transition in transitions:
        masses.append(masses[-1] @ transition)
    mean = np.array([mass @ grid for mass in masses] + [masses[-1] @ grid**2])
    second = np.empty((D, D))
    for i in range(D - 1):
        second[i, i] = masses[i] @ grid**2
        for j in range(i + 1, D):
            expected = grid if j < D - 1 else grid**2  # of x_j given the coordinate at hand
            for transition in reversed(transitions[i : min(j, D - 2)]):
                expected = transition @ expected
            second[i, j] = second[j, i] = masses[i] @ (grid * expected)
    second[-1, -1] = masses[-1] @ (grid**4 + s * s)
    marginals = [Marginal.tabulate(grid, mass) for mass in masses]
    last = mixture_marginal(masses[-1], grid**2, np.full(GRID_POINTS, s))
    covariance = second - np.outer(mean, mean)
    return Answers(offset + float(np.log(evidence)), mean, covariance, (*marginals, last))
