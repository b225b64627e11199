"""A PyMC model as a problem, and a result in the model's shapes.

    x        free variables side by side, see `sparing.integrations.model_coordinates`    (D,)
    value    what PyMC's log density is a function of: a variable, transformed to the real line

With the transform T of a variable, value = T(x). PyMC gives log p(x) at T(x) without the
Jacobian, which is the density in the variable's own coordinates, or with it, which is that of
the value.
"""

from __future__ import annotations

import math
import pickle
import threading
from collections.abc import Callable, Mapping
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

# Of a graph, or several, and x: what is compiled.
Outputs = Callable[[Any, Any], list[Any]]


def problem_from_model(
    model: Any,
    *,
    plausible: Mapping[str, tuple[float, float]] | None = None,
    seed: int = 0,
    gradient: bool = True,
) -> Problem:
    """The posterior of a PyMC model as a problem; its log evidence is that of the observed data.

    plausible   (low, high) by the name of a variable (``"rate"``) or of an entry of it
                (``"rate[0]"``); the others get the central 68 % of their prior
    seed        of the prior draws that this is read from
    gradient    whether to use the gradient of the log joint, which PyTensor derives

    Give ``plausible`` where a prior is vague or a `Potential` changes it. Discrete variables and
    improper priors are refused: the first have no density, the second no evidence.

    >>> import pymc, sparing
    >>> with pymc.Model() as model:
    ...     rate = pymc.HalfNormal("rate", 2.0)
    ...     data = pymc.Normal("data", rate, 1.0, observed=[0.8, 1.4])
    >>> problem = problem_from_model(model)
    >>> problem.names, problem.lower.tolist()
    (('rate',), [0.0])
    >>> result = sparing.infer(problem, seed=1, max_evaluations=30, progress=False)
    """
    pymc = optional_module("pymc", "pymc")
    _refuse_unusable(model)
    coordinates = _Coordinates(model)
    variables = [
        rv if transform is None else transform.forward(rv, *rv.owner.inputs)
        for rv, transform in coordinates.kept_transforms
    ]
    draws = pymc.draw(variables, draws=PRIOR_DRAWS, random_seed=seed)
    return problem_of_blocks(ModelLogDensity(model), coordinates.blocks, draws, plausible, gradient)


def posterior_draws(
    model: Any, result: RunRecord, n: int = 4000, seed: int = 0
) -> dict[str, NDArray[Any]]:
    """n draws of every free variable and Deterministic of the model, (n, *shape) by name.

    ``result`` is that of `problem_from_model(model)`, also when it was loaded from a file.

    >>> import pymc, sparing
    >>> from sparing.integrations.pymc import posterior_draws, problem_from_model
    >>> with pymc.Model() as model:
    ...     level = pymc.Normal("level", 0.0, 1.0, shape=2)
    ...     difference = pymc.Deterministic("difference", level[1] - level[0])
    ...     data = pymc.Normal("data", level, 0.5, observed=[0.2, 0.7])
    >>> problem = problem_from_model(model)
    >>> result = sparing.infer(problem, seed=1, max_evaluations=30, progress=False)
    >>> {name: draws.shape for name, draws in posterior_draws(model, result, n=100).items()}
    {'level': (100, 2), 'difference': (100,)}
    """
    coordinates = _Coordinates(model)
    return coordinates.variables_at(draws_of_blocks(result, coordinates.blocks, n, seed))


def to_arviz(model: Any, result: RunRecord, n: int = 4000, seed: int = 0) -> Any:
    """As `Result.to_arviz`, with the model's variables, dimensions and coordinates.

    The posterior group is what ``pymc.sample_posterior_predictive`` takes.

    >>> import pymc, sparing
    >>> from sparing.integrations.pymc import problem_from_model, to_arviz
    >>> with pymc.Model(coords={"group": ["treated", "control"]}) as model:
    ...     level = pymc.Normal("level", 0.0, 1.0, dims="group")
    ...     data = pymc.Normal("data", level, 0.5, observed=[0.2, 0.7])
    >>> problem = problem_from_model(model)
    >>> result = sparing.infer(problem, seed=1, max_evaluations=30, progress=False)
    >>> to_arviz(model, result, n=100).posterior["level"].dims
    ('chain', 'draw', 'group')
    """
    coordinates = _Coordinates(model)
    draws = draws_of_blocks(result, coordinates.blocks, n, seed)
    variables = coordinates.variables_at(draws)
    dims = {
        name: dimensions
        for name, dimensions in model.named_vars_to_dims.items()
        if name in variables and None not in dimensions
    }
    coords = {name: labels for name, labels in model.coords.items() if labels is not None}
    return arviz.assemble(result, draws, variables, dims, coords)


class ModelLogDensity(LogDensityWithGradient):
    """log p(x, data) of a PyMC model; compiled at the first call in every process.

    Functions of PyTensor are not for several threads at a time: these take turns.
    """

    def __init__(self, model: Any) -> None:
        self.model = model
        self._key = new_key()

    def __call__(self, x: Array) -> float:
        """The log joint at one point x (D,)."""
        function, turn = once_per_process(self._key, self._compiled)
        with turn:
            return float(function(x)[0])

    def value_and_gradient(self, x: Array) -> tuple[float, Array | None]:
        """The log joint and its gradient; None for a model that PyTensor cannot differentiate."""
        compiled = once_per_process(f"{self._key} gradient", self._compiled_with_gradient)
        if compiled is None:
            return self(x), None
        function, turn = compiled
        with turn:
            value, gradient = function(x)
        return float(value), gradient

    @cached_property
    def model(self) -> Any:
        """The model, read when it is needed: not where it has been compiled before."""
        return pickle.loads(self._pickled)

    @cached_property
    def _pickled(self) -> bytes:
        # Models hold functions that only cloudpickle, which comes with PyMC, can take along.
        return optional_module("cloudpickle", "pymc").dumps(self.model)

    def _compiled(self) -> tuple[Any, threading.Lock]:
        return _Coordinates(self.model).compiled_log_joint(), threading.Lock()

    def _compiled_with_gradient(self) -> tuple[Any, threading.Lock] | None:
        grad = optional_module("pytensor.gradient", "pymc").grad
        try:
            function = _Coordinates(self.model).compiled_log_joint(
                lambda log_joint, x: [log_joint, grad(log_joint, x)]
            )
        except Exception:  # an operation of the user's own, or one that is not smooth
            return None
        return function, threading.Lock()

    def __getstate__(self) -> dict[str, Any]:
        return {"_key": self._key, "_pickled": self._pickled}


class _Coordinates:
    """Which variables of a model are inferred as they are, and which as their values."""

    def __init__(self, model: Any) -> None:
        self.model = model
        shapes = {name: value.shape for name, value in model.initial_point().items()}
        self.blocks: list[Block] = []
        self.kept_transforms: list[tuple[Any, Any]] = []  # None: in the variable's coordinates
        for rv in model.free_RVs:
            transform, value = model.rvs_to_transforms[rv], model.rvs_to_values[rv]
            shape = shapes[value.name]
            bounds = _fixed_bounds(rv, transform)
            kept = transform if bounds is None else None
            self.kept_transforms.append((rv, kept))
            name = rv.name if bounds else value.name
            self.blocks.append(Block(name, shape, *(bounds or (-math.inf, math.inf))))

    def compiled_log_joint(self, outputs: Outputs = lambda log_joint, _: [log_joint]) -> Any:
        """x (D,) -> log joint, with the Jacobians of the values among the coordinates alone.

        Or whatever ``outputs`` makes of it and x.
        """
        model = self.model
        values = [rv for rv, kept in self.kept_transforms if kept is not None]
        others = [rv for rv, kept in self.kept_transforms if kept is None]
        terms = [*others, *model.observed_RVs, *model.potentials]
        log_joint = model.logp(vars=terms, jacobian=False) if terms else 0.0
        if values:
            log_joint += model.logp(vars=values, jacobian=True)
        return self._compiled([log_joint], lambda graphs, x: outputs(graphs[0], x))

    def variables_at(self, draws: Array) -> dict[str, NDArray[Any]]:
        """The free variables and Deterministics at points (n, D): (n, *shape) by name."""
        variables = [*self.model.free_RVs, *self.model.deterministics]
        function = self._compiled(self.model.replace_rvs_by_values(variables))
        columns = zip(*(function(x) for x in draws), strict=True)
        return {rv.name: np.stack(column) for rv, column in zip(variables, columns, strict=True)}

    def _compiled(self, outputs: list[Any], made_of: Outputs = lambda graphs, _: graphs) -> Any:
        """A function of x for what is written in terms of PyMC's values."""
        tensor = optional_module("pytensor.tensor", "pymc")
        replace = optional_module("pytensor.graph.replace", "pymc").graph_replace
        x = tensor.vector("x", dtype="float64")
        replacements = {}
        for (rv, kept), part in zip(self.kept_transforms, split(x, self.blocks), strict=True):
            value, transform = self.model.rvs_to_values[rv], self.model.rvs_to_transforms[rv]
            if kept is None and transform is not None:
                part = transform.forward(part, *rv.owner.inputs)
            replacements[value] = value.type.filter_variable(part.astype(value.dtype))
        graphs = replace(outputs, replacements, strict=False)
        outputs = made_of(graphs, x)
        return self.model.compile_fn(outputs, inputs=[x], point_fn=False, on_unused_input="ignore")


def _fixed_bounds(rv: Any, transform: Any) -> tuple[Any, Any] | None:
    """The box a variable lives in; None when it is no box, or depends on other variables."""
    if transform is None:
        return -math.inf, math.inf
    transforms = optional_module("pymc.distributions.transforms", "pymc")
    boxes = {
        type(transforms.log): (0.0, math.inf),
        type(transforms.log_exp_m1): (0.0, math.inf),
        type(transforms.logodds): (0.0, 1.0),
        type(transforms.circular): (-math.pi, math.pi),
    }
    if type(transform) in boxes:
        return boxes[type(transform)]
    if not isinstance(transform, transforms.Interval):
        return None
    edges = transform.args_fn(*rv.owner.inputs)
    given = [edge for edge in edges if edge is not None]
    if optional_module("pymc.pytensorf", "pymc").rvs_in_graph(given):
        return None
    low, high = (None if edge is None else edge.eval() for edge in edges)
    return -math.inf if low is None else low, math.inf if high is None else high


def _refuse_unusable(model: Any) -> None:
    discrete = {variable.name for variable in model.discrete_value_vars}
    faults = [
        f"{name} is discrete: sum it out of the model, since sparing infers continuous parameters"
        for name in sorted(discrete)
    ]
    faults += [
        f"{rv.name} has an improper prior, so there is no evidence: give it a proper one"
        for rv in model.free_RVs
        if type(rv.owner.op).__name__ in ("FlatRV", "HalfFlatRV")
    ]
    if not model.free_RVs:
        faults.append("the model has no free variable: there is nothing to infer")
    if faults:
        raise ProblemError(faults)
