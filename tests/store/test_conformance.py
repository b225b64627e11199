import itertools
from dataclasses import replace

import numpy as np
import pytest
from tests.store.support import FINGERPRINT, opened

from sparing.problem.evaluations import Evaluation
from sparing.store import MemoryStore, RunDirectory
from sparing.testing.store import check_store


def test_a_run_directory_conforms(tmp_path):
    number = itertools.count()
    check_store(
        lambda: opened(tmp_path / str(next(number)), seed=3),
        reopen=lambda store: RunDirectory.open(store.path, FINGERPRINT),
    )


def test_memory_conforms():
    check_store(lambda: MemoryStore(3))


class Forgetful(MemoryStore):
    def events(self):
        return super().events()[-3:]


class Careless(MemoryStore):
    def append(self, event):
        if isinstance(event, Evaluation):
            self._n_results = event.index
        super().append(event)


class Immortal(MemoryStore):
    def close(self):
        pass


class Rounding(MemoryStore):
    def events(self):
        return tuple(
            replace(event, x=event.x.astype(np.float32).astype(np.float64))
            for event in super().events()
        )


@pytest.mark.parametrize(
    ("broken", "complaint"),
    [
        (Forgetful, "3 events instead of 4"),
        (Careless, "index leaves a gap"),
        (Immortal, "after it was closed"),
        (Rounding, "event 0 is"),
    ],
)
def test_the_suite_rejects_broken_stores(broken, complaint):
    with pytest.raises(AssertionError, match=complaint):
        check_store(broken)


def test_the_suite_rejects_a_store_that_forgets_on_reopening():
    with pytest.raises(AssertionError, match="0 events instead of 1"):
        check_store(lambda: MemoryStore(3), reopen=lambda store: MemoryStore(store.seed))
