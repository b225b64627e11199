"""What is to be inferred: a log density, its bounds, the names of its parameters, its prior.

    D                   number of parameters that are inferred
    x                   point of them in the user's coordinates             (D,)
    N, full x           all parameters, the fixed ones included             (N,)
    lower, upper        hard bounds, each side finite or infinite           (D,)
    PLB, PUB            plausible box, which holds most of the posterior    (D,)
    log joint           log_density(x), plus log prior(x) when a prior is given

Everything is checked when the problem is built, and all faults are reported together.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import ArrayLike

from sparing.errors import ProblemError
from sparing.numerics.arrays import Array
from sparing.problem.declared_support import DeclaredSupport, read_support
from sparing.problem.derived import Derived, read_derived
from sparing.problem.gradients import GradientSource, read_source
from sparing.problem.log_joint import LogJoint
from sparing.problem.parameters import Parameters
from sparing.problem.priors import Prior
from sparing.problem.reading import read_parameters
from sparing.problem.region import Points
from sparing.problem.user_values import function_name, short_text

Bounds: TypeAlias = ArrayLike | Sequence[float | None] | Mapping[str, float | None] | None


@dataclass(frozen=True, init=False, eq=False, repr=False)
class Problem(LogJoint):
    """An inference problem in the user's coordinates; immutable once built.

    log_density:  x (D,) -> float, the log joint, or the log likelihood when `prior` is given
    plausible_lower, plausible_upper:  box that holds most of the posterior mass; where it is not
                  given, the central 68 % of the prior, which must be independent distributions
    lower, upper: hard bounds; None, or None or an infinity for one parameter, means no bound but
                  the end of the prior's support
    names:        one per parameter; x1, x2, ... when not given
    prior:        see `sparing.problem.priors`
    periodic:     names of parameters that wrap at their bounds: angles, phases
    fixed:        parameters that are held at a value, by name
    support:      x -> bool, cheap: where it is False the density is zero, and the target is never
                  called; it may take many points at once, (m, N) -> (m,), which is found out
    derived:      x -> {name: number}: what follows from the parameters, for summary, report,
                  tables and pictures; it changes nothing else
    gradient:     True: log_density returns (value, gradient), with noise (value, gradient,
                  noise_sd); or a function of what log_density takes, called after it. Of what
                  log_density returns with respect to all parameters, (N,), in their own
                  coordinates: the prior's part and those of bounds are added here. Functions of
                  JAX and PyTorch (`sparing.integrations`) have theirs by themselves; False:
                  without
    args, kwargs: what log_density takes besides x: log_density(x, *args, **kwargs); args is a
                  tuple, or the one argument there is, as in scipy.optimize
    vectorised:   log_density takes many points, (m, N), and returns (m,) values, or a tuple of
                  values and their noise, with gradients, (m, N), between them where gradient is
                  True; m is 1 where there is one. A gradient that is a function takes one point

    Bounds, names and prior are about all parameters, and log_density always gets all of them.
    Everything else, from ``names`` to the posterior, is about those that are not fixed; a fixed
    one needs no plausible box and no prior of its own.

    A scalar bound holds for every parameter; D is the length of those that are sequences, and 1
    when all are scalars. Bounds may be mappings by name, in which a parameter without an entry has
    no hard bound; without ``names``, the first mapping gives them, in its order. The plausible box
    may touch the hard bounds. ProblemError lists all faults, each by the name of its parameter.

    >>> from scipy import stats
    >>> problem = sparing.Problem(
    ...     lambda x: -0.5 * float((x[0] * x[1] - 2.0) ** 2),
    ...     plausible_lower=[0.5, -3.0],
    ...     plausible_upper=[3.0, 3.0],
    ...     lower=[0.0, None],
    ...     names=["rate", "shift"],
    ...     prior={"rate": stats.gamma(2.0), "shift": stats.norm(0.0, 2.0)},
    ... )
    >>> problem
    Problem(2 parameters, log_density=__main__.<lambda>)
      rate   in [0, inf), plausibly [0.5, 3]
      shift  in (-inf, inf), plausibly [-3, 3]
      prior: gamma, norm
    >>> problem.dimension
    2
    >>> sparing.Problem(lambda x, data: -float(data @ x), prior=[stats.expon()], args=np.ones(1))
    Problem(1 parameter, log_density=__main__.<lambda>)
      x1  in [0, inf), plausibly [0.172807, 1.84074]
      prior: expon
    """

    log_density: Callable[[Array], Any]
    plausible_lower: Array
    plausible_upper: Array
    lower: Array
    upper: Array
    names: tuple[str, ...]
    prior: Prior | None
    periodic: tuple[str, ...]
    parameters: Parameters
    support: DeclaredSupport | None
    derived: Derived | None
    gradient: GradientSource | None
    args: tuple[Any, ...]
    kwargs: Mapping[str, Any]
    vectorised: bool

    def __init__(
        self,
        log_density: Callable[[Array], Any],
        plausible_lower: Bounds = None,
        plausible_upper: Bounds = None,
        lower: Bounds = None,
        upper: Bounds = None,
        names: Sequence[str] | str | None = None,
        prior: object = None,
        periodic: Sequence[str] | str | None = None,
        fixed: Mapping[str, float] | None = None,
        support: Callable[[Array], Any] | DeclaredSupport | None = None,
        derived: Callable[[Array], Mapping[str, float]] | None = None,
        *,
        gradient: bool | Callable[..., Any] | GradientSource | None = None,
        args: Any = (),
        kwargs: Mapping[str, Any] | None = None,
        vectorised: bool = False,
    ) -> None:
        faults: list[str] = []
        if not callable(log_density):
            faults.append(f"log_density must be callable, not {short_text(log_density)}")
        if kwargs is not None and not isinstance(kwargs, Mapping):
            faults.append(f"kwargs must map names to values, not {short_text(kwargs)}")
        if not isinstance(vectorised, bool):
            faults.append(f"vectorised must be True or False, not {short_text(vectorised)}")
        source = read_source(gradient, log_density, faults)
        bounds = {
            "plausible_lower": plausible_lower,
            "plausible_upper": plausible_upper,
            "lower": lower,
            "upper": upper,
        }
        parameters, parsed_prior = read_parameters(bounds, names, prior, fixed, periodic, faults)
        declared = None if faults else read_support(support, parameters, faults)
        quantities = None if faults else read_derived(derived, parameters, declared, faults)
        if faults:
            raise ProblemError(faults)
        self.__setstate__(
            {
                "log_density": log_density,
                **parameters.free_vectors,
                "names": parameters.free_names,
                "prior": parsed_prior,
                "periodic": parameters.free_periodic,
                "parameters": parameters,
                "support": declared,
                "derived": quantities,
                "gradient": source,
                "args": args if isinstance(args, tuple) else (args,),
                "kwargs": dict(kwargs or {}),
                "vectorised": vectorised,
            }
        )

    def __setstate__(self, state: dict[str, Any]) -> None:
        """Set every field; also called when unpickling, which forgets that arrays are read-only."""
        for name, value in state.items():
            if isinstance(value, np.ndarray):
                value.setflags(write=False)
            object.__setattr__(self, name, value)

    @property
    def dimension(self) -> int:
        """D, the number of parameters that are inferred."""
        return len(self.names)

    @property
    def fixed(self) -> dict[str, float]:
        """The parameters that are held at a value.

        >>> problem.fix(offset=-0.5).fixed
        {'offset': -0.5}
        """
        return dict(self.parameters.fixed)

    @property
    def all_names(self) -> tuple[str, ...]:
        """The names of all parameters, in the order in which log_density takes them.

        >>> nested = problem.fix(slope=1.0)
        >>> nested.names, nested.all_names
        (('offset',), ('slope', 'offset'))
        """
        return self.parameters.names

    def fix(self, values: Mapping[str, float] | None = None, /, **by_name: float) -> Problem:
        """The problem with these parameters held at a value, beside those that are already.

        >>> nested = problem.fix(offset=-0.5)
        >>> nested.names, nested.log_joint([1.2]) == problem.log_joint([1.2, -0.5])
        (('slope',), True)
        >>> problem.fix({"offset": -0.5}).fixed  # for names that are no words of Python
        {'offset': -0.5}
        """
        return self._with_fixed({**self.fixed, **(values or {}), **by_name})

    def free(self, *names: str) -> Problem:
        """The problem with these parameters inferred again; without names, all of them.

        >>> problem.fix(offset=-0.5).free("offset").names
        ('slope', 'offset')
        """
        freed = names or tuple(self.fixed)
        held = ", ".join(self.fixed) or "nothing"
        faults = [f"{name!r} is not fixed; {held} is" for name in freed if name not in self.fixed]
        if faults:
            raise ProblemError(faults)
        return self._with_fixed({n: value for n, value in self.fixed.items() if n not in freed})

    def _with_fixed(self, fixed: Mapping[str, float]) -> Problem:
        given = self.parameters
        return Problem(
            self.log_density,
            **given.vectors,
            names=given.names,
            prior=given.prior,
            periodic=given.periodic,
            fixed=fixed,
            support=self.support,
            derived=self.derived and self.derived.function,
            gradient=self.gradient or False,
            args=self.args,
            kwargs=self.kwargs,
            vectorised=self.vectorised,
        )

    def full(self, x: ArrayLike) -> Array:
        """Points x (D,) or (m, D) with the fixed parameters in their places: (N,) or (m, N).

        That is what log_density takes, as any function of yours does that is called here.

        >>> problem.fix(slope=1.0).full([0.3])
        array([1. , 0.3])
        """
        return self.parameters.full(np.asarray(x, dtype=np.float64))

    def inner_plausible_box(self) -> tuple[Array, Array]:
        """(PLB, PUB), moved inside by INWARD_FRACTION of their width where on a hard bound.

        >>> low, high = sparing.Problem(lambda x: 0.0, 0.0, 5.0, lower=0.0).inner_plausible_box()
        >>> float(low[0]), float(high[0])
        (0.005, 5.0)
        """
        return self._region.inner_plausible_box()

    def starting_points(self, x0: Points | None) -> Array:
        """x0 as points (k, D): none for None, one from (D,), several from (k, D), or by name.

        A coordinate exactly on a hard bound is moved inside, by INWARD_FRACTION of the plausible
        width, or to the plausible bound when that is nearer. ProblemError lists all faults.

        >>> problem.starting_points([1.0, 0.0])
        array([[1., 0.]])
        >>> problem.starting_points([[1.0, 0.0], [1.5, -0.5]]).shape
        (2, 2)
        >>> problem.starting_points({"offset": 0.0, "slope": [1.0, 1.5]})
        array([[1. , 0. ],
               [1.5, 0. ]])
        """
        return self._region.starting_points(x0)

    def read_points(self, x: Points, label: str = "x") -> Array:
        """One point (D,) or several (k, D) as they are: (k, D), finite and within the bounds.

        Points of all parameters, (N,) or (k, N), are as welcome, and numbers or sequences by the
        names of the parameters. ProblemError lists all faults;
        ``label`` is what it calls the argument.

        >>> problem.read_points([1.0, 0.0])
        array([[1., 0.]])
        """
        return self._region.read_points(x, label)

    def __repr__(self) -> str:
        count = f"{self.dimension} parameter{'' if self.dimension == 1 else 's'}"
        held = f", {len(self.fixed)} fixed" if self.fixed else ""
        lines = [f"Problem({count}{held}, log_density={function_name(self.log_density)})"]
        lines += self.parameters.lines()
        if self.prior is not None:
            lines.append(f"  prior: {self.prior}")
        if self.support is not None:
            lines.append(f"  support: {self.support}")
        if self.derived is not None:
            lines.append(f"  derived: {', '.join(self.derived.names)}")
        if self.gradient is not None:
            lines.append(f"  gradient: {self.gradient}")
        return "\n".join(lines)
