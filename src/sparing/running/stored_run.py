"""A run read back from its directory, without the model that made it.

The run directory knows everything but the functions: names, bounds, prior, settings, starting
points, seed and every evaluation. Replaying them gives the posterior and the evidence again; only
new evaluations need the model.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np

from sparing.errors import LoadError, StoreError
from sparing.numerics.arrays import Array
from sparing.problem.evaluations import Evaluation, Event, Proposal
from sparing.problem.parameter_transform import ParameterTransform
from sparing.problem.problem import Problem
from sparing.problem.warning_text import WarningText, WarningTopic
from sparing.results.files.fingerprint import fingerprint
from sparing.results.files.load_errors import load_errors
from sparing.results.files.result_reader import load
from sparing.results.files.settings_json import settings_from_json, upgraded_fingerprint
from sparing.results.files.state_codec import state_from_parts
from sparing.results.files.stored_problem import VECTORS, StoredLogDensity, StoredPrior
from sparing.results.result import Result
from sparing.running.inference import Inference
from sparing.store import RunDirectory
from sparing.store.json_members import Members, read_numbers
from sparing.store.problem_file import require_same_problem
from sparing.store.run_directory import PROBLEM
from sparing.store.run_group import read_group
from sparing.vbmc.settings import Settings
from sparing.vbmc.state import IterationInfo
from sparing.vbmc.stopping import StopReason

RESULT = "result.sparing"  # where the command line leaves the result of a run directory
FEWEST_EVALUATIONS = 2  # the smallest budget


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
        return _identity(store.fingerprint)


def _identity(stored: Mapping[str, Any]) -> StoredIdentity:
    members = Members(stored)
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
    log_density = StoredLogDensity("only its values are in the run directory")
    rows = members.values("starting_points")
    points = [read_numbers(row, "starting_points") for row in rows]
    return StoredIdentity(
        problem=Problem(log_density, **vectors, names=names, prior=prior),
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


def latest_iteration(store: RunDirectory) -> IterationInfo | None:
    """What the newest snapshot says of its last iteration; None when there is nothing to read."""
    snapshot = store.latest_snapshot()
    if snapshot is None:
        return None
    stored = stored_identity(store)
    before = store.events()[: snapshot.number]
    try:
        state, timings = state_from_parts(
            snapshot.arrays,
            snapshot.metadata,
            base=ParameterTransform.from_problem(stored.problem, stored.settings.bounded_map),
            evaluations=[event for event in before if isinstance(event, Evaluation)],
            names=stored.problem.names,
            settings=stored.settings,
        )
    except LoadError:  # of another release: the journal is still good
        return None
    return IterationInfo(**vars(state.history[-1]), timings=timings[-1])


def load_run(path: str | PathLike[str]) -> Result:
    """The result in a file that ``result.save`` wrote, or of the run in a run directory.

    A run in progress gives its result so far; nothing in the directory changes. The functions of
    the problem are not stored, as with ``sparing.load``.

    >>> result = sparing.infer(problem, max_evaluations=12, store="run", progress=False)
    >>> again = sparing.load_run("run")
    >>> again.n_evaluations, again.log_evidence == result.log_evidence
    (12, True)
    """
    location = Path(path)
    if not location.is_dir():
        return load(location)
    group = read_group(location)
    if group is not None:
        raise StoreError(
            f"{location} holds {group.n_runs} runs: load one of them, such as "
            f"{group.run_paths[0]}, or the pooled one, {location / 'pooled-N'}; "
            f"sparing.infer(..., runs={group.n_runs}, store=...) gives them together"
        )
    with RunDirectory.open(location, read_only=True) as store:
        saved = saved_result(store)
        return _replayed_result(store) if saved is None else saved


def saved_result(store: RunDirectory) -> Result | None:
    """The result file in a run directory, if it is intact and has all that the journal has."""
    try:
        result = load(store.path / RESULT)
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


def _replayed_result(store: RunDirectory) -> Result:
    identity = stored_identity(store)
    events = store.events()
    unfinished = bool(pending_proposals(events))
    # Nothing in flight: the run ended here, and what it computed at its end is computed again.
    n_recorded = sum(isinstance(event, Evaluation) for event in events)
    budget = sys.maxsize if unfinished else max(n_recorded, FEWEST_EVALUATIONS)
    inference = Inference(
        identity.problem, **identity.arguments, max_evaluations=budget, store=store
    )
    inference.stop(StopReason.UNFINISHED)
    result = inference.result()
    if result.stop_reason is not StopReason.BUDGET:
        return result
    text = f"rebuilt from the journal in {store.path}, which does not record why a run ended"
    warning = WarningText(WarningTopic.REBUILT_RESULT, text)
    return replace(result, warnings=(*result.warnings, warning))
