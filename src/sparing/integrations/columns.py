"""A run as named columns, which tables and datasets are made of.

m    number of evaluations
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sparing.vbmc.run_record import RunRecord

EVALUATION_COLUMNS = ("value", "noise_sd", "status", "duration")


def column_names(names: Iterable[str], reserved: Iterable[str]) -> list[str]:
    """The parameters' names, with a mark where one is called like another column.

    >>> column_names(["rate", "status"], reserved=["status"])
    ['rate', 'parameter status']
    """
    taken = set(reserved)
    columns = []
    for name in names:
        column = name
        while column in taken:
            column = f"parameter {column}"
        taken.add(column)
        columns.append(column)
    return columns


def evaluation_columns(run: RunRecord, reserved: Iterable[str] = ()) -> dict[str, NDArray[Any]]:
    """Every evaluation in order: the parameters by name, then EVALUATION_COLUMNS; (m,) each.

    ``reserved`` are other names that columns of parameters must not have.
    """
    names = column_names(run.problem.names, (*EVALUATION_COLUMNS, *reserved))
    points = np.array([entry.x for entry in run.evaluations]).reshape(run.n_evaluations, len(names))
    return dict(zip(names, points.T, strict=True)) | {
        "value": np.array([entry.value for entry in run.evaluations], dtype=np.float64),
        "noise_sd": np.array([entry.noise_sd for entry in run.evaluations], dtype=np.float64),
        "status": np.array([str(entry.status) for entry in run.evaluations], dtype=np.str_),
        "duration": np.array([entry.duration for entry in run.evaluations], dtype=np.float64),
    }
