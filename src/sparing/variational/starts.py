"""Candidate starting points of the fit (Section S1.3.2), and growing the mixture (Section 3.6).

Candidates are the current mixture with its components jittered, rescaled and reweighted; new
components are split off existing ones. In the default preset some candidates move components to
training points drawn by their value.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from sparing.linear_algebra import Array
from sparing.surrogate.gaussian_process import TrainingSet
from sparing.variational.mixture import GaussianMixture
from sparing.variational.parameterisation import normalised
from sparing.variational.settings import VariationalSettings

# Amplitude of a candidate's jitter, log-uniform: from touching up to starting over. It is in sds
# of each component for its mean, and in log units times the factors below for the rest.
SMALLEST_JITTER, LARGEST_JITTER = 0.02, 1.0
SCALE_JITTER, LENGTH_JITTER, WEIGHT_JITTER = 0.5, 0.25, 1.0
# Halves of a split component move apart by about this many of its sds.
SPLIT_JITTER = 0.5


def candidate_mixtures(
    mixture: GaussianMixture,
    training: TrainingSet,
    settings: VariationalSettings,
    *,
    n_components: int,
    n_candidates: int,
    equal_weights: bool,
    generator: np.random.Generator,
) -> Iterator[GaussianMixture]:
    """The same density with n_components components, then n_candidates - 1 variations."""
    n_new = n_components - mixture.n_components
    if n_new < 0:
        raise ValueError(f"cannot shrink {mixture.n_components} components to {n_components}")
    yield _finish(_split(mixture, n_new, 0.0, generator), equal_weights)
    for _ in range(n_candidates - 1):
        grown = _split(mixture, n_new, SPLIT_JITTER, generator)
        if generator.random() < settings.data_fraction:
            grown = _move_to_data(grown, n_new, training, generator)
        yield _finish(_jitter(grown, generator), equal_weights)


def _split(
    mixture: GaussianMixture, n_new: int, distance: float, generator: np.random.Generator
) -> GaussianMixture:
    """Split n_new randomly chosen components in two, distance sds apart; new ones come last."""
    weights, means = mixture.weights.copy(), mixture.means.copy()
    scales = mixture.scales
    for _ in range(n_new):
        parent = int(generator.integers(weights.size))
        sd = distance * scales[parent] * mixture.lengths
        offset = sd * generator.standard_normal(mixture.dimension)
        weights = np.append(weights, weights[parent] / 2.0)
        weights[parent] /= 2.0
        means = np.vstack([means, means[parent] - offset])
        means[parent] += offset
        scales = np.append(scales, scales[parent])
    return GaussianMixture(weights, means, scales, mixture.lengths)


def _jitter(mixture: GaussianMixture, generator: np.random.Generator) -> GaussianMixture:
    """Jitter, rescale and reweight every component, all by one random amplitude."""
    amplitude = _log_uniform(SMALLEST_JITTER, LARGEST_JITTER, generator)
    n_components, dimension = mixture.means.shape
    moves = generator.standard_normal((n_components, dimension))
    means = mixture.means + amplitude * mixture.scales[:, None] * mixture.lengths * moves
    scales = mixture.scales * np.exp(
        SCALE_JITTER * amplitude * generator.standard_normal(n_components)
    )
    lengths = mixture.lengths * np.exp(
        LENGTH_JITTER * amplitude * generator.standard_normal(dimension)
    )
    weights = mixture.weights * np.exp(
        WEIGHT_JITTER * amplitude * generator.standard_normal(n_components)
    )
    return GaussianMixture(weights / weights.sum(), means, scales, lengths)


def _move_to_data(
    mixture: GaussianMixture, n_new: int, training: TrainingSet, generator: np.random.Generator
) -> GaussianMixture:
    """Move the n_new last components, and sometimes more, to training points of high value."""
    n_components = mixture.n_components
    n_moved = int(generator.integers(max(n_new, 1), n_components + 1))
    kept_last = np.arange(n_components) >= n_components - n_new
    order = np.lexsort((generator.random(n_components), ~kept_last))
    moved = order[:n_moved]
    means = mixture.means.copy()
    means[moved] = training.inputs[_draw_points(training.values, n_moved, generator)]
    scales = mixture.scales.copy()
    scales[moved] = np.median(mixture.scales) * _log_uniform(0.5, 2.0, generator)
    return GaussianMixture(mixture.weights, means, scales, mixture.lengths)


def _draw_points(values: Array, n_points: int, generator: np.random.Generator) -> NDArray[np.intp]:
    """Indices of n_points training points, probability ∝ exp(value / temperature).

    Without replacement while there are enough points (the largest of values plus Gumbel noise).
    """
    temperature = _log_uniform(1.0, 10.0, generator)
    tempered = (values - values.max()) / temperature
    if n_points > values.size:
        probabilities = np.exp(tempered)
        probabilities /= probabilities.sum()
        return generator.choice(values.size, size=n_points, p=probabilities)
    noisy = tempered + generator.gumbel(size=values.size)
    return np.argpartition(-noisy, n_points - 1)[:n_points]


def _finish(mixture: GaussianMixture, equal_weights: bool) -> GaussianMixture:
    if equal_weights:
        weights = np.full(mixture.n_components, 1.0 / mixture.n_components)
        mixture = GaussianMixture(weights, mixture.means, mixture.scales, mixture.lengths)
    return normalised(mixture)


def _log_uniform(low: float, high: float, generator: np.random.Generator) -> float:
    return float(np.exp(generator.uniform(np.log(low), np.log(high))))
