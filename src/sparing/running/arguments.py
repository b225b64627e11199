"""The arguments of ``infer`` and ``Inference``, each with what it must be in words and as a test.

They are checked here and nowhere else, all at once, before anything is made or evaluated.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import numpy as np

from sparing.errors import SettingsError
from sparing.executors.failures import FailurePolicy
from sparing.problem.problem import Problem
from sparing.problem.user_values import is_real, is_whole, short_text
from sparing.vbmc.settings import Settings

# What makes an object a store, besides a path.
STORE_METHODS = ("append", "events", "close", "latest_snapshot", "write_snapshot")


class Rule(NamedTuple):
    """What an argument must be; ``optional`` ones may be None."""

    words: str
    fulfilled: Callable[[object], bool]
    optional: bool = True


def _is_positive(value: object) -> bool:
    try:
        return is_real(value) and 0.0 < float(value) < math.inf
    except (OverflowError, ValueError):  # beyond the range of a float, or no number after all
        return False


def _is_store(value: object) -> bool:
    if isinstance(value, (str, Path)):
        return bool(str(value).strip()) and "\0" not in str(value)
    return all(hasattr(value, name) for name in STORE_METHODS)


def _count(least: int) -> Rule:
    return Rule(f"a whole number >= {least}", lambda value: is_whole(value, least))


def _instance(kind: type, words: str, *, optional: bool = True) -> Rule:
    return Rule(words, lambda value: isinstance(value, kind), optional)


_YES_OR_NO = Rule(
    "True or False",
    lambda value: isinstance(value, int | np.bool_) and value in (0, 1),
    optional=False,
)

RULES = {
    "problem": _instance(Problem, "a sparing.Problem", optional=False),
    "settings": _instance(Settings, "a sparing.Settings"),
    "seed": Rule(
        "a non-negative integer or None",
        lambda value: isinstance(value, int | np.integer) and is_whole(value),
    ),
    "max_evaluations": _count(2),
    "tolerance": Rule("a positive number", _is_positive, optional=False),
    "batch_size": _count(1),
    "workers": _count(1),
    "time_limit": Rule("a positive number", _is_positive),
    "failures": _instance(FailurePolicy, "a sparing.FailurePolicy"),
    "store": Rule("the path of a directory, or a sparing.store.Store", _is_store),
    "tag": _instance(str, "text", optional=False),
    "check_target": _YES_OR_NO,
    "check_gradient": _YES_OR_NO,
    "progress": _YES_OR_NO,
    "callback": Rule("a function", callable),
    "runs": _count(1),
}


def check_arguments(**given: object) -> None:
    """`SettingsError` with every fault unless each argument is what its rule says."""
    faults = [
        f"{name} must be {rule.words}, got {short_text(given[name])}"
        for name, rule in RULES.items()
        if name in given
        and not (rule.optional and given[name] is None)
        and not rule.fulfilled(given[name])
    ]
    if faults:
        raise SettingsError(faults)
