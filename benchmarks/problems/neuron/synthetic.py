"""A cell generated from the model, with stimuli in the style of the recorded experiments.

It has fewer trials and needs no data, so the neuronal problems can be run anywhere.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from benchmarks.problems.base import Array
from benchmarks.problems.neuron.cell import (
    FRAME_TIMES,
    FRAMES_PER_SECOND,
    N_FRAMES,
    Cell,
    Experiment,
)
from benchmarks.problems.neuron.likelihood import NeuronLikelihood
from benchmarks.problems.neuron.parameters import FixedParameters

SEED = 2015

TRUE_PARAMETERS = np.array([165.0, 3.0, 1.7, 1.4, -0.06, 2.6, 0.15])
FIXED = FixedParameters(
    direction_selectivity=0.85,
    log10_normalisation=-0.4,
    response_scale=250.0,
    early_noise=0.01,
    late_noise=0.5,
)

MIXTURE_TRIALS = 320
BLANK_SHARE = 0.1
PREFERRED_TEMPORAL_FREQUENCY = 5.0
MIXTURE_SPATIAL_FREQUENCY = 2.5
DIRECTION_OFFSETS = 20.0 * np.array([0, -1, 1, -2, 2, -3, 3, -4, 4])  # degrees, (C,)
DIRECTION_STEP = 22.5  # degrees between the central directions
DISPERSIONS = (0.0, 15.0, 30.0, 60.0)  # SD in degrees of the contrast over directions; 0: one
TOTAL_CONTRASTS = (0.25, 1.0)
POOL_COHERENCE = 0.1  # how far the pool follows the phases; 0 would make it constant in time

GRATING_FREQUENCIES = np.geomspace(0.1, 10.0, 11)
GRATING_REPEATS = 4
GRATING_BLANKS = 4
GRATING_DIRECTION = 165.0


def generate_cell() -> Cell:
    """A cell whose counts are drawn from the model at ``TRUE_PARAMETERS``."""
    generator = np.random.default_rng(SEED)
    silent = Cell((_mixture_experiment(generator), _grating_experiment(generator)), FIXED)
    mu = NeuronLikelihood.of(silent).expected_counts(TRUE_PARAMETERS)
    v = TRUE_PARAMETERS[-1]
    gain = generator.gamma(1 / v, v, size=len(mu))  # mean 1, variance v
    counts = np.split(generator.poisson(gain * mu), [MIXTURE_TRIALS])
    recorded = zip(silent.experiments, counts, strict=True)
    return replace(
        silent, experiments=tuple(replace(trials, count=count) for trials, count in recorded)
    )


def _mixture_experiment(generator: np.random.Generator) -> Experiment:
    n, C = MIXTURE_TRIALS, len(DIRECTION_OFFSETS)
    centre = DIRECTION_STEP * generator.integers(360 / DIRECTION_STEP, size=n)
    # Gratings repeat after whole frames; the periods spread about the preferred one.
    periods = generator.normal(FRAMES_PER_SECOND / PREFERRED_TEMPORAL_FREQUENCY, 4.0, (n, C))
    f = FRAMES_PER_SECOND / np.clip(np.rint(periods), 10, 60)
    profiles = [_contrast_profile(dispersion) for dispersion in DISPERSIONS]
    contrast = np.array(profiles)[generator.integers(len(profiles), size=n)]
    contrast *= generator.choice(TOTAL_CONTRASTS, size=(n, 1))
    contrast[: int(BLANK_SHARE * n)] = 0.0
    return Experiment(
        direction=centre[:, None] + DIRECTION_OFFSETS,
        spatial_frequency=np.full((n, C), MIXTURE_SPATIAL_FREQUENCY),
        temporal_frequency=f,
        contrast=contrast,
        pool=_pool_response(f, contrast),
        duration=generator.normal(1.0005, 0.0005, n),
        count=np.zeros(n, dtype=np.int64),
        preferred_temporal_frequency=PREFERRED_TEMPORAL_FREQUENCY,
    )


def _grating_experiment(generator: np.random.Generator) -> Experiment:
    sf = np.repeat(GRATING_FREQUENCIES, GRATING_REPEATS)
    sf = np.concatenate([np.ones(GRATING_BLANKS), sf])[:, None]
    contrast = np.ones_like(sf)
    contrast[:GRATING_BLANKS] = 0.0
    return Experiment(
        direction=np.full_like(sf, GRATING_DIRECTION),
        spatial_frequency=sf,
        temporal_frequency=np.full_like(sf, PREFERRED_TEMPORAL_FREQUENCY),
        contrast=contrast,
        pool=np.ones((len(sf), N_FRAMES)),
        duration=generator.normal(1.0005, 0.0005, len(sf)),
        count=np.zeros(len(sf), dtype=np.int64),
        preferred_temporal_frequency=PREFERRED_TEMPORAL_FREQUENCY,
    )


def _contrast_profile(dispersion: float) -> Array:
    """Contrasts (C,) that sum to one, normal in direction with that SD."""
    if dispersion == 0:
        return (DIRECTION_OFFSETS == 0).astype(float)
    profile = np.exp(-0.5 * (DIRECTION_OFFSETS / dispersion) ** 2)
    return profile / profile.sum()


def _pool_response(f: Array, contrast: Array) -> Array:
    """Root of the contrast energy, in part that of the momentary sum; (n, K), at most 1."""
    waves = np.exp(2j * np.pi * f[:, :, None] * FRAME_TIMES)
    coherent = np.abs(np.einsum("nc,nck->nk", contrast, waves)) ** 2
    incoherent = np.sum(contrast**2, axis=1, keepdims=True)
    return np.sqrt(POOL_COHERENCE * coherent + (1 - POOL_COHERENCE) * incoherent)
