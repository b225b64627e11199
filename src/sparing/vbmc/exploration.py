"""Looking elsewhere: no run may stop before it has.

The posterior is found by going uphill from where the run began. Whatever lies elsewhere is sought
before it stops: first in the surrogate, which is sampled globally at no evaluation; then on hills
that do not lead to the posterior; then where nothing was evaluated (docs/decisions/0013).

    p       the posterior as it stands, working coordinates
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

import numpy as np

from sparing.acquisition.rules import Frontier, moment_weight
from sparing.numerics.arrays import Array
from sparing.numerics.far_apart import furthest_first, spread_out
from sparing.numerics.tempered_sampling import tempered_sample
from sparing.surrogate.known_support import learnt_part
from sparing.variational.expectation_maximisation import fitted_mixture
from sparing.variational.normal_mixture import NormalMixture
from sparing.vbmc.evidence import Doubt
from sparing.vbmc.hidden_modes import (
    CLIMB,
    Known,
    box_points,
    hiding_places,
    n_ascents,
    n_far_modes,
    other_hills,
)
from sparing.vbmc.state import Phase
from sparing.vbmc.surrogate_posterior import (
    BELIEVED_VARIANCE,
    DOUBTED_SHARE,
    N_EM_STEPS,
    Density,
)

# What is recorded with the points that a look asks for.
PROBE = "probe of unseen mass"
FILL = "look where nothing was seen"
TEST = "test of the tails"
SECOND = "second opinion on the tails"
EDGE = "probe of an edge"
RIM = "test at the edge of the support"
LOOKING = (PROBE, CLIMB, FILL, TEST, SECOND, EDGE, RIM)
PROMISED = (PROBE, Frontier.name)  # points where mass was not excluded

MISFIT = 1.0  # nats by which the mixture may be wrong in the posterior's tails
MIRAGE = 30.0  # nats below the tails: what is so deep was no test of them
LEFT_OUT = 0.005  # of the posterior's own draws count as outside it
N_COMPONENTS = 20
DRAWS_PER_COMPONENT = 5  # and dimension, at least
FEWEST_DRAWS = 20
# Of the points at which the surrogate has promised mass those of the last quarter of all
# evaluations tell how often it is there; what it promises now is so much of the whole at most.
RECENT_SHARE = 0.25
MISSED_SHARE = 0.5  # of that counts as a standard deviation
N_BISECTIONS, RIM_SHARE = 12, 0.9  # of the way to the edge of a declared support


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

    n_particles: int = 2000
    widening: float = 1.5  # of the plausible box from which half of the particles start
    largest_outside: float = 0.1  # less than that is left to the reported error
    n_probes: int = 3
    testing_share: float = 0.25  # of all evaluations: some tails never end
    # Of all evaluations: hills may turn out to be none. Each climb that succeeds pays for others.
    climbing_share: float = 0.1
    # Where nothing was seen rounds of 2 D + 2 points are evaluated, and at most so many, up to half
    # of all evaluations: as long as each leaves half of the room or less, which in many dimensions
    # none does; where several modes are known, until there is no room.
    largest_round: int = 10
    largest_rest: float = 0.5
    looking_share: float = 0.5
    largest_hidden: float = 0.02
    largest_beyond: float = 0.002  # of the draws are expected beyond the edge of the support
    edge_share: float = 0.5  # of all evaluations: some edges are never known

    def is_due(self, phase: Phase, *, stable: bool) -> bool:
        """Whether it is time to look: nobody does before the solution is stable."""
        return stable

    def look(
        self,
        known: Known,
        inflation: float,
        generator: np.random.Generator,
        *,
        tested: str = "",
        otherwise: Callable[[], Known] | None = None,
    ) -> Look:
        """One look; V is inflated.

        ``tested`` is the rule by which the tails have just been tested, if no value was a surprise.
        ``otherwise``: what is known in plain coordinates; None: these are.
        """
        particles = self.particles(known, inflation, generator)
        threshold = self.threshold(known, generator)
        beyond = known.posterior.log_density(particles) < threshold
        outside = float(beyond.mean())
        if outside > self.largest_outside:
            found = believed_part(known, particles[beyond], generator)
            scales = known.surrogate.length_scales
            points = spread_out(particles[beyond], self.n_probes, scales, generator)
            return Look(outside, np.nan, points, PROBE, found)
        several = n_far_modes(known.posterior) > 1
        hidden = np.nan

        def places() -> Iterator[tuple[str, Array]]:
            """Where to evaluate and why, one reason after the other."""
            nonlocal hidden
            edges = self.edge_points(known, generator)
            if known.share(EDGE) < self.edge_share:
                yield EDGE, edges
            yield RIM, self.rim_points(known, generator)
            if self.may_climb(known, threshold, several=several):
                yield CLIMB, other_hills(known, threshold, self.n_probes, generator)
            hidden, gaps = self.gaps(known, threshold, generator, several=several)
            yield FILL, gaps
            over = tested == SECOND or (tested == TEST and is_end(known, threshold, TEST))
            if not over and known.share(TEST) < self.testing_share:
                yield TEST, self.tails(known, particles, threshold, inflation, generator)
            over = tested == SECOND and is_end(known, threshold, SECOND)
            if not (otherwise is None or over) and known.share(SECOND) < self.testing_share:
                doubted = self.second_opinion(known, otherwise(), threshold, inflation, generator)
                yield SECOND, doubted

        nothing = FILL, particles[:0]
        rule, points = next((place for place in places() if len(place[1])), nothing)
        return Look(outside, hidden, points, rule, None)

    def gaps(
        self, known: Known, threshold: float, generator: np.random.Generator, *, several: bool
    ) -> tuple[float, Array]:
        """The share of the box in which a mode may hide, and points there, (k, D), worth a visit.

        ``several``: modes are known.
        """
        n_points = min(2 * known.dimension + 2, self.largest_round)
        hidden, points = hiding_places(known, threshold, n_points, generator)
        if hidden <= self.largest_hidden or not len(points):
            return hidden, points[:0]
        before = room_before(known, threshold, n_points, generator)
        goes_on = several or hidden < self.largest_rest * before
        if (goes_on and known.share(*LOOKING) < self.looking_share) or not known.share(FILL):
            return hidden, points
        return hidden, points[:0]

    def tails(
        self,
        known: Known,
        particles: Array,
        threshold: float,
        inflation: float,
        generator: np.random.Generator,
    ) -> Array:
        """Points just outside the posterior where a wrong surrogate would hurt most, (k, D)."""
        density = Density(known.surrogate, inflation, known.support)
        weight = moment_weight(known.posterior)
        bold = tempered_sample(
            lambda u: density.bold(u) + np.log(weight(u)), density.hopeful, particles, generator
        )
        beyond = known.posterior.log_density(bold) < threshold
        if not beyond.any():
            return particles[:0]
        places = np.unique(bold[beyond], axis=0)
        return generator.choice(places, min(self.n_probes, len(places)), replace=False)

    def second_opinion(
        self,
        known: Known,
        other: Known,
        threshold: float,
        inflation: float,
        generator: np.random.Generator,
    ) -> Array:
        """Points that a surrogate in other coordinates does not exclude, (k, D); mostly none.

        Where bends were made of a part of a ridge they lead the rest of it to where the surrogate
        excludes everything, and no value ever contradicts it (docs/decisions/0019).
        """
        particles = self.particles(other, inflation, generator)
        places = known.transform.to_working(other.transform.to_user(particles))
        beyond = known.posterior.log_density(places) < threshold
        if beyond.mean() <= self.largest_outside:
            return places[:0]
        return generator.choice(places[beyond], self.n_probes, replace=False)

    def may_climb(self, known: Known, threshold: float, *, several: bool) -> bool:
        """Whether climbs were not too many for what they found; ``several``: modes are known."""
        share = self.looking_share if several else self.climbing_share
        earned = (1 + self.n_probes) * n_ascents(known, threshold) / len(known.rules)
        return share > 0.0 and known.share(CLIMB) - earned <= share

    def doubt(self, known: Known, particles: Array, generator: np.random.Generator) -> Doubt:
        """What nobody has seen may add to the log evidence.

        Of the particles those outside the posterior, which are there or are not; and, where several
        modes are known, modes in what is hidden, as if it held as much as the rest of the box.
        Where one mode is known, looks that found nothing speak against others.
        """
        threshold = self.threshold(known, generator)
        largest = -MISSED_SHARE * float(np.log1p(-kept_promises(known, threshold)))
        beyond = known.posterior.log_density(particles) < threshold
        outside = min(max(0.0, float(beyond.mean()) - LEFT_OUT), 1.0 - LEFT_OUT)
        unseen = min(-DOUBTED_SHARE * float(np.log1p(-outside)), largest)
        if n_far_modes(known.posterior) > 1:
            hidden, _ = hiding_places(known, threshold, 0, generator)
            unseen = float(np.hypot(unseen, np.log1p(hidden)))
        return Doubt(unseen, largest)

    def threshold(self, known: Known, generator: np.random.Generator) -> float:
        """The log density below which a point counts as outside the posterior."""
        own = known.posterior.log_density(known.posterior.sample(self.n_particles, generator))
        return float(np.quantile(own, LEFT_OUT))

    def particles(self, known: Known, inflation: float, generator: np.random.Generator) -> Array:
        """Draws from what the surrogate does not exclude, wherever that is: (N, D)."""
        density = Density(known.surrogate, inflation, known.support)
        posterior = known.posterior
        n_box = self.n_particles // 2
        box = box_points(known.transform, self.widening, generator.random((n_box, known.dimension)))
        start = np.vstack([box, posterior.sample(self.n_particles - n_box, generator)])
        transform, log_volume = known.transform, known.dimension * np.log(self.widening)

        def log_start(u: Array) -> Array:
            inside = np.all(np.abs(transform.to_standardised(u)) <= 0.5 * self.widening, axis=1)
            log_uniform = transform.standardised_log_jacobian(u) - log_volume
            in_box = np.where(inside, log_uniform, -np.inf)
            return np.logaddexp(in_box, posterior.log_density(u)) - np.log(2.0)

        return tempered_sample(density.hopeful, log_start, start, generator)

    def edge_points(self, known: Known, generator: np.random.Generator) -> Array:
        """Points at the edge of the support, (k, D), as long as it is not known well enough.

        First where it may be; then, to test it, where nothing was evaluated on either side of it.
        """
        support = learnt_part(known.support)  # what was declared is known
        if support is None:
            return np.empty((0, known.dimension))
        draws = known.posterior.sample(self.n_particles, generator)
        draws = draws[known.transform.supports(known.transform.to_user(draws))]
        margin, inside = support.margin(draws), support.probability(draws)
        n_probes = max(self.n_probes, known.dimension // 2 + 1)
        nearest = np.argsort(np.abs(margin))
        if np.mean(1.0 - inside[margin > 0.0]) > self.largest_beyond:
            n_unknown = int((np.abs(margin) < 1.0).sum())
            candidates = nearest[: max(n_unknown // 3, 10 * n_probes)]
            return draws[generator.choice(candidates, n_probes, replace=False)]
        if known.edge_is_proven or np.mean(margin < 1.0) <= self.largest_beyond:
            return draws[:0]
        nearest = nearest[np.abs(margin[nearest]) >= 1.0][: self.n_particles // 10]
        scales = draws.std(axis=0)
        evaluated = np.vstack([known.inputs, known.outside]) / scales
        return draws[nearest[furthest_first(draws[nearest] / scales, n_probes, evaluated)]]

    def rim_points(self, known: Known, generator: np.random.Generator) -> Array:
        """Points inside a declared support near its edge, (k, D), once, if that cuts the posterior.

        Nobody needs to find the edge, and so nobody has been there: the density may fall towards it
        as no smooth surrogate would guess. They lie most of the way from a draw to where a line
        from it to a draw beyond the edge crosses that.
        """
        nothing = np.empty((0, known.dimension))
        if known.transform.declared is None or known.share(RIM):
            return nothing
        draws = known.posterior.sample(self.n_particles, generator)
        inside = known.contains(draws)
        if np.mean(~inside) <= self.largest_beyond or not inside.any():
            return nothing
        outer = draws[~inside]
        inner = draws[inside][generator.integers(int(inside.sum()), size=len(outer))]
        within, beyond = np.zeros(len(outer)), np.ones(len(outer))
        for _ in range(N_BISECTIONS):
            middle = 0.5 * (within + beyond)
            is_inside = known.contains(inner + middle[:, None] * (outer - inner))
            within, beyond = (
                np.where(is_inside, middle, within),
                np.where(is_inside, beyond, middle),
            )
        places = inner + (RIM_SHARE * within)[:, None] * (outer - inner)
        places = places[known.contains(places)]
        scales = draws.std(axis=0)
        chosen = furthest_first(places / scales, known.dimension + 2, known.inputs / scales)
        return places[chosen]


@dataclass(frozen=True)
class LookAtOnce(LookElsewhere):
    """The same, and in the surrogate at once: for a run that is told what others evaluated."""

    def is_due(self, phase: Phase, *, stable: bool) -> bool:
        """Once more than that: when the bulk of the posterior has been found."""
        return stable or phase is Phase.ADAPTING


@dataclass(frozen=True)
class Trusting:
    """What is stable is believed (the paper)."""

    def is_due(self, phase: Phase, *, stable: bool) -> bool:
        """When the solution is stable."""
        return stable

    def look(
        self,
        known: Known,
        inflation: float,
        generator: np.random.Generator,
        *,
        tested: str = "",
        otherwise: Callable[[], Known] | None = None,
    ) -> Look:
        """Nothing is sought."""
        return Look(np.nan, np.nan, np.empty((0, known.dimension)), "", None)

    def doubt(self, known: Known, particles: Array, generator: np.random.Generator) -> Doubt:
        """None."""
        return Doubt()

    def particles(self, known: Known, inflation: float, generator: np.random.Generator) -> Array:
        """None."""
        return np.empty((0, known.dimension))


def kept_promises(known: Known, threshold: float) -> float:
    """How often there was mass of late where the surrogate did not exclude it, of all such points.

    As if there had been one such point more: nothing speaks against the first promises.
    """
    first = int((1.0 - RECENT_SHARE) * len(known.rules))
    promised = np.array([rule in PROMISED for rule in known.rules[first:]])
    hits = known.values[first:][promised] > known.log_evidence + threshold
    return min((hits.sum() + 1.0) / (len(hits) + 1.0), 1.0 - LEFT_OUT)


def is_end(known: Known, threshold: float, rule: str) -> bool:
    """Whether the posterior ends where it was tested last, by that rule.

    Not where the values belong to it still, nor where most were mirages of the surrogate. Those of
    a second opinion may be: they were that one's, and the surrogate knew better.
    """
    tests = list(itertools.takewhile(lambda each: each == rule, reversed(known.rules)))
    excess = known.values[len(known.values) - len(tests) :] - known.log_evidence - threshold
    if not len(excess):  # all were outside the support
        return True
    is_mirage = rule == TEST and np.median(excess) <= -MIRAGE
    return bool(excess.max() < MISFIT and not is_mirage)


def room_before(
    known: Known, threshold: float, n_points: int, generator: np.random.Generator
) -> float:
    """The share of the plausible box in which a mode could hide before the last round."""
    last = np.flatnonzero([rule == FILL for rule in known.rules])[-n_points:]
    inputs, values = np.delete(known.inputs, last, axis=0), np.delete(known.values, last)
    before = replace(known, inputs=inputs, values=values)
    return hiding_places(before, threshold, 0, generator)[0]


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
