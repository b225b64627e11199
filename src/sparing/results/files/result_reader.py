"""``sparing.load``: a result from the file that ``result.save`` wrote.

The file decides nothing but values: which classes are built is written here and in the annotations
of the settings.
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from dataclasses import replace
from os import PathLike, fspath
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sparing.errors import LoadError, SparingWarning, StoreError
from sparing.numerics.arrays import Array
from sparing.problem.coordinate_maps import Bounded, Coordinate, HalfBounded, Periodic
from sparing.problem.parameter_transform import ParameterTransform
from sparing.problem.problem import Problem
from sparing.problem.warning_text import WarningText, WarningTopic
from sparing.results.files.evaluations import read_evaluations
from sparing.results.files.history import read_history
from sparing.results.files.named_arrays import NamedArrays, load_errors
from sparing.results.files.posteriors import PosteriorReader
from sparing.results.files.result_writer import COORDINATES, FORMAT, VERSION
from sparing.results.files.settings_json import settings_from_json
from sparing.results.files.stored_problem import differences, read_problem
from sparing.results.files.surrogates import read_surrogate
from sparing.results.result import Result
from sparing.store.archive import unpack
from sparing.store.dataclass_json import dataclass_from_json, enum_from_json
from sparing.store.files import read_regular_file
from sparing.store.json_members import Members, require
from sparing.variational.cut_mixture import RememberedCut
from sparing.vbmc.evidence import Evidence
from sparing.vbmc.state import IterationInfo
from sparing.vbmc.stopping import StopReason

ROUNDING = 1e-9  # of training values: far below any difference between two evaluations
LARGEST_FILE = 2**30  # bytes, far beyond any run; what is larger is not read into memory


def load(path: str | PathLike[str], problem: Problem | None = None) -> Result:
    """The result that ``result.save(path)`` wrote; `LoadError` when it cannot be read.

    Loading never runs code from the file. The log density is not in it: calling
    ``result.problem.log_density`` is a `TargetError`, everything else works as before. The
    functions of a ``problem`` that is given take the place of those that are missing; without
    the function of a support, draws are taken from 32768 that were kept.

    >>> result.save("run.sparing")
    >>> again = sparing.load("run.sparing")
    >>> again.log_evidence == result.log_evidence
    True
    """
    with load_errors(fspath(path)):
        result = result_from_parts(*unpack(_content(Path(path))), problem)
    if isinstance(result.posterior.mixture, RememberedCut):
        warnings.warn(
            "the support of this problem is a function, which is not in the file: the posterior "
            "is known by draws that were kept, and its density at other points nearly. For all of "
            "it: sparing.load(path, problem=problem)",
            SparingWarning,
            stacklevel=2,
        )
    return result


def _content(path: Path) -> bytes:
    try:
        require(path.exists(), "there is no such file")
        require(path.stat().st_size <= LARGEST_FILE, "it is larger than any result")
        content = read_regular_file(path)
    except (OSError, StoreError) as error:
        raise LoadError(str(error)) from error
    require(content is not None, "there is no such file")
    return content or b""


def result_from_parts(
    arrays: Mapping[str, NDArray[Any]],
    metadata: Mapping[str, Any],
    given: Problem | None = None,
) -> Result:
    """The result that `result_to_parts` took apart, of the problem that is given, if one is."""
    named, members = NamedArrays(arrays), Members(metadata)
    members.format(FORMAT, VERSION)
    problem = read_problem(named, Members(members.object("problem")))
    if given is not None:
        differing = differences(problem, given)
        require(not differing, f"it is of another problem: {', '.join(differing)} differ")
        problem = given
    base = _read_coordinates(named, members.values("coordinates"), problem)
    if given is not None:
        base = replace(base, declared=given.support)
    posteriors = PosteriorReader(named, base, problem.names)
    (posterior,) = posteriors.posteriors("posterior", 1)
    evaluations = read_evaluations(named, Members(members.object("evaluations")), problem.dimension)
    settings = settings_from_json(members.take("settings"))
    history, timings = read_history(named, Members(members.object("history")), posteriors)
    # Version 1 did not keep the surrogate.
    kept = members.optional_object("surrogate") if "surrogate" in members else None
    return Result(
        problem=problem,
        posterior=posterior,
        elbo=members.number("elbo"),
        elbo_sd=members.number("elbo_sd"),
        evidence=dataclass_from_json(members.take("evidence"), Evidence, "evidence"),
        converged=members.flag("converged"),
        stop_reason=enum_from_json(members.take("stop_reason"), StopReason, "stop_reason"),
        evaluations=evaluations,
        history=tuple(
            IterationInfo(**vars(row), timings=seconds)
            for row, seconds in zip(history, timings, strict=True)
        ),
        warnings=_read_warnings(members),
        settings=settings,
        seed=members.seed("seed"),
        stored_derived=_read_derived(named, members),
        surrogate=read_surrogate(named, kept, posteriors, evaluations, settings, ROUNDING),
    )


def _read_derived(arrays: NamedArrays, members: Members) -> dict[str, Array] | None:
    """What was derived from the parameters, at even draws; files of before have none."""
    if "derived" not in members:
        return None
    names = members.texts("derived")
    require(len(set(names)) == len(names), "two derived quantities have one name")
    return dict(zip(names, arrays.floats("derived.values", len(names), None), strict=True))


def _read_warnings(members: Members) -> tuple[str, ...]:
    """Texts with their topics; plain where a file names none, as older ones do."""
    texts = members.texts("warnings")
    if "warning_topics" not in members:
        return tuple(texts)
    topics = members.values("warning_topics")
    require(len(topics) == len(texts), "there are more or fewer warnings than topics of them")
    for i, topic in enumerate(topics):
        if topic is not None:
            texts[i] = WarningText(enum_from_json(topic, WarningTopic, "warning_topics"), texts[i])
    return tuple(texts)


def _read_coordinates(
    arrays: NamedArrays, records: list[Any], problem: Problem
) -> ParameterTransform:
    """The coordinates without whitening, as they were: rules for choosing them may change."""
    dimension = problem.dimension
    centre = arrays.floats("coordinates.centre", dimension)
    width = arrays.floats("coordinates.width", dimension)
    fits = np.isfinite(centre).all() and np.isfinite(width).all() and (width > 0.0).all()
    require(bool(fits), "its coordinates have no finite centre and positive width")
    require(len(records) == dimension, "there are more or fewer coordinates than parameters")
    coordinates = tuple(_coordinate_from_json(record) for record in records)
    return ParameterTransform(coordinates, problem.lower, problem.upper, centre, width)


def _coordinate_from_json(record: Any) -> Coordinate:
    require(isinstance(record, dict), "a coordinate is not an object")
    fields = {name: value for name, value in record.items() if name != "kind"}
    kind = record.get("kind")
    require(isinstance(kind, str) and kind in COORDINATES, f"there is no coordinate {kind!r}")
    coordinate = dataclass_from_json(fields, COORDINATES[kind], "coordinate")
    require(_is_possible(coordinate), f"a {kind} coordinate has impossible numbers")
    return coordinate


def _is_possible(coordinate: Coordinate) -> bool:
    numbers = [value for value in vars(coordinate).values() if isinstance(value, float)]
    if not np.isfinite(numbers).all():
        return False
    if isinstance(coordinate, HalfBounded):
        return abs(coordinate.sign) == 1.0 and coordinate.edge > 0.0
    if isinstance(coordinate, Bounded):
        edges_fit = min(coordinate.edge_lower, coordinate.edge_upper) > 0.0
        return edges_fit and coordinate.lower < coordinate.upper
    if isinstance(coordinate, Periodic):
        return _is_possible(coordinate.inner) and 0.0 <= coordinate.turn < coordinate.period
    return True
