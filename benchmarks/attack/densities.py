"""Densities that are hard on purpose, with an exact evidence: right, or said not to be."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path

import numpy as np

import sparing
from benchmarks.attack.cases import Case, Ending, chosen, require

LARGEST_Z, SMALLEST_SD = 5.0, 0.02  # of the log evidence of a run that says it has converged
HALF, N_NODES = 12.0, 2001  # of the grid on which the evidence is exact

Density = Callable[[np.ndarray, np.ndarray], np.ndarray]


def _log_sum(*terms: np.ndarray) -> np.ndarray:
    return np.logaddexp.reduce(terms)


DENSITIES: dict[str, Density] = {
    "constant": lambda a, b: 0.0 * (a + b),
    "a corner": lambda a, b: -np.abs(a) - np.abs(b),
    "a cliff": lambda a, b: np.where(a > 0.3, -1e5, -0.5 * (a**2 + b**2)),
    "no support on one side": lambda a, b: np.where(a > 0.3, -np.inf, -0.5 * (a**2 + b**2)),
    "steps": lambda a, b: -0.5 * np.round(a * 4) ** 2 / 16 - 0.5 * b**2,
    "heavy tails": lambda a, b: -np.log1p(a**2) - np.log1p(b**2),
    "a thin ridge": lambda a, b: -0.5 * ((a - b) / 0.02) ** 2 - 0.5 * (a / 2) ** 2,
    "a ring": lambda a, b: -0.5 * ((np.hypot(a, b) - 2) / 0.2) ** 2,
    "two modes": lambda a, b: _log_sum(
        -0.5 * ((a - 3) ** 2 + b**2), -0.5 * ((a + 3) ** 2 + b**2) - 1
    ),
    "a spike on a hill": lambda a, b: _log_sum(
        -0.5 * (a**2 + b**2), 3 - 0.5 * ((a - 0.5) ** 2 + b**2) / 0.05**2
    ),
    "ripples": lambda a, b: -0.5 * (a**2 + b**2) + 0.3 * np.sin(9 * a),
    "far down": lambda a, b: -0.5 * (a**2 + b**2) - 1e11,
}


def densities(n_cases: int, generator: np.random.Generator) -> list[Case]:
    """Each in a box that holds its mass."""
    seeds = generator.integers(1000, size=len(DENSITIES))
    cases = [
        Case(name, partial(_inferred, density=density, seed=int(seed)), 300.0)
        for (name, density), seed in zip(DENSITIES.items(), seeds, strict=True)
    ]
    return chosen(cases, n_cases, generator)


def _inferred(_: Path, density: Density, seed: int) -> Ending:
    nodes = np.linspace(-HALF, HALF, N_NODES)
    values = density(*np.meshgrid(nodes, nodes, indexing="ij"))
    top = values.max()
    exact = top + np.log(np.exp(values - top).sum() * (nodes[1] - nodes[0]) ** 2)

    def log_density(x: np.ndarray) -> float:
        return float(density(x[:1], x[1:])[0])

    box, bounds = np.full(2, 4.0), np.full(2, HALF)
    problem = sparing.Problem(log_density, -box, box, -bounds, bounds)
    result = sparing.infer(problem, seed=seed, max_evaluations=120, progress=False)
    error, sd = result.log_evidence - exact, max(result.log_evidence_sd, SMALLEST_SD)
    print(f"{error:.3f} +- {sd:.3f}, converged: {result.converged}, {result.n_evaluations}")
    require(np.isfinite(error), f"a log evidence of {result.log_evidence}")
    sure = result.converged and not result.warnings
    require(not sure or abs(error) < LARGEST_Z * sd, f"off by {error:.3f} with an sd of {sd:.3f}")
    return Ending.RIGHT if result.converged else Ending.REFUSED
