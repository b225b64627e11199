"""Log likelihood of spike counts under the model of Goris, Simoncelli and Movshon (2015).

A filter tuned for direction, spatial and temporal frequency, untuned inhibition, divisive
normalisation, a power law, and spiking with a fluctuating gain (Neuron 88, 819-831).

Notation
--------
theta, s, a, d, g, rho, v    the free parameters x, in the order of ``parameters.FREE``
delta, lam, beta, e0, e1     the fixed ones
i       condition: trials with the same stimulus and pool response share one
c       grating of a condition: direction o, spatial and temporal frequency sf and f, contrast k
t       (K,) frame times
A, S, Q       tuning for direction, spatial and temporal frequency, each 1 at its optimum
E, I, M, R    (conditions, K) excitation, inhibition, pool response, cell response
mu, n, T      (trials,) expected count, count, duration

Only A and S depend on x, and only through the few distinct pairs (o, sf); the rest of the drive
is computed once. E is then a sparse matrix, conditions by distinct f, times a table of cosines.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array
from scipy.special import gammaln

from benchmarks.problems.base import Array
from benchmarks.problems.neuron.cell import FRAME_TIMES, Cell, Experiment
from benchmarks.problems.neuron.parameters import FixedParameters

Index = NDArray[np.int64]

LOWEST_MEAN_COUNT = 0.01
LAPSE = 1e-10  # share of trials whose count tells nothing: bounds what one trial can cost
EXPONENT_LOG_MEAN, EXPONENT_LOG_SD = 1.15, 0.3  # log-normal in rho, part of the likelihood


@dataclass(frozen=True, eq=False)
class NeuronLikelihood:
    """x (7,) -> log likelihood of one cell."""

    fixed: FixedParameters
    gratings: Array  # (pairs, 2) distinct (o, sf)
    cosines: Array  # (frequencies, K) cos(2 pi f t)
    # The gratings with contrast, condition by condition (compressed sparse rows).
    first: Index  # (conditions + 1,)
    pair: Index  # row of ``gratings``
    frequency: Index  # row of ``cosines``
    strength: Array  # Q(f) k
    inhibition: Array  # (conditions, K)
    inverse_normalisation: Array  # (conditions, K) 1 / (10^(2 lam) + M)
    condition: Index  # (trials,)
    duration: Array  # (trials,)
    count: Index  # (trials,)
    log_factorial: Array  # (trials,) ln n!

    @classmethod
    def of(cls, cell: Cell) -> NeuronLikelihood:
        """Precompute what does not depend on the free parameters."""
        stimuli, pool, condition = _conditions(cell.experiments)
        strength = stimuli[:, :, 3]
        shown = strength > 0
        gratings, pair = np.unique(stimuli[shown][:, :2], axis=0, return_inverse=True)
        frequencies, frequency = np.unique(stimuli[shown][:, 2], return_inverse=True)
        first = np.cumsum([0, *shown.sum(axis=1)])
        waves = np.exp(2j * np.pi * frequencies[:, None] * FRAME_TIMES)
        strengths = csr_array(
            (strength[shown], frequency, first), shape=(len(stimuli), len(frequencies))
        )
        count = np.concatenate([experiment.count for experiment in cell.experiments])
        return cls(
            fixed=cell.fixed,
            gratings=gratings,
            cosines=np.ascontiguousarray(waves.real),
            first=first,
            pair=pair.reshape(-1),
            frequency=frequency,
            strength=strength[shown],
            inhibition=np.abs(strengths @ waves),
            inverse_normalisation=1 / (10 ** (2 * cell.fixed.log10_normalisation) + pool),
            condition=condition,
            duration=np.concatenate([experiment.duration for experiment in cell.experiments]),
            count=count,
            log_factorial=gammaln(count + 1.0),
        )

    def __call__(self, x: Array) -> float:
        rho, v = x[5], x[6]
        log_probability = self._log_negative_binomial(self.expected_counts(x), v)
        with_lapses = np.log(LAPSE + (1 - LAPSE) * np.exp(log_probability))
        z = (np.log(rho) - EXPONENT_LOG_MEAN) / EXPONENT_LOG_SD
        log_exponent = -0.5 * z**2 - np.log(rho * EXPONENT_LOG_SD * np.sqrt(2 * np.pi))
        return float(np.sum(with_lapses) + log_exponent)

    def expected_counts(self, x: Array) -> Array:
        """mu = max(0.01, T (e1 + beta mean_t R)), (trials,)."""
        theta, s, a, d, g, rho, _ = x
        o, sf = self.gratings.T
        tuning = direction_tuning(o, theta, a, d, self.fixed.direction_selectivity)
        tuning = tuning * spatial_tuning(sf, s, d)
        amplitudes = csr_array(
            (tuning[self.pair] * self.strength, self.frequency, self.first),
            shape=(len(self.first) - 1, len(self.cosines)),
        )
        drive = np.maximum(amplitudes @ self.cosines, 0)  # E, half-wave rectified
        drive += g * self.inhibition
        drive += self.fixed.early_noise
        drive *= self.inverse_normalisation
        np.maximum(drive, 0, out=drive)
        # A power costs more than all the rest, and about half of the drives are zero.
        response = np.power(drive, rho, where=drive != 0, out=np.zeros_like(drive))
        rate = self.fixed.late_noise + self.fixed.response_scale * response.mean(axis=1)
        return np.maximum(LOWEST_MEAN_COUNT, self.duration * rate[self.condition])

    def _log_negative_binomial(self, mu: Array, v: float) -> Array:
        """Log probability of each count n with mean mu and variance mu + v mu^2.

        With r = 1/v and p = 1/(1 + v mu), Gamma(n + r) / (n! Gamma(r)) p^r (1 - p)^n in the form
        that stays exact as v approaches zero: Gamma(n + r) / Gamma(r) = v^-n prod_{j<n} (1 + v j).
        """
        log_rising = np.cumsum([0.0, *np.log1p(v * np.arange(self.count.max()))])
        log_power = self.count * np.log(mu) - (self.count + 1 / v) * np.log1p(v * mu)
        return log_rising[self.count] + log_power - self.log_factorial


def direction_tuning(o: Array, theta: float, a: float, d: float, delta: float) -> Array:
    """A(o) = [cos^2 D exp(-(a^2 - 1) sin^2 D)]^(d/2) h(D), D = theta - o in radians.

    h is 1 for directions in the half-plane of theta, 1 - delta for those against it.
    """
    D = np.deg2rad(theta - o)
    against = np.mod(D + np.pi / 2, 2 * np.pi) >= np.pi
    h = np.where(against, 1 - delta, 1.0)
    return (np.cos(D) ** 2 * np.exp(-(a**2 - 1) * np.sin(D) ** 2)) ** (d / 2) * h


def spatial_tuning(sf: Array, s: float, d: float) -> Array:
    """S(sf) = (sf/s)^d exp(-(d/2) [(sf/s)^2 - 1])."""
    return (sf / s) ** d * np.exp(-0.5 * d * ((sf / s) ** 2 - 1))


def temporal_tuning(f: Array, preferred: float) -> Array:
    """Q(f) = (f/F)^(1/4) exp(-(1/8) [(f/F)^2 - 1]): derivative order 1/4, not inferred."""
    return (f / preferred) ** 0.25 * np.exp(-0.125 * ((f / preferred) ** 2 - 1))


def _conditions(experiments: tuple[Experiment, ...]) -> tuple[Array, Array, Index]:
    """The distinct conditions and the condition of each trial.

    Returns stimuli (conditions, C, 4), rows (o, sf, f, Q(f) k) and zeros where there is no
    contrast; pool (conditions, K); condition (trials,).
    """
    C = max(experiment.contrast.shape[1] for experiment in experiments)
    stimuli = np.concatenate([_stimuli(experiment, C) for experiment in experiments])
    pool = np.concatenate([experiment.pool for experiment in experiments])
    rows = np.concatenate([stimuli.reshape(len(pool), -1), pool], axis=1)
    _, chosen, condition = np.unique(rows, axis=0, return_index=True, return_inverse=True)
    return stimuli[chosen], pool[chosen], condition.reshape(-1)


def _stimuli(experiment: Experiment, C: int) -> Array:
    """The stimuli of every trial, (n, C, 4)."""
    f = experiment.temporal_frequency
    strength = temporal_tuning(f, experiment.preferred_temporal_frequency) * experiment.contrast
    fields = (experiment.direction, experiment.spatial_frequency, f, strength)
    stimuli = np.where(experiment.contrast[:, :, None] > 0, np.stack(fields, axis=2), 0.0)
    return np.pad(stimuli, ((0, 0), (0, C - stimuli.shape[1]), (0, 0)))
