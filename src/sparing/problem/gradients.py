"""The gradient of the log density, for models that can give one.

    N         all parameters, the fixed ones included
    gradient  of what log_density returns, in the user's coordinates      (N,)

Where a gradient cannot be used it counts as not given, for a reason in words; the value counts all
the same.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from sparing.errors import InvalidValueError
from sparing.numerics.arrays import Array
from sparing.problem.evaluations import Evaluation
from sparing.problem.parameters import Parameters
from sparing.problem.priors import Prior
from sparing.problem.user_values import function_name, numeric_array, short_text
from sparing.problem.warning_text import WarningText, WarningTopic

# How `Outcome.message` begins where there is a value and no gradient.
NO_GRADIENT = "no gradient: "


class LogDensityWithGradient(ABC):
    """A log density that knows its gradient, as those of automatic differentiation do.

    A problem uses it unless it is given ``gradient=False``.
    """

    @abstractmethod
    def __call__(self, x: Array) -> float:
        """The log density at one point x (N,)."""

    @abstractmethod
    def value_and_gradient(self, x: Array) -> tuple[float, Array | None]:
        """The log density and its gradient (N,) there, None where it cannot be had."""


class GradientSource(ABC):
    """Where the gradient of a log density comes from."""

    def call(self, log_density: Callable[..., Any]) -> Callable[..., Any]:
        """What is called where the gradient is wanted as well."""
        return log_density

    @abstractmethod
    def value_in(self, returned: Any) -> Any:
        """The value, or (value, noise_sd), in what log_density returned."""

    @abstractmethod
    def gradient_in(
        self, returned: Any, x: Array, args: Sequence[Any], kwargs: Mapping[str, Any]
    ) -> Any:
        """The gradient as it is given, at the full point x (N,) at which that was returned."""

    def completed(
        self,
        returned: Any,
        x: Array,
        parameters: Parameters,
        prior: Prior | None,
        steps: Array,
        args: Sequence[Any],
        kwargs: Mapping[str, Any],
    ) -> tuple[Array | None, str]:
        """The gradient of the log joint at x (D,), the prior's part included, or why there is none.

        ``steps`` (D,) are those of differences of a prior without one in closed form.
        """
        names = parameters.free_names
        try:
            given = self.gradient_in(returned, parameters.full(x), args, kwargs)
            own = read_gradient(given, parameters.names)[parameters.is_free]
            require_finite(own, names)
            if prior is None:
                return own, ""
            of_prior = prior.gradient(x.copy(), steps)
            return own + require_finite(of_prior, names, "that of the log prior"), ""
        except InvalidValueError as error:
            return None, f"{NO_GRADIENT}{error}"


@dataclass(frozen=True)
class ReturnedGradient(GradientSource):
    """log_density returns (value, gradient), or (value, gradient, noise_sd)."""

    def value_in(self, returned: Any) -> Any:
        """All but the gradient; a value alone comes without one."""
        if not _has_gradient(returned):
            return returned
        return returned[0] if len(returned) == 2 else (returned[0], returned[2])

    def gradient_in(
        self, returned: Any, x: Array, args: Sequence[Any], kwargs: Mapping[str, Any]
    ) -> Any:
        """What stands beside the value."""
        return returned[1] if _has_gradient(returned) else None

    def __str__(self) -> str:
        return "returned with the value"


@dataclass(frozen=True)
class OwnGradient(ReturnedGradient):
    """That of a `LogDensityWithGradient`, computed only where it is wanted."""

    def call(self, log_density: Callable[..., Any]) -> Callable[..., Any]:
        """Its method that has both."""
        assert isinstance(log_density, LogDensityWithGradient)
        return log_density.value_and_gradient

    def __str__(self) -> str:
        return "by differentiation"


@dataclass(frozen=True)
class GradientFunction(GradientSource):
    """A function of its own, called after log_density with the same arguments."""

    function: Callable[..., Any]

    def value_in(self, returned: Any) -> Any:
        """All of it."""
        return returned

    def gradient_in(
        self, returned: Any, x: Array, args: Sequence[Any], kwargs: Mapping[str, Any]
    ) -> Any:
        """What the function returns; what it raises is the reason why there is none."""
        try:
            return self.function(x, *args, **kwargs)
        except Exception as error:
            text = f"{type(error).__name__}: {short_text(str(error))}"
            raise InvalidValueError(f"its function raised {text}") from error

    def __str__(self) -> str:
        return function_name(self.function)


def read_source(gradient: object, log_density: object, faults: list[str]) -> GradientSource | None:
    """The argument ``gradient`` of a problem: True, a function, False, or what there is."""
    wanted = gradient is None or gradient is True
    if wanted and isinstance(log_density, LogDensityWithGradient):
        return OwnGradient()
    if gradient is None or gradient is False or isinstance(gradient, GradientSource):
        return gradient or None
    if gradient is True:
        return ReturnedGradient()
    if callable(gradient):
        return GradientFunction(gradient)
    faults.append(
        "gradient must be True, for a log_density that returns (value, gradient), or a function"
        f" of x, not {short_text(gradient)}"
    )
    return None


def read_gradient(given: object, names: Sequence[str]) -> Array:
    """A gradient as an array, one number per name; InvalidValueError for any other shape."""
    if given is None:
        raise InvalidValueError("it is missing")
    try:
        array = numeric_array(given)
    except (TypeError, ValueError) as error:
        raise InvalidValueError(f"it {error}") from None
    if len(names) == 1 and array.ndim == 0:
        array = array.reshape(1)
    if array.shape != (len(names),):
        raise InvalidValueError(f"its shape is {array.shape}, not ({len(names)},)")
    return array


def require_finite(gradient: Array, names: Sequence[str], subject: str = "it") -> Array:
    """The gradient as it is; InvalidValueError names the first entry that is not finite."""
    if np.all(np.isfinite(gradient)):
        return gradient
    first = int(np.argmin(np.isfinite(gradient)))
    raise InvalidValueError(f"{subject} is {gradient[first]} with respect to {names[first]}")


def gradient_warnings(evaluations: Sequence[Evaluation]) -> tuple[WarningText, ...]:
    """How many values came without the gradient that was due, and why the first did."""
    due = [entry for entry in evaluations if entry.usable]
    missing = [entry.message for entry in due if entry.message.startswith(NO_GRADIENT)]
    if not missing:
        return ()
    text = (
        f"{len(missing)} of {len(due)} evaluations gave no gradient that can be used (first: "
        f"{missing[0].removeprefix(NO_GRADIENT)}); of those only the values count"
    )
    return (WarningText(WarningTopic.GRADIENTS, text),)


def _has_gradient(returned: object) -> bool:
    return isinstance(returned, tuple | list) and len(returned) in (2, 3)
