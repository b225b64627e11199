"""A stored run fed to an engine, so that it goes on where it stopped."""

from __future__ import annotations

from sparing.errors import StoreError, TargetError
from sparing.problem.problem import Problem
from sparing.running.stored_run import snapshot_state
from sparing.store import Store
from sparing.vbmc.engine import Engine
from sparing.vbmc.settings import Settings


def replay(store: Store, engine: Engine, problem: Problem, settings: Settings) -> None:
    """Feed the store's events to the engine, from the newest snapshot on where there is one."""
    n_done, restored = 0, snapshot_state(store, problem, settings)
    if restored is not None:
        engine.restore(*restored)
        n_done = len(restored[0])
    for number, event in enumerate(store.events()[n_done:], start=n_done + 1):
        try:
            problem.read_points(event.x)
            engine.apply(event)
        except (TargetError, StoreError):
            raise
        except Exception as error:
            reason = f"{type(error).__name__}: {error}"
            raise StoreError(
                f"event {number} of the stored run, {event}, cannot be used ({reason}). The "
                "evaluations before it are good: read them (sparing.store.RunDirectory.open("
                "path, read_only=True).events()) and tell them to a run in another directory "
                "(Inference.tell_outcome)"
            ) from error
