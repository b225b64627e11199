"""Candidate starting points of the fit, their ranks (Section S1.3.2), and growing (Section 3.6).

Candidates are the current mixture with its components jittered, rescaled and reweighted; new
components are split off existing ones. Some candidates may move components to training points
drawn by their value.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from sparing.numerics.arrays import Array
from sparing.surrogate.training_set import TrainingSet
from sparing.variational.mixture import GaussianMixture
from sparing.variational.objective import Objective
from sparing.variational.parameterisation import normalised

# Amplitude of a candidate's jitter, log-uniform: from touching up to starting over. It is in sds
# of each component for its mean, and in log units times the factors below for the rest.
SMALLEST_JITTER, LARGEST_JITTER = 0.02, 1.0
SCALE_JITTER, LENGTH_JITTER, WEIGHT_JITTER = 0.5, 0.25, 1.0
# Halves of a split component move apart by about this many of its sds.
SPLIT_JITTER = 0.5


@dataclass(frozen=True, eq=False)
class Candidates:
    """C mixtures: weights (C, K), means (C, K, D), scales (C, K), lengths (C, D)."""

    weights: Array
    means: Array
    scales: Array
    lengths: Array

    def __len__(self) -> int:
        return len(self.weights)

    def mixture(self, index: int) -> GaussianMixture:
        """One of them, with mean(λ²) = 1."""
        parts = (self.weights, self.means, self.scales, self.lengths)
        return normalised(GaussianMixture(*(part[index] for part in parts)))

    def parameters(self) -> Array:
        """φ of each, (C, K D + 2 K + D); see parameterisation.py."""
        flat = self.means.reshape(len(self), -1)
        logs = (np.log(part) for part in (self.scales, self.lengths, self.weights))
        return np.hstack([flat, *logs])


@dataclass(frozen=True)
class Starts:
    """How many candidates there are per component, and where some of them begin."""

    n_per_component: int = 5
    # In the first iteration and the first after the warm-up (Section S1.3.2).
    n_per_component_at_first: int = 50
    # Fraction of candidates some of whose components start at high training points (not in the
    # paper: splits of existing components cannot reach a mode that q has missed).
    data_fraction: float = 0.25

    def n_candidates(self, n_components: int, *, first: bool) -> int:
        """How many mixtures are compared."""
        return n_components * (self.n_per_component_at_first if first else self.n_per_component)


@dataclass(frozen=True)
class RankByLowerBound:
    """With Jensen's lower bound of the entropy: free of noise, and cheap."""

    def scores(self, candidates: Candidates, objective: Objective, seed: int) -> Array:
        """F of each candidate, (C,)."""
        return objective.lower_bounds(candidates.parameters(), candidates.weights.shape[1])


@dataclass(frozen=True)
class RankByMonteCarlo:
    """With the entropy by Monte Carlo, as during the optimisation (the paper)."""

    n_samples: int = 100

    def scores(self, candidates: Candidates, objective: Objective, seed: int) -> Array:
        """F of each candidate, (C,); all of them with the same draws."""
        mixtures = (candidates.mixture(index) for index in range(len(candidates)))
        return np.array([objective.value(mixture, self.n_samples, seed) for mixture in mixtures])


def candidate_mixtures(
    mixture: GaussianMixture,
    training: TrainingSet,
    data_fraction: float,
    *,
    n_components: int,
    n_candidates: int,
    equal_weights: bool,
    generator: np.random.Generator,
) -> Candidates:
    """The same density with n_components components, then n_candidates - 1 variations."""
    n_new = n_components - mixture.n_components
    if n_new < 0:
        raise ValueError(f"cannot shrink {mixture.n_components} components to {n_components}")
    distances = np.full(n_candidates, SPLIT_JITTER)
    distances[0] = 0.0
    weights, means, scales = _split(mixture, n_new, distances, generator)
    lengths = np.tile(mixture.lengths, (n_candidates, 1))
    to_data = generator.random(n_candidates) < data_fraction
    to_data[0] = False
    rows = np.flatnonzero(to_data)
    if rows.size:
        means[rows], scales[rows] = _moved_to_data(
            means[rows], scales[rows], n_new, training, generator
        )
    _jitter(weights, means, scales, lengths, generator)
    if equal_weights:
        weights[:] = 1.0
    weights /= weights.sum(axis=1, keepdims=True)
    return Candidates(weights, means, scales, lengths)


def _split(
    mixture: GaussianMixture, n_new: int, distances: Array, generator: np.random.Generator
) -> tuple[Array, Array, Array]:
    """Split n_new random components of each candidate, distances (C,) sds apart; new ones last."""
    n_candidates, n_old = distances.size, mixture.n_components
    shape = n_candidates, n_old + n_new
    weights, scales = np.empty(shape), np.empty(shape)
    means = np.empty((*shape, mixture.dimension))
    weights[:, :n_old], scales[:, :n_old] = mixture.weights, mixture.scales
    means[:, :n_old] = mixture.means
    rows = np.arange(n_candidates)
    for new in range(n_old, n_old + n_new):
        parent = generator.integers(new, size=n_candidates)
        sd = (distances * scales[rows, parent])[:, None] * mixture.lengths
        offset = sd * generator.standard_normal(sd.shape)
        weights[rows, parent] /= 2.0
        weights[:, new] = weights[rows, parent]
        means[:, new] = means[rows, parent] - offset
        means[rows, parent] += offset
        scales[:, new] = scales[rows, parent]
    return weights, means, scales


def _jitter(
    weights: Array, means: Array, scales: Array, lengths: Array, generator: np.random.Generator
) -> None:
    """Jitter, rescale and reweight all but the first candidate, each by one random amplitude."""
    amplitude = _log_uniform(SMALLEST_JITTER, LARGEST_JITTER, len(weights), generator)
    amplitude[0] = 0.0
    a = amplitude[:, None]
    sd = (a * scales)[:, :, None] * lengths[:, None, :]
    means += sd * generator.standard_normal(means.shape)
    scales *= np.exp(SCALE_JITTER * a * generator.standard_normal(scales.shape))
    lengths *= np.exp(LENGTH_JITTER * a * generator.standard_normal(lengths.shape))
    weights *= np.exp(WEIGHT_JITTER * a * generator.standard_normal(weights.shape))


def _moved_to_data(
    means: Array,
    scales: Array,
    n_new: int,
    training: TrainingSet,
    generator: np.random.Generator,
) -> tuple[Array, Array]:
    """Each candidate's n_new last components, and often more, moved to points of high value.

    Points are drawn with probability ∝ exp(value / temperature) and, while there are enough,
    without replacement: the largest of value / temperature plus Gumbel noise.
    """
    n_candidates, n_components = scales.shape
    n_moved = generator.integers(max(n_new, 1), n_components + 1, size=n_candidates)
    new = np.arange(n_components) >= n_components - n_new
    order = np.argsort(generator.random(scales.shape) - new, axis=1)  # the new ones come first
    rank = np.argsort(order, axis=1)
    temperature = _log_uniform(1.0, 10.0, n_candidates, generator)
    depth = (training.values - training.values.max()) / temperature[:, None]
    points = np.argsort(-depth - generator.gumbel(size=depth.shape), axis=1)
    chosen = np.take_along_axis(points, rank % training.n_points, axis=1)
    size = np.median(scales, axis=1) * _log_uniform(0.5, 2.0, n_candidates, generator)
    moved = rank < n_moved[:, None]
    return (
        np.where(moved[:, :, None], training.inputs[chosen], means),
        np.where(moved, size[:, None], scales),
    )


def _log_uniform(low: float, high: float, size: int, generator: np.random.Generator) -> Array:
    return np.exp(generator.uniform(np.log(low), np.log(high), size=size))
