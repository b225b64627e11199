"""What comes before a run: its arguments are checked, its store is opened."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from sparing.errors import SettingsError
from sparing.numerics.random_streams import RandomStreams
from sparing.problem.problem import Problem
from sparing.results.files.fingerprint import fingerprint
from sparing.store import MemoryStore, RunDirectory, Store
from sparing.vbmc.settings import Settings


def open_store(
    store: str | Path | Store | None,
    settings: Settings,
    problem: Problem,
    starting_points: np.ndarray,
    seed: int | None,
    tag: str,
) -> Store:
    """The store to write to; a path is created, or opened when it holds the same problem."""
    if store is None:
        return MemoryStore(seed=RandomStreams(seed).seed)
    if isinstance(store, (str, Path)):
        identity = fingerprint(problem, settings, tag=tag, starting_points=starting_points)
        opened: Store = RunDirectory.open(store, identity, seed=seed)
    else:
        opened = store
    if seed is not None and opened.seed != seed:
        opened.close()
        raise SettingsError(
            [f"seed is {seed}, but the run in {store} was started with {opened.seed}: leave it out"]
        )
    return opened


def check_arguments(
    problem: Problem, max_evaluations: int | None, tolerance: float, settings: Settings
) -> None:
    """Refuse what cannot be meant, before the first evaluation; every fault at once."""
    faults: list[str] = []
    if not isinstance(problem, Problem):
        faults.append(f"problem must be a sparing.Problem, got {type(problem).__name__}")
    if not isinstance(settings, Settings):
        faults.append(f"settings must be a sparing.Settings, got {type(settings).__name__}")
    if max_evaluations is not None and (
        isinstance(max_evaluations, bool)
        or int(max_evaluations) != max_evaluations
        or max_evaluations < 2
    ):
        faults.append(f"max_evaluations must be a whole number >= 2, got {max_evaluations!r}")
    if not (np.isfinite(tolerance) and tolerance > 0):
        faults.append(f"tolerance must be a positive number, got {tolerance!r}")
    if faults:
        raise SettingsError(faults)
