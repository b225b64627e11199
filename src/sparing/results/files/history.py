"""The rows of ``result.history`` as columns.

history.<field> (T,)               scalar fields of `Iteration`
history.evidence.<field> (T,)      its `Evidence`
history.mixture, .transform (T,)   its posterior, as rows of the tables in `posteriors`
history.has_features (T,)          False where there is no `Reliability`, as in the first row
history.features.<field>           the reliability features of the other rows
history.seconds                    all timings, row after row; their names are in JSON
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from sparing.results.files.named_arrays import NamedArrays, write_rows
from sparing.results.files.posteriors import PosteriorReader, PosteriorWriter
from sparing.store.archive import Arrays, Metadata
from sparing.store.json_members import Members, require
from sparing.vbmc.evidence import Evidence
from sparing.vbmc.state import Iteration
from sparing.vbmc.stopping import Reliability


def write_history(
    history: Sequence[Iteration],
    timings: Sequence[Mapping[str, float]],
    posteriors: PosteriorWriter,
) -> tuple[Arrays, Metadata]:
    """The rows and their timings as arrays, and the names of the timings."""
    features = [info.features for info in history if info.features is not None]
    seconds = [value for row in timings for value in row.values()]
    arrays = {
        **write_rows(Iteration, history, "history"),
        **write_rows(Evidence, [info.evidence for info in history], "history.evidence"),
        **posteriors.rows([info.posterior for info in history], "history"),
        "history.has_features": np.array([i.features is not None for i in history], dtype=np.bool_),
        **write_rows(Reliability, features, "history.features"),
        "history.seconds": np.array(seconds, dtype=np.float64),
    }
    return arrays, {"timings": [list(row) for row in timings]}


def read_history(
    arrays: NamedArrays, members: Members, posteriors: PosteriorReader
) -> tuple[tuple[Iteration, ...], list[Mapping[str, float]]]:
    """The rows and the timings that `write_history` wrote."""
    names = members.values("timings")
    n = len(names)
    has_features = arrays.booleans("history.has_features", n)
    features = iter(arrays.rows(Reliability, "history.features", sum(has_features), {}))
    others = {
        "features": [next(features) if present else None for present in has_features],
        "evidence": arrays.rows(Evidence, "history.evidence", n, {}),
        "posterior": posteriors.posteriors("history", n),
    }
    rows = arrays.rows(Iteration, "history", n, others)
    numbers = [info.iteration for info in rows]
    require(numbers == list(range(1, n + 1)), "the iterations are not numbered in order")
    return tuple(rows), _read_timings(arrays, names)


def _read_timings(arrays: NamedArrays, names: list[Any]) -> list[Mapping[str, float]]:
    fits = all(isinstance(row, list) and all(isinstance(n, str) for n in row) for row in names)
    require(fits, "'timings' is not a list of lists of names")
    seconds = arrays.floats("history.seconds", None).tolist()
    require(len(seconds) == sum(map(len, names)), "there are more or fewer timings than names")
    remaining = iter(seconds)
    return [{name: next(remaining) for name in row} for row in names]
