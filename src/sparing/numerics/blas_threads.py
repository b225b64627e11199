"""One BLAS thread while the library works, whichever threads it works in.

Matrices here are small: more threads only wait for each other (up to 100 times slower on a busy
machine), and round differently. The number is one for the whole process, so runs in several Python
threads share a limit that ends with the last of them; on its own, the first to end would give the
others their threads back in the middle of a sum.
"""

from __future__ import annotations

import functools
import threading
from collections.abc import Generator
from contextlib import contextmanager
from typing import Any

from threadpoolctl import ThreadpoolController

_lock = threading.Lock()
_n_users = 0
_limit: Any = None


@functools.cache
def _controller() -> ThreadpoolController:
    """Looking for the libraries takes a millisecond; ours are loaded before the first use."""
    return ThreadpoolController()


@contextmanager
def one_blas_thread() -> Generator[None, None, None]:
    """Keep BLAS to one thread until the last who asked for it has left."""
    global _n_users, _limit
    with _lock:
        _n_users += 1
        if _n_users == 1:
            _limit = _controller().limit(limits=1)
    try:
        yield
    finally:
        with _lock:
            _n_users -= 1
            if _n_users == 0:
                _limit.restore_original_limits()
