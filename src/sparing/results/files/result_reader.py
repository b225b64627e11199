"""``sparing.load``: a result from the file that ``result.save`` wrote.

The file decides nothing but values: which classes are built is written here and in the annotations
of the settings.
"""

from __future__ import annotations

from collections.abc import Mapping
from os import PathLike, fspath
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sparing.errors import LoadError, StoreError
from sparing.problem.coordinate_maps import Bounded, Coordinate, HalfBounded
from sparing.problem.parameter_transform import ParameterTransform
from sparing.problem.problem import Problem
from sparing.problem.warning_text import WarningText, WarningTopic
from sparing.results.files.archive import unpack
from sparing.results.files.evaluations import read_evaluations
from sparing.results.files.history import read_history
from sparing.results.files.parts import Parts, load_errors, require
from sparing.results.files.plain import enum_from_plain, from_plain, number_from_plain
from sparing.results.files.posteriors import PosteriorReader
from sparing.results.files.result_writer import COORDINATES, FORMAT, VERSION
from sparing.results.files.stored_problem import read_problem
from sparing.results.result import Result
from sparing.store.files import read_regular_file
from sparing.vbmc.evidence import Evidence
from sparing.vbmc.settings import Settings
from sparing.vbmc.stopping import StopReason

LARGEST_FILE = 2**30  # bytes, far beyond any run; what is larger is not read into memory


def load(path: str | PathLike[str]) -> Result:
    """The result that ``result.save(path)`` wrote; `LoadError` when it cannot be read.

    Loading never runs code from the file. The log density is not in it: calling
    ``result.problem.log_density`` is a `TargetError`, everything else works as before.

    >>> result.save("run.sparing")
    >>> again = sparing.load("run.sparing")
    >>> again.log_evidence == result.log_evidence
    True
    """
    with load_errors(fspath(path)):
        return result_from_parts(*unpack(_content(Path(path))))


def _content(path: Path) -> bytes:
    try:
        require(path.exists(), "there is no such file")
        require(path.stat().st_size <= LARGEST_FILE, "it is larger than any result")
        content = read_regular_file(path)
    except (OSError, StoreError) as error:
        raise LoadError(str(error)) from error
    require(content is not None, "there is no such file")
    return content or b""


def result_from_parts(arrays: Mapping[str, NDArray[Any]], metadata: Mapping[str, Any]) -> Result:
    """The result that `result_to_parts` took apart."""
    parts = Parts(arrays, metadata)
    parts.expect_format(FORMAT, VERSION)
    problem = read_problem(parts.within("problem"))
    base = _read_coordinates(parts, problem)
    posteriors = PosteriorReader(parts, base, problem.names)
    (posterior,) = posteriors.posteriors("posterior", 1)
    seed = parts.value("seed", int)
    require(seed >= 0, "its seed is negative")
    return Result(
        problem=problem,
        posterior=posterior,
        elbo=number_from_plain(metadata.get("elbo"), "elbo"),
        elbo_sd=number_from_plain(metadata.get("elbo_sd"), "elbo_sd"),
        evidence=from_plain(metadata.get("evidence"), Evidence, "evidence"),
        converged=parts.value("converged", bool),
        stop_reason=enum_from_plain(metadata.get("stop_reason"), StopReason, "stop_reason"),
        evaluations=read_evaluations(parts.within("evaluations"), problem.dimension),
        history=read_history(parts.within("history"), posteriors),
        warnings=_read_warnings(parts),
        settings=from_plain(metadata.get("settings"), Settings, "settings"),
        seed=seed,
    )


def _read_warnings(parts: Parts) -> tuple[str, ...]:
    """Texts with their topics; plain where a file names none, as older ones do."""
    texts = parts.strings("warnings")
    if "warning_topics" not in parts.metadata:
        return tuple(texts)
    topics = parts.value("warning_topics", list)
    require(len(topics) == len(texts), "there are more or fewer warnings than topics of them")
    return tuple(
        text
        if topic is None
        else WarningText(enum_from_plain(topic, WarningTopic, "warning_topics"), text)
        for topic, text in zip(topics, texts, strict=True)
    )


def _read_coordinates(parts: Parts, problem: Problem) -> ParameterTransform:
    """The coordinates without whitening, as they were: rules for choosing them may change."""
    dimension = problem.dimension
    centre = parts.floats("coordinates.centre", dimension)
    width = parts.floats("coordinates.width", dimension)
    fits = np.isfinite(centre).all() and np.isfinite(width).all() and (width > 0.0).all()
    require(bool(fits), "its coordinates have no finite centre and positive width")
    records = parts.value("coordinates", list)
    require(len(records) == dimension, "there are more or fewer coordinates than parameters")
    coordinates = tuple(_coordinate_from_plain(record) for record in records)
    return ParameterTransform(coordinates, problem.lower, problem.upper, centre, width)


def _coordinate_from_plain(record: Any) -> Coordinate:
    require(isinstance(record, dict), "a coordinate is not an object")
    fields = {name: value for name, value in record.items() if name != "kind"}
    kind = record.get("kind")
    require(isinstance(kind, str) and kind in COORDINATES, f"there is no coordinate {kind!r}")
    coordinate = from_plain(fields, COORDINATES[kind], "coordinate")
    numbers = [value for value in vars(coordinate).values() if isinstance(value, float)]
    fits = bool(np.isfinite(numbers).all())
    if isinstance(coordinate, HalfBounded):
        fits = fits and abs(coordinate.sign) == 1.0 and coordinate.edge > 0.0
    if isinstance(coordinate, Bounded):
        edges_fit = min(coordinate.edge_lower, coordinate.edge_upper) > 0.0
        fits = fits and edges_fit and coordinate.lower < coordinate.upper
    require(fits, f"a {kind} coordinate has impossible numbers")
    return coordinate
