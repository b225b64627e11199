"""A model of Cobaya as a problem, and a run as the products of a sampler of Cobaya.

x        the sampled parameters of the model, in its order    (D,)
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from sparing.errors import ProblemError
from sparing.integrations.model_coordinates import Block, draws_of_blocks
from sparing.integrations.shared import new_key, once_per_process, optional_module
from sparing.numerics.arrays import Array
from sparing.problem.problem import Problem
from sparing.problem.reading import BOX_PROBABILITIES
from sparing.vbmc.run_record import RunRecord

__all__ = ["problem_from_model", "to_products"]

# A reference says where chains start, in Cobaya's own files more narrowly than the posterior is:
# the box is the central 95 % of it, or two proposals around a point.
REFERENCE_PROBABILITIES = (0.025, 0.975)
PROPOSALS = 2.0


def problem_from_model(
    model: Any, *, plausible: Mapping[str, tuple[float, float]] | None = None
) -> Problem:
    """The posterior of a Cobaya model, made by ``cobaya.model.get_model``, as a problem.

    plausible   (low, high) by name; the others get the central 95 % of their ``ref``, two
                ``proposal`` to either side of it if it is a number, and the central 68 % of their
                prior without one

    Parameters that Cobaya holds fixed or derives stay the model's own. The evidence is that of
    the priors in ``params``, times those in ``prior``, which Cobaya does not normalise.

    >>> from cobaya.model import get_model
    >>> def line(slope): return -0.5 * (slope - 1.0) ** 2
    >>> params = {"slope": {"prior": {"min": -4, "max": 6}, "ref": [1.0, 0.5]}}
    >>> info = {"params": params, "likelihood": {"line": line}, "debug": 40}  # say errors alone
    >>> problem = problem_from_model(get_model(info))
    >>> problem.names, problem.lower.tolist(), problem.plausible_upper.round(2).tolist()
    (('slope',), [-4.0], [1.98])
    """
    names = _names(model)
    if unknown := [name for name in plausible or {} if name not in names]:
        known = ", ".join(names)
        raise ProblemError([f"plausible names {k!r}; the parameters are {known}" for k in unknown])
    boxes = _boxes(model) | dict(plausible or {})
    low, high = np.transpose([boxes[name] for name in names])
    lower, upper = model.prior.bounds().T
    infos = model.parameterization.sampled_params_info()
    call = ModelCall(model.info(), names)
    once_per_process(call.key, lambda: model)
    return Problem(
        call,
        low,
        high,
        lower=lower,
        upper=upper,
        names=names,
        prior=call.log_prior if model.prior.external else list(model.prior.pdf),
        periodic=[name for name in names if infos[name].get("periodic")],
    )


def to_products(model: Any, result: RunRecord, n: int = 4000, seed: int = 0) -> dict[str, Any]:
    """``sample``, ``logZ`` and ``logZstd``, as ``products()`` of Cobaya's nested sampler has them.

    ``sample`` is a ``SampleCollection`` of n draws of weight one, with its ``to_getdist()``.
    ``result`` is that of `problem_from_model(model)`. The likelihood is not called again:
    ``minuslogpost`` is the surrogate's, and what only a call would tell, chi2 and what Cobaya
    derives, is NaN.

    >>> import sparing
    >>> from cobaya.model import get_model
    >>> from sparing.integrations.cobaya import problem_from_model, to_products
    >>> def line(slope): return -0.5 * (slope - 1.0) ** 2
    >>> params = {"slope": {"prior": {"min": -4, "max": 6}, "ref": [1.0, 0.5]}}
    >>> info = {"params": params, "likelihood": {"line": line}, "debug": 40}  # say errors alone
    >>> model = get_model(info)
    >>> problem = problem_from_model(model)
    >>> result = sparing.infer(problem, seed=1, max_evaluations=30, progress=False)
    >>> len(to_products(model, result, n=100)["sample"])
    100
    """
    collection = optional_module("cobaya.collection", "cobaya")
    log_posterior = optional_module("cobaya.model", "cobaya").LogPosterior
    full = draws_of_blocks(result, [Block(name, ()) for name in _names(model)], n, seed)
    free = full[:, result.problem.parameters.is_free]
    log_joint = result.posterior.log_density(free) + result.log_evidence
    unknown = [np.nan] * len(model.parameterization.derived_params())
    sample = collection.SampleCollection(model, sample_type="nested", cache_size=n)
    for x, value in zip(full, log_joint.tolist(), strict=True):
        priors = model.prior.logps(x)
        sample.add(x, log_posterior(logpost=value, logpriors=priors, derived=unknown))
    return {"sample": sample, "logZ": result.log_evidence, "logZstd": result.log_evidence_sd}


@dataclass(frozen=True, eq=False)
class ModelCall:
    """The log likelihood of a Cobaya model at x; pickles when what the model was made from does."""

    info: Mapping[str, Any]
    names: tuple[str, ...]
    key: str = field(default_factory=new_key, repr=False)

    def __call__(self, x: Array) -> float:
        """At one point x (D,)."""
        return float(self._model.loglike(self._by_name(x), return_derived=False))

    def log_prior(self, x: Array) -> float:
        """Of all priors of the model, those of ``prior`` included."""
        return float(self._model.logprior(self._by_name(x)))

    @property
    def _model(self) -> Any:
        get_model: Callable[..., Any] = optional_module("cobaya.model", "cobaya").get_model
        return once_per_process(self.key, lambda: get_model(dict(self.info)))

    def _by_name(self, x: Array) -> dict[str, float]:
        return dict(zip(self.names, np.asarray(x).tolist(), strict=True))


def _names(model: Any) -> tuple[str, ...]:
    names = tuple(model.parameterization.sampled_params())
    if not names:
        raise ProblemError(["the model samples no parameter: there is nothing to infer"])
    return names


def _boxes(model: Any) -> dict[str, tuple[float, float]]:
    """The plausible box of each parameter, from its reference or prior."""
    infos, boxes = model.parameterization.sampled_params_info(), {}
    entries = zip(_names(model), model.prior.pdf, model.prior.ref_pdf, strict=True)
    for name, prior, reference in entries:
        proposal = infos[name].get("proposal")
        box = prior.ppf(BOX_PROBABILITIES)
        if not isinstance(reference, float):
            box = reference.ppf(REFERENCE_PROBABILITIES)
        elif np.isfinite(reference) and proposal:
            box = reference + PROPOSALS * proposal * np.array([-1.0, 1.0])
        boxes[name] = tuple(np.clip(box, *prior.interval(1)).tolist())
    return boxes
