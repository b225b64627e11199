"""The store of a run that needs none: events in memory, gone with the process."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Self

from numpy.typing import NDArray

from sparing.errors import StoreError
from sparing.numerics.random_streams import RandomStreams
from sparing.problem.evaluations import Evaluation, Event
from sparing.store.interface import Snapshot
from sparing.store.spool import Spool


class MemoryStore:
    """Events in a list; no spool, and snapshots are dropped, since nothing could resume.

    >>> from sparing.executors import Outcome
    >>> from sparing.store import MemoryStore
    >>> x = np.array([1.0, 0.0])
    >>> store = MemoryStore(seed=1)
    >>> store.append(sparing.Proposal(0, x))
    >>> store.append(sparing.Evaluation(0, 0, x, Outcome(-1.5, sparing.Status.OK, 0.2)))
    >>> [type(event).__name__ for event in store.events()]
    ['Proposal', 'Evaluation']
    >>> store.write_snapshot(2, arrays={}, metadata={})
    >>> store.latest_snapshot() is None, store.spool.directory is None
    (True, True)
    >>> store.seed, store.warnings
    (1, ())
    >>> store.close()
    """

    def __init__(self, seed: int | None = None) -> None:
        self.seed = RandomStreams(seed).seed
        self.warnings: tuple[str, ...] = ()
        self.spool = Spool(None)
        self._events: list[Event] = []
        self._n_results = 0
        self._closed = False

    def events(self) -> tuple[Event, ...]:
        """All events so far, in order."""
        return tuple(self._events)

    def append(self, event: Event) -> None:
        """Record a proposal or an evaluation."""
        if self._closed:
            raise StoreError("the store is closed")
        if self._events and event.x.shape != self._events[0].x.shape:
            raise StoreError(f"x has shape {event.x.shape}, unlike the first one")
        if isinstance(event, Evaluation):
            if event.index != self._n_results:
                raise StoreError(f"the next result has index {self._n_results}, not {event.index}")
            self._n_results += 1
        self._events.append(event)

    def write_snapshot(
        self, number: int, arrays: Mapping[str, NDArray[Any]], metadata: Mapping[str, Any]
    ) -> None:
        """Do nothing."""

    def latest_snapshot(self) -> Snapshot | None:
        """There is none."""
        return None

    def close(self) -> None:
        """Refuse further events."""
        self._closed = True

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()
