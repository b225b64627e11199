"""A NumPyro model as a problem, and a result in the model's shapes.

    x        latent sample sites side by side, see `sparing.integrations.model_coordinates`  (D,)
    site     one ``numpyro.sample`` statement

Everything is computed in double precision, as in `sparing.integrations.jax`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, fields
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sparing.errors import ProblemError
from sparing.integrations import arviz
from sparing.integrations.model_coordinates import (
    PRIOR_DRAWS,
    Block,
    draws_of_blocks,
    problem_of_blocks,
    split,
)
from sparing.integrations.shared import new_key, once_per_process, optional_module
from sparing.numerics.arrays import Array
from sparing.problem.gradients import LogDensityWithGradient
from sparing.problem.problem import Problem
from sparing.vbmc.run_record import RunRecord

__all__ = ["posterior_draws", "problem_from_model", "to_arviz"]


def problem_from_model(
    model: Callable[..., Any],
    args: Sequence[Any] = (),
    kwargs: Mapping[str, Any] | None = None,
    *,
    plausible: Mapping[str, tuple[float, float]] | None = None,
    seed: int = 0,
    gradient: bool = True,
) -> Problem:
    """The posterior of ``model(*args, **kwargs)`` as a problem; its evidence is that of the data.

    plausible   (low, high) by the name of a site (``"rate"``) or of an entry of it
                (``"rate[0]"``); the others get the central 68 % of their prior
    seed        of the prior draws that this is read from
    gradient    whether to use the gradient of the log joint, by `jax.value_and_grad`

    Discrete sites, ``numpyro.param`` sites and plates that take a subsample of the data are
    refused. To use several processes, give ``LocalProcesses(workers=N, start_method="spawn")``:
    JAX does not survive a fork.

    >>> import numpyro, numpyro.distributions as dist, sparing
    >>> def model(data):
    ...     rate = numpyro.sample("rate", dist.HalfNormal(2.0))
    ...     numpyro.sample("data", dist.Normal(rate, 1.0), obs=data)
    >>> problem = problem_from_model(model, [np.array([0.8, 1.4])])
    >>> problem.names, problem.lower.tolist()
    (('rate',), [0.0])
    """
    density = ModelLogDensity(model, tuple(args), dict(kwargs or {}))
    return problem_of_blocks(
        density, density.blocks, density.prior_draws(seed), plausible, gradient
    )


def posterior_draws(
    model: Callable[..., Any],
    result: RunRecord,
    args: Sequence[Any] = (),
    kwargs: Mapping[str, Any] | None = None,
    n: int = 4000,
    seed: int = 0,
) -> dict[str, NDArray[Any]]:
    """n draws of every latent and deterministic site, (n, *shape) by name.

    ``result`` is that of `problem_from_model(model, args, kwargs)`, also when loaded from a file.

    >>> import numpyro, numpyro.distributions as dist, sparing
    >>> from sparing.integrations.numpyro import posterior_draws, problem_from_model
    >>> def model(data):
    ...     level = numpyro.sample("level", dist.Normal().expand([2]))
    ...     numpyro.deterministic("difference", level[1] - level[0])
    ...     numpyro.sample("data", dist.Normal(level, 0.5), obs=data)
    >>> args = [np.array([0.2, 0.7])]
    >>> problem = problem_from_model(model, args)
    >>> result = sparing.infer(problem, seed=1, max_evaluations=30, progress=False)
    >>> draws = posterior_draws(model, result, args, n=100)
    >>> {name: values.shape for name, values in draws.items()}
    {'level': (100, 2), 'difference': (100,)}
    """
    density = ModelLogDensity(model, tuple(args), dict(kwargs or {}))
    return density.sites_at(draws_of_blocks(result, density.blocks, n, seed))


def to_arviz(
    model: Callable[..., Any],
    result: RunRecord,
    args: Sequence[Any] = (),
    kwargs: Mapping[str, Any] | None = None,
    n: int = 4000,
    seed: int = 0,
) -> Any:
    """As `Result.to_arviz`, with the model's sites in their shapes.

    >>> import numpyro, numpyro.distributions as dist, sparing
    >>> from sparing.integrations.numpyro import problem_from_model, to_arviz
    >>> def model(data):
    ...     level = numpyro.sample("level", dist.Normal().expand([2]))
    ...     numpyro.sample("data", dist.Normal(level, 0.5), obs=data)
    >>> args = [np.array([0.2, 0.7])]
    >>> problem = problem_from_model(model, args)
    >>> result = sparing.infer(problem, seed=1, max_evaluations=30, progress=False)
    >>> to_arviz(model, result, args, n=100).posterior["level"].shape
    (1, 100, 2)
    """
    density = ModelLogDensity(model, tuple(args), dict(kwargs or {}))
    draws = draws_of_blocks(result, density.blocks, n, seed)
    return arviz.assemble(result, draws, density.sites_at(draws))


@dataclass(frozen=True, eq=False)
class ModelLogDensity(LogDensityWithGradient):
    """log p(x, data) of a NumPyro model; pickles when the model and its arguments do."""

    model: Callable[..., Any]
    args: tuple[Any, ...] = ()
    kwargs: dict[str, Any] = field(default_factory=dict)
    key: str = field(default_factory=new_key, repr=False)

    def __call__(self, x: Array) -> float:
        """The log joint at one point x (D,)."""
        jax = optional_module("jax", "numpyro")
        with jax.enable_x64(True):
            function = once_per_process(self.key, lambda: jax.jit(self._log_joint))
            return float(function(jax.numpy.asarray(x)))

    def value_and_gradient(self, x: Array) -> tuple[float, Array | None]:
        """The log joint and its gradient; None for a model that JAX cannot differentiate."""
        jax = optional_module("jax", "numpyro")
        with jax.enable_x64(True):
            function = once_per_process(
                f"{self.key} gradient", lambda: jax.jit(jax.value_and_grad(self._log_joint))
            )
            try:
                value, gradient = function(jax.numpy.asarray(x))
            except Exception:  # what the model itself raises it raises again
                return self(x), None
            return float(value), np.asarray(gradient)

    def _log_joint(self, x: Any) -> Any:
        return self._joint(x)[0]

    @cached_property
    def blocks(self) -> list[Block]:
        """Where each site stands in x, and its bounds."""
        return [
            Block(site.name, site.shape, *site.bounds)
            if site.bounds
            else Block(f"{site.name} (unconstrained)", site.shape)
            for site in self._sites
        ]

    def prior_draws(self, seed: int) -> list[NDArray[Any]]:
        """Draws from the prior in the coordinates of the blocks: (PRIOR_DRAWS, *shape) each."""
        jax = optional_module("jax", "numpyro")

        def draw(key: Any) -> list[Any]:
            trace = self._prior_trace(key)
            return [_coordinates_of(trace[site.name], site) for site in self._sites]

        with jax.enable_x64(True):
            keys = jax.random.split(jax.random.PRNGKey(seed), PRIOR_DRAWS)
            return [np.asarray(values) for values in jax.jit(jax.vmap(draw))(keys)]

    def sites_at(self, draws: Array) -> dict[str, NDArray[Any]]:
        """Latent and deterministic sites at points (n, D): (n, *shape) by name."""
        jax = optional_module("jax", "numpyro")
        latent = [site.name for site in self._sites]

        def values(x: Any) -> dict[str, Any]:
            trace = self._joint(x)[1]
            shown = (
                s for s in trace.values() if s["name"] in latent or s["type"] == "deterministic"
            )
            return {site["name"]: site["value"] for site in shown}

        with jax.enable_x64(True):
            stacked = jax.jit(jax.vmap(values))(jax.numpy.asarray(draws))
            order = dict.fromkeys([*latent, *stacked])  # JAX sorts by name
            return {name: np.asarray(stacked[name]) for name in order}

    def __getstate__(self) -> dict[str, Any]:
        return {entry.name: getattr(self, entry.name) for entry in fields(self)}

    @cached_property
    def _sites(self) -> list[_Site]:
        """The latent sites, from two draws of the prior: bounds that differ are not fixed."""
        jax = optional_module("jax", "numpyro")
        with jax.enable_x64(True):
            first, second = (self._prior_trace(jax.random.PRNGKey(seed)) for seed in (0, 1))
            latent = [s for s in first.values() if s["type"] == "sample" and not s["is_observed"]]
            _refuse_unusable(first, latent)
            return [_site(site, second[site["name"]]) for site in latent]

    def _prior_trace(self, key: Any) -> dict[str, Any]:
        handlers = optional_module("numpyro.handlers", "numpyro")
        return handlers.trace(handlers.seed(self.model, key)).get_trace(*self.args, **self.kwargs)

    def _joint(self, x: Any) -> tuple[Any, dict[str, Any]]:
        """(log joint at x, trace of the model there)."""
        handlers = optional_module("numpyro.handlers", "numpyro")
        log_density = optional_module("numpyro.infer.util", "numpyro").log_density
        parts = zip(self._sites, split(x, self.blocks), strict=True)
        by_name = {site.name: (site, part) for site, part in parts}
        log_jacobians = []

        def fill(message: dict[str, Any]) -> Any:
            if message["name"] not in by_name:
                return None
            site, part = by_name[message["name"]]
            if site.bounds:
                return part
            transform = _unconstraining(message["fn"])
            value = transform(part)
            log_jacobians.append(transform.log_abs_det_jacobian(part, value).sum())
            return value

        filled = handlers.substitute(self.model, substitute_fn=fill)
        log_joint, trace = log_density(filled, self.args, self.kwargs, {})
        return log_joint + sum(log_jacobians), trace


@dataclass(frozen=True, eq=False)
class _Site:
    """A latent site: the shape of its coordinates, and its box if it lives in a fixed one."""

    name: str
    shape: tuple[int, ...]
    bounds: tuple[Any, Any] | None


def _site(site: dict[str, Any], again: dict[str, Any]) -> _Site:
    bounds, other = _bounds(site["fn"].support), _bounds(again["fn"].support)
    same = bounds is not None and other is not None and all(map(np.array_equal, bounds, other))
    if same:
        return _Site(site["name"], np.shape(site["value"]), bounds)
    free = _unconstraining(site["fn"]).inv(site["value"])
    return _Site(site["name"], np.shape(free), None)


def _coordinates_of(site: dict[str, Any], place: _Site) -> Any:
    return site["value"] if place.bounds else _unconstraining(site["fn"]).inv(site["value"])


def _unconstraining(distribution: Any) -> Any:
    """The map from the real line to the support of a distribution."""
    return optional_module("numpyro.distributions", "numpyro").biject_to(distribution.support)


def _bounds(support: Any) -> tuple[Any, Any] | None:
    """The box that a support is, for each entry; None when it is no box."""
    constraints = optional_module("numpyro.distributions", "numpyro").constraints
    while isinstance(support, constraints.independent):
        support = support.base_constraint
    if support in (constraints.real, constraints.real_vector, constraints.real_matrix):
        return -math.inf, math.inf
    if support is constraints.circular:
        return -math.pi, math.pi
    low, high = (getattr(support, edge, None) for edge in ("lower_bound", "upper_bound"))
    if low is None and high is None:
        return None
    low, high = -math.inf if low is None else low, math.inf if high is None else high
    return np.asarray(low, dtype=np.float64), np.asarray(high, dtype=np.float64)


def _refuse_unusable(trace: dict[str, Any], latent: Sequence[dict[str, Any]]) -> None:
    faults = [
        f"{site['name']} is discrete: sum it out of the model, since sparing infers continuous"
        " parameters"
        for site in latent
        if site["fn"].support.is_discrete
    ]
    faults += [
        f"{site['name']} is a param, which is optimised and has no prior: make it a sample"
        for site in trace.values()
        if site["type"] == "param"
    ]
    faults += [
        f"{site['name']} takes a random part of the data: leave its subsample_size out"
        for site in trace.values()
        if site["type"] == "plate" and site["args"][1] not in (None, site["args"][0])
    ]
    if not latent:
        faults.append("the model has no latent site: there is nothing to infer")
    if faults:
        raise ProblemError(faults)
