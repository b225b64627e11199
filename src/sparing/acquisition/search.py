"""Maximise an acquisition function: a sieve of candidates, then a local search.

    D   dimension        m   candidates in the sieve        q   current posterior

The sieve draws candidates from q, from q with heavier tails, from a normal with q's moments and
from a box around the training inputs; the best of them starts the local search. A criterion is
any callable that gives log a(x) for a batch of candidates (m, D) -> (m,).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from sparing.numerics.arrays import Array
from sparing.surrogate.interface import Surrogate
from sparing.variational.normal_mixture import Mixture

Criterion = Callable[[Array], Array]
Box = tuple[Array, Array]  # lower and upper corner, (D,) each

N_PARENTS = 4  # points around which a cloud is drawn
BOX_MARGIN = 0.5  # the search box exceeds the training inputs by this fraction on each side


@dataclass(frozen=True)
class ShrinkingClouds:
    """A few rounds of candidates around the best ones, each round closer in."""

    n_candidates: int = 512
    n_rounds: int = 3
    n_cloud: int = 128  # points in a round
    shrinkage: float = 0.4  # how much closer each round looks

    def maximise(
        self,
        criterion: Criterion,
        mixture: Mixture,
        box: Box,
        generator: np.random.Generator,
    ) -> Array:
        """The best point found: (D,)."""
        candidates = draw_candidates(mixture, box, self.n_candidates, generator)
        values = finite(criterion(candidates))
        for round_number in range(1, self.n_rounds + 1):
            parents = candidates[np.argsort(values)[-N_PARENTS:]]
            chosen = parents[generator.integers(len(parents), size=self.n_cloud)]
            steps = local_steps(mixture, chosen, generator) * self.shrinkage**round_number
            cloud = np.clip(chosen + steps, *box)
            candidates = np.vstack([parents, cloud])
            values = finite(criterion(candidates))
        return candidates[np.argmax(values)]


def search_box(surrogate: Surrogate, mixture: Mixture) -> Box:
    """Where candidates may lie: the training inputs and q's bulk, with a margin."""
    inputs, mean = surrogate.training.inputs, mixture.mean
    sd = np.sqrt(np.diag(mixture.covariance))
    lower = np.minimum(inputs.min(axis=0), mean - 3.0 * sd)
    upper = np.maximum(inputs.max(axis=0), mean + 3.0 * sd)
    extra = BOX_MARGIN * (upper - lower)
    return lower - extra, upper + extra


def draw_candidates(
    mixture: Mixture,
    box: Box,
    n_candidates: int,
    generator: np.random.Generator,
) -> Array:
    """Candidates for the sieve, clipped to the box: (m, D).

    Half from q; the rest in equal parts from q with Student-t components (3 degrees of freedom), a
    normal with q's moments, and the box.
    """
    n_other = n_candidates // 6
    from_q = mixture.sample(n_candidates - 3 * n_other, generator)
    centre, covariance = mixture.mean, mixture.covariance
    stretch = np.sqrt(3.0 / generator.chisquare(3.0, size=(n_other, 1)))
    shares = np.sqrt(mixture.weights)  # the ends of a ridge have small weights
    component = generator.choice(len(shares), size=n_other, p=shares / shares.sum())
    z = generator.standard_normal((n_other, mixture.dimension))
    heavy = mixture.placed(component, stretch * z)
    normal = centre + generator.standard_normal((n_other, mixture.dimension)) @ _root(covariance).T
    lower, upper = box
    uniform = lower + generator.random((n_other, mixture.dimension)) * (upper - lower)
    return np.clip(np.vstack([from_q, heavy, normal, uniform]), lower, upper)


def local_steps(mixture: Mixture, points: Array, generator: np.random.Generator) -> Array:
    """Random steps from points (m, D), in the shape of the nearest component: (m, D).

    In that of the whole posterior they would leave a bent ridge.
    """
    z = (points[:, None, :] - mixture.means) / np.sqrt(np.diag(mixture.covariance))
    nearest = np.argmin((z * z).sum(axis=2), axis=1)
    noise = generator.standard_normal(points.shape)
    return mixture.placed(nearest, noise) - mixture.means[nearest]


def finite(values: Array) -> Array:
    """Replace NaN and infinities, so that one bad candidate cannot win or stop the search."""
    return np.nan_to_num(values, nan=-1e300, posinf=-1e300, neginf=-1e300)


def _root(covariance: Array) -> Array:
    """A square root of a covariance that may be numerically singular."""
    eigenvalues, eigenvectors = np.linalg.eigh(covariance)
    return eigenvectors * np.sqrt(np.maximum(eigenvalues, 0.0))
