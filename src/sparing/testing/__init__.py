"""Conformance suites for executors and stores made elsewhere."""

from sparing.testing.executor import Abilities, check_executor
from sparing.testing.store import check_store

__all__ = ["Abilities", "check_executor", "check_store"]
