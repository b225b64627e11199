"""Gaussian process model of the log joint: conditioning, prediction, marginal likelihood.

Notation (D dimensions, n training points, N rows, S hyperparameter samples, m queries)
    X, y     training inputs (n, D) and rows (N,), in working coordinates: values, N = n, and the
             derivatives that are known (observations.py)
    psi      hyperparameters, (p,) each; order in layout.py
    A        K + diag(noise + jitter), (N, N), with K the covariance of the rows;  A = L L^T
    alpha    A^-1 (y - m), (N,), with m what the mean function makes of the rows
    fbar, C  posterior mean and covariance of the latent function (Section S1.2)
    R        reference points, (r, D)
    LML      log p(y | X, psi), the log marginal likelihood
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from sparing.numerics.arrays import Array
from sparing.numerics.linear_algebra import (
    CholeskyFactor,
    border_cholesky,
    border_cholesky_rows,
    invert_from_cholesky,
    invert_lower,
    log_determinant_from_cholesky,
    multiply_lower_rows,
    robust_cholesky,
    solve_cholesky,
    solve_lower,
    solve_lower_rows,
    solve_lower_transposed,
    solve_lower_transposed_rows,
)
from sparing.surrogate.covariance import cross_covariance
from sparing.surrogate.kernel_expansion import KernelExpansion
from sparing.surrogate.layout import Hyperparameters, Layout
from sparing.surrogate.mean import (
    mean_from_offsets,
    negative_quadratic_mean,
    scaled_offsets,
    weighted_mean_gradient,
)
from sparing.surrogate.observations import Observations, observations
from sparing.surrogate.training_set import TrainingSet

LOG_2_PI = float(np.log(2.0 * np.pi))
# Queries are predicted in blocks whose cross-covariance stays within the processor's cache.
BLOCK_ENTRIES = 1 << 17
# Inverting L pays off from about this many queries per training point (measured, n = 60 to 600).
# The choice depends on shapes alone, so that results never depend on what was computed before.
QUERIES_PER_POINT_TO_INVERT = 1.5


@dataclass(frozen=True, eq=False)
class GaussianProcess:
    """Posterior of the log joint for each of S hyperparameter samples.

    parameters: psi, (S, p); cholesky (S, N, N), lower and C-contiguous; alpha (S, N);
    jitter (S,): what was added to the diagonal of A to make it positive definite, mostly 0.
    """

    training: TrainingSet
    parameters: Array
    cholesky: Array
    alpha: Array
    jitter: Array

    @property
    def n_samples(self) -> int:
        """Number of hyperparameter samples S."""
        return self.parameters.shape[0]

    @property
    def dimension(self) -> int:
        """Number of dimensions D."""
        return self.training.dimension

    @property
    def noise_variance(self) -> float:
        """sigma_obs^2, averaged over hyperparameter samples."""
        log_noise_sd = self.parameters[:, Layout(self.dimension).log_noise_sd]
        return float(np.exp(2.0 * log_noise_sd).mean())

    @property
    def length_scales(self) -> Array:
        """ell, its geometric mean over hyperparameter samples: (D,)."""
        return np.exp(self.parameters[:, : self.dimension].mean(axis=0))

    @property
    def expansion(self) -> KernelExpansion:
        """fbar as a mean function and a sum of kernels."""
        return self.observations.expansion(self.alpha, self.parameters)

    @cached_property
    def observations(self) -> Observations:
        """What was observed, row by row."""
        return observations(self.training)

    @cached_property
    def inverse_cholesky(self) -> Array:
        """L^-1 per sample, (S, N, N), computed once: multiplying is twice as fast as solving."""
        return np.stack([invert_lower(lower) for lower in self.cholesky])

    def subset(self, samples: NDArray[np.integer]) -> GaussianProcess:
        """The process with some of its hyperparameter samples, by their indices."""
        parts = (self.parameters, self.cholesky, self.alpha, self.jitter)
        return GaussianProcess(self.training, *(part[samples] for part in parts))

    def sample(self, s: int) -> Hyperparameters:
        """Hyperparameters of sample s in natural units."""
        return Hyperparameters.from_vector(self.parameters[s])

    def predict(self, queries: Array) -> tuple[Array, Array]:
        """Latent mean and variance, marginal over hyperparameter samples, (m,) each (Eq. 10)."""
        means, variances = self.predict_each(queries)
        variance = variances.mean(axis=0)
        if self.n_samples > 1:
            variance = variance + means.var(axis=0, ddof=1)
        return means.mean(axis=0), variance

    def predict_each(self, queries: Array) -> tuple[Array, Array]:
        """Latent mean fbar and variance C(x, x) for each sample, (S, m) each."""
        queries = _as_points(queries, self.dimension)
        m = queries.shape[0]
        means = np.empty((self.n_samples, m))
        variances = np.empty((self.n_samples, m))
        block = max(1, BLOCK_ENTRIES // self.observations.n_rows)
        invert = m >= QUERIES_PER_POINT_TO_INVERT * self.observations.n_rows
        for s in range(self.n_samples):
            sample = self.sample(s)
            means[s] = negative_quadratic_mean(sample, queries)
            for start in range(0, m, block):
                part = slice(start, start + block)
                covariance = self.observations.cross(sample, queries[part])
                means[s, part] += covariance @ self.alpha[s]
                if invert:
                    half = multiply_lower_rows(self.inverse_cholesky[s], covariance)
                else:
                    half = solve_lower_rows(self.cholesky[s], covariance)
                explained = np.einsum("mn,mn->m", half, half)
                variances[s, part] = sample.output_scale**2 - explained
        return means, np.maximum(variances, 0.0, out=variances)

    def covariance(self, a: Array, b: Array) -> Array:
        """C(a, b) for each sample, (S, p, r), between points a (p, D) and b (r, D)."""
        a = _as_points(a, self.dimension)
        b = _as_points(b, self.dimension)
        covariance = np.empty((self.n_samples, a.shape[0], b.shape[0]))
        for s in range(self.n_samples):
            sample = self.sample(s)
            lower = self.cholesky[s]
            half_a = solve_lower_rows(lower, self.observations.cross(sample, a))
            half_b = solve_lower_rows(lower, self.observations.cross(sample, b))
            covariance[s] = cross_covariance(sample, a, b) - half_a @ half_b.T
        return covariance

    def integrals(self, means: Array, scales: Array, lengths: Array) -> tuple[Array, Array]:
        """E[I_k], (S, K), and Cov(I_j, I_k), (S, K, K), for each sample (Eqs. S17 and S19)."""
        expansion = self.expansion
        expected = expansion.integrals(means, scales, lengths)
        covariances = []
        for s in range(self.n_samples):
            normals = (means, scales, lengths)
            prior, convolved = self.observations.convolved(expansion, s, *normals)
            half = solve_lower_rows(self.cholesky[s], convolved)
            covariances.append(prior - half @ half.T)
        return expected, np.stack(covariances)

    def left_out(self, s: int) -> tuple[Array, Array]:
        """y_i - fbar(x_i) and C(x_i, x_i) of sample s without point i, (n,) each.

        With B the rows of point i and P = A^-1, its residuals are P_BB^-1 alpha_B and their
        covariance, noise included, is P_BB^-1 (Rasmussen and Williams 2006, Section 5.4.2).
        """
        half, sample = self.inverse_cholesky[s], self.sample(s)
        noise = self.observations.noise_variance(sample.noise_sd, sample.gradient_noise_sd)
        first = self.observations.first_row
        residuals, variances = np.empty(len(first) - 1), np.empty(len(first) - 1)
        for i, row in enumerate(first[:-1]):
            rows = slice(row, first[i + 1])
            columns = half[row:, rows]
            covariance = np.linalg.inv(columns.T @ columns)
            residuals[i] = covariance[0] @ self.alpha[s, rows]
            variances[i] = covariance[0, 0] - noise[row] - self.jitter[s]
        return residuals, np.maximum(variances, 0.0)

    def variance_reduction(self, references: Array) -> Callable[[Array], Array]:
        """Candidates x -> mean of C(s, x)^2 / (C(x, x) + noise) over the references s: (m,)."""
        weights = np.empty((self.n_samples, self.observations.n_rows, len(references)))
        for s in range(self.n_samples):  # A^-1 kappa(X, R), once for all candidates
            rows = self.observations.cross(self.sample(s), references)
            half = solve_lower_rows(self.cholesky[s], rows)
            weights[s] = solve_lower_transposed_rows(self.cholesky[s], half).T

        def reduction(candidates: Array) -> Array:
            total = np.zeros(len(candidates))
            for s in range(self.n_samples):
                sample = self.sample(s)
                rows = self.observations.cross(sample, candidates)  # kappa(x, X), (m, N)
                covariance = cross_covariance(sample, candidates, references)
                covariance -= rows @ weights[s]  # C(x, s), (m, r)
                half = multiply_lower_rows(self.inverse_cholesky[s], rows)
                variance = sample.output_scale**2 - np.einsum("mn,mn->m", half, half)
                noise = sample.noise_sd**2 + self.training.typical_noise_variance
                drop = np.einsum("mr,mr->m", covariance, covariance) / covariance.shape[1]
                total += drop / (np.maximum(variance, 0.0) + noise)
            return total / self.n_samples

        return reduction

    def append(
        self, x: Array, y: float, noise_variance: float = 0.0, gradient: Array | None = None
    ) -> GaussianProcess:
        """Condition on one more point by an update of its rows, O(N^2) each (Algorithm 1).

        Where the enlarged matrix is singular the sample is factorised afresh, with jitter.
        """
        training = self.training.with_point(x, y, noise_variance, gradient)
        enlarged = observations(training)
        n_rows, n = enlarged.n_rows, self.observations.n_rows
        cholesky = np.zeros((self.n_samples, n_rows, n_rows))
        alpha = np.empty((self.n_samples, n_rows))
        jitter = self.jitter.copy()
        for s in range(self.n_samples):
            sample = self.sample(s)
            columns, corner = enlarged.last_rows(sample)
            corner[np.diag_indices(n_rows - n)] += jitter[s]
            if n_rows == n + 1:
                border = border_cholesky(self.cholesky[s], columns[0], float(corner[0, 0]))
            else:
                border = border_cholesky_rows(self.cholesky[s], columns, corner)
            if border is None:
                factor = factorise_covariance(training, sample)
                cholesky[s], jitter[s] = np.tril(factor.lower), factor.jitter
            else:
                cholesky[s, :n, :n] = self.cholesky[s]
                cholesky[s, n:, :n], cholesky[s, n:, n:] = border
            alpha[s] = _solve_residual(enlarged, sample, cholesky[s])
        return GaussianProcess(training, self.parameters, cholesky, alpha, jitter)


def condition(training: TrainingSet, hyperparameters: Array) -> GaussianProcess:
    """Condition the process on the training set for each row of hyperparameters, (S, p)."""
    rows = np.atleast_2d(np.ascontiguousarray(hyperparameters, dtype=np.float64))
    _check_hyperparameters(training, rows)
    observed = observations(training)
    n_samples, n = rows.shape[0], observed.n_rows
    cholesky = np.empty((n_samples, n, n))
    alpha = np.empty((n_samples, n))
    jitter = np.empty(n_samples)
    above = np.triu(np.ones((n, n), dtype=bool), 1)
    for s, psi in enumerate(rows):
        sample = Hyperparameters.from_vector(psi)
        jitter[s] = factorise_covariance(training, sample, out=cholesky[s]).jitter
        np.copyto(cholesky[s], 0.0, where=above)
        alpha[s] = _solve_residual(observed, sample, cholesky[s])
    return GaussianProcess(training, rows, cholesky, alpha, jitter)


def factorise_covariance(
    training: TrainingSet, sample: Hyperparameters, out: Array | None = None
) -> CholeskyFactor:
    """L of A, on and below the diagonal of its array (out when given); K above it."""
    return robust_cholesky(_noisy_gram_matrix(observations(training), sample, out))


def log_marginal_likelihood(training: TrainingSet, psi: Array, lower: Array | None = None) -> float:
    """LML = -1/2 r^T A^-1 r - 1/2 log |A| - n/2 log 2 pi  with  r = y - m(X); L where known."""
    sample = Hyperparameters.from_vector(psi)
    lower = factorise_covariance(training, sample).lower if lower is None else lower
    half = solve_lower(lower, training.values - negative_quadratic_mean(sample, training.inputs))
    return _likelihood(half, lower)


def log_marginal_likelihood_and_gradient(training: TrainingSet, psi: Array) -> tuple[float, Array]:
    """LML and its gradient with respect to psi, (3D + 3,)."""
    sample = Hyperparameters.from_vector(psi)
    layout = Layout(training.dimension)
    observed = observations(training)
    matrix = robust_cholesky(_noisy_gram_matrix(observed, sample)).lower
    offsets = scaled_offsets(sample, training.inputs)
    half = solve_lower(matrix, training.values - mean_from_offsets(sample, offsets))
    alpha = solve_lower_transposed(matrix, half)
    likelihood = _likelihood(half, matrix)
    invert_from_cholesky(matrix)  # A^-1 on and below the diagonal, kappa(X, X) still above it
    gradient = np.empty(layout.size)
    gradient[: layout.dimension + 1] = observed.covariance_gradient(
        sample.length_scales, sample.output_scale**2, matrix, alpha
    )
    # dA / d log sigma_obs = 2 sigma_obs^2 I
    trace = float(alpha @ alpha) - float(matrix.trace())
    gradient[layout.log_noise_sd] = sample.noise_sd**2 * trace
    gradient[layout.mean_maximum :] = weighted_mean_gradient(sample, offsets, alpha)
    return likelihood, gradient


def _likelihood(half: Array, lower: Array) -> float:
    """LML from L^-1 r and L."""
    quadratic = float(half @ half)
    return -0.5 * (quadratic + log_determinant_from_cholesky(lower) + half.size * LOG_2_PI)


def _noisy_gram_matrix(
    observed: Observations, sample: Hyperparameters, out: Array | None = None
) -> Array:
    """A without jitter, (N, N)."""
    gram = observed.gram(sample.length_scales, sample.output_scale**2, out)
    noise = observed.noise_variance(sample.noise_sd, sample.gradient_noise_sd)
    gram.reshape(-1)[:: observed.n_rows + 1] += noise
    return gram


def _solve_residual(observed: Observations, sample: Hyperparameters, lower: Array) -> Array:
    """alpha = A^-1 (y - m), (N,)."""
    return solve_cholesky(lower, observed.observed - observed.mean(sample))


def _as_points(points: Array, dimension: int) -> Array:
    points = np.atleast_2d(np.asarray(points, dtype=np.float64))
    if points.ndim != 2 or points.shape[1] != dimension:
        raise ValueError(f"points must be (m, {dimension}), not {points.shape}")
    return points


def _check_hyperparameters(training: TrainingSet, rows: Array) -> None:
    size = training.layout.size
    if rows.ndim != 2 or rows.shape[1] != size:
        raise ValueError(
            f"hyperparameters must be (S, {size}) in {training.dimension} dimensions, "
            f"not {rows.shape}"
        )
    if not np.isfinite(rows).all():
        raise ValueError("hyperparameters must be finite")
