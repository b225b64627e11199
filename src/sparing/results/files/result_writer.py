"""``result.save``: a result as one file (format in docs/result-file.md)."""
# ruff: noqa: D102 (the fields of Savable are documented in Result)

from __future__ import annotations

from importlib.metadata import version
from os import PathLike
from pathlib import Path
from typing import Protocol

from sparing.errors import StoreFullError
from sparing.numerics.json_numbers import encode_number
from sparing.problem.coordinate_maps import Bounded, Coordinate, HalfBounded, Unbounded
from sparing.problem.evaluations import Evaluation
from sparing.problem.problem import Problem
from sparing.results.files.archive import pack
from sparing.results.files.evaluations import write_evaluations
from sparing.results.files.history import write_history
from sparing.results.files.parts import Arrays, Metadata
from sparing.results.files.plain import to_plain
from sparing.results.files.posteriors import PosteriorWriter
from sparing.results.files.stored_problem import write_problem
from sparing.store.files import write_durably
from sparing.variational.posterior import Posterior
from sparing.vbmc.evidence import Evidence
from sparing.vbmc.settings import Settings
from sparing.vbmc.state import IterationInfo
from sparing.vbmc.stopping import StopReason

FORMAT = "sparing result"
VERSION = 1
COORDINATES = {"unbounded": Unbounded, "half bounded": HalfBounded, "bounded": Bounded}


class Savable(Protocol):
    """The fields of a `Result`, which imports this module and cannot be imported by it."""

    @property
    def problem(self) -> Problem: ...
    @property
    def posterior(self) -> Posterior: ...
    @property
    def elbo(self) -> float: ...
    @property
    def elbo_sd(self) -> float: ...
    @property
    def evidence(self) -> Evidence: ...
    @property
    def converged(self) -> bool: ...
    @property
    def stop_reason(self) -> StopReason: ...
    @property
    def evaluations(self) -> tuple[Evaluation, ...]: ...
    @property
    def history(self) -> tuple[IterationInfo, ...]: ...
    @property
    def warnings(self) -> tuple[str, ...]: ...
    @property
    def settings(self) -> Settings: ...
    @property
    def seed(self) -> int: ...


def save_result(result: Savable, path: str | PathLike[str]) -> None:
    """Write the file so that it is complete or absent, replacing one that is there."""
    destination = Path(path)
    try:
        write_durably(destination, pack(*result_to_parts(result)))
    except StoreFullError as error:
        message = f"cannot write {destination}: no space is left, the result is not saved"
        raise StoreFullError(message) from error


def result_to_parts(result: Savable) -> tuple[Arrays, Metadata]:
    """The result as named arrays and a JSON object."""
    dimension = result.problem.dimension
    transform = result.posterior.transform
    posteriors = PosteriorWriter()
    problem_arrays, problem = write_problem(result.problem)
    evaluation_arrays, evaluations = write_evaluations(result.evaluations, dimension)
    history_arrays, history = write_history(result.history, posteriors)
    arrays = {
        **problem_arrays,
        **posteriors.rows([result.posterior], "posterior"),
        **posteriors.arrays(dimension),
        "coordinates.centre": transform.centre,
        "coordinates.width": transform.width,
        **evaluation_arrays,
        **history_arrays,
    }
    metadata = {
        "format": FORMAT,
        "version": VERSION,
        "written_by": f"sparing {version('sparing')}",
        "seed": result.seed,
        "converged": bool(result.converged),
        "stop_reason": result.stop_reason.name,
        "elbo": encode_number(float(result.elbo)),
        "elbo_sd": encode_number(float(result.elbo_sd)),
        "evidence": to_plain(result.evidence),
        "warnings": list(result.warnings),
        "problem": problem,
        "coordinates": [_coordinate_to_plain(g) for g in transform.coordinates],
        "settings": to_plain(result.settings),
        "history": history,
        "evaluations": evaluations,
    }
    return arrays, metadata


def coordinate_kind(coordinate: Coordinate) -> str:
    """The name under which files know the map of one parameter."""
    (kind,) = [kind for kind, owner in COORDINATES.items() if type(coordinate) is owner]
    return kind


def _coordinate_to_plain(coordinate: Coordinate) -> Metadata:
    return {"kind": coordinate_kind(coordinate), **to_plain(coordinate)}
