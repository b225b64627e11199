"""What a run directory says of its run, without the model that made it.

It knows everything but the functions: names, bounds, prior, settings, starting points, seed and
every evaluation. Replaying them gives the posterior and the evidence again (`load_run`); only new
evaluations need the model.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from sparing.errors import LoadError, SettingsError, StoreError
from sparing.numerics.arrays import Array
from sparing.problem.evaluations import Evaluation, Event, Proposal
from sparing.problem.parameter_transform import ParameterTransform
from sparing.problem.parameters import VECTORS
from sparing.problem.problem import Problem
from sparing.results.files.fingerprint import fingerprint
from sparing.results.files.named_arrays import load_errors
from sparing.results.files.result_reader import load
from sparing.results.files.result_writer import PERIODIC
from sparing.results.files.settings_json import settings_from_json, upgraded_fingerprint
from sparing.results.files.state_codec import state_from_parts
from sparing.results.files.stored_problem import StoredLogDensity, StoredPrior, restored_problem
from sparing.results.result import Result
from sparing.store import MemoryStore, RunDirectory, Store
from sparing.store.json_members import MalformedError, Members, read_numbers
from sparing.store.problem_file import read_problem_file, require_same_problem
from sparing.store.run_directory import PROBLEM
from sparing.vbmc.settings import Settings
from sparing.vbmc.state import IterationInfo, State

RESULT = "result.sparing"  # where the command line leaves the result of a run directory

logger = logging.getLogger("sparing")


@dataclass(frozen=True, eq=False)
class StoredIdentity:
    """What a run directory says about its run: the arguments of ``infer``, less the functions.

    ``problem`` has stand-ins for them, ``starting_points`` is (k, D) with k = 0 for none.
    """

    problem: Problem
    settings: Settings
    starting_points: Array
    tag: str

    @property
    def arguments(self) -> dict[str, Any]:
        """Arguments that continue the run, given its problem and its store."""
        return {
            "x0": self.starting_points if len(self.starting_points) else None,
            "tolerance": self.settings.stopping.tolerance_sd,
            "settings": self.settings,
            "tag": self.tag,
        }


def stored_identity(store: RunDirectory) -> StoredIdentity:
    """The identity of the run in a directory; `LoadError` when another release wrote it."""
    with load_errors(str(store.path / PROBLEM)):
        return _identity(Members(store.fingerprint))


def _identity(members: Members) -> StoredIdentity:
    names = members.texts("names")
    parameters = Members(members.object("parameters"))
    by_name = [Members(parameters.object(name)) for name in names]
    vectors = {
        vector: np.array([parameter.number(vector) for parameter in by_name]) for vector in VECTORS
    }
    prior = members.optional_object("prior")
    if prior is not None:
        # The support itself is not stored; it holds the bounds, or there would be no problem.
        prior = StoredPrior(prior, vectors["lower"], vectors["upper"])
    kinds = [parameter.text("coordinate") for parameter in by_name]
    periodic = [name for name, kind in zip(names, kinds, strict=True) if kind == PERIODIC]
    log_density = StoredLogDensity("only its values are in the run directory")
    points = [read_numbers(row, "starting_points") for row in members.values("starting_points")]
    return StoredIdentity(
        problem=restored_problem(log_density, names, vectors, prior, periodic, members),
        settings=settings_from_json(members.take("settings")),
        starting_points=np.reshape(points, (len(points), len(names))),
        tag=members.text("tag"),
    )


def require_same_model(store: RunDirectory, problem: Problem) -> None:
    """`StoreMismatchError`, naming what differs, unless the run in the store is of this problem."""
    stored = stored_identity(store)
    now = fingerprint(
        problem, stored.settings, tag=stored.tag, starting_points=stored.starting_points
    )
    require_same_problem(store.path, upgraded_fingerprint(store.fingerprint), now)


def settings_to_go_on_with(store: str | Path | Store | None) -> Settings:
    """Those of the run that a path holds; the recommended ones where there is none.

    Also where they cannot be read: opening the path then says what is wrong with it.
    """
    if isinstance(store, (str, Path)):
        with suppress(StoreError, MalformedError):
            stored = read_problem_file(Path(store) / PROBLEM)
            if stored is not None:
                return settings_from_json(stored.fingerprint.get("settings"))
    return Settings()


def open_store(
    store: str | Path | Store | None,
    problem: Problem,
    settings: Settings,
    starting_points: Array,
    seed: int | None,
    tag: str,
) -> Store:
    """The store to write to; a path is created, or opened when it holds the same problem."""
    if store is None:
        return MemoryStore(seed)
    if isinstance(store, (str, Path)):
        identity = fingerprint(problem, settings, tag=tag, starting_points=starting_points)
        opened: Store = RunDirectory.open(store, identity, seed=seed, upgrade=upgraded_fingerprint)
    else:
        opened = store
    if seed is not None and opened.seed != seed:
        opened.close()
        raise SettingsError(
            [f"seed is {seed}, but the run in {store} was started with {opened.seed}: leave it out"]
        )
    return opened


def snapshot_state(
    store: Store, problem: Problem, settings: Settings
) -> tuple[Sequence[Event], State, list[Mapping[str, float]]] | None:
    """The events up to the newest snapshot, the state after them, and the iterations' timings.

    None without a snapshot. One of another release, or one that does not agree with the log, is
    not used: the events alone give the same run.
    """
    snapshot, events = store.latest_snapshot(), store.events()
    if snapshot is None or snapshot.number > len(events):
        return None
    before = events[: snapshot.number]
    try:
        state, timings = state_from_parts(
            snapshot.arrays,
            snapshot.metadata,
            base=ParameterTransform.from_problem(problem, settings.bounded_map),
            evaluations=[event for event in before if isinstance(event, Evaluation)],
            names=problem.names,
            settings=settings,
        )
    except LoadError as reason:
        logger.info("snapshot %d not used: %s", snapshot.number, reason)
        return None
    return before, state, timings


def latest_iteration(store: RunDirectory) -> IterationInfo | None:
    """What the newest snapshot says of its last iteration; None when there is nothing to read."""
    stored = stored_identity(store)
    restored = snapshot_state(store, stored.problem, stored.settings)
    if restored is None:
        return None
    _, state, timings = restored
    return IterationInfo(**vars(state.history[-1]), timings=timings[-1])


def saved_result(store: RunDirectory, problem: Problem | None = None) -> Result | None:
    """The result file in a run directory, if it is intact and has all that the journal has."""
    try:
        result = load(store.path / RESULT, problem)
    except LoadError:
        return None
    n_recorded = sum(isinstance(event, Evaluation) for event in store.events())
    return result if (result.n_evaluations, result.seed) == (n_recorded, store.seed) else None


def pending_proposals(events: Iterable[Event]) -> tuple[Proposal, ...]:
    """Points that were submitted and have no result yet."""
    pending: dict[int, Proposal] = {}
    for event in events:
        if isinstance(event, Proposal):
            pending[event.identifier] = event
        elif event.identifier is not None:
            pending.pop(event.identifier, None)
    return tuple(pending.values())
