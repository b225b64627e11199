"""Shapes beyond the paper's: FAMILY-D-NUMBER, every member drawn from its number.

Members with an even number are there to tune on; those with an odd number are held out, to be
looked at once. The sets ``tuning`` and ``held-out`` name a selection of each, ``tuning-FAMILY`` and
``held-out-FAMILY`` a single family's part of it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from benchmarks.errors import BenchmarkError
from benchmarks.problems.base import BenchmarkProblem
from benchmarks.problems.curved import generate_banana, generate_rosenbrock
from benchmarks.problems.cut import generate_halfspace, generate_simplex
from benchmarks.problems.funnels import generate_funnel, generate_hierarchy
from benchmarks.problems.models.problems import model_family
from benchmarks.problems.modes import generate_few_modes, generate_modes
from benchmarks.problems.regression import generate_regression
from benchmarks.problems.shells import generate_crescent, generate_shell
from benchmarks.problems.skewed import generate_positive, generate_skewed
from benchmarks.problems.tails import generate_tails

STREAM = 61014


@dataclass(frozen=True)
class Family:
    """How members are made, in which dimensions, and which are in a set."""

    generate: Callable[[str, int, np.random.Generator], BenchmarkProblem]
    dimensions: range
    set_dimensions: Sequence[int]
    set_members: int = 1  # of each of these dimensions
    in_whole_sets: bool = True  # or only in the set of this family


FAMILIES: Mapping[str, Family] = {
    "modes": Family(generate_modes, range(1, 6), (1, 2, 3, 4, 5), 3),
    "fewmodes": Family(generate_few_modes, range(1, 6), (1, 2, 3, 4), 5, in_whole_sets=False),
    "shell": Family(generate_shell, range(2, 4), (2, 3), 2),
    "crescent": Family(generate_crescent, range(2, 4), (2, 3), 2),
    "banana": Family(generate_banana, range(2, 11), (2, 3, 4, 6)),
    "rosenbrock": Family(generate_rosenbrock, range(2, 7), (2, 3, 4, 6)),
    "funnel": Family(generate_funnel, range(2, 11), (3, 5, 10)),
    "hierarchy": Family(generate_hierarchy, range(3, 11), (3, 5, 10)),
    "skewed": Family(generate_skewed, range(1, 7), (2, 3, 4, 6), 2),
    "positive": Family(generate_positive, range(1, 7), (2, 4, 6), 2, in_whole_sets=False),
    "halfspace": Family(generate_halfspace, range(1, 7), (2, 3, 5)),
    "simplex": Family(generate_simplex, range(1, 7), (2, 3, 5)),
    "tails": Family(generate_tails, range(1, 7), (2, 4, 6)),
    "regression": Family(generate_regression, range(3, 11), (3, 5, 8), 2, in_whole_sets=False),
    # Members 0 to 3: those whose answers are in the table.
    "epidemic": Family(model_family("epidemic"), range(5, 6), (5,), 2),
    "kinetics": Family(model_family("kinetics"), range(3, 5), (3, 4), 2),
    "psychometric": Family(model_family("psychometric"), range(4, 5), (4,), 2),
    "garch": Family(model_family("garch"), range(4, 5), (4,), 2),
    "predators": Family(model_family("predators"), range(4, 5), (4,), 2),
}

# The parity of the numbers in a set.
SETS: Mapping[str, int] = {"tuning": 0, "held-out": 1}


_NAME = re.compile(r"([a-z]+)-([1-9]\d*)-(\d+)")


def parse(name: str) -> tuple[str, int, int] | None:
    """Family, dimension and number; None if it is not the name of a shape."""
    match = _NAME.fullmatch(name)
    if match is None or match[1] not in FAMILIES:
        return None
    return match[1], int(match[2]), int(match[3])


def shape_problem(name: str, family: str, D: int, number: int) -> BenchmarkProblem:
    """The member of that family, dimension and number."""
    dimensions = FAMILIES[family].dimensions
    if D not in dimensions:
        raise BenchmarkError(
            f"unknown problem {name!r}: {family} has {dimensions[0]} to {dimensions[-1]} dimensions"
        )
    return FAMILIES[family].generate(name, D, member_generator(family, D, number))


def member_generator(family: str, D: int, number: int) -> np.random.Generator:
    """What a member is drawn from."""
    return np.random.default_rng([STREAM, *family.encode(), D, number])


def names_in(problems: Iterable[str]) -> list[str]:
    """The names, with those of a set in the place of the set's name; each once."""
    found: dict[str, None] = {}
    for name in problems:
        found.update(dict.fromkeys(_set_names(name) or [name]))
    return list(found)


def _set_names(name: str) -> list[str]:
    """The members of a set; nothing if it is none."""
    for kind, parity in SETS.items():
        if name == kind:
            families = (family for family, form in FAMILIES.items() if form.in_whole_sets)
            return [item for family in families for item in _members(family, parity)]
        family = name.removeprefix(f"{kind}-")
        if family in FAMILIES and family != name:
            return _members(family, parity)
    return []


def _members(family: str, parity: int) -> list[str]:
    form = FAMILIES[family]
    numbers = range(parity, parity + 2 * form.set_members, 2)
    return [f"{family}-{D}-{number}" for D in form.set_dimensions for number in numbers]
