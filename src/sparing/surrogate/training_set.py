"""What the Gaussian process is trained on.

Notation (D dimensions, n points)
    X, y     inputs (n, D) and values of the log joint (n,), in working coordinates
    gradients  of the log joint at X, (n, D); NaN where they are not known
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

from sparing.numerics.arrays import Array
from sparing.surrogate.layout import Layout


@dataclass(frozen=True, eq=False)
class TrainingSet:
    """Inputs (n, D), values (n,) and known noise variance per point (n,); none given: zeros.

    ``depth_limit``: how far below the maximum values are still what was measured; what lies deeper
    was compressed (training_data.py). ``typical_noise_variance``: that of a value yet to come.
    ``gradients``: (n, D), rows of NaN where there is none; None where there are none at all.
    ``log_determinants``: log |du/ds| at the points, (n,), s being the first coordinates: the units
    of their gradients. ``identities``: (n,), by which the same point is known in other coordinates;
    not given: all differ. Of points that join later neither is known, nor asked for.
    ``gradient_noise_sd``: of derivatives, beside the level that is learnt, (n,); not given: zeros.
    """

    inputs: Array
    values: Array
    noise_variance: Array = field(default_factory=lambda: np.zeros(0))
    depth_limit: float = math.inf
    typical_noise_variance: float = 0.0
    gradients: Array | None = None
    log_determinants: Array = field(default_factory=lambda: np.zeros(0))
    identities: NDArray[np.int64] = field(default_factory=lambda: np.zeros(0, dtype=np.int64))
    gradient_noise_sd: Array = field(default_factory=lambda: np.zeros(0))

    def __post_init__(self) -> None:
        given = (self.inputs, self.values, self.noise_variance)
        inputs, values, noise_variance = (np.ascontiguousarray(part, np.float64) for part in given)
        if inputs.ndim != 2 or min(inputs.shape) < 1:
            raise ValueError(f"training inputs must be (n, D), not {inputs.shape}")
        n = inputs.shape[0]
        if noise_variance.size == 0:
            noise_variance = np.zeros(n)
        if values.shape != (n,) or noise_variance.shape != (n,):
            raise ValueError(
                f"{n} inputs need {n} values and noise variances, not shapes {values.shape} "
                f"and {noise_variance.shape}"
            )
        for name, entries in (("inputs", inputs), ("values", values)):
            if not np.isfinite(entries).all():
                raise ValueError(f"training {name} must be finite")
        if not (np.isfinite(noise_variance).all() and (noise_variance >= 0.0).all()):
            raise ValueError("noise variances must be finite and not negative")
        object.__setattr__(self, "inputs", inputs)
        object.__setattr__(self, "values", values)
        object.__setattr__(self, "noise_variance", noise_variance)
        if self.log_determinants.size == 0:
            object.__setattr__(self, "log_determinants", np.zeros(n))
        if self.identities.size == 0:
            object.__setattr__(self, "identities", np.arange(n))
        if self.gradient_noise_sd.size == 0:
            object.__setattr__(self, "gradient_noise_sd", np.zeros(n))
        if self.gradients is not None and self.gradients.shape != inputs.shape:
            raise ValueError(f"gradients must be {inputs.shape}, not {self.gradients.shape}")

    @property
    def n_points(self) -> int:
        """Number of training points n."""
        return self.inputs.shape[0]

    @property
    def dimension(self) -> int:
        """Number of dimensions D."""
        return self.inputs.shape[1]

    @property
    def layout(self) -> Layout:
        """Of the hyperparameters of a process that is trained on it."""
        return Layout(self.dimension, int(self.gradients is not None))

    @property
    def n_rows(self) -> int:
        """Numbers that are known: values, and derivatives."""
        return self.n_points + self.dimension * int(self.has_gradient.sum())

    @property
    def has_gradient(self) -> NDArray[np.bool_]:
        """Which points' gradients are known, (n,)."""
        if self.gradients is None:
            return np.zeros(self.n_points, dtype=np.bool_)
        return np.all(np.isfinite(self.gradients), axis=1)

    def with_point(
        self, x: Array, y: float, noise_variance: float = 0.0, gradient: Array | None = None
    ) -> TrainingSet:
        """The set with one more point; its gradient counts where the set has gradients."""
        gradients = self.gradients
        if gradients is not None:
            row = np.full(self.dimension, np.nan) if gradient is None else gradient
            gradients = np.vstack([gradients, row])
        return replace(
            self,
            inputs=np.vstack([self.inputs, np.reshape(x, (1, -1))]),
            values=np.append(self.values, y),
            noise_variance=np.append(self.noise_variance, noise_variance),
            gradients=gradients,
            log_determinants=np.append(self.log_determinants, np.nan),
            identities=np.append(self.identities, -1),
            gradient_noise_sd=np.append(self.gradient_noise_sd, 0.0),
        )

    def of_points(self, points: NDArray[np.integer]) -> TrainingSet:
        """The set with some of its points, by their indices."""
        return replace(
            self,
            inputs=self.inputs[points],
            values=self.values[points],
            noise_variance=self.noise_variance[points],
            gradients=None if self.gradients is None else self.gradients[points],
            log_determinants=self.log_determinants[points],
            identities=self.identities[points],
            gradient_noise_sd=self.gradient_noise_sd[points],
        )

    def shared_with(self, other: TrainingSet) -> TrainingSet:
        """Its points and gradients that another set has as well; itself where these are all."""
        shared = np.isin(self.identities, other.identities)
        common = self if shared.all() else self.of_points(np.flatnonzero(shared))
        if common.gradients is None:
            return common
        known = np.isin(common.identities, other.identities[other.has_gradient])
        if not np.any(common.has_gradient & ~known):
            return common
        return replace(common, gradients=np.where(known[:, None], common.gradients, np.nan))

    def values_alone(self) -> TrainingSet:
        """The set without its gradients."""
        return replace(self, gradients=None)

    def with_best_gradients(self, n_rows: int) -> TrainingSet:
        """The set with the gradients of its best points only, so many that rows are n_rows.

        A value is a row, and a gradient D of them.
        """
        n_kept = max(n_rows - self.n_points, 0) // self.dimension
        if self.gradients is None or int(self.has_gradient.sum()) <= n_kept:
            return self
        order = np.argsort(-self.values, kind="stable")
        dropped = order[self.has_gradient[order]][n_kept:]
        gradients = self.gradients.copy()
        gradients[dropped] = np.nan
        return replace(self, gradients=gradients)
