"""What makes several runs independent, and the run that is then told all they evaluated.

Runs that saw each other's evaluations would agree because of that, and their agreement would
prove nothing. So each has its own seed, and starting points that no other has. When they are over,
their evaluations are facts that hold for any run: one more run takes them as its initial design
and goes on until its own test stops it. It knows every mode that any of them found.

R     number of independent runs
k     starting points; n_known evaluations the pooled run starts with
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import zip_longest

import numpy as np

from sparing.numerics.arrays import Array
from sparing.numerics.random_streams import FRESH_SEED_BITS, RandomStreams
from sparing.problem.evaluations import Evaluation
from sparing.running.inference import Inference
from sparing.running.loop import Callback
from sparing.store import RunDirectory
from sparing.store.run_group import RunGroup
from sparing.variational.starts import Starts
from sparing.vbmc.settings import Settings
from sparing.vbmc.state import IterationInfo

# Candidate starts of a pooled run's fits, per component, and in the first two; the fraction of them
# with components at points of high value. See `pooled_settings`.
CANDIDATES = 100
CANDIDATES_AT_FIRST = 200
DATA_FRACTION = 0.5
STABLE_ITERATIONS = 8  # as in the paper, Section 3.7


@dataclass(frozen=True)
class NumberedInfo(IterationInfo):
    """What one iteration of one of several runs did.

    ``run`` is the number of the run, from 1; None for the pooled run.
    """

    run: int | None


def numbered(callback: Callback | None, run: int | None) -> Callback | None:
    """The callback of one of several runs: it is told which."""
    if callback is None:
        return None
    return lambda info: callback(NumberedInfo(**vars(info), run=run))


def run_seed(seed: int, number: int) -> int:
    """The seed of an independent run, numbered from 1; of the pooled run for 0."""
    generator = RandomStreams(seed).generator("seed of a run", number)
    return int(generator.integers(2**FRESH_SEED_BITS))


def deal_points(points: Array, n_runs: int) -> list[Array]:
    """Starting points (k, D) dealt out in turn; a run without any samples the plausible box."""
    return [points[number::n_runs] for number in range(n_runs)]


def gather_points(dealt: Sequence[Array]) -> Array:
    """The points in the order in which they were dealt out: (k, D)."""
    rows = [point for turn in zip_longest(*dealt) for point in turn if point is not None]
    return np.reshape(rows, (len(rows), dealt[0].shape[1]))


def known_evaluations(runs: Iterable[Inference], group: RunGroup | None) -> list[Evaluation]:
    """All that the independent runs evaluated, and earlier pooled runs on their own."""
    known = [entry for run in runs for entry in run.evaluations]
    if group is None:
        return known
    n_told = len(known)
    for n_earlier, path in group.pooled_paths.items():
        if n_earlier < n_told:
            known += _own_evaluations(RunDirectory.open(path, read_only=True))
    return known


def _own_evaluations(store: RunDirectory) -> list[Evaluation]:
    """Those that answer a proposal; the others were told."""
    evaluations = [event for event in store.events() if isinstance(event, Evaluation)]
    return [entry for entry in evaluations if entry.identifier is not None]


def pooled_settings(settings: Settings, n_known: int) -> Settings:
    """The settings of the pooled run.

    Its first surrogate is trained once all that is known has been told. Fits of q then have to
    find every mode in it, which a run on its own meets one by one: they compare more candidate
    starts, and have to be stable for longer (docs/several-runs.md has the measurement).
    """
    variational, stopping = settings.variational, settings.stopping
    starts = variational.starts
    return replace(
        settings,
        initial_design=replace(settings.initial_design, n_points=n_known),
        variational=replace(
            variational,
            starts=Starts(
                n_per_component=max(starts.n_per_component, CANDIDATES),
                n_per_component_at_first=max(starts.n_per_component_at_first, CANDIDATES_AT_FIRST),
                data_fraction=max(starts.data_fraction, DATA_FRACTION),
            ),
        ),
        stopping=replace(stopping, n_stable=max(stopping.n_stable, STABLE_ITERATIONS)),
    )


def tell_known(pooled: Inference, known: Sequence[Evaluation]) -> None:
    """Tell a pooled run what is known; an earlier process may have told it some."""
    for entry in known[pooled.n_evaluations :]:
        pooled.tell_outcome(entry.x, entry.outcome)
