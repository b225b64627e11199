"""What was asked of a run: its parameters with their bounds and priors, as text."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from sparing.problem.problem import Problem
from sparing.problem.user_values import format_interval, function_name


@dataclass(frozen=True)
class Question:
    """One parameter as it was given."""

    name: str
    bounds: str
    plausible: str
    prior: str  # "" without a prior of its own


def questions(problem: Problem) -> tuple[Question, ...]:
    """One row per parameter."""
    priors = _univariate_priors(problem) or [""] * problem.dimension
    return tuple(
        Question(
            name,
            _bounds(problem.lower[i], problem.upper[i]),
            format_interval(problem.plausible_lower[i], problem.plausible_upper[i]),
            priors[i],
        )
        for i, name in enumerate(problem.names)
    )


def density_name(problem: Problem) -> str:
    """The name of the function; one that was loaded from a file carries the name it had."""
    stored = getattr(problem.log_density, "name", None)
    return stored if isinstance(stored, str) else function_name(problem.log_density)


def joint_prior(problem: Problem) -> str:
    """The prior that covers all parameters at once; "" when each has its own."""
    if problem.prior is None:
        return "in the log density, if there is one"
    return "" if _univariate_priors(problem) else str(problem.prior)


def _bounds(low: float, high: float) -> str:
    return "none" if low == -math.inf and high == math.inf else format_interval(low, high)


def _univariate_priors(problem: Problem) -> list[str] | None:
    """The prior of each parameter, where the description names one for each."""
    if problem.prior is None:
        return None
    described = problem.prior.description().get("distributions")
    if not isinstance(described, list) or len(described) != problem.dimension:
        return None
    return [_distribution(item) for item in described]


def _distribution(described: Mapping[str, Any]) -> str:
    """As one would write it: gamma(2.0, scale=1.0)."""
    if "summary" in described:
        return str(described["summary"])
    arguments = [str(value) for value in described.get("arguments", ())]
    keywords = [f"{name}={value}" for name, value in described.get("keywords", {}).items()]
    return f"{described.get('family', '?')}({', '.join([*arguments, *keywords])})"
