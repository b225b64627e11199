"""Conformance suite for rules that choose points: what the algorithm relies on.

``check_rule(rule)`` lets the rule choose points in one, two and five dimensions, with one and with
several samples of the surrogate, and with posteriors of both kinds.

    q   the posterior, a mixture of normals        z   points in units of q: mean 0, covariance I
"""

from __future__ import annotations

import dataclasses
import random
from collections.abc import Callable, Generator
from contextlib import contextmanager
from typing import Any, cast

import numpy as np

from sparing.acquisition.rules import PointRule
from sparing.acquisition.search import search_box
from sparing.numerics.arrays import Array
from sparing.numerics.quasi_random import latin_hypercube
from sparing.surrogate.collapsed_training import Collapsed
from sparing.surrogate.interface import Surrogate
from sparing.surrogate.training_set import TrainingSet
from sparing.variational.mixture import GaussianMixture
from sparing.variational.normal_mixture import Mixture

# (D, samples of the surrogate; None: the best one)
SITUATIONS = ((1, None), (2, 4), (5, 3))
# Draws of a held-out rule, and what their moments may be. The covariance of 500 draws in two
# dimensions is within a quarter of the truth; a rule may stretch its draws, to twice the sd.
N_DRAWS = 500
LARGEST_SHIFT = 5.0 / N_DRAWS**0.5
SMALLEST_VARIANCE, LARGEST_VARIANCE = 0.75, 5.0
GLOBAL_SEED = 271828  # one that nobody seeds with


def check_rule(rule: PointRule) -> None:
    """Raise an `AssertionError` that says what a rule does wrong.

    >>> from sparing.strategies import PosteriorDraw
    >>> from sparing.testing import check_rule
    >>> check_rule(PosteriorDraw(widening=1.5))
    """
    check_it_is_data(rule)
    _check_facts(rule)
    for dimension, n_samples in SITUATIONS:
        surrogate, mixture = example_situation(dimension, n_samples)
        for check in (
            _check_points,
            _check_equal_generators_give_equal_points,
            _check_nothing_is_changed,
        ):
            try:
                check(rule, surrogate, mixture)
            except AssertionError as error:
                raise AssertionError(f"in {dimension} dimensions, {error}") from error
    if rule.held_out and not rule.reaches_out:
        _check_draws_are_the_posterior(rule)


def example_situation(dimension: int, n_samples: int | None) -> tuple[Surrogate, Mixture]:
    """A surrogate in the middle of a run, and a lopsided posterior; with samples a sheared one."""
    generator = np.random.default_rng([2018, dimension])
    inputs = 1.2 * (latin_hypercube(12 + 2 * dimension, dimension, generator) - 0.5)
    values = -8.0 * ((inputs - 0.1) ** 2).sum(axis=1) + np.sin(4.0 * inputs[:, 0]) - 100.0
    surrogate = Collapsed().train(TrainingSet(inputs, values), n_samples, generator)
    mixture: Mixture = GaussianMixture(
        weights=np.array([0.6, 0.3, 0.1]),
        means=0.1 + np.outer([0.0, 0.15, -0.2], np.linspace(1.0, 0.5, dimension)),
        scales=np.array([1.0, 0.6, 0.3]),
        lengths=np.linspace(0.2, 0.3, dimension),
    )
    if n_samples is not None:
        sheared = np.eye(dimension) + 0.5 * np.eye(dimension, k=-1)
        mixture = mixture.image(sheared, np.zeros(dimension))
    shown = OnlyInterface(surrogate, Surrogate, "surrogate")
    return cast(Surrogate, shown), cast(Mixture, OnlyInterface(mixture, Mixture, "posterior"))


class OnlyInterface:
    """A surrogate or a posterior that shows nothing but what every one of them has."""

    def __init__(self, inner: object, interface: type, what: str) -> None:
        self._inner = inner
        self._interface = interface
        self._what = what

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):  # Python's own questions
            raise AttributeError(name)
        shown = {*vars(self._interface), *self._interface.__annotations__}
        if name.startswith("_") or name not in shown:
            raise AssertionError(
                f"it looks at .{name} of the {self._what}, which is not for others"
            )
        found = getattr(self._inner, name)
        if name in ("append", "subset"):
            return lambda *given, **named: OnlyInterface(
                found(*given, **named), self._interface, self._what
            )
        return found


def check_it_is_data(strategy: object) -> None:
    """What identifies a run must not change while it lasts."""
    parameters = getattr(type(strategy), "__dataclass_params__", None)
    frozen = dataclasses.is_dataclass(strategy) and getattr(parameters, "frozen", False)
    assert frozen, "it is no frozen dataclass: a run is identified by the fields of its strategies"


def _check_facts(rule: PointRule) -> None:
    assert isinstance(rule.name, str) and rule.name.strip(), "it has no name to be recorded by"
    for fact in ("held_out", "reaches_out"):
        value = getattr(rule, fact, None)
        assert isinstance(value, bool), f"{fact} is {value!r}, not True or False"


def _check_points(rule: PointRule, surrogate: Surrogate, mixture: Mixture) -> None:
    lower, upper = search_box(surrogate, mixture)
    for seed in range(2):
        point = rule.choose(surrogate, mixture, np.random.default_rng(seed))
        wanted = (mixture.dimension,)
        assert isinstance(point, np.ndarray), f"a point is a {type(point).__name__}, no array"
        assert point.shape == wanted, f"a point has the shape {point.shape}, not {wanted}"
        assert point.dtype == np.float64, f"a point is of type {point.dtype}, not float64"
        assert np.isfinite(point).all(), f"the point {point} is not finite"
        inside = np.all((lower <= point) & (point <= upper))
        assert inside, f"the point {point} lies outside the search box from {lower} to {upper}"


def _check_equal_generators_give_equal_points(
    rule: PointRule, surrogate: Surrogate, mixture: Mixture
) -> None:
    with global_generators_untouched():
        first, _, again = (
            rule.choose(surrogate, mixture, np.random.default_rng(seed)) for seed in (1, 2, 1)
        )
    assert first.tobytes() == again.tobytes(), (
        "equal generators give different points: randomness comes from the generator alone, and "
        "nothing is remembered"
    )


@contextmanager
def global_generators_untouched() -> Generator[None]:
    """`AssertionError` when NumPy's or Python's global generator is drawn from, or seeded."""
    saved = np.random.get_state(), random.getstate()  # noqa: NPY002
    np.random.seed(GLOBAL_SEED)  # noqa: NPY002
    random.seed(GLOBAL_SEED)
    before = _global_states()
    try:
        yield
        assert _global_states() == before, "it draws from a global generator"
    finally:
        np.random.set_state(saved[0])  # noqa: NPY002
        random.setstate(saved[1])


def _global_states() -> tuple[object, ...]:
    _, key, position, *rest = np.random.get_state()  # noqa: NPY002
    return np.asarray(key).tobytes(), position, *rest, random.getstate()


def _check_nothing_is_changed(rule: PointRule, surrogate: Surrogate, mixture: Mixture) -> None:
    for what, contents in (
        ("surrogate", lambda: surrogate_contents(surrogate)),
        ("posterior", lambda: (mixture.weights, mixture.means)),
    ):
        before = _bits(contents)
        rule.choose(surrogate, mixture, np.random.default_rng(1))
        assert _bits(contents) == before, f"it changes the {what} it is given"


def surrogate_contents(surrogate: Surrogate) -> tuple[Array, ...]:
    """The arrays of a surrogate that others can reach."""
    training = surrogate.training
    data = (training.inputs, training.values, training.noise_variance)
    expansion = (array for array in surrogate.expansion.arrays if array is not None)
    return (*data, surrogate.parameters, surrogate.jitter, *expansion)


def _bits(contents: Callable[[], tuple[Array, ...]]) -> list[bytes]:
    return [array.tobytes() for array in contents()]


def _check_draws_are_the_posterior(rule: PointRule) -> None:
    """Moments: where q is, and as wide as q or somewhat wider."""
    surrogate, mixture = example_situation(2, None)
    generator = np.random.default_rng(1)
    draws = np.array([rule.choose(surrogate, mixture, generator) for _ in range(N_DRAWS)])
    root = np.linalg.cholesky(mixture.covariance)
    z = np.linalg.solve(root, (draws - mixture.mean).T)
    variances = np.linalg.eigvalsh(np.cov(z))
    claim = "held_out says that its points are draws from the posterior, but"
    shift = np.abs(z.mean(axis=1)).max() / max(1.0, variances[-1] ** 0.5)
    assert shift < LARGEST_SHIFT, f"{claim} they lie {shift:.2f} of its sds beside it"
    narrow, wide = variances[0] ** 0.5, variances[-1] ** 0.5
    assert variances[0] > SMALLEST_VARIANCE, f"{claim} their sds are {narrow:.2f} of its sds"
    assert variances[-1] < LARGEST_VARIANCE, f"{claim} their sds are {wide:.2f} of its sds"
