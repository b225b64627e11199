"""Conformance suite for stores: what the loop relies on, as plain assertions.

``check_store(make_store)`` calls ``make_store()`` once per check for an empty store of its own. A
store that can be reopened passes ``reopen`` too: it takes a closed store and opens the same data.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from sparing.errors import StoreError
from sparing.problem.evaluation_codec import outcome_to_record
from sparing.problem.evaluations import Evaluation, Event, FailureKind, Outcome, Proposal, Status
from sparing.store import Store

MakeStore = Callable[[], Store]
Reopen = Callable[[Store], Store]


def check_store(make_store: MakeStore, reopen: Reopen | None = None) -> None:
    """Raise an `AssertionError` that says what a store does wrong.

    >>> from sparing.store import MemoryStore
    >>> from sparing.testing import check_store
    >>> check_store(lambda: MemoryStore(seed=1))
    """
    for check in (
        _check_a_new_store_is_empty,
        _check_events_come_back_in_order,
        _check_events_are_copies,
        _check_indices_are_consecutive,
        _check_snapshots,
        _check_the_spool_is_empty,
        _check_closing,
    ):
        with make_store() as store:
            check(store)
    if reopen is not None:
        _check_reopening(make_store, reopen)


def example_events() -> tuple[Event, ...]:
    """Every kind of event, with the values that are hard to keep."""
    hard = np.array([1 / 3, -0.0, 5e-324])
    times: dict[str, Any] = {"duration": 0.1 + 0.2, "started": 1.7e9, "ended": 1.7e9 + 1 / 3}
    nan = math.nan
    failure = Outcome(
        nan,
        Status.FAILED,
        duration=nan,
        message='a "quoted" text\nin two lines, \u00e9\U0001f600\ud800\0\x7f',
        traceback='Traceback: \t\\ ,"crc":"00000000"}\r\n',
        kind=FailureKind.EXCEPTION,
    )
    return (
        Proposal(0, hard),
        Proposal(7, np.array([1e308, -1e-308, math.pi]), rule="draw from the posterior"),
        Evaluation(0, 7, hard, Outcome(-1 / 7, Status.OK, worker="host:1", **times)),
        Proposal(2**53, hard),
        Evaluation(1, 0, hard, failure),
        Evaluation(2, None, hard, Outcome(-math.inf, Status.OUT_OF_SUPPORT, **times)),
        Evaluation(3, 2**53, hard, Outcome(nan, Status.TIMED_OUT, **times)),
        Evaluation(4, 1, hard, Outcome(nan, Status.ABANDONED, **times)),
        Evaluation(5, None, hard, Outcome(-2 / 7, Status.OK, noise_sd=1 / 3, **times)),
    )


def assert_same_events(found: Sequence[Event], expected: Sequence[Event]) -> None:
    """Compare to the last bit, so that NaN equals itself and -0.0 is not 0.0.

    The rule of an evaluation is that of its proposal, and a store need not keep it twice.
    """
    assert len(found) == len(expected), f"{len(found)} events instead of {len(expected)}"
    for position, (one, other) in enumerate(zip(found, expected, strict=True)):
        assert _bits(one) == _bits(other), f"event {position} is {one} instead of {other}"


def _bits(event: Event) -> tuple[object, ...]:
    kept = (type(event).__name__, event.identifier, event.x.shape, event.x.tobytes())
    if isinstance(event, Proposal):
        return (*kept, event.rule)
    return (*kept, event.index, repr(outcome_to_record(event.outcome)))  # repr tells -0.0 from 0.0


def _check_a_new_store_is_empty(store: Store) -> None:
    assert store.events() == (), "a new store has events"
    assert store.latest_snapshot() is None, "a new store has a snapshot"
    assert isinstance(store.seed, int) and store.seed >= 0, "the seed is no non-negative integer"
    assert all(isinstance(warning, str) for warning in store.warnings), "a warning is no text"


def _check_events_come_back_in_order(store: Store) -> None:
    events = example_events()
    for count, event in enumerate(events, start=1):
        store.append(event)
        assert_same_events(store.events(), events[:count])


def _check_events_are_copies(store: Store) -> None:
    x = np.array([1.0, 2.0])
    store.append(Proposal(0, x))
    x[:] = 0.0
    (proposal,) = store.events()
    assert proposal.x.tolist() == [1.0, 2.0], "changing the caller's array changes the store"
    assert not proposal.x.flags.writeable, "the x of an event can be changed"


def _check_indices_are_consecutive(store: Store) -> None:
    event = Evaluation(1, None, np.zeros(2), Outcome(0.0, Status.OK, 0.0))
    _assert_refused(store, event, "a result whose index leaves a gap")
    store.append(Proposal(0, np.zeros(2)))
    _assert_refused(store, Proposal(1, np.zeros(3)), "an x of another dimension")
    assert len(store.events()) == 1, "a refused event was kept"


def _check_snapshots(store: Store) -> None:
    for number in range(3):
        arrays = {"a": np.arange(6.0).reshape(2, 3) + number, "empty": np.zeros((0, 2))}
        store.write_snapshot(number, arrays, {"n": number, "nested": {"list": [1, 2.5, None]}})
    snapshot = store.latest_snapshot()
    if snapshot is None:  # a store may drop them
        return
    assert snapshot.number == 2, "the latest snapshot is not the last one written"
    assert set(snapshot.arrays) == {"a", "empty"}, "the snapshot has other arrays"
    assert np.array_equal(snapshot.arrays["a"], np.arange(6.0).reshape(2, 3) + 2)
    assert snapshot.arrays["empty"].shape == (0, 2), "the shape of an empty array is lost"
    assert snapshot.metadata == {"n": 2, "nested": {"list": [1, 2.5, None]}}


def _check_the_spool_is_empty(store: Store) -> None:
    assert list(store.spool.harvest()) == [], "a new store has spooled results"
    store.spool.remove(0)
    assert store.spool.directory is None or isinstance(store.spool.directory, str)


def _check_closing(store: Store) -> None:
    store.append(Proposal(0, np.zeros(1)))
    store.close()
    store.close()
    _assert_refused(store, Proposal(1, np.zeros(1)), "an event after it was closed")


def _check_reopening(make_store: MakeStore, reopen: Reopen) -> None:
    events = example_events()
    store = make_store()
    for count in range(len(events)):
        store.append(events[count])
        seed = store.seed
        store.close()
        store = reopen(store)
        assert_same_events(store.events(), events[: count + 1])
        assert store.seed == seed, "a reopened store has another seed"
    store.close()


def _assert_refused(store: Store, event: Event, what: str) -> None:
    try:
        store.append(event)
    except StoreError:
        return
    raise AssertionError(f"the store took {what}; it must raise a StoreError")
