"""A mixture of normals fitted to weighted points, by expectation maximisation.

Where the points end at an edge, the mixture goes on beyond it as if nothing were there, and is cut
off afterwards: what lies beyond is missing data, and the mixture so far says what it would be.

Notation (N points, K components, D dimensions)
    x_i, p_i    points (N, D), their probabilities (N,), which sum to one
    r_ik        responsibility of component k for point i, (N, K)
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from sparing.numerics.arrays import Array
from sparing.surrogate.support import Contains
from sparing.variational.normal_mixture import BLOCK, NormalMixture, even_sample

N_LLOYD = 2  # rounds of k-means for the first guess
# By how much its components are widened. Clusters do not overlap, normals that make a smooth
# density do: with 60 of them, that of a normal was wrong by 0.2 nats (rms) after three steps, and
# the mode by 0.75 standard deviations; with this by 0.03 (D = 4).
WIDENING = 2.0
SMALLEST_SPREAD = 1e-9  # of points that are all the same, to their distance from zero or to one
NEGLIGIBLE_MASS = 1e-3  # of the average component's: what has less is dropped
N_BEYOND = 2048  # draws of the mixture of which those beyond the edge are the missing points
EXTRA_STEPS = 5  # where there is an edge: what is missing is known only step by step


def fitted_mixture(
    points: Array,
    probabilities: Array,
    n_components: int,
    n_steps: int,
    generator: np.random.Generator,
    contains: Contains | None = None,
) -> NormalMixture:
    """The mixture after n_steps, from a first guess by k-means in the points' own metric.

    As if D + 1 more draws in each component had the shape of the average one: few points make no
    covariance. The mean is that of the points exactly, and the covariance but for that; where
    ``contains`` says where points can be at all, those of the mixture within, nearly.
    """
    mean = probabilities @ points
    offsets = points - mean
    dimension = points.shape[1]
    covariance = (offsets.T * probabilities) @ offsets
    smallest = (SMALLEST_SPREAD * (1.0 + np.abs(mean))) ** 2
    floor = 1e-9 * np.diag(np.maximum(np.diag(covariance), smallest))
    whitening = np.linalg.inv(np.linalg.cholesky(covariance + floor))
    z = np.asarray(offsets @ whitening.T, dtype=np.float64)
    labels = _clusters(z, probabilities, n_components, generator)
    basis = _terms(offsets)
    terms = basis * probabilities[:, None]
    n_effective = 1.0 / float(probabilities @ probabilities)
    borrowed = (dimension + 1.0) / n_effective
    sums = [np.bincount(labels, column) for column in terms.T]
    mixture = _maximised(np.array(sums, dtype=np.float64).T, borrowed, floor)
    for step in range(1, n_steps + (0 if contains is None else EXTRA_STEPS)):
        wide = WIDENING if step == 1 else 1.0
        guess = NormalMixture(mixture.weights, mixture.means, wide * mixture.factors)
        sums = _expected(guess, basis, terms)
        if contains is not None:
            missing = even_sample(guess, N_BEYOND)
            missing = missing[~contains(missing + mean)]
            inside = 1.0 - len(missing) / N_BEYOND
            beyond = _terms(missing)
            sums = inside * sums + _expected(guess, beyond, beyond / N_BEYOND)
        mixture = _maximised(sums, borrowed, floor)
    if contains is not None:
        masses = _expected(mixture, basis, terms[:, :1])[:, 0]
        mixture = mixture.part(masses > NEGLIGIBLE_MASS / len(masses))
    return NormalMixture(mixture.weights, mixture.means + mean, mixture.factors)


def _terms(offsets: Array) -> Array:
    """The monomials of each point up to the second degree, about the common mean, (N, F)."""
    first, second = np.triu_indices(offsets.shape[1])
    products = offsets[:, first] * offsets[:, second]
    return np.column_stack([np.ones(len(offsets)), offsets, products])


def _expected(mixture: NormalMixture, basis: Array, terms: Array) -> Array:
    """The terms of all points (N, ...), shared among the components: (K, ...).

    ``basis`` are the monomials of the points: log w_k N_k is a polynomial of the second degree.
    """
    blocks = (slice(i, i + BLOCK) for i in range(0, len(basis), BLOCK))
    total = np.zeros((mixture.n_components, terms.shape[1]))
    polynomials = _polynomials(mixture)
    for rows in blocks:
        total += _responsibilities(basis[rows] @ polynomials).T @ terms[rows]
    return total


def _polynomials(mixture: NormalMixture) -> Array:
    """Coefficients of log w_k N_k in the order of `_terms`, (F, K)."""
    inverse = np.linalg.inv(mixture.factors)
    precisions = inverse.transpose(0, 2, 1) @ inverse
    pulls = np.einsum("kij,kj->ki", precisions, mixture.means)
    constants = mixture.log_heights - 0.5 * np.einsum("ki,ki->k", pulls, mixture.means)
    first, second = np.triu_indices(mixture.dimension)
    pairs = np.where(first == second, -0.5, -1.0) * precisions[:, first, second]
    return np.hstack([constants[:, None], pulls, pairs]).T


def _responsibilities(densities: Array) -> Array:
    """The E step: r, (N, K), of log w_k N_k, which are overwritten."""
    densities -= densities.max(axis=1, keepdims=True)
    np.exp(densities, out=densities)
    densities /= densities.sum(axis=1, keepdims=True)
    return densities


def _maximised(sums: Array, borrowed: float, floor: Array) -> NormalMixture:
    """The M step, from the sums of r_ik p_i, r_ik p_i x_i and r_ik p_i x_i x_i^T, (K, ...)."""
    sums = sums[sums[:, 0] > NEGLIGIBLE_MASS / len(sums)]
    dimension = len(floor)
    mass, means = sums[:, 0], sums[:, 1 : dimension + 1] / sums[:, :1]
    first, second = np.triu_indices(dimension)
    scatter = np.empty((len(mass), dimension, dimension))
    scatter[:, first, second] = scatter[:, second, first] = sums[:, dimension + 1 :]
    scatter -= mass[:, None, None] * means[:, :, None] * means[:, None, :]
    average = scatter.sum(axis=0) / mass.sum()
    covariances = (scatter + borrowed * average) / (mass + borrowed)[:, None, None] + floor
    return NormalMixture.of_covariances(mass, means, covariances)


def _clusters(
    z: Array, probabilities: Array, n_clusters: int, generator: np.random.Generator
) -> NDArray[np.intp]:
    """Labels 0 to K - 1 by k-means, its centres drawn far from each other (k-means++)."""
    squares = (z * z).sum(axis=1)[:, None]
    centres = z[[generator.choice(len(z), p=probabilities)]]
    distance = _squared_distances(z, squares, centres)[:, 0]
    while len(centres) < n_clusters:
        weight = probabilities * distance
        total = weight.sum()
        if not total > 0.0:
            break
        new = z[[generator.choice(len(z), p=weight / total)]]
        centres = np.vstack([centres, new])
        distance = np.minimum(distance, _squared_distances(z, squares, new)[:, 0])
    labels = _squared_distances(z, squares, centres).argmin(axis=1)
    for _ in range(N_LLOYD):
        mass = np.bincount(labels, probabilities, len(centres))
        sums = [np.bincount(labels, probabilities * column, len(centres)) for column in z.T]
        kept = mass > 0.0
        centres = (np.column_stack(sums)[kept]) / mass[kept, None]
        labels = _squared_distances(z, squares, centres).argmin(axis=1)
    _, labels = np.unique(labels, return_inverse=True)
    return labels


def _squared_distances(a: Array, squares: Array, b: Array) -> Array:
    """(n, m), up to rounding and never negative; squares (n, 1): those of a."""
    return np.maximum(squares - 2.0 * a @ b.T + (b * b).sum(axis=1), 0.0)
