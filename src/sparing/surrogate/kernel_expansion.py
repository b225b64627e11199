"""The surrogate's mean as kernels take it: a quadratic and a sum of squared exponentials.

    fbar(x) = m(x) + sum_p (alpha_p + sum_i b_pi d / dx_pi) kappa(x, x_p)

Its integral against a normal has a closed form (Sections S1.2 and S1.3), and so do those of the
covariance. The variational fit works on these arrays; nobody else needs to know them.

Notation (D dimensions, n training points, S hyperparameter samples, K normals)
    X, alpha   centres (D, n), transposed for the kernels; their coefficients (S, n)
    b          coefficients of the kernels' slopes, (S, D, n); None where there are none
    psi        hyperparameters, (S, 3D + 3); order in layout.py
    mu, sigma, lambda   means (K, D), scales (K,), lengths (D,): normal k has sds sigma_k lambda
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from sparing.kernels.expected_log_joint import component_integrals, convolved_kernels
from sparing.numerics.arrays import Array
from sparing.surrogate.layout import Layout

BLOCK = 1024  # queries at a time, so that their kernel values stay in the cache


@dataclass(frozen=True, eq=False)
class KernelExpansion:
    """X, alpha, b and psi, contiguous and writable, as the compiled kernels take them."""

    centres: Array
    coefficients: Array
    slopes: Array | None
    shapes: Array

    @classmethod
    def of(
        cls, inputs: Array, coefficients: Array, shapes: Array, slopes: Array | None = None
    ) -> KernelExpansion:
        """From training inputs (n, D), alpha (S, n), psi (S, p) and b (S, D, n), if any."""
        return cls(
            _as_kernels_take_it(inputs.T),
            _as_kernels_take_it(coefficients),
            None if slopes is None else _as_kernels_take_it(slopes),
            _as_kernels_take_it(shapes),
        )

    @property
    def arrays(self) -> tuple[Array, Array, Array | None, Array]:
        """(X, alpha, b, psi), the order in which kernels take them."""
        return self.centres, self.coefficients, self.slopes, self.shapes

    def in_units(self, unit: Array) -> KernelExpansion:
        """The same function of x / unit; unit (D,)."""
        layout, log_unit = Layout(unit.size), np.log(unit)
        shapes = self.shapes.copy()
        shapes[:, layout.log_lengths] -= log_unit
        shapes[:, layout.mean_location] /= unit
        shapes[:, layout.log_mean_scales] -= log_unit
        slopes = None if self.slopes is None else self.slopes / unit[:, None]
        return KernelExpansion(self.centres / unit[:, None], self.coefficients, slopes, shapes)

    def integrals(self, means: Array, scales: Array, lengths: Array) -> Array:
        """E[I_k] = z_k^T alpha + m_0 + nu_k for each sample (Eq. S19), (S, K)."""
        return component_integrals(means, scales, lengths, *self.arrays)

    def values(self, queries: Array) -> Array:
        """fbar for each sample at points (m, D): (S, m)."""
        found = np.empty((len(self.shapes), len(queries)))
        for first in range(0, len(queries), BLOCK):
            rows = slice(first, first + BLOCK)
            for s, psi in enumerate(self.shapes):
                found[s, rows] = self._values_of_sample(s, psi, queries[rows])
        return found

    def _values_of_sample(self, s: int, psi: Array, queries: Array) -> Array:
        layout = Layout(queries.shape[1])
        lengths, scale = np.exp(psi[layout.log_lengths]), np.exp(2.0 * psi[layout.log_output_scale])
        z, x = queries / lengths, self.centres / lengths[:, None]
        exponent = z @ x
        exponent -= 0.5 * (z * z).sum(axis=1)[:, None]
        exponent -= 0.5 * (x * x).sum(axis=0)
        np.minimum(exponent, 0.0, out=exponent)
        np.exp(exponent, out=exponent)
        offsets = (queries - psi[layout.mean_location]) / np.exp(psi[layout.log_mean_scales])
        mean = psi[layout.mean_maximum] - 0.5 * (offsets * offsets).sum(axis=1)
        if self.slopes is None:
            return mean + scale * (exponent @ self.coefficients[s])
        # kappa (alpha + sum_i b_i (z_i - x_i) / ell_i), the part of z and that of the centres
        slopes = self.slopes[s] / lengths[:, None]
        constant = self.coefficients[s] - (slopes * x).sum(axis=0)
        linear = exponent @ np.column_stack([constant, slopes.T])
        return mean + scale * (linear[:, 0] + (linear[:, 1:] * z).sum(axis=1))

    def gradient(self, queries: Array) -> Array:
        """Of fbar, averaged over the samples, at points (m, D): (m, D)."""
        layout = Layout(queries.shape[1])
        total = np.zeros(queries.shape)
        for s, psi in enumerate(self.shapes):
            lengths = np.exp(psi[layout.log_lengths])
            scale = np.exp(2.0 * psi[layout.log_output_scale])
            z, x = queries / lengths, self.centres / lengths[:, None]
            exponent = z @ x - 0.5 * (z * z).sum(axis=1)[:, None] - 0.5 * (x * x).sum(axis=0)
            kernels = scale * np.exp(np.minimum(exponent, 0.0))
            weights = kernels * self.coefficients[s]
            if self.slopes is not None:
                slopes = self.slopes[s] / lengths[:, None]
                weights += kernels * (z @ slopes - (slopes * x).sum(axis=0))
                total += kernels @ slopes.T / lengths
            total += (weights @ x.T - weights.sum(axis=1)[:, None] * z) / lengths
            scales = np.exp(psi[layout.log_mean_scales])
            total -= (queries - psi[layout.mean_location]) / scales**2
        return total / len(self.shapes)

    def convolutions(
        self, s: int, means: Array, scales: Array, lengths: Array
    ) -> tuple[Array, Array]:
        """What Eq. S17 needs of sample s: the prior covariance of I_j, I_k (K, K) and z (K, n)."""
        psi = np.require(self.shapes[s], np.float64, ["C", "W"])
        prior = _prior_covariance(means, scales, lengths, psi)
        return prior, convolved_kernels(means, scales, lengths, self.centres, psi)


def _as_kernels_take_it(part: Array) -> Array:
    return np.require(part, np.float64, ["C", "W"])


def _prior_covariance(means: Array, scales: Array, lengths: Array, psi: Array) -> Array:
    """The double integral of N_j kappa N_k, with sigma_f^2 Lambda as in the kernel, (K, K).

    It is sigma_f^2 Lambda N(mu_j; mu_k, Sigma_ell + (sigma_j^2 + sigma_k^2) diag(lambda^2)).
    """
    dimension = means.shape[1]
    log_lengths, log_output_scale = psi[:dimension], psi[dimension]
    spread = scales[:, None] ** 2 + scales**2
    exponent = np.full(spread.shape, 2.0 * log_output_scale)
    for i in range(dimension):
        variance = np.exp(2.0 * log_lengths[i]) + spread * lengths[i] ** 2
        difference = means[:, None, i] - means[:, i]
        exponent += log_lengths[i] - 0.5 * np.log(variance) - 0.5 * difference**2 / variance
    return np.exp(exponent)
