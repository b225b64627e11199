"""The evaluations of a run: columns of numbers, and lists of names and texts in JSON.

evaluations.x (n, D)            evaluations.<field> (n,)     scalar fields of `Evaluation`
evaluations.identifier (n,)     -1 for a point the user evaluated on their own
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from sparing.problem.evaluation_log import Evaluation, Status
from sparing.results.files.named_arrays import NamedArrays
from sparing.results.files.tables import read_rows, write_rows
from sparing.store.archive import Arrays, Metadata
from sparing.store.dataclass_json import enum_from_json
from sparing.store.json_members import Members, require

TEXTS = ("message", "traceback", "worker")
NOBODY = -1


def write_evaluations(evaluations: Sequence[Evaluation], dimension: int) -> tuple[Arrays, Metadata]:
    """The evaluations as arrays and a JSON object."""
    identifiers = [NOBODY if e.identifier is None else e.identifier for e in evaluations]
    arrays = {
        **write_rows(Evaluation, evaluations, "evaluations"),
        "evaluations.x": np.reshape([entry.x for entry in evaluations], (-1, dimension)),
        "evaluations.identifier": np.array(identifiers, dtype=np.int64),
    }
    texts = {name: [getattr(entry, name) for entry in evaluations] for name in TEXTS}
    return arrays, {"status": [entry.status.name for entry in evaluations], **texts}


def read_evaluations(
    arrays: NamedArrays, members: Members, dimension: int
) -> tuple[Evaluation, ...]:
    """The evaluations that `write_evaluations` wrote."""
    names = members.texts("status")
    n = len(names)
    identifiers = arrays.integers("evaluations.identifier", n)
    others = {
        "x": list(arrays.floats("evaluations.x", n, dimension)),
        "status": [enum_from_json(name, Status, "status") for name in names],
        "identifier": [None if i == NOBODY else i for i in identifiers],
        **{name: members.texts(name, n) for name in TEXTS},
    }
    rows = read_rows(Evaluation, arrays, "evaluations", n, others)
    require([row.index for row in rows] == list(range(n)), "evaluations are not in order")
    return tuple(rows)
