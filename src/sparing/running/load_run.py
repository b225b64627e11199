"""The result of a stored run, computed again from what its directory holds."""

from __future__ import annotations

import sys
from dataclasses import replace
from os import PathLike
from pathlib import Path

from sparing.errors import StoreError
from sparing.problem.evaluations import Evaluation
from sparing.problem.problem import Problem
from sparing.problem.warning_text import WarningText, WarningTopic
from sparing.results.files.result_reader import load
from sparing.results.result import Result
from sparing.running.inference import Inference
from sparing.running.stored_run import (
    pending_proposals,
    require_same_model,
    saved_result,
    stored_identity,
)
from sparing.store import RunDirectory
from sparing.store.run_group import read_group
from sparing.vbmc.stopping import StopReason


def load_run(path: str | PathLike[str], problem: Problem | None = None) -> Result:
    """The result in a file that ``result.save`` wrote, or of the run in a run directory.

    A run in progress gives its result so far; nothing in the directory changes. The functions of
    the problem are not stored, as with ``sparing.load``; a run whose problem has a support needs
    the ``problem`` to be given.

    >>> result = sparing.infer(problem, max_evaluations=12, store="run", progress=False)
    >>> again = sparing.load_run("run")
    >>> again.n_evaluations, again.log_evidence == result.log_evidence
    (12, True)
    """
    location = Path(path)
    if not location.is_dir():
        return load(location, problem)
    group = read_group(location)
    if group is not None:
        raise StoreError(
            f"{location} holds {group.n_runs} runs: load one of them, such as "
            f"{group.run_paths[0]}, or the pooled one, {location / 'pooled-N'}; "
            f"sparing.infer(..., runs={group.n_runs}, store=...) gives them together"
        )
    with RunDirectory.open(location, read_only=True) as store:
        if problem is not None:
            require_same_model(store, problem)
        saved = saved_result(store, problem)
        return _replayed_result(store, problem) if saved is None else saved


def _replayed_result(store: RunDirectory, problem: Problem | None) -> Result:
    identity = stored_identity(store)
    events = store.events()
    unfinished = bool(pending_proposals(events))
    # Nothing in flight: the run ended here, and what it computed at its end is computed again.
    n_recorded = sum(isinstance(event, Evaluation) for event in events)
    budget = sys.maxsize if unfinished else max(n_recorded, 2)  # the smallest budget
    inference = Inference(
        problem or identity.problem, **identity.arguments, max_evaluations=budget, store=store
    )
    inference.stop(StopReason.UNFINISHED)
    result = inference.result()
    if result.stop_reason is not StopReason.BUDGET:
        return result
    text = f"rebuilt from the journal in {store.path}, which does not record why a run ended"
    warning = WarningText(WarningTopic.REBUILT_RESULT, text)
    return replace(result, warnings=(*result.warnings, warning))
