"""Benchmark problems by name.

``lumpy-6``      the published instance, read from the data path
``lumpy-6-g3``   a new member of the family, generated from seed 3
``modes-3-7``    member 7 of a family of other shapes (``shapes``) in 3 dimensions
``neuron-v1``    a recorded cell, and others of the neuronal model (``neuron``)
``NAME+noise1``  any of these, its log likelihood observed with noise of sd 1 (``noisy``)
``NAME+uneven1`` the same with noise that is smaller in the middle and larger in the tails
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from pathlib import Path

import numpy as np

from benchmarks.errors import BenchmarkError
from benchmarks.problems.base import BenchmarkProblem
from benchmarks.problems.cigar import generate_cigar
from benchmarks.problems.lumpy import generate_lumpy
from benchmarks.problems.neuron import NEURON_PROBLEMS, neuron_problem
from benchmarks.problems.noisy import with_noise
from benchmarks.problems.published import published_problem
from benchmarks.problems.shapes import FAMILIES, SETS, parse, shape_problem
from benchmarks.problems.student import generate_student

GENERATORS: Mapping[str, Callable[[str, int, np.random.Generator], BenchmarkProblem]] = {
    "lumpy": generate_lumpy,
    "student": generate_student,
    "cigar": generate_cigar,
}

_NAME = re.compile(r"(?P<family>[a-z]+)-(?P<D>[1-9]\d*)(-g(?P<seed>\d+))?")
_NOISE = re.compile(r"(?P<exact>.+)\+(?P<kind>noise|uneven)(?P<sd>\d+(\.\d+)?)")


def load_problem(name: str, data: Path | None) -> BenchmarkProblem:
    """Build the problem of that name; data is the path of what was published (``published``)."""
    noise = _NOISE.fullmatch(name)
    if noise is not None:
        exact = load_problem(noise["exact"], data)
        return with_noise(exact, float(noise["sd"]), name, even=noise["kind"] == "noise")
    if name in NEURON_PROBLEMS:
        return neuron_problem(name, data)
    shape = parse(name)
    if shape is not None:
        return shape_problem(name, *shape)
    match = _NAME.fullmatch(name)
    if match is None or match["family"] not in GENERATORS:
        raise BenchmarkError(
            f"unknown problem {name!r}: use FAMILY-D (published) or FAMILY-D-gSEED (generated), "
            f"with FAMILY one of {', '.join(GENERATORS)}, FAMILY-D-NUMBER with FAMILY one of "
            f"{', '.join(FAMILIES)}, a set ({', '.join(SETS)}) where several are asked for, or one "
            f"of {', '.join(NEURON_PROBLEMS)}; +noiseSD or +unevenSD behind any of them adds noise"
        )
    family, D = match["family"], int(match["D"])
    if match["seed"] is not None:
        return GENERATORS[family](name, D, np.random.default_rng([int(match["seed"]), D]))
    if data is None:
        raise BenchmarkError(
            f"{name} is a published problem: say where its numbers are with --data PATH, "
            f"or use {name}-g0 for a generated one"
        )
    return published_problem(family, D, data)
