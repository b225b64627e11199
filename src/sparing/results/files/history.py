"""The rows of ``result.history`` as columns.

history.<field> (T,)               scalar fields of `IterationInfo`
history.evidence.<field> (T,)      its `Evidence`
history.mixture, .transform (T,)   its posterior, as rows of the tables in `posteriors`
history.has_features (T,)          False where there is no `Reliability`, as in the first row
history.features.<field>           the reliability features of the other rows
history.seconds                    all timings, row after row; their names are in JSON
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from sparing.results.files.named_arrays import NamedArrays
from sparing.results.files.posteriors import PosteriorReader, PosteriorWriter
from sparing.results.files.tables import read_rows, write_rows
from sparing.store.archive import Arrays, Metadata
from sparing.store.json_members import Members, require
from sparing.vbmc.evidence import Evidence
from sparing.vbmc.state import IterationInfo
from sparing.vbmc.stopping import Reliability


def write_history(
    history: Sequence[IterationInfo], posteriors: PosteriorWriter
) -> tuple[Arrays, Metadata]:
    """The rows as arrays, and the names of their timings."""
    features = [info.features for info in history if info.features is not None]
    seconds = [value for info in history for value in info.timings.values()]
    arrays = {
        **write_rows(IterationInfo, history, "history"),
        **write_rows(Evidence, [info.evidence for info in history], "history.evidence"),
        **posteriors.rows([info.posterior for info in history], "history"),
        "history.has_features": np.array([i.features is not None for i in history], dtype=np.bool_),
        **write_rows(Reliability, features, "history.features"),
        "history.seconds": np.array(seconds, dtype=np.float64),
    }
    return arrays, {"timings": [list(info.timings) for info in history]}


def read_history(
    arrays: NamedArrays, members: Members, posteriors: PosteriorReader
) -> tuple[IterationInfo, ...]:
    """The rows that `write_history` wrote."""
    names = members.values("timings")
    n = len(names)
    has_features = arrays.booleans("history.has_features", n)
    features = iter(read_rows(Reliability, arrays, "history.features", sum(has_features), {}))
    others = {
        "features": [next(features) if present else None for present in has_features],
        "evidence": read_rows(Evidence, arrays, "history.evidence", n, {}),
        "posterior": posteriors.posteriors("history", n),
        "timings": _read_timings(arrays, names),
    }
    rows = read_rows(IterationInfo, arrays, "history", n, others)
    numbers = [info.iteration for info in rows]
    require(numbers == list(range(1, n + 1)), "the iterations are not numbered in order")
    return tuple(rows)


def _read_timings(arrays: NamedArrays, names: list[object]) -> list[dict[str, float]]:
    seconds = arrays.floats("history.seconds", None).tolist()
    timings, start = [], 0
    for row in names:
        fits = isinstance(row, list) and all(isinstance(name, str) for name in row)
        require(fits, "'timings' is not a list of lists of names")
        assert isinstance(row, list)
        timings.append(dict(zip(row, seconds[start : start + len(row)], strict=False)))
        start += len(row)
    require(start == len(seconds), "there are more or fewer timings than names")
    return timings
