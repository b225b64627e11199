"""Where evaluations are kept: a run directory that survives its process, or memory.

`Store` says what the loop needs; `sparing.testing.store` checks an implementation of it.
"""

from sparing.problem.evaluations import Event
from sparing.store.interface import OutcomeSpool, Snapshot, Store
from sparing.store.memory import MemoryStore
from sparing.store.run_directory import RunDirectory
from sparing.store.spool import Spool, read_spooled_outcome, write_spooled_outcome

__all__ = [
    "Event",
    "MemoryStore",
    "OutcomeSpool",
    "RunDirectory",
    "Snapshot",
    "Spool",
    "Store",
    "read_spooled_outcome",
    "write_spooled_outcome",
]
