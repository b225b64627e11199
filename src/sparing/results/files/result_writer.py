"""``result.save``: a result as one file (format in docs/result-file.md)."""

from __future__ import annotations

import warnings
from importlib.metadata import version
from os import PathLike
from pathlib import Path

import numpy as np

from sparing.errors import SparingWarning, StoreFullError, TargetError
from sparing.numerics.arrays import Array
from sparing.numerics.json_numbers import encode_number
from sparing.problem.coordinate_maps import Bounded, Coordinate, HalfBounded, Periodic, Unbounded
from sparing.problem.warning_text import topic_of
from sparing.results.files.evaluations import write_evaluations
from sparing.results.files.history import write_history
from sparing.results.files.posteriors import PosteriorWriter
from sparing.results.files.settings_json import settings_to_json
from sparing.results.files.stored_problem import write_problem
from sparing.results.files.surrogates import write_surrogate
from sparing.store.archive import Arrays, Metadata, pack
from sparing.store.dataclass_json import dataclass_to_json
from sparing.store.files import write_durably
from sparing.vbmc.run_record import RunRecord

FORMAT = "sparing result"
VERSION = 7
PERIODIC = "periodic"
COORDINATES = {
    "unbounded": Unbounded,
    "half bounded": HalfBounded,
    "bounded": Bounded,
    PERIODIC: Periodic,
}


def save_result(result: RunRecord, path: str | PathLike[str]) -> None:
    """Write the file so that it is complete or absent, replacing one that is there."""
    destination = Path(path)
    try:
        write_durably(destination, pack(*result_to_parts(result)))
    except StoreFullError as error:
        message = f"cannot write {destination}: no space is left, the result is not saved"
        raise StoreFullError(message) from error


def result_to_parts(result: RunRecord) -> tuple[Arrays, Metadata]:
    """The result as named arrays and a JSON object."""
    dimension = result.problem.dimension
    transform = result.posterior.transform
    posteriors = PosteriorWriter()
    problem_arrays, problem = write_problem(result.problem)
    evaluation_arrays, evaluations = write_evaluations(result.evaluations, dimension)
    history_arrays, history = write_history(
        result.history, [info.timings for info in result.history], posteriors
    )
    surrogate_arrays, surrogate = write_surrogate(result.surrogate, posteriors)
    derived = _derived(result)
    arrays = {
        **problem_arrays,
        **surrogate_arrays,
        **posteriors.rows([result.posterior], "posterior"),
        **posteriors.arrays(dimension),
        "coordinates.centre": transform.centre,
        "coordinates.width": transform.width,
        **evaluation_arrays,
        **history_arrays,
        **({"derived.values": np.array(list(derived.values()))} if derived else {}),
    }
    metadata = {
        "format": FORMAT,
        "version": VERSION,
        "written_by": f"sparing {version('sparing')}",
        "seed": result.seed,
        "converged": bool(result.converged),
        "stop_reason": result.stop_reason.name,
        "elbo": encode_number(result.elbo),
        "elbo_sd": encode_number(result.elbo_sd),
        "evidence": dataclass_to_json(result.evidence),
        "warnings": list(result.warnings),
        "warning_topics": [topic and topic.name for topic in map(topic_of, result.warnings)],
        "problem": problem,
        "coordinates": [
            {"kind": coordinate_kind(g), **dataclass_to_json(g)} for g in transform.coordinates
        ],
        "settings": settings_to_json(result.settings),
        "history": history,
        "evaluations": evaluations,
        "surrogate": surrogate,
    }
    return arrays, metadata | ({"derived": list(derived)} if derived else {})


def _derived(result: RunRecord) -> dict[str, Array]:
    """What is derived from the parameters; nothing where that fails: the rest is worth saving."""
    try:
        return result.derived
    except TargetError as error:
        text = f"saved without what is derived from the parameters: {error}"
        warnings.warn(text, SparingWarning, stacklevel=5)
        return {}


def coordinate_kind(coordinate: Coordinate) -> str:
    """The name under which files know the map of one parameter."""
    return next(kind for kind, owner in COORDINATES.items() if type(coordinate) is owner)
