"""How far an approximate posterior is from the exact one.

Notation
--------
D, n    dimensions, samples
gsKL    "Gaussianized" symmetrised KL divergence: the mean of both KL directions between normals
        with the two posteriors' means and covariances (Section 4, "Procedure")
MMTV    mean over coordinates of the total variation between the posteriors' marginals
limits  the 2.5 % and 97.5 % quantiles of a marginal
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike
from scipy.linalg import cho_factor, cho_solve
from scipy.ndimage import gaussian_filter1d

from benchmarks.problems.base import Array, Marginal, Modes

TV_BINS = 4096
MIN_BANDWIDTH = 0.1  # bins; below it smoothing changes nothing
LIMITS = (0.025, 0.975)
TAIL = 1e-6  # exact mass left outside the bins on each side


def lml_error(estimate: float, exact: float) -> float:
    """Absolute error of the log marginal likelihood."""
    return abs(estimate - exact)


def gskl(mean_a: Array, covariance_a: Array, mean_b: Array, covariance_b: Array) -> float:
    """gsKL between two posteriors given by their moments; infinite when one is degenerate.

    KL(a, b) + KL(b, a) = (tr(B^-1 A) + tr(A^-1 B)) / 2 - D + d^T (A^-1 + B^-1) d / 2: the log
    determinants cancel.
    """
    moments = (mean_a, covariance_a, mean_b, covariance_b)
    if not all(np.all(np.isfinite(item)) for item in moments):
        return math.inf
    try:
        factor_a, factor_b = cho_factor(covariance_a), cho_factor(covariance_b)
    except np.linalg.LinAlgError:
        return math.inf
    d = mean_a - mean_b
    traces = np.trace(cho_solve(factor_b, covariance_a)) + np.trace(
        cho_solve(factor_a, covariance_b)
    )
    shift = d @ (cho_solve(factor_a, d) + cho_solve(factor_b, d))
    return max(0.0, float(0.5 * (0.5 * traces - len(d) + 0.5 * shift)))


def mmtv(samples: Array, marginals: Sequence[Marginal]) -> float:
    """MMTV of samples (n, D) from the exact marginals."""
    if not np.all(np.isfinite(samples)):
        return math.inf
    columns = zip(samples.T, marginals, strict=True)
    return float(np.mean([marginal_total_variation(column, exact) for column, exact in columns]))


def marginal_total_variation(samples: Array, exact: Marginal) -> float:
    """Half the L1 distance between the smoothed samples (n,) and the exact marginal.

    Compared bin by bin through the exact cumulative distribution, so that a posterior far too
    wide or narrow for the bins is still measured; samples beyond the bins count in full.
    """
    low, high = np.quantile(samples, [TAIL, 1 - TAIL])
    spread = max(high - low, 1e-12 * max(abs(low), abs(high), 1e-300))
    exact_low, exact_high = exact.quantile([TAIL, 1 - TAIL])
    lower = min(low - 0.1 * spread, float(exact_low))
    upper = max(high + 0.1 * spread, float(exact_high))
    edges = np.linspace(lower, upper, TV_BINS + 1)
    counts, _ = np.histogram(samples, edges)
    bandwidth = _bandwidth(samples) / (edges[1] - edges[0])  # in bins
    approximate = counts / len(samples)
    if bandwidth > MIN_BANDWIDTH:
        approximate = gaussian_filter1d(approximate, bandwidth, mode="constant")
    exact_mass = np.diff(exact.cdf(edges))
    outside = (1 - approximate.sum()) + (1 - exact_mass.sum())
    return float(0.5 * (np.abs(approximate - exact_mass).sum() + outside))


def worst_sd_ratio(covariance: Array, exact_covariance: Array) -> float:
    """The ratio of marginal sds, inferred to exact, that is furthest from one by its logarithm."""
    ratios = np.diag(covariance) / np.diag(exact_covariance)
    if not np.all(np.isfinite(ratios)) or np.any(ratios <= 0):
        return math.nan
    return float(np.sqrt(ratios[np.argmax(np.abs(np.log(ratios)))]))


def worst_limit_error(samples: Array, marginals: Sequence[Marginal], sds: Array) -> float:
    """The largest error of a marginal's 95 % limits, in exact sds (D,); samples are (n, D)."""
    if not np.all(np.isfinite(samples)):
        return math.inf
    exact = np.array([marginal.quantile(LIMITS) for marginal in marginals]).T  # (2, D)
    return float(np.max(np.abs(np.quantile(samples, LIMITS, axis=0) - exact) / sds))


def mode_masses(samples: Array, modes: Modes) -> Array:
    """The share of samples (n, D) that belongs to each mode, (K,)."""
    return modes.memberships(samples).mean(axis=0)


def _bandwidth(samples: Array) -> float:
    """Silverman's rule of thumb with the robust spread."""
    quartiles = np.quantile(samples, [0.25, 0.75])
    spread = min(float(np.std(samples)), float(quartiles[1] - quartiles[0]) / 1.349)
    return 0.9 * spread * len(samples) ** -0.2


def bootstrap_median_interval(
    values: ArrayLike, level: float = 0.95, n_resamples: int = 10_000, seed: int = 0
) -> tuple[float, float]:
    """Percentile bootstrap interval of the median (the paper's 95 % CI); values may be infinite."""
    data = np.sort(np.asarray(values, dtype=float))
    n = len(data)
    picks = np.random.default_rng(seed).integers(n, size=(n_resamples, n))
    medians = np.median(data[picks], axis=1)
    tail = 0.5 * (1 - level)
    # "inverted_cdf" returns medians that occurred: interpolating beside infinity gives NaN
    low, high = np.quantile(medians, [tail, 1 - tail], method="inverted_cdf")
    return float(low), float(high)
