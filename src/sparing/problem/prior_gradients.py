"""Derivatives of log prior densities: in closed form for the usual families, else by differences.

z = (x - loc) / scale      h   step of a central difference
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from sparing.numerics.arrays import Array

# Rounding and truncation of a central difference balance at about this share of the length on
# which a function changes.
STEP_SHARE = float(np.cbrt(np.finfo(np.float64).eps))
FEWEST_SPACINGS = 16.0  # of doubles at x, in a step


def _ratio(numerator: float, denominator: float) -> float:
    """Zero where the numerator is, also at the edge of the support."""
    return 0.0 if numerator == 0.0 else numerator / denominator


# d log p / dz for z inside the support and shape parameters in the order of scipy.stats, by the
# class of the family there.
DERIVATIVES: Mapping[str, Callable[..., Any]] = {
    "norm_gen": lambda z: -z,
    "truncnorm_gen": lambda z, *_: -z,
    "halfnorm_gen": lambda z: -z,
    "uniform_gen": lambda *_: 0.0,
    "expon_gen": lambda *_: -1.0,
    "laplace_gen": lambda z: -np.sign(z),
    "logistic_gen": lambda z: -np.tanh(0.5 * z),
    "cauchy_gen": lambda z: -2.0 * z / (1.0 + z * z),
    "halfcauchy_gen": lambda z: -2.0 * z / (1.0 + z * z),
    "t_gen": lambda z, df: -(1.0 + 1.0 / df) * z / (1.0 + z * z / df),
    "gamma_gen": lambda z, a: _ratio(a - 1.0, z) - 1.0,
    "invgamma_gen": lambda z, a: (1.0 / z - (a + 1.0)) / z,
    "beta_gen": lambda z, a, b: _ratio(a - 1.0, z) - _ratio(b - 1.0, 1.0 - z),
    "lognorm_gen": lambda z, s: -(1.0 + np.log(z) / s**2) / z,
    "reciprocal_gen": lambda z, *_: -1.0 / z,  # loguniform
}


def univariate_derivative(distribution: Any, x: float, step: float) -> float:
    """The derivative of logpdf at x, within the support of a univariate distribution."""
    family: Any = getattr(distribution, "dist", None)
    known = DERIVATIVES.get(type(family).__name__)
    if known is None or not type(family).__module__.startswith("scipy.stats"):
        gradient = differences(lambda at: float(distribution.logpdf(at[0])), [x], [step])
        return float(gradient[0])
    shapes = [name.strip() for name in family.shapes.split(",")] if family.shapes else []
    given = dict(zip([*shapes, "loc", "scale"], distribution.args, strict=False))
    values = {"loc": 0.0, "scale": 1.0, **given, **distribution.kwds}
    scale = float(values["scale"])
    z = np.float64(x - float(values["loc"])) / scale
    with np.errstate(all="ignore"):
        return float(known(z, *(float(values[name]) for name in shapes)) / scale)


def multivariate_gradient(distribution: Any, x: Array) -> Array | None:
    """Of the log density of a joint normal or t distribution, (D,); None of any other."""
    match type(distribution).__name__:
        case "multivariate_normal_frozen":
            return -np.linalg.solve(distribution.cov, x - distribution.mean)
        case "multivariate_t_frozen":
            away = x - distribution.loc
            pulled = np.linalg.solve(distribution.shape, away)
            # (df + D) / (df + r^2), also for the normal limit df = inf
            df = distribution.df
            return -pulled * (1.0 + len(x) / df) / (1.0 + float(away @ pulled) / df)
        case _:
            return None


def differences(function: Callable[[Array], float], x: Any, steps: Any) -> Array:
    """The gradient of a function by central differences, (D,); NaN where it has no neighbours.

    At the edge of a support, where one neighbour has no density, by the other alone.
    """
    point = np.array(x, dtype=np.float64)
    gradient = np.full(len(point), np.nan)
    with np.errstate(all="ignore"):
        for i, h in enumerate(steps):
            places, values = [], []
            for at in (point[i] - h, point[i] + h, point[i]):
                if len(places) == 2:
                    break  # both neighbours have a value
                moved = point.copy()
                moved[i] = at
                value = function(moved)
                if np.isfinite(value):
                    places.append(at)
                    values.append(value)
            if len(places) == 2 and places[0] != places[1]:
                gradient[i] = (values[1] - values[0]) / (places[1] - places[0])
    return gradient


def difference_steps(x: Array, width: Array, lower: Array, upper: Array) -> Array:
    """h (D,) for a density that changes over the width of a box, or over the way to a bound."""
    to_bound = np.minimum(x - lower, upper - x)
    length = np.where(to_bound > 0.0, np.minimum(width, to_bound), width)
    return np.maximum(STEP_SHARE * length, FEWEST_SPACINGS * np.spacing(np.abs(x)))
