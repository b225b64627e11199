"""What bridges share: importing a package that may not be there, calling its functions.

An executor sends the problem along with every point, so a log density is unpickled for every
evaluation. What it compiled must outlive it: that is made once per process.
"""

from __future__ import annotations

import threading
import warnings
from collections.abc import Callable
from importlib import import_module
from typing import Any, TypeVar
from uuid import uuid4

import numpy as np

from sparing.errors import MissingExtraError, SparingWarning
from sparing.problem.user_values import log_value

Made = TypeVar("Made")

LARGEST = 16  # how many things are kept; the oldest goes first

_made: dict[str, object] = {}
_lock = threading.Lock()


def optional_module(name: str, extra: str) -> Any:
    """The module of that name; MissingExtraError, which names the extra, without its package.

    >>> optional_module("json", "none").dumps([1])
    '[1]'
    """
    try:
        return import_module(name)
    except ModuleNotFoundError as error:
        package = name.partition(".")[0]
        if error.name != package:  # it is there, and broken: say so
            raise
        raise MissingExtraError(package, extra) from error


def new_key() -> str:
    """A key that no other object has, in any process.

    >>> new_key() == new_key()
    False
    """
    return uuid4().hex


def once_per_process(key: str, make: Callable[[], Made]) -> Made:
    """``make()``, or what it returned when this process asked with the same key before.

    >>> key = new_key()
    >>> once_per_process(key, lambda: "first"), once_per_process(key, lambda: "second")
    ('first', 'first')
    """
    with _lock:
        if key not in _made:
            value = make()
            while len(_made) >= LARGEST:
                del _made[next(iter(_made))]
            _made[key] = value
        return _made[key]  # type: ignore[return-value]


def checked_value(value: Any, wanted: str) -> float:
    """The one number in a scalar or an array; a warning when it has less than double precision.

    InvalidValueError when it is not one real number below +inf.

    >>> checked_value(np.array([-1.5]), "numpy.float64")
    -1.5
    """
    array = np.asarray(value)
    if array.dtype.kind == "f" and array.dtype.itemsize < 8:
        text = (
            f"the log density is computed in {array.dtype}, so its last digits are noise:"
            f" compute in {wanted}, or convert the result to say that this is enough"
        )
        warnings.warn(text, SparingWarning, stacklevel=3)
    return log_value(array)
