"""What takes long to make is made once per process.

An executor sends the problem along with every point, so a log density is unpickled for every
evaluation; what it compiled must outlive it.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import TypeVar
from uuid import uuid4

Made = TypeVar("Made")

LARGEST = 16  # how many things are kept; the oldest goes first

_made: dict[str, object] = {}
_lock = threading.Lock()


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
