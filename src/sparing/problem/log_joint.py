"""The log joint of a problem at one point, in parts and with its gradient.

D           number of parameters that are inferred
x           point of them in the user's coordinates                     (D,)
log joint   log_density(x), plus log prior(x) when a prior is given
gradient    of the log joint, the prior's part included                 (D,)
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from sparing.errors import InvalidValueError
from sparing.numerics.arrays import Array
from sparing.problem.declared_support import DeclaredSupport
from sparing.problem.gradients import GradientSource
from sparing.problem.parameters import Parameters
from sparing.problem.prior_gradients import difference_steps
from sparing.problem.priors import Prior
from sparing.problem.region import Region
from sparing.problem.user_values import estimated_log_value, log_value
from sparing.problem.vectorised import point_by_point


class LogJoint:
    """What a problem evaluates; `Problem` sets the attributes.

    A base class, not a part of it: so the target is called one frame less deep.
    """

    log_density: Callable[..., Any]
    plausible_lower: Array
    plausible_upper: Array
    lower: Array
    upper: Array
    prior: Prior | None
    parameters: Parameters
    support: DeclaredSupport | None
    gradient: GradientSource | None
    args: tuple[Any, ...]
    kwargs: Mapping[str, Any]
    vectorised: bool

    @property
    def _region(self) -> Region:
        box = self.plausible_lower, self.plausible_upper
        return Region(self.parameters, self.support, self.lower, self.upper, *box)

    def log_prior(self, x: ArrayLike) -> float:
        """Log prior at one point: -inf outside bounds and support, 0 inside without a prior.

        >>> from scipy import stats
        >>> problem = sparing.Problem(lambda x: 0.0, 0.5, 3.0, lower=0.0, prior=stats.expon())
        >>> problem.log_prior(2.0), problem.log_prior(-1.0)
        (-2.0, -inf)
        """
        return self._log_prior(self._region.point(x))

    def log_joint(self, x: ArrayLike) -> float:
        """Log joint at one point; InvalidValueError when there is no such value.

        log_density gets a fresh array it may change, and is not called where the prior is zero,
        or outside the bounds or the support.

        >>> problem.log_joint([1.2, -0.3])
        -0.5
        """
        return self.estimated_log_joint(x)[0]

    def estimated_log_joint(self, x: ArrayLike) -> tuple[float, float]:
        """Log joint at one point, and the standard deviation of its noise (0 when exact).

        >>> noisy = sparing.Problem(lambda x: (-0.5, 0.1), -1.0, 1.0)
        >>> noisy.estimated_log_joint([0.3])
        (-0.5, 0.1)
        """
        return self.log_joint_in_parts(x)[:2]

    def log_joint_in_parts(
        self, x: ArrayLike, returned: Callable[[Array], Any] | None = None
    ) -> tuple[float, float, float]:
        """Log joint at one point, the sd of its noise, and the log prior in it (NaN without one).

        ``returned`` knows what log_density returned at a point (D,), where it was called before.

        >>> from scipy import stats
        >>> sparing.Problem(lambda x: -0.5, 0, 3, prior=stats.expon()).log_joint_in_parts(2.0)
        (-2.5, 0.0, -2.0)
        """
        return self.log_joint_in_parts_and_gradient(x, returned, wanted=False)[0]

    def log_joint_and_gradient(self, x: ArrayLike) -> tuple[float, Array | None]:
        """Log joint at one point, and its gradient (D,), the prior's part included.

        The gradient is None where the problem has none, or gave none that can be used.

        >>> from scipy import stats
        >>> steep = sparing.Problem(
        ...     lambda x: (-float(x @ x), -2.0 * x), prior=[stats.expon()], gradient=True
        ... )
        >>> steep.log_joint_and_gradient([2.0])
        (-6.0, array([-5.]))
        """
        (value, _, _), gradient, _ = self.log_joint_in_parts_and_gradient(x)
        return value, gradient

    def log_joint_in_parts_and_gradient(
        self, x: ArrayLike, returned: Callable[[Array], Any] | None = None, *, wanted: bool = True
    ) -> tuple[tuple[float, float, float], Array | None, str]:
        """As `log_joint_in_parts`, the gradient (D,), and why there is none where one was due.

        Where it is not ``wanted``, no time is spent on it.

        >>> problem.log_joint_in_parts_and_gradient([1.2, -0.3])
        ((-0.5, 0.0, nan), None, '')
        """
        point, source = self._region.point(x), self.gradient
        log_prior = self._log_prior(point)
        own = math.nan if self.prior is None else log_prior
        if log_prior == -np.inf:
            return (-np.inf, 0.0, own), None, ""
        call = source.call(self.log_density) if source and wanted else self.log_density
        try:
            if returned is not None:
                answer = returned(point)
            elif self.vectorised:
                (answer,) = self.returned_at(point[None])
            else:
                answer = call(self.parameters.full(point), *self.args, **self.kwargs)
            value, noise_sd = estimated_log_value(source.value_in(answer) if source else answer)
        except InvalidValueError as error:
            place = self.parameters.text(point)
            raise InvalidValueError(f"log_density {error}, at {place}") from None
        parts = value + log_prior, noise_sd, own
        if source is None or not wanted or not math.isfinite(parts[0]):
            return parts, None, ""
        width = self.plausible_upper - self.plausible_lower
        steps = difference_steps(point, width, self.lower, self.upper)
        gradient, missing = source.completed(
            answer, point, self.parameters, self.prior, steps, self.args, self.kwargs
        )
        return parts, gradient, missing

    def returned_at(self, points: Array) -> list[Any]:
        """What a vectorised log_density returns for points (m, D), in one call: an item for each.

        >>> many = sparing.Problem(lambda x: -0.5 * x[:, 0] ** 2, -1.0, 1.0, vectorised=True)
        >>> [float(value) for value in many.returned_at(np.array([[1.0], [2.0]]))]
        [-0.5, -2.0]
        """
        x = self.parameters.full(np.asarray(points, dtype=np.float64))
        returned = self.log_density(x.copy(), *self.args, **self.kwargs)
        return point_by_point(returned, x)  # whatever became of the copy

    def _log_prior(self, point: Array) -> float:
        if not self._region.contains(point):
            return -np.inf
        if self.prior is None:
            return 0.0
        try:
            return log_value(self.prior.log_density(point.copy()))
        except InvalidValueError as error:
            place = self.parameters.text(point)
            raise InvalidValueError(f"the log prior {error}, at {place}") from None
