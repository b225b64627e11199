"""The state after an iteration as arrays and JSON, exact to the last bit.

Evaluations, settings and the coordinates without whitening come from the run directory and the
problem. A state is a cache, so one that another release wrote is refused: that release may have
computed something else.

    trimmed                            indices of evaluations left out for good
    agenda.points (k, D)               points to evaluate next, in the user's coordinates
    base.centre, base.width (D,)       coordinates without whitening, to recognise them
and the tables of `posteriors`, `history` and `surrogates`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from importlib.metadata import version
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sparing.problem.evaluations import Evaluation
from sparing.problem.parameter_transform import ParameterTransform
from sparing.results.files.history import read_history, write_history
from sparing.results.files.named_arrays import NamedArrays, load_errors
from sparing.results.files.posteriors import PosteriorReader, PosteriorWriter
from sparing.results.files.surrogates import read_surrogate, write_surrogate
from sparing.store.archive import Arrays, Metadata
from sparing.store.dataclass_json import enum_from_json
from sparing.store.json_members import MalformedError, Members, require
from sparing.variational.mixture import GaussianMixture
from sparing.vbmc.settings import Settings
from sparing.vbmc.state import Agenda, Phase, State

FORMAT = "sparing state"
VERSION = 6


def state_to_parts(state: State, timings: Sequence[Mapping[str, float]]) -> tuple[Arrays, Metadata]:
    """The state and the timings of its iterations as named arrays and a JSON object."""
    posteriors = PosteriorWriter()
    arrays, history = write_history(state.history, timings, posteriors)
    surrogate_arrays, surrogate = write_surrogate(state.trained, posteriors)
    metadata: Metadata = {
        "format": FORMAT,
        "version": VERSION,
        "release": version("sparing"),
        **history,
        "phase": state.phase.name,
        "sampling_stopped": bool(state.sampling_stopped),
        "last_whitening": int(state.last_whitening),
        "agenda": state.agenda.rule,
        "mixture": posteriors.mixtures.row(state.mixture),
        "transform": posteriors.transforms.row(state.transform),
        "surrogate": surrogate,
    }
    arrays |= {
        **surrogate_arrays,
        "trimmed": np.array(sorted(state.trimmed), dtype=np.int64),
        "agenda.points": state.agenda.points,
        "base.centre": state.transform.centre,
        "base.width": state.transform.width,
        **posteriors.arrays(state.transform.dimension),
    }
    return arrays, metadata


def state_from_parts(
    arrays: Mapping[str, NDArray[Any]],
    metadata: Mapping[str, Any],
    *,
    base: ParameterTransform,
    evaluations: Sequence[Evaluation],
    names: tuple[str, ...],
    settings: Settings,
) -> tuple[State, list[Mapping[str, float]]]:
    """The state and the timings that `state_to_parts` took apart.

    ``base`` holds the problem's coordinates without whitening, ``evaluations`` is the log at
    least up to the state, ``names`` are the problem's. LoadError when they do not go together.
    """
    with load_errors("the saved state"):
        named, members = NamedArrays(arrays), Members(metadata)
        require(metadata.get("version") == VERSION, "its format is of another version")
        members.format(FORMAT, VERSION)
        require(members.text("release") == version("sparing"), "another release wrote it")
        centre, width = named.floats("base.centre", None), named.floats("base.width", None)
        same = np.array_equal(centre, base.centre) and np.array_equal(width, base.width)
        require(same, "it belongs to other coordinates")
        posteriors = PosteriorReader(named, base, names)
        history, timings = read_history(named, members, posteriors)
        transforms, mixtures = posteriors.transforms, posteriors.mixtures
        mixture = mixtures[members.index("mixture", len(mixtures))]
        if not isinstance(mixture, GaussianMixture):
            raise MalformedError("the components of its q do not share their shape")
        kept = members.optional_object("surrogate")
        state = State(
            transform=transforms[members.index("transform", len(transforms))],
            mixture=mixture,
            trained=read_surrogate(named, kept, posteriors, evaluations, settings),
            trimmed=frozenset(named.indices("trimmed", None, len(evaluations))),
            last_whitening=members.integer("last_whitening"),
            agenda=_read_agenda(named, members.text("agenda"), base),
            history=history,
            phase=enum_from_json(members.take("phase"), Phase, "phase"),
            sampling_stopped=members.flag("sampling_stopped"),
        )
        return state, timings


def _read_agenda(arrays: NamedArrays, rule: str, base: ParameterTransform) -> Agenda:
    """An agenda without points may have no columns either, as that of the first iteration."""
    points = arrays.floats("agenda.points", None, None)
    fits = not len(points) or bool(base.contains(points).all())
    require(fits, "its agenda has points that are out of bounds")
    return Agenda(points, rule)
