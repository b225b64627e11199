"""A trained surrogate in a file: what training found, and the evaluations it was trained on.

It is conditioned again in the same way as at first, to the last bit.

surrogate.parameters (S, p)     what training found
surrogate.trained_on            indices of evaluations
surrogate.values (n,)           what they became as training values, to recognise them
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from sparing.numerics.blas_threads import one_blas_thread
from sparing.problem.evaluations import Evaluation
from sparing.results.files.named_arrays import NamedArrays
from sparing.results.files.posteriors import PosteriorReader, PosteriorWriter
from sparing.store.archive import Arrays, Metadata
from sparing.store.json_members import Members, require
from sparing.surrogate.known_support import known_support
from sparing.surrogate.training_data import training_set
from sparing.vbmc.settings import Settings
from sparing.vbmc.state import TrainedSurrogate


def write_surrogate(
    trained: TrainedSurrogate | None, posteriors: PosteriorWriter
) -> tuple[Arrays, Metadata | None]:
    """The surrogate as arrays and a JSON object, which is null where there is none."""
    if trained is None:
        return {}, None
    arrays: Arrays = {
        "surrogate.parameters": trained.surrogate.parameters,
        "surrogate.trained_on": np.array(trained.trained_on, dtype=np.int64),
        "surrogate.values": trained.surrogate.training.values,
    }
    return arrays, {
        "transform": posteriors.transforms.row(trained.transform),
        "retrained": bool(trained.retrained),
        "support": posteriors.support_row(trained.support),
    }


def read_surrogate(
    arrays: NamedArrays,
    record: Metadata | None,
    posteriors: PosteriorReader,
    evaluations: Sequence[Evaluation],
    settings: Settings,
    tolerance: float = 0.0,
) -> TrainedSurrogate | None:
    """The surrogate that `write_surrogate` wrote.

    Its training values may differ by the tolerance from those that the evaluations give here:
    another processor may round the logarithms of the transform in another way.
    """
    if record is None:
        return None
    members = Members(record)
    transform = posteriors.transforms[members.index("transform", len(posteriors.transforms))]
    trained_on = tuple(arrays.indices("surrogate.trained_on", None, len(evaluations)))
    training = training_set([evaluations[i] for i in trained_on], transform, settings.depths)
    values = arrays.floats("surrogate.values", training.n_points)
    same = np.allclose(training.values, values, rtol=tolerance, atol=tolerance)
    require(same, "its surrogate was trained on other evaluations than those that are here")
    parameters = arrays.floats("surrogate.parameters", None, None)
    with one_blas_thread():  # as in the run: more threads could round differently
        surrogate = settings.surrogate.condition(training, parameters)
    # Files of an earlier release have no supports.
    row = members.integer("support") if "support" in members else -1
    support = known_support(transform, posteriors.support(row, transform))
    return TrainedSurrogate(transform, surrogate, trained_on, members.flag("retrained"), support)
