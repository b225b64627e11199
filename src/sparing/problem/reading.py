"""From the arguments of a problem to its parameters: names, bounds, box, prior, fixed values.

What is not given comes from the prior: a hard bound from its support, the plausible box from the
quantiles of independent distributions.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from sparing.errors import ProblemError
from sparing.numerics.arrays import Array
from sparing.problem.checks import (
    box_faults,
    names_in_mappings,
    period_faults,
    periodic_names,
    read_vectors,
)
from sparing.problem.parameters import NOT_GIVEN, Parameters, fixed_values
from sparing.problem.priors import IndependentPrior, Prior, prior_of_free, support_faults

# The box of the paper's problems is the prior's mean plus and minus one standard deviation: these
# are that box's probabilities under a normal prior.
BOX_PROBABILITIES = (0.1587, 0.8413)


def read_parameters(
    bounds: Mapping[str, object],
    names: Sequence[str] | str | None,
    prior: object,
    fixed: object,
    periodic: Sequence[str] | str | None,
    faults: list[str],
) -> tuple[Parameters, Prior | None]:
    """All parameters and the prior of the free ones; of no use where faults were noted."""
    if names is None:
        order = ("plausible_lower", "plausible_upper")
        mappings = (*(bounds[label] for label in order), prior, bounds["lower"], bounds["upper"])
        names = names_in_mappings(*mappings)
    # Without a prior, or a value that it is fixed at, every parameter needs its box.
    missing: dict[str, float | None] = dict(NOT_GIVEN)
    if prior is None and not fixed:
        missing |= {"plausible_lower": None, "plausible_upper": None}
    given = {label: (value, missing[label]) for label, value in bounds.items()}
    labels, are_given, vectors = read_vectors(given, names, _n_named(names, prior), faults)
    values = fixed_values(fixed, labels, vectors, faults)
    if isinstance(prior, list | dict):
        prior = prior.copy()  # it is read again where parameters are fixed or freed
    parameters, parsed = Parameters(labels, vectors or {}, prior, values), None
    faults_of_prior: list[str] = []
    try:
        if are_given or not isinstance(prior, Mapping):  # a mapping goes by the names
            parsed = prior_of_free(parameters)
    except ProblemError as error:
        faults_of_prior += error.faults
    if vectors is None:
        faults += faults_of_prior
        return parameters, parsed
    if parsed is not None:
        parameters = completed(parameters, parsed)
        free = parameters.free_vectors
        box = free["plausible_lower"], free["plausible_upper"]
        names_of_free = parameters.free_names
        faults_of_prior += support_faults(parsed, names_of_free, free["lower"], free["upper"], box)
    faults += [*box_faults(parameters.free_names, parameters.free_vectors), *faults_of_prior]
    wrapping = periodic_names(periodic, labels, faults)
    parameters = replace(parameters, periodic=wrapping)
    faults += period_faults(
        parameters.free_periodic, parameters.free_names, parameters.free_vectors
    )
    return parameters, parsed


def _n_named(names: Sequence[str] | str | None, prior: Any) -> int:
    """How many parameters there are, where no bound is a sequence: as many as names or priors."""
    for many in (names, prior):
        if isinstance(many, list | tuple | np.ndarray):
            return len(many)
    return 1


def completed(parameters: Parameters, prior: Prior) -> Parameters:
    """With the bounds and the plausible boxes that were not given, as far as the prior has them."""
    free, (low, high) = parameters.free_vectors, prior.support()
    lower = np.where(np.isneginf(free["lower"]), low, free["lower"])
    upper = np.where(np.isposinf(free["upper"]), high, free["upper"])
    filled = {"lower": lower, "upper": upper}
    for label, probability in zip(
        ("plausible_lower", "plausible_upper"), BOX_PROBABILITIES, strict=True
    ):
        filled[label], is_missing = free[label], free[label] == NOT_GIVEN[label]
        if isinstance(prior, IndependentPrior) and is_missing.any():
            quantiles = prior.quantiles(probability, lower, upper)
            filled[label] = np.where(is_missing, quantiles, free[label])
    vectors: dict[str, Array] = {}
    for label, vector in parameters.vectors.items():
        vectors[label] = vector.copy()
        vectors[label][parameters.is_free] = filled[label]
    return replace(parameters, vectors=vectors)
