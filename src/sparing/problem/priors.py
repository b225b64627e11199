"""Priors: what the user may give, turned into one small interface.

    x           point in the user's coordinates              (D,)
    log p(x)    log prior density                            float; -inf outside the support
    support     box outside which p(x) = 0                   (lower (D,), upper (D,))

Accepted: a callable x -> log p(x); a frozen continuous distribution of scipy.stats, old style
(`scipy.stats.norm(0, 1)`) or new (`scipy.stats.Normal(mu=0, sigma=1)`), one for each parameter in
a sequence or a mapping by name; a frozen `multivariate_normal` or `multivariate_t`; a
`gaussian_kde`; or an instance of `Prior`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from sparing.errors import ProblemError
from sparing.numerics.arrays import Array
from sparing.problem.parameters import Parameters
from sparing.problem.prior_gradients import (
    differences,
    multivariate_gradient,
    univariate_derivative,
)
from sparing.problem.user_values import format_interval, function_name, log_value, short_text

# Frozen multivariate distributions have no public classes; these are the ones with a density on
# the whole of R^D (a Dirichlet or a von Mises-Fisher has none: its parameters are dependent).
# Families by the name of their (private) class, with what describes a member.
_MULTIVARIATE = {
    "multivariate_normal_frozen": ("mean", "cov"),
    "multivariate_t_frozen": ("loc", "shape", "df"),
    "gaussian_kde": ("dataset", "weights", "covariance"),
}


class Prior(ABC):
    """A log prior density over all parameters. Subclass it to supply one of your own.

    >>> from sparing.problem.priors import Prior
    >>> class Ordered(Prior):
    ...     def log_density(self, x):
    ...         return np.log(2.0) if 0.0 < x[0] < x[1] < 1.0 else -np.inf
    ...     def support(self):
    ...         return np.zeros(2), np.ones(2)
    ...     def description(self):
    ...         return {"kind": "ordered"}
    >>> problem = sparing.Problem(
    ...     lambda x: 0.0, [0.0, 0.0], [1.0, 1.0], lower=0.0, upper=1.0, prior=Ordered()
    ... )
    >>> problem.log_prior([0.2, 0.7]) > problem.log_prior([0.7, 0.2])
    True
    >>> problem.prior.gradient(np.array([0.2, 0.7]), np.array([1e-3, 1e-3]))
    array([0., 0.])
    """

    @abstractmethod
    def log_density(self, x: Array) -> float:
        """Log p(x) at one point x (D,)."""

    @abstractmethod
    def support(self) -> tuple[Array, Array]:
        """Box (lower (D,), upper (D,)) outside which the density is zero; infinite if unknown."""

    @abstractmethod
    def description(self) -> dict[str, Any]:
        """What the prior is, readable, in JSON types only."""

    def gradient(self, x: Array, steps: Array) -> Array:
        """Of log p at one point x (D,), for targets with gradients: (D,).

        By differences with these steps (D,), unless a subclass knows it in closed form.
        """
        return differences(self.log_density, x, steps)


@dataclass(frozen=True)
class CallablePrior(Prior):
    """A function of the user's that returns the log prior."""

    function: Callable[[Array], Any]
    dimension: int

    def log_density(self, x: Array) -> float:
        """Log p(x) at one point x (D,)."""
        return log_value(self.function(np.array(x, dtype=np.float64)))

    def support(self) -> tuple[Array, Array]:
        """Unknown, hence infinite."""
        return _everywhere(self.dimension)

    def description(self) -> dict[str, Any]:
        """The function's name: its code cannot be described."""
        return {"kind": "callable", "function": function_name(self.function)}

    def __str__(self) -> str:
        return function_name(self.function)


@dataclass(frozen=True)
class IndependentPrior(Prior):
    """A product of univariate continuous distributions, one per parameter."""

    distributions: tuple[Any, ...]

    def log_density(self, x: Array) -> float:
        """Log p(x) at one point x (D,): -inf as soon as one factor is zero."""
        total = 0.0
        with np.errstate(all="ignore"):  # far away squares overflow, at an edge log(0) appears
            for distribution, value in zip(self.distributions, x, strict=True):
                term = log_value(distribution.logpdf(float(value)))
                if term == -np.inf:
                    return -np.inf
                total += term
        return total

    def gradient(self, x: Array, steps: Array) -> Array:
        """In closed form for the usual families, by differences for the others."""
        each = zip(self.distributions, x, steps, strict=True)
        return np.array([univariate_derivative(d, float(value), h) for d, value, h in each])

    def support(self) -> tuple[Array, Array]:
        """The interval of each distribution."""
        intervals = np.array([d.support() for d in self.distributions], dtype=np.float64)
        return intervals[:, 0].copy(), intervals[:, 1].copy()

    def quantiles(self, probability: float, lower: Array, upper: Array) -> Array:
        """Of each distribution within bounds (D,): (D,)."""
        found = []
        for distribution, low, high in zip(self.distributions, lower, upper, strict=True):
            below, above = float(distribution.cdf(low)), float(distribution.cdf(high))
            inverse = distribution.ppf if _is_frozen(distribution) else distribution.icdf
            found.append(float(inverse(below + probability * (above - below))))
        return np.clip(found, lower, upper)

    def description(self) -> dict[str, Any]:
        """Family and parameters of each distribution."""
        return {
            "kind": "independent",
            "distributions": [_describe_univariate(d) for d in self.distributions],
        }

    def __str__(self) -> str:
        return ", ".join(_describe_univariate(d)["family"] for d in self.distributions)


@dataclass(frozen=True)
class MultivariatePrior(Prior):
    """A joint distribution of all parameters, positive on the whole of R^D."""

    distribution: Any
    dimension: int

    def log_density(self, x: Array) -> float:
        """Log p(x) at one point x (D,)."""
        point = np.array(x, dtype=np.float64)
        if _class_name(self.distribution) == "gaussian_kde":
            point = point[:, None]  # its points are columns
        with np.errstate(all="ignore"):  # the square of a distance may overflow
            return log_value(self.distribution.logpdf(point))

    def gradient(self, x: Array, steps: Array) -> Array:
        """In closed form for normal and t distributions."""
        known = multivariate_gradient(self.distribution, x)
        return super().gradient(x, steps) if known is None else known

    def support(self) -> tuple[Array, Array]:
        """Infinite: every accepted family is positive everywhere."""
        return _everywhere(self.dimension)

    def description(self) -> dict[str, Any]:
        """Family and parameters."""
        family = _class_name(self.distribution)
        values = {name: _floats(getattr(self.distribution, name)) for name in _MULTIVARIATE[family]}
        family = family.removesuffix("_frozen")
        return {"kind": "multivariate", "family": family, **values}

    def __str__(self) -> str:
        return self.description()["family"]


@dataclass(frozen=True, eq=False)
class PriorAtFixed(Prior):
    """A joint prior of all parameters, some of which are held at a value.

    Its value is that of the whole at the full point, which is not normalised over the free ones.
    """

    prior: Prior
    parameters: Parameters

    def log_density(self, x: Array) -> float:
        """Log p at the full point of x (D,)."""
        return self.prior.log_density(self.parameters.full(x))

    def gradient(self, x: Array, steps: Array) -> Array:
        """That of the whole, with respect to the free parameters."""
        is_free = self.parameters.is_free
        full_steps = np.ones(len(is_free))
        full_steps[is_free] = steps
        return self.prior.gradient(self.parameters.full(x), full_steps)[is_free]

    def support(self) -> tuple[Array, Array]:
        """That of the free parameters."""
        lower, upper = self.prior.support()
        return lower[self.parameters.is_free], upper[self.parameters.is_free]

    def description(self) -> dict[str, Any]:
        """What the whole prior is; the values are the problem's."""
        return {"kind": "at fixed values", "prior": self.prior.description()}

    def __str__(self) -> str:
        return str(self.prior)


def prior_of_free(parameters: Parameters) -> Prior | None:
    """The prior of the free parameters, or ProblemError with every fault found.

    Of independent distributions those of fixed parameters are not part of the model, and may be
    absent; any other prior is taken at the fixed values. An instance of `Prior` may as well be one
    of the free parameters alone.
    """
    prior, names, fixed = parameters.prior, parameters.names, parameters.fixed
    if not fixed:
        return parse_prior(prior, names)
    if isinstance(prior, IndependentPrior):
        prior = prior.distributions
    if isinstance(prior, Mapping):
        return parse_prior(
            {name: given for name, given in prior.items() if name not in fixed},
            parameters.free_names,
        )
    if isinstance(prior, list | tuple | np.ndarray) and len(prior) == len(names):
        free = [given for name, given in zip(names, prior, strict=True) if name not in fixed]
        return parse_prior(free, parameters.free_names)
    if isinstance(prior, Prior) and prior.support()[0].shape == (len(names) - len(fixed),):
        return prior
    whole = parse_prior(prior, names)
    return None if whole is None else PriorAtFixed(whole, parameters)


def parse_prior(prior: Any, names: Sequence[str]) -> Prior | None:
    """The prior in whatever accepted form, or ProblemError with every fault found."""
    dimension = len(names)
    if prior is None:
        return None
    if isinstance(prior, Prior):
        if prior.support()[0].shape != (dimension,):
            raise ProblemError([f"prior is for {prior.support()[0].size} parameters, {dimension=}"])
        return prior
    if isinstance(prior, Mapping):
        return _parse_mapping(prior, names)
    if isinstance(prior, list | tuple | np.ndarray):
        if len(prior) == dimension:
            return _parse_independent(list(prior), names)
        fault = f"prior holds {len(prior)} distributions for {dimension} parameters"
    elif reason := _unusable(prior):
        fault = f"prior: {reason}"
    elif _class_name(prior) in _MULTIVARIATE:
        return _parse_multivariate(prior, dimension)
    elif _is_univariate(prior):
        if dimension == 1:
            return _parse_independent([prior], names)
        fault = f"prior is one univariate distribution for {dimension} parameters: give a list"
    elif hasattr(prior, "logpdf"):
        fault = (
            f"prior of type {type(prior).__name__} is not a known distribution:"
            " give its logpdf method, which must be a density over all parameters"
        )
    elif callable(prior):
        return CallablePrior(prior, dimension)
    else:
        fault = f"prior must be a callable or scipy.stats distributions, not {short_text(prior)}"
    raise ProblemError([fault])


def support_faults(
    prior: Prior, names: Sequence[str], lower: Array, upper: Array, plausible: tuple[Array, Array]
) -> list[str]:
    """Where the hard bounds, or the plausible box, reach outside the support of the prior."""
    faults: list[str] = []
    for i, (name, low, high) in enumerate(zip(names, *prior.support(), strict=True)):
        interval = format_interval(low, high)
        # A support of scipy's, loc + scale, may differ from the user's bound by rounding.
        reach = max((abs(edge) for edge in (low, high) if np.isfinite(edge)), default=0.0)
        slack = 1e-12 * reach
        beyond = [("lower", lower[i], low)] if lower[i] < low - slack else []
        beyond += [("upper", upper[i], high)] if upper[i] > high + slack else []
        faults += [
            f"{name}: its prior is zero outside {interval}, its {side} bound is {bound:g}:"
            f" set {side} to {float(edge)!r}"
            for side, bound, edge in beyond
        ]
        if plausible[0][i] < low - slack or plausible[1][i] > high + slack:
            box = format_interval(plausible[0][i], plausible[1][i])
            faults.append(f"{name}: its plausible box {box} reaches outside its prior's {interval}")
    return faults


def _parse_mapping(prior: Mapping[Any, object], names: Sequence[str]) -> Prior:
    faults = [f"prior has no distribution for {name}" for name in names if name not in prior]
    faults += [f"prior names an unknown parameter {key!r}" for key in prior if key not in names]
    if faults:
        raise ProblemError(faults)
    return _parse_independent([prior[name] for name in names], names)


def _parse_independent(distributions: list[object], names: Sequence[str]) -> Prior:
    faults = []
    for name, distribution in zip(names, distributions, strict=True):
        if fault := _unusable(distribution):
            faults.append(f"{name}: its prior {fault}")
        elif not _is_univariate(distribution):
            faults.append(
                f"{name}: its prior must be one frozen univariate continuous distribution"
                f" of scipy.stats, not {short_text(distribution)}"
            )
        elif fault := _support_fault(distribution):
            faults.append(f"{name}: its prior {fault}")
    if faults:
        raise ProblemError(faults)
    return IndependentPrior(tuple(distributions))


def _support_fault(distribution: Any) -> str | None:
    low, high = distribution.support()
    if np.ndim(low) or np.ndim(high):
        return "has arrays as parameters: give one distribution with scalar parameters"
    if not low < high:  # also NaN: SciPy's answer to a negative scale
        return f"has invalid parameters: its support is [{low}, {high}]"
    return None


def _parse_multivariate(prior: Any, dimension: int) -> Prior:
    own = prior.d if _class_name(prior) == "gaussian_kde" else prior.dim
    if own != dimension:
        raise ProblemError([f"prior is a distribution of {own} variables, {dimension=}"])
    factor = getattr(prior, "cov_object", getattr(prior, "shape_info", None))
    if factor is not None and factor.rank < dimension:
        raise ProblemError(["prior has a singular covariance, so no density over all parameters"])
    return MultivariatePrior(prior, dimension)


def _is_univariate(distribution: object) -> bool:
    if _is_frozen(distribution):
        return True
    # The base class of the new-style distributions is private.
    return hasattr(distribution, "logpdf") and hasattr(distribution, "support")


def _unusable(distribution: object) -> str | None:
    """Why a distribution of scipy.stats can be no prior, if so."""
    if isinstance(distribution, type):
        return f"is the class {distribution.__name__}: give an instance, with its parameters"
    classes = _class_names(distribution)
    family = getattr(distribution, "dist", None) if _is_frozen(distribution) else distribution
    family_classes = _class_names(family)
    if "rv_discrete" in family_classes or "DiscreteDistribution" in classes:
        return "is discrete: sparing infers continuous parameters only"
    if family is distribution and (
        "rv_continuous" in family_classes or "multi_rv_generic" in classes
    ):
        return "is not frozen: call it with its parameters, as in scipy.stats.norm(0, 1)"
    return None


def _describe_univariate(distribution: Any) -> dict[str, Any]:
    if _is_frozen(distribution):
        arguments = [_floats(value) for value in distribution.args]
        keywords = {name: _floats(value) for name, value in sorted(distribution.kwds.items())}
        return {"family": distribution.dist.name, "arguments": arguments, "keywords": keywords}
    return {"family": type(distribution).__name__, "summary": repr(distribution)}


# Classes of scipy.stats are told by their names: importing it would double the time that importing
# this package takes, and a user who passes a distribution has imported it.
def _class_names(value: object) -> set[str]:
    """Names of the classes of scipy.stats a value is an instance of."""
    return {
        base.__name__ for base in type(value).__mro__ if base.__module__.startswith("scipy.stats")
    }


def _class_name(value: object) -> str:
    """Name of the value's own class, if it is one of scipy.stats."""
    own = type(value)
    return own.__name__ if own.__module__.startswith("scipy.stats") else ""


def _is_frozen(distribution: object) -> bool:
    return "rv_frozen" in _class_names(distribution)


def _everywhere(dimension: int) -> tuple[Array, Array]:
    return np.full(dimension, -np.inf), np.full(dimension, np.inf)


def _floats(value: Any) -> Any:
    """A number as a float, an array as nested lists of floats."""
    return np.asarray(value, dtype=np.float64).tolist()
