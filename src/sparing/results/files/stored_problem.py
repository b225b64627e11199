"""A problem in a file: everything but its functions, which a file cannot hold.

problem.lower, problem.upper, problem.plausible_lower, problem.plausible_upper    (D,)
problem.prior_lower, problem.prior_upper    support of the prior, when there is one (D,)
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NoReturn

import numpy as np

from sparing.errors import ProblemError, TargetError
from sparing.numerics.arrays import Array
from sparing.problem.declared_support import DeclaredSupport
from sparing.problem.parameters import NOT_GIVEN, VECTORS, Parameters
from sparing.problem.priors import Prior
from sparing.problem.problem import Problem
from sparing.problem.user_values import function_name
from sparing.results.files.named_arrays import NamedArrays
from sparing.store.archive import Arrays, Metadata
from sparing.store.json_members import Members, require, to_json_types


@dataclass(frozen=True)
class StoredLogDensity:
    """Stands for a log density that was not stored; calling it is an error."""

    name: str

    def __call__(self, x: Array) -> NoReturn:
        """Say why there is no value."""
        raise TargetError(
            f"this problem was loaded from a file without its log density ({self.name}): build the "
            "problem again to evaluate it"
        )


@dataclass(frozen=True, eq=False)
class StoredPrior(Prior):
    """Stands for a prior of which only the description and the support were stored."""

    stored_description: dict[str, Any]
    lower: Array
    upper: Array

    def log_density(self, x: Array) -> NoReturn:
        """Say why there is no value."""
        raise TargetError(
            "this problem was loaded from a file without its prior and log density: build the "
            "problem again to evaluate them"
        )

    def support(self) -> tuple[Array, Array]:
        """The support of the prior that was stored."""
        return self.lower, self.upper

    def description(self) -> dict[str, Any]:
        """The description that was stored."""
        return self.stored_description

    def __str__(self) -> str:
        return f"{self.stored_description.get('kind', 'unknown')}, as stored"


@dataclass(frozen=True)
class StoredSupport:
    """Stands for a support that was not stored; calling it is an error."""

    name: str

    def __call__(self, x: Array) -> NoReturn:
        """Say why there is no answer."""
        raise TargetError(
            "the support of this problem is a function, which no file holds: give the problem as "
            "well, sparing.load(path, problem=problem) or sparing.load_run(path, problem=problem)"
        )


def write_problem(problem: Problem) -> tuple[Arrays, Metadata]:
    """The problem as arrays and a JSON object."""
    arrays: Arrays = {f"problem.{name}": getattr(problem, name) for name in VECTORS}
    if problem.prior is not None:
        arrays["problem.prior_lower"], arrays["problem.prior_upper"] = problem.prior.support()
    metadata = {
        "names": list(problem.names),
        "log_density": _name(problem.log_density),
        "prior": prior_description(problem),
        "periodic": list(problem.periodic),
        **fixed_members(problem),
    }
    if problem.support is not None:
        metadata["support"] = _name(problem.support.function)
    return arrays, metadata


def _name(function: Callable[..., Any]) -> str:
    """The name of a function; of one that was loaded from a file the name it had."""
    stored = isinstance(function, StoredLogDensity | StoredSupport)
    return function.name if stored else function_name(function)


def fixed_members(problem: Problem) -> dict[str, Any]:
    """The place and the value of each fixed parameter; nothing where none is, as ever."""
    places = {name: problem.all_names.index(name) for name in problem.fixed}
    fixed = {n: {"place": places[n], "value": value} for n, value in problem.fixed.items()}
    return {"fixed": fixed} if fixed else {}


def restored_problem(
    log_density: Callable[[Array], Any],
    names: Sequence[str],
    vectors: Mapping[str, Array],
    prior: Prior | None,
    periodic: Sequence[str],
    members: Members,
) -> Problem:
    """A problem of these free parameters, with what the members say of the fixed ones."""
    fixed = Members(members.object("fixed") if "fixed" in members else {}).rest()
    given = {}
    for name, place_and_value in fixed.items():
        require(isinstance(place_and_value, dict), "a fixed parameter is not an object")
        entry = Members(place_and_value)
        given[name] = entry.index("place", len(names) + len(fixed)), entry.number("value")
    all_names, vectors = list(names), dict(vectors)
    for name, (place, _) in sorted(given.items(), key=lambda item: item[1]):
        all_names.insert(place, name)
        for label, vector in vectors.items():
            vectors[label] = np.insert(vector, place, NOT_GIVEN[label])
    values = {name: value for name, (_, value) in given.items()}
    support = None
    if "support" in members:
        nothing = Parameters((), {}, None, {})
        stand_in = StoredSupport(members.text("support"))
        support = DeclaredSupport(stand_in, nothing, vectorised=True, lost=True)
    return Problem(
        log_density,
        plausible_lower=vectors["plausible_lower"],
        plausible_upper=vectors["plausible_upper"],
        lower=vectors["lower"],
        upper=vectors["upper"],
        names=all_names,
        prior=prior,
        periodic=periodic,
        fixed=values,
        support=support,
    )


def read_problem(arrays: NamedArrays, members: Members) -> Problem:
    """The problem, with functions that say that they were not stored."""
    names = members.texts("names")
    prior = members.optional_object("prior")
    if prior is not None:
        support = [arrays.floats(f"problem.prior_{end}", len(names)) for end in ("lower", "upper")]
        prior = StoredPrior(prior, *support)
    vectors = {name: arrays.floats(f"problem.{name}", len(names)) for name in VECTORS}
    log_density = StoredLogDensity(members.text("log_density"))
    periodic = members.texts("periodic") if "periodic" in members else []
    return restored_problem(log_density, names, vectors, prior, periodic, members)


def differences(one: Problem, two: Problem) -> list[str]:
    """What two problems differ in, but for their functions."""
    if (one.names, one.all_names) != (two.names, two.all_names):
        return ["names"]
    found = [name for name in VECTORS if not np.array_equal(getattr(one, name), getattr(two, name))]
    found += ["fixed values"] if one.fixed != two.fixed else []
    found += ["periodic parameters"] if one.periodic != two.periodic else []
    return found + (["support"] if (one.support is None) != (two.support is None) else [])


def prior_description(problem: Problem) -> dict[str, Any] | None:
    """What the prior says of itself in JSON types; None without a prior."""
    if problem.prior is None:
        return None
    try:
        return to_json_types(problem.prior.description())
    except TypeError as error:
        raise ProblemError([f"prior.description(): {error}"]) from None
