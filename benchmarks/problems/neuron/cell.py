"""What was recorded from a cell: stimuli, the normalisation pool's responses, spike counts.

Notation
--------
n       trials
C       gratings superposed in a trial, those without contrast included
K       frames of a trial
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from benchmarks.errors import BenchmarkError
from benchmarks.problems.base import Array
from benchmarks.problems.neuron.parameters import FixedParameters

N_FRAMES = 120
FRAMES_PER_SECOND = 120.0
FRAME_TIMES = np.arange(N_FRAMES) / FRAMES_PER_SECOND  # (K,) seconds

MIXTURE_KEYS = ("ori", "tf", "con", "norm", "duration", "count", "sf", "pref_tf")
GRATING_KEYS = ("ori", "tf", "con", "duration", "count", "sf", "pref_tf")


@dataclass(frozen=True, eq=False)
class Experiment:
    """Trials of one kind. A blank trial has no contrast in any of its gratings."""

    direction: Array  # (n, C) degrees
    spatial_frequency: Array  # (n, C) cycles per degree
    temporal_frequency: Array  # (n, C) Hz
    contrast: Array  # (n, C)
    pool: Array  # (n, K) response of the normalisation pool
    duration: Array  # (n,) seconds
    count: NDArray[np.int64]  # (n,) spikes
    preferred_temporal_frequency: float  # Hz


@dataclass(frozen=True, eq=False)
class Cell:
    """The experiments made with one cell, and its parameters that are not inferred."""

    experiments: tuple[Experiment, ...]
    fixed: FixedParameters


def read_experiments(file: Path) -> tuple[Experiment, Experiment]:
    """The mixture (``tp_``) and the grating (``sf_``) experiment of a recorded cell."""
    try:
        with np.load(file) as archive:
            arrays = {key: archive[key] for key in archive.files}
    except FileNotFoundError:
        raise BenchmarkError(f"no recording of the cell at {file}") from None
    except (OSError, ValueError) as problem:
        raise BenchmarkError(f"cannot read the recording in {file}: {problem}") from None
    wanted = [f"tp_{key}" for key in MIXTURE_KEYS] + [f"sf_{key}" for key in GRATING_KEYS]
    missing = [key for key in wanted if key not in arrays]
    if missing:
        raise BenchmarkError(f"{file} lacks {', '.join(missing)}")
    mixture = Experiment(
        direction=arrays["tp_ori"],
        spatial_frequency=np.full_like(arrays["tp_ori"], arrays["tp_sf"]),
        temporal_frequency=arrays["tp_tf"],
        contrast=arrays["tp_con"],
        pool=arrays["tp_norm"],
        duration=arrays["tp_duration"],
        count=arrays["tp_count"].astype(np.int64),
        preferred_temporal_frequency=float(arrays["tp_pref_tf"]),
    )
    grating = Experiment(
        direction=arrays["sf_ori"][:, None],
        spatial_frequency=arrays["sf_sf"][:, None],
        temporal_frequency=arrays["sf_tf"][:, None],
        contrast=arrays["sf_con"][:, None],
        pool=np.ones((len(arrays["sf_count"]), N_FRAMES)),  # also on blank trials
        duration=arrays["sf_duration"],
        count=arrays["sf_count"].astype(np.int64),
        preferred_temporal_frequency=float(arrays["sf_pref_tf"]),
    )
    return mixture, grating
