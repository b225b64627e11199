"""Which solution is returned, and whether it is sampled once more (Section 3.7).

q_t    variational posterior of iteration t        ELCBO   ELBO - beta_lcb sd (Eq. 8)
p_t    the posterior that iteration t believes in  Z_t     its evidence
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from sparing.numerics.arrays import Array
from sparing.problem.evaluations import Evaluation
from sparing.problem.parameter_transform import ParameterTransform
from sparing.surrogate.training_data import working_values
from sparing.variational.divergence import gaussianised_symmetric_kl
from sparing.variational.mixture import GaussianMixture
from sparing.variational.normal_mixture import Mixture, NormalMixture, even_sample, unchanged
from sparing.variational.posterior import Posterior
from sparing.variational.stretching import stretch_of
from sparing.vbmc.evidence import Doubt, Evidence, LowerBound, SurrogatePosterior
from sparing.vbmc.exploration import LEFT_OUT, LookElsewhere, Trusting, believed_part
from sparing.vbmc.held_out import TrackRecord
from sparing.vbmc.hidden_modes import Known
from sparing.vbmc.state import Iteration
from sparing.vbmc.surrogate_posterior import WeightedSample

BETA_LCB_UNSTABLE = 5.0  # choosing what to return without stability, Section 3.7
UNKNOWN_SD = 1.0  # nats: a solution with a larger error does not know
# Nats by which a value within a posterior exceeds Z_t p_t where it contradicts it: mixtures are
# wrong by less than that there.
CONTRADICTION = 3.0
N_OWN_DRAWS = 2**11
N_STRETCHED = 2**11  # draws by which a stretch is found
# A mixture has the moments of n draws if it is no further from them than so many times what chance
# makes of each, 1 / n nats. Other coordinates are worth it where this share of a misfit is left.
BY_CHANCE, SHARE_LEFT = 3.0, 0.5


@dataclass(frozen=True)
class SmallestError:
    """Without stability: the solution with the smallest error of the evidence among the last few.

    The ELCBO of a surrogate that was wrong may be the best there ever was. Where all of these say
    that they do not know, the surrogate has gone wrong of late: then, of all solutions that no
    value contradicts, the one with the smallest error.
    """

    n_recent: int = 5

    def choose(self, history: Sequence[Iteration], evaluations: Sequence[Evaluation]) -> int:
        """Index of the iteration to return."""
        sds = [past.log_evidence_sd for past in history]
        first = max(0, len(sds) - self.n_recent)
        recent = first + int(np.argmin(sds[first:]))
        if sds[recent] <= UNKNOWN_SD:
            return recent
        settled = [t for t, past in enumerate(history) if not past.warm_up]
        for t in sorted(settled, key=lambda t: sds[t]):
            if not is_contradicted(history[t], evaluations):
                return t
        return recent


@dataclass(frozen=True)
class BestBound:
    """Without stability: "a recent solution" (Section 3.7) with the best ELCBO."""

    fraction: float = 0.25  # of the iterations count as recent

    def choose(self, history: Sequence[Iteration], evaluations: Sequence[Evaluation]) -> int:
        """Index of the iteration to return."""
        elcbo = [past.elbo - BETA_LCB_UNSTABLE * past.elbo_sd for past in history]
        n_recent = max(1, int(np.ceil(self.fraction * len(elcbo))))
        return len(elcbo) - n_recent + int(np.argmax(elcbo[-n_recent:]))


def is_contradicted(past: Iteration, evaluations: Sequence[Evaluation]) -> bool:
    """Whether there is a value, of whatever time, that a solution's posterior cannot explain."""
    posterior, transform = past.posterior.mixture, past.posterior.transform
    usable = [entry for entry in evaluations if entry.usable]
    if not usable:
        return False
    inputs, values = working_values(usable, transform)
    own = even_sample(posterior, N_OWN_DRAWS)
    tail = np.quantile(posterior.log_density(own[posterior.contains(own)]), LEFT_OUT)
    told = values - past.log_evidence
    within = told > tail
    return bool(np.any(told[within] - posterior.log_density(inputs[within]) > CONTRADICTION))


@dataclass(frozen=True, eq=False)
class ThoroughAnswer:
    """The evidence and the posterior, and how much more of it nobody has seen.

    The mixture is in the coordinates of the transform, which need not be the surrogate's.
    """

    evidence: Evidence
    mixture: Mixture
    doubt: Doubt
    transform: ParameterTransform


@dataclass(frozen=True)
class ThoroughSample:
    """The posterior of the last surrogate, sampled from everywhere with many more draws."""

    n_first: int = 2**14
    n_draws: int = 2**14
    n_components: int = 60
    monte_carlo_share: float = 0.25

    def answer(
        self,
        known: Known,
        mixture: GaussianMixture,
        record: TrackRecord,
        evidence: SurrogatePosterior | LowerBound,
        exploration: LookElsewhere | Trusting,
        generator: np.random.Generator,
    ) -> ThoroughAnswer | None:
        """The posterior and the evidence; mixture is q."""
        if not isinstance(evidence, SurrogatePosterior):
            return None
        inflation = evidence.calibration.calibration(record).inflation
        particles = exploration.particles(known, inflation, generator)
        elsewhere = believed_part(known, particles, generator) if len(particles) else None
        proposals = [known.posterior] + ([] if elsewhere is None else [elsewhere])
        thorough = replace(
            evidence,
            n_first=self.n_first,
            n_draws=self.n_draws,
            n_components=self.n_components,
            monte_carlo_share=self.monte_carlo_share,
        )
        found, posterior, draws = thorough.sampled(
            mixture, known.surrogate, record, generator, proposals, known.support
        )
        final = replace(known, posterior=unchanged(posterior))
        doubt = exploration.doubt(final, particles, generator)
        transform = known.transform
        if isinstance(posterior, NormalMixture):  # not cut off at an edge
            posterior, transform = best_described(
                posterior, draws, transform, self.n_components, generator
            )
        return ThoroughAnswer(found, posterior, doubt, transform)


@dataclass(frozen=True)
class LastFit:
    """The solution is returned as it is (the paper)."""

    def answer(
        self,
        known: Known,
        mixture: GaussianMixture,
        record: TrackRecord,
        evidence: SurrogatePosterior | LowerBound,
        exploration: LookElsewhere | Trusting,
        generator: np.random.Generator,
    ) -> ThoroughAnswer | None:
        """None: there is nothing more."""
        return None


def best_described(
    plain: NormalMixture,
    draws: WeightedSample,
    transform: ParameterTransform,
    n_components: int,
    generator: np.random.Generator,
) -> tuple[NormalMixture, ParameterTransform]:
    """The draws' mixture, and its coordinates: those in which it has their moments.

    The user's moments, which hang on tails that hardly count in working coordinates. Where the
    plain mixture fails, the present coordinates are stretched, and those of the single parameters.
    """
    x = transform.to_user(draws.points)
    told = _moments(x, draws.probabilities, transform)
    nameless = ("",) * transform.dimension

    def misfit(mixture: NormalMixture, coordinates: ParameterTransform) -> float:
        found = Posterior(mixture, coordinates, nameless)  # what the user would be told
        with np.errstate(all="ignore"):
            moments = found.mean, found.covariance
        return gaussianised_symmetric_kl(*moments, *told)  # infinite where a moment is

    best, smallest = (plain, transform), misfit(plain, transform)
    D = transform.dimension
    if smallest <= BY_CHANCE * (D + D * (D + 1) / 2) / draws.effective_size:
        return best
    starts = {start.number: start for start in (transform, transform.unwhitened())}
    for number, start in starts.items():
        points = draws.points if number == transform.number else start.to_working(x)
        moved = replace(draws, points=points)
        stretch = stretch_of(moved.equally_weighted(N_STRETCHED, generator))
        if stretch is None:
            continue
        moved = replace(draws, points=stretch.forwards(points))
        mixture, coordinates = moved.mixture(n_components, generator), start.bent([stretch])
        if (found := misfit(mixture, coordinates)) < SHARE_LEFT * smallest:
            best, smallest = (mixture, coordinates), found
    return best


def _moments(x: Array, probabilities: Array, transform: ParameterTransform) -> tuple[Array, Array]:
    """Mean (D,) and covariance (D, D) of points x (m, D); of periodic parameters on the circle."""
    with np.errstate(all="ignore"):  # they may be beyond what a float can hold
        unwrapped = transform.unwrapped(x, transform.mean(x))
        mean = probabilities @ unwrapped
        offsets = unwrapped - mean
        return mean, (offsets.T * probabilities) @ offsets
