"""Maximise an acquisition function: a sieve of candidates, then a local search.

    D   dimension        m   candidates in the sieve        q   variational posterior

The sieve draws candidates from q, from q with heavier tails, from a normal with q's moments and
from a box around the training inputs; the best of them starts the local search.
"""

from __future__ import annotations

import enum
import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np

from sparing.acquisition.criteria import Criterion
from sparing.numerics.arrays import Array
from sparing.variational.mixture import GaussianMixture


class LocalSearch(enum.Enum):
    """How the best candidate of the sieve is improved."""

    CMA_ES = "CMA-ES"  # Section 3.3
    SHRINKING = "shrinking clouds"  # a few rounds of candidates around the best ones


@dataclass(frozen=True)
class SearchSettings:
    """The size of the sieve and the local search that follows it."""

    n_candidates: int = 512
    local_search: LocalSearch = LocalSearch.SHRINKING
    # CMA-ES: the paper gives no budget; the search stops earlier on its own tolerances.
    cma_evaluations_per_dimension: int = 100
    # Shrinking clouds: rounds, the points in each, and how much closer each round looks.
    n_rounds: int = 3
    n_cloud: int = 128
    shrinkage: float = 0.4

    @classmethod
    def paper(cls) -> SearchSettings:
        """CMA-ES as in Section 3.3; the sieve only picks its starting point."""
        return cls(n_candidates=1024, local_search=LocalSearch.CMA_ES)


def draw_candidates(
    mixture: GaussianMixture,
    box: tuple[Array, Array],
    n_candidates: int,
    generator: np.random.Generator,
) -> Array:
    """Candidates for the sieve, clipped to the box: (m, D).

    Half from q; the rest in equal parts from q widened by a Student-t factor (3 degrees of
    freedom), a normal with q's moments, and the box.
    """
    n_other = n_candidates // 6
    from_q = mixture.sample(n_candidates - 3 * n_other, generator)
    centre, covariance = mixture.mean, mixture.covariance
    heavy = mixture.sample(n_other, generator)
    stretch = np.sqrt(3.0 / generator.chisquare(3.0, size=(n_other, 1)))
    heavy = centre + (heavy - centre) * stretch
    normal = centre + generator.standard_normal((n_other, mixture.dimension)) @ _root(covariance).T
    lower, upper = box
    uniform = lower + generator.random((n_other, mixture.dimension)) * (upper - lower)
    return np.clip(np.vstack([from_q, heavy, normal, uniform]), lower, upper)


def maximise(
    criterion: Criterion,
    mixture: GaussianMixture,
    box: tuple[Array, Array],
    settings: SearchSettings,
    generator: np.random.Generator,
) -> Array:
    """The best point found: (D,)."""
    candidates = draw_candidates(mixture, box, settings.n_candidates, generator)
    values = _finite(criterion(candidates))
    scale = np.sqrt(np.diag(mixture.covariance))
    if settings.local_search is LocalSearch.CMA_ES:
        return _cma_es(criterion, candidates, values, scale, box, settings, generator)
    return _shrinking_clouds(criterion, candidates, values, scale, box, settings, generator)


def _shrinking_clouds(
    criterion: Criterion,
    candidates: Array,
    values: Array,
    scale: Array,
    box: tuple[Array, Array],
    settings: SearchSettings,
    generator: np.random.Generator,
) -> Array:
    """Rounds of normal clouds around the best few points so far, each round closer in."""
    n_parents = 4
    for round_number in range(1, settings.n_rounds + 1):
        parents = candidates[np.argsort(values)[-n_parents:]]
        chosen = parents[generator.integers(len(parents), size=settings.n_cloud)]
        step = scale * settings.shrinkage**round_number
        cloud = np.clip(chosen + step * generator.standard_normal(chosen.shape), *box)
        candidates = np.vstack([parents, cloud])
        values = _finite(criterion(candidates))
    return candidates[np.argmax(values)]


def _cma_es(
    criterion: Criterion,
    candidates: Array,
    values: Array,
    scale: Array,
    box: tuple[Array, Array],
    settings: SearchSettings,
    generator: np.random.Generator,
) -> Array:
    """CMA-ES (Section 3.3) from the best candidate, in units of q's standard deviations."""
    import cma  # imported here: it takes longer to import than the rest of the package

    best, best_value = candidates[np.argmax(values)], float(np.max(values))
    lower, upper = box
    dimension = len(best)
    budget = settings.cma_evaluations_per_dimension * (dimension + 2)
    options: dict[str, Any] = {
        # Our own stream: the package would otherwise reseed NumPy's global one.
        "seed": np.nan,
        "randn": lambda *shape: generator.standard_normal(shape),
        "verbose": -9,
        "maxfevals": budget,
        "tolfun": 1e-3,  # in log acquisition: which of two equally good points wins is immaterial
        "tolx": 1e-3,
        "CMA_stds": np.maximum(scale, 1e-12 * (upper - lower)),
    }
    if dimension == 1:  # the cma package refuses one dimension: search a second, idle one
        options["CMA_stds"] = np.repeat(options["CMA_stds"], 2)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # its remarks on step sizes are not for our users
        start = best if dimension > 1 else np.repeat(best, 2)
        strategy = cma.CMAEvolutionStrategy(start, 0.3, options)
        while not strategy.stop():
            points = strategy.ask()
            inside = np.clip(np.asarray(points)[:, :dimension], lower, upper)
            log_acquisition = _finite(criterion(inside))
            winner = int(np.argmax(log_acquisition))
            if log_acquisition[winner] > best_value:
                best, best_value = inside[winner], float(log_acquisition[winner])
            strategy.tell(points, list(-log_acquisition))
    return best


def _finite(values: Array) -> Array:
    """Replace NaN and infinities, so that one bad candidate cannot win or stop the search."""
    return np.nan_to_num(values, nan=-1e300, posinf=-1e300, neginf=-1e300)


def _root(covariance: Array) -> Array:
    """A square root of a covariance that may be numerically singular."""
    eigenvalues, eigenvectors = np.linalg.eigh(covariance)
    return eigenvectors * np.sqrt(np.maximum(eigenvalues, 0.0))
