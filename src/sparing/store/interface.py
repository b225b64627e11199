"""What the loop needs of a store, whatever it is made of.

A store keeps two kinds of events in the order they happened: a `Proposal` before its point is
submitted, and an `Evaluation` before its value is used. Replaying them rebuilds the run.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Protocol, Self

import numpy as np
from numpy.typing import NDArray

from sparing.problem.evaluations import Event


@dataclass(frozen=True, eq=False)
class Snapshot:
    """A saved state: arrays by name and JSON metadata; ``number`` counts up over a run.

    Arrays are of float64, int64 or bool; their names are of small letters, ``_`` and ``.``.

    >>> from sparing.store import Snapshot
    >>> snapshot = Snapshot(number=24, arrays={"weights": np.ones(2)}, metadata={"iteration": 3})
    """

    number: int
    arrays: Mapping[str, NDArray[np.generic]]
    metadata: Mapping[str, Any]


class OutcomeSpool(Protocol):
    """Where workers leave results that the coordinator may not live to receive.

    >>> from sparing.store import MemoryStore, OutcomeSpool
    >>> spool: OutcomeSpool = MemoryStore(seed=1).spool
    >>> spool.directory is None, list(spool.harvest())
    (True, [])
    """

    @property
    def directory(self) -> str | None:
        """What `write_spooled_outcome` takes in a worker; None when the store has no spool."""
        ...

    def harvest(self) -> Iterator[tuple[int, dict[str, Any]]]:
        """(proposal identifier, record) of every result lying there, by identifier."""
        ...

    def remove(self, identifier: int) -> None:
        """Forget a result, once it is in the log; nothing happens when there is none."""
        ...


class Store(Protocol):
    """Keeps what was evaluated. Once `append` returns, the event survives the process.

    ``infer`` and ``Inference`` take any object with these methods:

    >>> from sparing.store import MemoryStore, Store
    >>> store: Store = MemoryStore(seed=1)
    >>> short = sparing.infer(problem, store=store, max_evaluations=12, progress=False)
    >>> len(store.events())  # 12 proposals and 12 evaluations
    24
    """

    @property
    def seed(self) -> int:
        """The seed of the run; a reopened store returns the one it was created with."""
        ...

    @property
    def warnings(self) -> tuple[str, ...]:
        """What the user should know, such as damage found on opening."""
        ...

    @property
    def spool(self) -> OutcomeSpool:
        """Results that workers left behind."""
        ...

    def events(self) -> tuple[Event, ...]:
        """All events so far, in order."""
        ...

    def append(self, event: Event) -> None:
        """Record a proposal, or an evaluation, whose index is the number of those before.

        The rule of an evaluation need not be kept: it is that of the proposal it answers.
        """
        ...

    def write_snapshot(
        self, number: int, arrays: Mapping[str, NDArray[Any]], metadata: Mapping[str, Any]
    ) -> None:
        """Save a state. Snapshots only spare recomputation: a store may drop them."""
        ...

    def latest_snapshot(self) -> Snapshot | None:
        """The newest intact snapshot that agrees with the events."""
        ...

    def close(self) -> None:
        """Release the store; closing again does nothing."""
        ...

    def __enter__(self) -> Self: ...

    def __exit__(self, *exception: object) -> None: ...
