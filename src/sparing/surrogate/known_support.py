"""A support that was declared: certain where it says no, and within it what was learnt."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtr

from sparing.numerics.arrays import Array
from sparing.problem.parameter_transform import ParameterTransform
from sparing.surrogate.support import KNOWN_SDS, Support


@dataclass(frozen=True, eq=False)
class KnownSupport:
    """The support that a transform declares; methods take working coordinates, as `Support`'s."""

    transform: ParameterTransform
    learnt: Support | None = None  # from points within it at which the density was zero

    def margin(self, points: Array) -> Array:
        """That of what was learnt, infinite without it; minus infinity beyond what is declared."""
        learnt = np.full(len(points), np.inf) if self.learnt is None else self.learnt.margin(points)
        return np.where(self.declared(points), learnt, -np.inf)

    def probability(self, points: Array) -> Array:
        """Of points (N, D) to be inside, (N,)."""
        return ndtr(KNOWN_SDS * self.margin(points))

    def declared(self, points: Array) -> NDArray[np.bool_]:
        """Whether points (N, D) are where they may be, (N,)."""
        return self.transform.supports(self.transform.to_user(points))

    def contains(self, points: Array) -> NDArray[np.bool_]:
        """Whether points (N, D) are inside, as far as is known, (N,)."""
        inside = self.declared(points)
        return inside if self.learnt is None else inside & self.learnt.contains(points)

    def alternatives(
        self, points: Array, n: int, generator: np.random.Generator
    ) -> NDArray[np.bool_]:
        """Whether points (N, D) are inside each of n supports that may as well be true: (N, n)."""
        inside = np.tile(self.declared(points)[:, None], n)
        return (
            inside
            if self.learnt is None
            else (inside & self.learnt.alternatives(points, n, generator))
        )


AnySupport = Support | KnownSupport


def known_support(transform: ParameterTransform, learnt: Support | None) -> AnySupport | None:
    """What is known of the support: declared, learnt, or None."""
    return learnt if transform.declared is None else KnownSupport(transform, learnt)


def learnt_part(support: AnySupport | None) -> Support | None:
    """What evaluations have shown of it."""
    return support.learnt if isinstance(support, KnownSupport) else support
