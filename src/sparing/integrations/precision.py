"""What a function of another array library returned, as a float."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np

from sparing.errors import SparingWarning
from sparing.problem.user_values import log_value


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
