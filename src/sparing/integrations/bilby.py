"""A likelihood and priors of bilby as a problem, and a run as a result of bilby.

x        the parameters in the order of the priors, the fixed ones included    (N,)
"""

from __future__ import annotations

from collections.abc import Mapping
from copy import deepcopy
from dataclasses import dataclass
from inspect import signature
from typing import Any

import numpy as np

from sparing.errors import ProblemError
from sparing.integrations.columns import draw_columns
from sparing.integrations.model_coordinates import (
    PRIOR_DRAWS,
    Block,
    draws_of_blocks,
    problem_of_blocks,
)
from sparing.integrations.shared import optional_module
from sparing.numerics.arrays import Array
from sparing.problem.problem import Problem
from sparing.vbmc.run_record import RunRecord

__all__ = ["problem_from_likelihood", "to_bilby"]


def problem_from_likelihood(
    likelihood: Any,
    priors: Mapping[str, Any],
    *,
    plausible: Mapping[str, tuple[float, float]] | None = None,
    seed: int = 0,
) -> Problem:
    """The posterior of a bilby likelihood under its priors as a problem.

    priors      a ``PriorDict``, or what makes one; numbers and delta functions are fixed,
                constraints are the support, and a periodic boundary makes a parameter wrap
    plausible   (low, high) by name; the others get the central 68 % of their prior
    seed        of the prior draws that this is read from

    Conditional and discrete priors are refused: sparing infers continuous parameters in a box.

    >>> import bilby, sparing
    >>> likelihood = bilby.core.likelihood.AnalyticalMultidimensionalCovariantGaussian([1], [0.5])
    >>> problem = problem_from_likelihood(likelihood, {"x0": bilby.core.prior.Uniform(-5, 5)})
    >>> problem.names, problem.lower.tolist()
    (('x0',), [-5.0])
    """
    known = _Priors.of(priors)
    periodic = [name for name in known.free if known.priors[name].boundary == "periodic"]
    fixed = {name: float(known.priors[name].peak) for name in known.fixed}
    return problem_of_blocks(
        LikelihoodLogDensity(likelihood, known.names),
        known.blocks,
        list(known.draws(seed).T),
        plausible,
        prior=known.log_density,
        periodic=periodic,
        fixed=fixed,
        support=known.contains if known.priors.constraint_keys else None,
    )


def to_bilby(
    likelihood: Any,
    priors: Mapping[str, Any],
    result: RunRecord,
    n: int = 4000,
    seed: int = 0,
    *,
    label: str = "sparing",
) -> Any:
    """``bilby.core.result.Result`` with n draws, the evidence and the Bayes factor against noise.

    ``result`` is that of `problem_from_likelihood(likelihood, priors)`. The likelihood is not
    called again: ``log_likelihood`` at the draws is the surrogate's, near the truth where the run
    is. ``label`` begins the names of bilby's files.

    >>> import bilby, sparing
    >>> from sparing.integrations.bilby import problem_from_likelihood, to_bilby
    >>> likelihood = bilby.core.likelihood.AnalyticalMultidimensionalCovariantGaussian([1], [0.5])
    >>> priors = {"x0": bilby.core.prior.Uniform(-5, 5)}
    >>> problem = problem_from_likelihood(likelihood, priors)
    >>> result = sparing.infer(problem, seed=1, max_evaluations=30, progress=False)
    >>> to_bilby(likelihood, priors, result, n=100).posterior.shape
    (100, 3)
    """
    pandas = optional_module("pandas", "bilby")
    results = optional_module("bilby.core.result", "bilby")
    known = _Priors.of(priors)
    full = draws_of_blocks(result, known.blocks, n, seed)
    free = full[:, result.problem.parameters.is_free]
    log_prior = np.array([known.log_density(x) for x in full])
    log_joint = result.posterior.log_density(free) + result.log_evidence
    columns = draw_columns(result, free, ("log_likelihood", "log_prior"))
    values = {"log_likelihood": log_joint - log_prior, "log_prior": log_prior}
    noise = likelihood.noise_log_likelihood()
    return results.Result(
        label=label,
        sampler="sparing",
        search_parameter_keys=known.free,
        fixed_parameter_keys=known.fixed,
        constraint_parameter_keys=known.priors.constraint_keys,
        priors=known.priors,
        posterior=pandas.DataFrame(columns | values),
        samples=free,
        log_likelihood_evaluations=values["log_likelihood"],
        log_prior_evaluations=log_prior,
        log_evidence=result.log_evidence,
        log_evidence_err=result.log_evidence_sd,
        log_noise_evidence=noise,
        log_bayes_factor=result.log_evidence - noise,
        num_likelihood_evaluations=result.n_evaluations,
        use_ratio=False,
    )


@dataclass(frozen=True, eq=False)
class LikelihoodLogDensity:
    """The log likelihood of a bilby likelihood at x; pickles when the likelihood does."""

    likelihood: Any
    names: tuple[str, ...]

    def __call__(self, x: Array) -> float:
        """At one point x (N,)."""
        parameters = dict(zip(self.names, x.tolist(), strict=True))
        function = self.likelihood.log_likelihood
        if "parameters" in signature(function).parameters:
            return float(function(parameters=parameters))
        self.likelihood.parameters.update(parameters)  # as likelihoods were before bilby 2.7
        return float(function())


@dataclass(frozen=True, eq=False)
class _Priors:
    """The priors of bilby as functions of x (N,)."""

    priors: Any  # a PriorDict

    @classmethod
    def of(cls, priors: Mapping[str, Any]) -> _Priors:
        prior = optional_module("bilby.core.prior", "bilby")
        # bilby's own copy forgets the function that computes what is constrained.
        is_known = isinstance(priors, prior.PriorDict)
        known: Any = deepcopy(priors) if is_known else prior.PriorDict(dict(priors))
        known.convert_floats_to_delta_functions()
        _refuse_unusable(known, prior)
        return cls(known)

    @property
    def free(self) -> list[str]:
        return list(self.priors.non_fixed_keys)

    @property
    def fixed(self) -> list[str]:
        return list(self.priors.fixed_keys)

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(key for key in self.priors if key not in self.priors.constraint_keys)

    @property
    def blocks(self) -> list[Block]:
        """A block for each parameter, fixed ones without bounds."""
        boxes = [(self.priors[name].minimum, self.priors[name].maximum) for name in self.names]
        free = set(self.free)
        return [
            Block(name, (), *box) if name in free else Block(name, ())
            for name, box in zip(self.names, boxes, strict=True)
        ]

    def draws(self, seed: int) -> Array:
        """From the prior, off the generator that bilby shares among all: (PRIOR_DRAWS, N)."""
        free, shares = self.free, np.random.default_rng(seed).random((PRIOR_DRAWS, len(self.free)))
        rows = [dict(zip(free, self.priors.rescale(free, row), strict=True)) for row in shares]
        held = {name: self.priors[name].peak for name in self.fixed}
        draws = np.array([[float((held | row)[name]) for name in self.names] for row in rows])
        inside = [row for row in draws if self.contains(row)]
        if len(inside) < 2:
            raise ProblemError(["the constraints leave next to nothing of the priors"])
        return np.array(inside)

    def log_density(self, x: Array) -> float:
        """The log prior, normalised within the constraints."""
        return float(self.priors.ln_prob(self._free_values(x)))

    def contains(self, x: Array) -> bool:
        """Whether x keeps the constraints."""
        values = dict(zip(self.names, np.asarray(x).tolist(), strict=True))
        return bool(self.priors.evaluate_constraints(values))

    def _free_values(self, x: Array) -> dict[str, float]:
        values = dict(zip(self.names, np.asarray(x).tolist(), strict=True))
        return {name: values[name] for name in self.free}


def _refuse_unusable(priors: Any, prior: Any) -> None:
    discrete = (
        prior.Categorical,
        prior.DiscreteValues,
        prior.WeightedDiscreteValues,
        prior.SlabSpikePrior,
    )
    faults = [
        f"{name} has a discrete prior ({type(entry).__name__}): sparing infers continuous"
        " parameters; fix it, or sum over its values"
        for name, entry in priors.items()
        if isinstance(entry, discrete)
    ]
    faults += [
        f"{name} has a prior that depends on others ({type(entry).__name__}): give it one that"
        " does not, and a Constraint"
        for name, entry in priors.items()
        if hasattr(entry, "condition_func")
    ]
    if not priors.non_fixed_keys:
        faults.append("the priors leave no parameter free: there is nothing to infer")
    if faults:
        raise ProblemError(faults)
