"""A run as named columns, which tables and datasets are made of.

m    number of evaluations
"""

from __future__ import annotations

import warnings
from collections.abc import Iterable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sparing.errors import SparingWarning
from sparing.numerics.arrays import Array
from sparing.problem.evaluation_codec import OUTCOME_FIELDS, OutcomeField
from sparing.vbmc.run_record import RunRecord

Columns = dict[str, NDArray[Any]]

# A traceback is pages of text: for those who look at one failure, in ``result.failed``.
# Gradients have a column for each parameter.
EXPORTED = tuple(field for field in OUTCOME_FIELDS if field.name not in ("traceback", "gradient"))


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


def evaluation_columns(run: RunRecord, reserved: Iterable[str] = ()) -> Columns:
    """Every evaluation in order: the parameters by name, then `outcome_columns`; (m,) each.

    ``reserved`` are other names that columns of parameters must not have.
    """
    outcomes = outcome_columns(run)
    points = np.reshape([entry.x for entry in run.evaluations], (-1, run.problem.dimension))
    return parameter_columns(run, points, (*outcomes, *reserved)) | outcomes


def parameter_columns(run: RunRecord, points: Array, reserved: Iterable[str] = ()) -> Columns:
    """Points (m, D) as a column of each parameter, the fixed ones in their places; (m,) each."""
    names = column_names(run.problem.all_names, reserved)
    return dict(zip(names, run.problem.full(points).T, strict=True))


def draw_columns(run: RunRecord, draws: Array, reserved: Iterable[str] = ()) -> Columns:
    """Draws (n, D) as a column of each parameter, and of what is derived from them; (n,) each."""
    columns = parameter_columns(run, draws, reserved)
    derived = derived_columns(run, draws)
    return columns | dict(
        zip(column_names(derived, (*columns, *reserved)), derived.values(), strict=True)
    )


def derived_columns(run: RunRecord, draws: Array) -> Columns:
    """What is derived from draws (n, D), (n,) each; a warning where the function is not known."""
    if run.problem.derived is not None:
        return dict(run.problem.derived.values(draws))
    if run.stored_derived:
        text = f"{', '.join(run.stored_derived)} left out: the function that derives them is in no"
        text += " file. Load the result with it: sparing.load(path, problem=problem)"
        warnings.warn(text, SparingWarning, stacklevel=4)
    return {}


def outcome_columns(run: RunRecord) -> Columns:
    """The fields of every outcome but its traceback, and the rule that chose its point: (m,).

    Where any has a gradient, a column ``d/d <name>`` of each parameter that is inferred; NaN where
    there is none.
    """
    columns = {field.name: _column(field, run) for field in EXPORTED}
    columns["rule"] = np.array([entry.rule for entry in run.evaluations], dtype=np.str_)
    gradients = [entry.gradient for entry in run.evaluations]
    if any(gradient is not None for gradient in gradients):
        missing = np.full(run.problem.dimension, np.nan)
        rows = np.array([missing if given is None else given for given in gradients])
        columns |= zip([f"d/d {name}" for name in run.problem.names], rows.T, strict=True)
    return columns


def _column(field: OutcomeField, run: RunRecord) -> NDArray[Any]:
    values = [getattr(entry.outcome, field.name) for entry in run.evaluations]
    if field.is_number:
        return np.array(values, dtype=field.type)
    texts = ["" if value is None else str(field.encode(value)) for value in values]
    # A message of the target may hold what no encoding has, such as half a character.
    readable = [text.encode("utf-8", "backslashreplace").decode() for text in texts]
    return np.array(readable, dtype=np.str_)
