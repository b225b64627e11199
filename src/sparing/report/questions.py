"""What was asked of a run: its parameters with their bounds and priors, as text."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from sparing.problem.problem import Problem
from sparing.problem.user_values import format_interval, function_name


def questions(problem: Problem) -> list[tuple[str, str, str, str]]:
    """Name, plausible box, bounds and prior of each parameter; "" without a prior of its own.

    Those that are fixed come last, with their value in place of the box.
    """
    boxes = map(format_interval, problem.plausible_lower, problem.plausible_upper)
    bounds = map(_bounds, problem.lower, problem.upper)
    priors = _univariate_priors(problem) or [""] * problem.dimension
    free = list(zip(problem.names, boxes, bounds, priors, strict=True))
    return free + [(n, f"fixed at {value:g}", "", "") for n, value in problem.fixed.items()]


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
