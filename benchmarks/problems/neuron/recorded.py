"""The two recorded cells and the published answers, read from the folder ``neuron``.

The folder holds ``truth.json`` (fixed parameters, posterior moments and LML of each cell) and
one ``neuron_CELL.npz`` per cell (stimuli, pool responses and spike counts).
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.errors import BenchmarkError
from benchmarks.problems.neuron.cell import Cell, read_experiments
from benchmarks.problems.neuron.parameters import FixedParameters
from benchmarks.problems.neuron.targets import Truth


def read_cell(folder: Path, cell: str) -> Cell:
    """The recording of that cell."""
    numbers = _numbers(folder, cell)
    try:
        values = numbers["fixed_params"]
        fixed = FixedParameters(
            direction_selectivity=values["direction_selectivity"],
            log10_normalisation=values["log10_norm_const"],
            response_scale=values["response_scale"],
            early_noise=values["early_noise"],
            late_noise=values["late_noise"],
        )
    except KeyError as missing:
        raise _lacks(folder, cell, missing) from None
    return Cell(read_experiments(folder / f"neuron_{cell}.npz"), fixed)


def read_truth(folder: Path, cell: str, *, uniform: bool) -> Truth:
    """Published moments and LML; for the normal prior also an LML computed anew."""
    numbers = _numbers(folder, cell)
    try:
        if uniform:
            published = numbers["alternative_uniform_prior_2020"]
            moments = published["mean_x"], published["cov_x"]
            alternatives = {}
        else:
            published = numbers["truth"]
            moments = published["mean_u"], published["cov_u"]
            alternatives = {"recomputed": float(numbers["recheck_importance_sampling"]["lnZ"])}
        log_evidence = float(published["lnZ"])
    except KeyError as missing:
        raise _lacks(folder, cell, missing) from None
    mean, covariance = (np.asarray(moment, dtype=float) for moment in moments)
    return Truth(log_evidence, mean, covariance, alternatives)


def _numbers(folder: Path, cell: str) -> dict[str, Any]:
    file = folder / "truth.json"
    try:
        cells = json.loads(file.read_text())["neurons"]
    except FileNotFoundError:
        raise BenchmarkError(
            f"no {file}: --data names the directory that holds neuron/ (with truth.json and "
            f"neuron_{cell}.npz), or a file beside neuron/; neuron-synthetic needs no data"
        ) from None
    except (OSError, ValueError, KeyError) as problem:
        raise BenchmarkError(f"cannot read the answers in {file}: {problem}") from None
    if cell not in cells:
        raise BenchmarkError(f"{file} holds no cell {cell} (it has: {', '.join(cells)})")
    return cells[cell]


def _lacks(folder: Path, cell: str, missing: KeyError) -> BenchmarkError:
    return BenchmarkError(f"{folder / 'truth.json'}: cell {cell} lacks {missing}")
