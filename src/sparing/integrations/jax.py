"""A function of JAX as a log density.

JAX computes in single precision unless it is told otherwise: at a log density of 10^5 that is
an error of 0.01, which a surrogate takes for structure. Here double precision is switched on for
the call alone, and the setting of the rest of the program stays as it is.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from sparing.errors import InvalidValueError
from sparing.integrations.shared import checked_value, new_key, once_per_process, optional_module
from sparing.numerics.arrays import Array
from sparing.problem.gradients import LogDensityWithGradient

__all__ = ["from_jax"]


@dataclass(frozen=True, eq=False)
class JaxLogDensity(LogDensityWithGradient):
    """A JAX function called in double precision; pickles when the function does."""

    function: Callable[[Any], Any]
    jit: bool = True
    key: str = field(default_factory=new_key, repr=False)

    def __call__(self, x: Array) -> float:
        """The log density at one point x (D,)."""
        jax = optional_module("jax", "jax")
        with jax.enable_x64(True):
            function = self.function
            if self.jit:
                function = once_per_process(self.key, lambda: jax.jit(self.function))
            return checked_value(function(jax.numpy.asarray(x)), "jax.numpy.float64")

    def value_and_gradient(self, x: Array) -> tuple[float, Array | None]:
        """The log density and its gradient; None for a function that JAX cannot differentiate."""
        jax = optional_module("jax", "jax")

        def scalar(x: Any) -> Any:
            value = jax.numpy.asarray(self.function(x))
            if value.size != 1:
                raise InvalidValueError("returned an array instead of one real number")
            return value.reshape(())

        with jax.enable_x64(True):
            function = jax.value_and_grad(scalar)
            if self.jit:
                function = once_per_process(f"{self.key} gradient", lambda: jax.jit(function))
            try:
                value, gradient = function(jax.numpy.asarray(x))
            except Exception:  # what the function itself raises it raises again
                return self(x), None
            return checked_value(value, "jax.numpy.float64"), np.asarray(gradient)


def from_jax(function: Callable[[Any], Any], *, jit: bool = True) -> JaxLogDensity:
    """``function``, which takes a JAX array (D,) and returns one number, for `sparing.Problem`.

    It gets double precision whatever ``jax_enable_x64`` says. Arrays of single precision that it
    closes over keep theirs; a result of single precision brings a warning. With ``jit=False`` it
    is called as it is, for functions that `jax.jit` cannot compile. The problem uses its gradient,
    by `jax.value_and_grad`, unless it is given ``gradient=False``. To use several processes,
    give ``LocalProcesses(workers=N, start_method="spawn")``: JAX does not survive a fork.

    >>> import jax.numpy as jnp, sparing
    >>> problem = sparing.Problem(from_jax(lambda x: -0.5 * jnp.sum(x**2)), [-2, -2], [2, 2])
    >>> problem.log_joint_and_gradient([1.0, 1.0])
    (-1.0, array([-1., -1.]))
    """
    return JaxLogDensity(function, jit)
