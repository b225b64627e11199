"""What the rest of the package needs of a surrogate, whatever it is made of.

A surrogate is a distribution over the log joint f, given its training set, as a mixture over S
samples of its own parameters. The paper's is a Gaussian process (`gaussian_process`); anything
with these methods may take its place. `sparing.testing.surrogate` checks an implementation.

Notation (D dimensions, n training points, m queries, K normals)
    fbar, C   mean and covariance of f for one parameter sample
    I_k       integral of f against normal k, with mean mu_k and standard deviations sigma_k lambda
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol, Self

import numpy as np
from numpy.typing import NDArray

from sparing.numerics.arrays import Array
from sparing.surrogate.kernel_expansion import KernelExpansion
from sparing.surrogate.training_set import TrainingSet


class Surrogate(Protocol):
    """A distribution over the log joint, in working coordinates."""

    @property
    def training(self) -> TrainingSet:
        """What it was trained on."""
        ...

    @property
    def dimension(self) -> int:
        """D."""
        ...

    @property
    def n_samples(self) -> int:
        """S."""
        ...

    @property
    def parameters(self) -> Array:
        """What training found, (S, p): `SurrogateTraining.condition` turns it into itself."""
        ...

    @property
    def noise_variance(self) -> float:
        """Variance of the noise of a value, beyond what the target declared."""
        ...

    @property
    def length_scales(self) -> Array:
        """Distances over which f varies, (D,)."""
        ...

    @property
    def jitter(self) -> Array:
        """Variance added for the sake of the linear algebra, (S,); mostly 0."""
        ...

    @property
    def expansion(self) -> KernelExpansion:
        """fbar as the compiled kernels of the variational fit take it."""
        ...

    def predict(self, queries: Array) -> tuple[Array, Array]:
        """Mean and variance of f, marginal over the samples (Eq. 10): (m,) each."""
        ...

    def predict_each(self, queries: Array) -> tuple[Array, Array]:
        """fbar(x) and C(x, x) for each sample: (S, m) each."""
        ...

    def covariance(self, a: Array, b: Array) -> Array:
        """C(a, b) for each sample, (S, p, r), between points a (p, D) and b (r, D)."""
        ...

    def integrals(self, means: Array, scales: Array, lengths: Array) -> tuple[Array, Array]:
        """E[I_k], (S, K), and Cov(I_j, I_k), (S, K, K), for each sample (Eqs. S17 and S19)."""
        ...

    def left_out(self, s: int) -> tuple[Array, Array]:
        """y_i - fbar(x_i) and C(x_i, x_i) for sample s that has not seen point i: (n,) each."""
        ...

    def variance_reduction(self, references: Array) -> Callable[[Array], Array]:
        """Candidates (m, D) -> mean drop of C(s, s) over references s, were x evaluated: (m,)."""
        ...

    def append(
        self, x: Array, y: float, noise_variance: float = 0.0, gradient: Array | None = None
    ) -> Self:
        """The surrogate that has also seen the value y at x (D,), its parameters unchanged.

        A gradient (D,) is given only where the training set has gradients; it may be left aside.
        """
        ...

    def subset(self, samples: NDArray[np.integer]) -> Self:
        """The surrogate with some of its samples, by their indices."""
        ...


def learnt_from(strategy: SurrogateTraining, training: TrainingSet) -> TrainingSet:
    """What a strategy makes use of in a training set: everything, unless it says otherwise."""
    of_use = getattr(strategy, "of_use", None)
    return training if of_use is None else of_use(training)


class SurrogateTraining(Protocol):
    """How a surrogate is made from its training set.

    A strategy that leaves gradients aside says so by a method ``of_use(training)``, which returns
    the set without them.
    """

    def train(
        self,
        training: TrainingSet,
        n_samples: int | None,
        generator: np.random.Generator,
        previous: Surrogate | None = None,
    ) -> Surrogate:
        """A surrogate with S = n_samples, or with None the single best one.

        ``previous`` is one of fewer points in the same coordinates, to start from.
        """
        ...

    def condition(self, training: TrainingSet, parameters: Array) -> Surrogate:
        """The surrogate whose `parameters` are these, (S, p), equal to the last bit."""
        ...

    def score(self, surrogate: Surrogate, training: TrainingSet) -> float:
        """How well it describes these of its values, in nats; comparable between coordinates."""
        ...
