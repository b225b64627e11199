"""Conformance suites for executors, stores, rules and surrogates made elsewhere."""

from sparing.testing.executor import Abilities, check_executor
from sparing.testing.rules import check_rule
from sparing.testing.store import check_store
from sparing.testing.surrogate import check_surrogate_training

__all__ = ["Abilities", "check_executor", "check_rule", "check_store", "check_surrogate_training"]
