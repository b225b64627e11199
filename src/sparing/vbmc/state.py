"""The state of a run between two iterations: frozen, and all that the next one needs.

t      iteration, counted from 1            q_t   variational posterior
K_t    its number of components             psi   GP hyperparameters
"""

from __future__ import annotations

import enum
from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np

from sparing.numerics.arrays import Array
from sparing.problem.parameter_transform import ParameterTransform
from sparing.surrogate.interface import Surrogate
from sparing.surrogate.known_support import AnySupport
from sparing.variational.elbo import Elbo
from sparing.variational.mixture import GaussianMixture
from sparing.variational.posterior import Posterior
from sparing.vbmc.evidence import Evidence
from sparing.vbmc.stopping import Reliability

# The first q: two components near x0, small against the plausible box, which has width 1
# (Section 3.5 asks for "small values" only).
INITIAL_COMPONENTS = 2
INITIAL_SCALE = 0.01
NEVER = -99  # long before the first iteration


class Phase(enum.Enum):
    """Where a run stands."""

    SEARCHING = "searching"  # for the bulk of the posterior: the warm-up (Section 3.5)
    ADAPTING = "adapting"  # the warm-up has just ended: q adapts before new points are chosen
    SETTLED = "settled"


@dataclass(frozen=True)
class Iteration:
    """What one iteration did and found."""

    iteration: int
    n_evaluations: int
    n_training: int
    elbo: float
    elbo_sd: float
    elcbo: float
    log_evidence: float
    log_evidence_sd: float
    n_components: int
    n_pruned: int
    n_hyperparameter_samples: int
    retrained: bool  # whether the hyperparameters were trained, or kept from before
    hyperparameter_variance: float  # of the expected log joint over hyperparameter samples
    n_held_out: int  # posterior draws predicted by the surrogate before they were evaluated
    held_out_squares: float  # sum of their squared standardised residuals
    posterior_error: float  # expected gsKL to the truth; NaN during the warm-up
    noise_sd: float  # of the log density about a smooth function, as the surrogate sees it, in nats
    jitter: float  # largest variance added to the surrogate's diagonal to factorise it
    features: Reliability | None
    warm_up: bool
    stable: bool
    whitened: bool
    evidence: Evidence
    posterior: Posterior

    @property
    def n(self) -> int:
        """Number of evaluations so far."""
        return self.n_evaluations

    @property
    def K(self) -> int:  # noqa: N802 (the paper's letter)
        """Number of mixture components."""
        return self.n_components

    @property
    def reliability(self) -> float:
        """The reliability index rho(t) (S2.4.1); NaN in the first iteration."""
        return float("nan") if self.features is None else self.features.index


@dataclass(frozen=True)
class IterationInfo(Iteration):
    """What one iteration did, and the time it took; the rows of ``result.history``."""

    timings: Mapping[str, float]  # seconds the library spent, by phase

    @property
    def seconds(self) -> float:
        """Seconds the library itself spent in this iteration, target time excluded."""
        return float(sum(self.timings.values()))


@dataclass(frozen=True, eq=False)
class TrainedSurrogate:
    """A surrogate, its coordinates, and how it came about."""

    transform: ParameterTransform
    surrogate: Surrogate
    trained_on: tuple[int, ...]  # its evaluations, by their indices
    retrained: bool  # whether its hyperparameters were trained, or kept from before
    # Where what it says holds; None: everywhere, or it was taught what is outside.
    support: AnySupport | None = None

    def log_joint(self, x: Array) -> tuple[Array, Array]:
        """Mean and sd of the log joint at points x (m, D), in the user's coordinates: (m,) each."""
        u = self.transform.to_working(x)
        mean, variance = self.surrogate.predict(u)
        return mean - self.transform.log_jacobian(u), np.sqrt(variance)


@dataclass(frozen=True, eq=False)
class Solution:
    """A surrogate and the variational posterior fitted to it, in the same coordinates."""

    trained: TrainedSurrogate
    mixture: GaussianMixture
    elbo: Elbo
    n_pruned: int

    @property
    def transform(self) -> ParameterTransform:
        """The coordinates of both."""
        return self.trained.transform

    @property
    def surrogate(self) -> Surrogate:
        """The model of the log joint that q was fitted to."""
        return self.trained.surrogate


@dataclass(frozen=True, eq=False)
class Agenda:
    """Points that the coming iteration evaluates before it chooses any by its rules."""

    points: Array = field(default_factory=lambda: np.empty((0, 0)))  # (k, D), the user's
    rule: str = ""  # what is recorded with them


@dataclass(frozen=True, eq=False)
class State:
    """All that the next iteration needs, apart from the log; by default that of the first."""

    transform: ParameterTransform
    mixture: GaussianMixture
    trained: TrainedSurrogate | None = None  # of the last iteration; None before the first
    phase: Phase = Phase.SEARCHING
    sampling_stopped: bool = False  # StopSampling of Algorithm 1
    trimmed: frozenset[int] = frozenset()  # evaluations left out of the training set for good
    last_whitening: int = NEVER  # iteration at which a whitening was last tried
    agenda: Agenda = Agenda()
    history: tuple[Iteration, ...] = ()

    @property
    def searching(self) -> bool:
        """Whether the warm-up goes on."""
        return self.phase is Phase.SEARCHING

    @property
    def iteration(self) -> int:
        """t, the number of completed iterations."""
        return len(self.history)


def initial_state(transform: ParameterTransform, starting_points: Array) -> State:
    """Line 1 of Algorithm 1: q_0 near x0, or at the centre of the plausible box."""
    dimension = transform.dimension
    points = starting_points[:INITIAL_COMPONENTS]
    centres = transform.to_working(points) if len(points) else np.zeros((1, dimension))
    means = centres[np.arange(INITIAL_COMPONENTS) % len(centres)]
    mixture = GaussianMixture(
        weights=np.full(INITIAL_COMPONENTS, 1.0 / INITIAL_COMPONENTS),
        means=means,
        scales=np.full(INITIAL_COMPONENTS, INITIAL_SCALE),
        lengths=np.ones(dimension),
    )
    return State(transform, mixture)
