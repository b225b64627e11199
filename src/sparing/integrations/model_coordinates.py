"""The coordinates of a model from a probabilistic programming language.

    block    one variable of the model: a stretch of x
    x        all variables side by side, flattened in C order    (D,)
    n        number of draws

A variable whose support is a fixed box is inferred in its own coordinates, with the box as hard
bounds. Any other continuous variable (a simplex, an ordered vector, a Cholesky factor, an
interval that depends on another variable) is inferred in the unconstrained coordinates of its
language, and its density then includes the Jacobian. The evidence is the same in either.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sparing.errors import ProblemError, SettingsError
from sparing.numerics.arrays import Array
from sparing.problem.problem import Problem
from sparing.problem.reading import BOX_PROBABILITIES
from sparing.vbmc.run_record import RunRecord

# Draws from the prior that the plausible box is read from: its edges then have an error of about
# one twentieth of the prior's standard deviation.
PRIOR_DRAWS = 1000


@dataclass(frozen=True, eq=False)
class Block:
    """One variable: its name, shape and hard bounds, which broadcast to the shape."""

    name: str
    shape: tuple[int, ...]
    lower: Any = -math.inf
    upper: Any = math.inf

    @property
    def size(self) -> int:
        """How many entries of x are this variable's."""
        return math.prod(self.shape)

    def names(self) -> list[str]:
        """A name for each entry: ``rate``, or ``rate[0]``, ``rate[1]``, or ``rate[0,1]``."""
        if not self.shape:
            return [self.name]
        return [f"{self.name}[{','.join(map(str, index))}]" for index in np.ndindex(self.shape)]

    def bound(self, edge: Any) -> Array:
        """One of the bounds for each entry."""
        return np.broadcast_to(np.asarray(edge, dtype=np.float64), self.shape).ravel()


def split(x: Any, blocks: Sequence[Block]) -> list[Any]:
    """The variables in a point (D,) of NumPy, JAX or PyTensor, each in its shape."""
    starts = np.cumsum([0, *(block.size for block in blocks)]).tolist()
    return [
        x[start : start + block.size].reshape(block.shape)
        for start, block in zip(starts, blocks, strict=False)
    ]


def flat_names(blocks: Sequence[Block]) -> list[str]:
    """A name for each entry of x."""
    return [name for block in blocks for name in block.names()]


def problem_of_blocks(
    log_density: Callable[[Array], float],
    blocks: Sequence[Block],
    prior_draws: Sequence[NDArray[Any]],
    plausible: Mapping[str, tuple[float, float]] | None,
    **options: Any,
) -> Problem:
    """The problem in the blocks' coordinates; ``options`` as `Problem` has them.

    The plausible box is that of the prior draws, (n, *shape) each, but for the variables or
    entries that ``plausible`` names.
    """
    rows = [np.reshape(draws, (len(draws), -1)) for draws in prior_draws]
    low, high = np.quantile(np.concatenate(rows, axis=1), BOX_PROBABILITIES, axis=0)
    names = flat_names(blocks)
    owners = [block.name for block in blocks for _ in range(block.size)]
    given = plausible or {}
    unknown = [key for key in given if key not in names and key not in owners]
    if unknown:
        known = ", ".join(dict.fromkeys(owners))
        raise ProblemError([f"plausible names {k!r}; the variables are {known}" for k in unknown])
    for i, (name, owner) in enumerate(zip(names, owners, strict=True)):
        low[i], high[i] = given.get(name, given.get(owner, (low[i], high[i])))
    return Problem(
        log_density,
        low,
        high,
        lower=np.concatenate([block.bound(block.lower) for block in blocks]),
        upper=np.concatenate([block.bound(block.upper) for block in blocks]),
        names=names,
        **options,
    )


def draws_of_blocks(run: RunRecord, blocks: Sequence[Block], n: int, seed: int) -> Array:
    """n draws of all parameters from the posterior of a run, which must be one of this model."""
    expected = tuple(flat_names(blocks))
    if run.problem.all_names != expected:
        theirs, ours = ", ".join(run.problem.all_names), ", ".join(expected)
        raise SettingsError([f"the result is of another model: {theirs}, and this one's {ours}"])
    return run.problem.full(run.posterior.sample(n, seed=seed))
