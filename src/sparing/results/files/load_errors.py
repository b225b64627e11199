"""Whatever is wrong with a file of ours is a `LoadError` that names it."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager

import numpy as np

from sparing.errors import LoadError, SparingError
from sparing.store.json_members import MalformedError

# What checked values can still make constructors and libraries raise.
_CONSEQUENCES = (ValueError, TypeError, ArithmeticError, LookupError, MemoryError, RuntimeError)


@contextmanager
def load_errors(subject: str) -> Generator[None, None, None]:
    """Turn what the content of a file led to into a `LoadError`."""
    try:
        with np.errstate(all="ignore"):
            yield
    except (LoadError, MalformedError) as error:
        raise LoadError(f"{subject} cannot be loaded: {error}") from None
    except (SparingError, *_CONSEQUENCES) as error:
        reason = f"its content is inconsistent ({type(error).__name__}: {error})"
        raise LoadError(f"{subject} cannot be loaded: {reason}") from error
