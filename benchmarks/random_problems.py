"""Random problems for the robustness campaign, each reproducible from its number.

Notation
--------
u       (D,) coordinates of a normal mixture of ordinary size
x       (D,) the user's coordinates, x = shift + scale * u, scale log-uniform in 1e-6..1e6
f(x)    log mixture(u) + offset, offset uniform in -+1e5; truncated to the bounds simply by being
        evaluated inside them
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

import numpy as np

from benchmarks.problems.base import PAPER_BUDGET_FACTOR, Array
from benchmarks.problems.cigar import random_rotation
from benchmarks.problems.normal_mixture import NormalMixture

STREAM = 40719
MAX_DIMENSION = 6
MAX_COMPONENTS = 4
WORST_WIDTH = 10.0  # how many times too wide a plausible box may be
WORST_SHIFT = 1.0  # how many SDs it may lie beside the mass
MARGIN = 0.01  # SDs a plausible box keeps from a hard bound


class Budget(Enum):
    """How many evaluations a run of the campaign may spend."""

    SMALL = "small"
    FULL = "full"

    def evaluations(self, D: int) -> int:
        return 30 + 10 * D if self is Budget.SMALL else PAPER_BUDGET_FACTOR * (D + 2)


class Bound(Enum):
    """What limits a parameter."""

    NONE = "unbounded"
    LOWER = "lower"
    UPPER = "upper"
    BOTH = "both"


class Box(Enum):
    """How well the plausible box is placed."""

    GOOD = "good"
    WIDE = "wide"
    SHIFTED = "shifted"
    WIDE_AND_SHIFTED = "wide and shifted"


@dataclass(frozen=True, eq=False)
class RandomProblem:
    """A log density with bounds and a plausible box, and what it was made from."""

    number: int
    mixture: NormalMixture  # of u
    shift: Array
    scale: Array
    offset: float
    bounds: tuple[Bound, ...]
    lower: Array  # (D,), infinite where unbounded
    upper: Array
    box: Box
    plausible_lower: Array
    plausible_upper: Array

    @property
    def dimension(self) -> int:
        return len(self.shift)

    def log_density(self, x: Array) -> float:
        point = np.asarray(x, dtype=float).reshape(self.dimension)
        return self.mixture.log_density((point - self.shift) / self.scale) + self.offset

    def describe(self) -> str:
        kinds = ", ".join(bound.value for bound in self.bounds)
        return f"D = {self.dimension} ({kinds}), {self.box.value} plausible box"


def random_problem(number: int) -> RandomProblem:
    """Problem of that number."""
    generator = np.random.default_rng([STREAM, number])
    D = int(generator.integers(1, MAX_DIMENSION + 1))
    mixture = _random_mixture(D, generator)
    mean, sd = mixture.mean, np.sqrt(np.diag(mixture.covariance))
    kinds = list(Bound)
    bounds = tuple(kinds[i] for i in generator.integers(len(kinds), size=D))
    lower = np.where(
        [bound in (Bound.LOWER, Bound.BOTH) for bound in bounds],
        mean - generator.uniform(0.5, 4.0, size=D) * sd,
        -np.inf,
    )
    upper = np.where(
        [bound in (Bound.UPPER, Bound.BOTH) for bound in bounds],
        mean + generator.uniform(0.5, 4.0, size=D) * sd,
        np.inf,
    )
    box = list(Box)[generator.integers(len(Box))]
    centre, half_width = mean.copy(), sd * generator.uniform(1.0, 2.0, size=D)
    if box in (Box.WIDE, Box.WIDE_AND_SHIFTED):
        half_width *= np.exp(generator.uniform(0.0, np.log(WORST_WIDTH), size=D))
    if box in (Box.SHIFTED, Box.WIDE_AND_SHIFTED):
        centre += generator.uniform(-WORST_SHIFT, WORST_SHIFT, size=D) * sd
    plausible_lower = np.maximum(centre - half_width, lower + MARGIN * sd)
    plausible_upper = np.minimum(centre + half_width, upper - MARGIN * sd)
    scale = 10.0 ** generator.uniform(-6.0, 6.0, size=D)
    shift = 10 * scale * generator.standard_normal(D)
    return RandomProblem(
        number=number,
        mixture=mixture,
        shift=shift,
        scale=scale,
        offset=float(generator.uniform(-1e5, 1e5)),
        bounds=bounds,
        lower=shift + scale * lower,
        upper=shift + scale * upper,
        box=box,
        plausible_lower=shift + scale * plausible_lower,
        plausible_upper=shift + scale * plausible_upper,
    )


def _random_mixture(D: int, generator: np.random.Generator) -> NormalMixture:
    """1 to 4 components with random means, rotations, axes and weights."""
    K = int(generator.integers(1, MAX_COMPONENTS + 1))
    covariances = []
    for _ in range(K):
        rotation = random_rotation(D, generator)
        axes = np.exp(generator.uniform(np.log(0.2), np.log(1.5), size=D))
        covariances.append(rotation.T @ np.diag(axes**2) @ rotation)
    means = 1.5 * generator.standard_normal((K, D))
    return NormalMixture.from_weights(generator.dirichlet(np.ones(K)), means, np.array(covariances))
