"""Looking elsewhere: no run may stop before it has.

The posterior is found by going uphill from where the run began. Whatever lies elsewhere is sought
before it stops: first in the surrogate, which is sampled globally at no evaluation; then on hills
that do not lead to the posterior; then where nothing was evaluated (docs/decisions/0013).

    p       the posterior as it stands, working coordinates
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from sparing.numerics.arrays import Array
from sparing.numerics.tempered_sampling import tempered_sample
from sparing.variational.expectation_maximisation import fitted_mixture
from sparing.variational.normal_mixture import NormalMixture
from sparing.vbmc.hidden_modes import Known, box_points, hiding_places, other_hills
from sparing.vbmc.surrogate_posterior import BELIEVED_VARIANCE, N_EM_STEPS, Density

# What is recorded with the points that a look asks for.
PROBE = "probe of unseen mass"
CLIMB = "climb of another hill"
FILL = "look where nothing was seen"
LOOKING = (PROBE, CLIMB, FILL)

LEFT_OUT = 0.005  # of the posterior's own draws count as outside it
N_COMPONENTS = 20
DRAWS_PER_COMPONENT = 5  # and dimension, at least
FEWEST_DRAWS = 20


@dataclass(frozen=True, eq=False)
class Look:
    """What a look found.

    outside   share of the mass that the surrogate does not exclude which is outside the posterior
    hidden    share of the plausible box in which a mode may hide; NaN where nobody asked
    points    where to evaluate next, working coordinates, (k, D); none: the look is over
    rule      what is recorded with them
    found     mass outside of which the surrogate is fairly sure; None: there is none
    """

    outside: float
    hidden: float
    points: Array
    rule: str
    found: NormalMixture | None


@dataclass(frozen=True)
class LookElsewhere:
    """What a run does before it may stop."""

    n_particles: int = 3000
    widening: float = 1.5  # of the plausible box from which half of the particles start
    largest_outside: float = 0.05  # what is less changes the log evidence by less
    n_probes: int = 3
    climbing_share: float = 0.25  # of all evaluations: hills may turn out to be none
    n_rounds: int = 2  # of looks where nothing was seen, each of 2 D + 2 points...
    largest_round: int = 10  # ...and at most so many: high-dimensional boxes cannot be filled
    largest_hidden: float = 0.02

    def look(
        self, known: Known, inflation: float, n_rounds: int, generator: np.random.Generator
    ) -> Look:
        """One look; ``n_rounds`` that found nothing came before, and V is inflated."""
        posterior = known.posterior
        particles = self.particles(known, inflation, generator)
        own = posterior.log_density(posterior.sample(self.n_particles, generator))
        threshold = float(np.quantile(own, LEFT_OUT))
        beyond = posterior.log_density(particles) < threshold
        outside = float(beyond.mean())
        if outside > self.largest_outside:
            found = believed_part(known, particles[beyond], generator)
            scales = known.surrogate.length_scales
            points = spread_out(particles[beyond], self.n_probes, scales, generator)
            return Look(outside, np.nan, points, PROBE, found)
        if known.rules.count(CLIMB) <= self.climbing_share * len(known.rules):
            points = other_hills(known, threshold, self.n_probes, generator)
            if len(points):
                return Look(outside, np.nan, points, CLIMB, None)
        n_points = min(2 * known.dimension + 2, self.largest_round)
        hidden, points = hiding_places(known, n_points, generator)
        if hidden <= self.largest_hidden or n_rounds >= self.n_rounds:
            points = points[:0]
        return Look(outside, hidden, points, FILL, None)

    def particles(self, known: Known, inflation: float, generator: np.random.Generator) -> Array:
        """Draws from what the surrogate does not exclude, wherever that is: (N, D)."""
        density, posterior = Density(known.surrogate, inflation), known.posterior
        n_box = self.n_particles // 2
        box = box_points(known.transform, self.widening, generator.random((n_box, known.dimension)))
        start = np.vstack([box, posterior.sample(self.n_particles - n_box, generator)])
        matrix, offset = known.transform.standardised_map()
        log_uniform = np.linalg.slogdet(matrix)[1] - known.dimension * np.log(self.widening)

        def log_start(u: Array) -> Array:
            inside = np.all(np.abs(u @ matrix.T + offset) <= 0.5 * self.widening, axis=1)
            in_box = np.where(inside, log_uniform, -np.inf)
            return np.logaddexp(in_box, posterior.log_density(u)) - np.log(2.0)

        return tempered_sample(density.hopeful, log_start, start, generator)


@dataclass(frozen=True)
class Trusting:
    """What is stable is believed (the paper)."""

    def look(
        self, known: Known, inflation: float, n_rounds: int, generator: np.random.Generator
    ) -> Look:
        """Nothing is sought."""
        return Look(np.nan, np.nan, np.empty((0, known.dimension)), "", None)

    def particles(self, known: Known, inflation: float, generator: np.random.Generator) -> Array:
        """None."""
        return np.empty((0, known.dimension))


def believed_part(
    known: Known, particles: Array, generator: np.random.Generator
) -> NormalMixture | None:
    """The particles (m, D) at which the surrogate is fairly sure, as a mixture."""
    _, variance = known.surrogate.predict(particles)
    sure = particles[variance < BELIEVED_VARIANCE]
    if len(sure) < FEWEST_DRAWS:
        return None
    n_supported = len(sure) // (DRAWS_PER_COMPONENT * (known.dimension + 1))
    n_components = max(1, min(N_COMPONENTS, n_supported))
    even = np.full(len(sure), 1.0 / len(sure))
    return fitted_mixture(sure, even, n_components, N_EM_STEPS, generator)


def spread_out(
    points: Array, n_chosen: int, scales: Array, generator: np.random.Generator
) -> Array:
    """A few of the points, (k, D): one at random, then always the one furthest from the others."""
    z = points / scales
    chosen = [int(generator.integers(len(points)))]
    distance = ((z - z[chosen[0]]) ** 2).sum(axis=1)
    while len(chosen) < min(n_chosen, len(points)):
        chosen.append(int(np.argmax(distance)))
        distance = np.minimum(distance, ((z - z[chosen[-1]]) ** 2).sum(axis=1))
    return points[chosen]
