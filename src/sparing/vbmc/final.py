"""What a run returns, chosen from its history (Section 3.7).

q_t    variational posterior of iteration t        ELCBO   ELBO - beta_lcb sd (Eq. 8)
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from sparing.numerics.arrays import Array
from sparing.numerics.random_streams import RandomStreams
from sparing.problem.evaluations import Evaluation
from sparing.variational.elbo import evaluate_elbo
from sparing.variational.fit import fit
from sparing.variational.posterior import Posterior
from sparing.vbmc.assessment import calibration
from sparing.vbmc.evidence import Evidence, corrected_posterior
from sparing.vbmc.settings import Settings
from sparing.vbmc.state import State
from sparing.vbmc.stopping import StopReason, best_recent

# A posterior whose bulk reaches this many plausible boxes is worth a word.
FAR_OUTSIDE = 10.0


@dataclass(frozen=True, eq=False)
class FinalSolution:
    """The posterior and the evidence that are handed to the user."""

    posterior: Posterior
    elbo: float
    elbo_sd: float
    evidence: Evidence


def final_solution(
    state: State, settings: Settings, streams: RandomStreams, *, converged: bool
) -> FinalSolution:
    """The last solution when stable, else the best recent one; refitted if that helps."""
    beta = settings.stopping.beta_lcb_unstable
    elcbo = [info.elbo - beta * info.elbo_sd for info in state.history]
    index = -1 if converged else _best_unstable(state, elcbo, settings)
    chosen = state.history[index]
    best = FinalSolution(chosen.posterior, chosen.elbo, chosen.elbo_sd, chosen.evidence)
    richer = _richer_fit(state, settings, streams)
    if richer is not None and richer.elbo - beta * richer.elbo_sd >= elcbo[index]:
        return richer
    return best


def _best_unstable(state: State, elcbo: Sequence[float], settings: Settings) -> int:
    """Which iteration to return when the last one is not stable (Section 3.7)."""
    n_recent = settings.stopping.n_recent_solutions
    if n_recent is None:
        return best_recent(elcbo, settings.stopping.recent_fraction)
    recent = [info.log_evidence_sd for info in state.history[-n_recent:]]
    return len(elcbo) - len(recent) + int(np.argmin(recent))


def _richer_fit(state: State, settings: Settings, streams: RandomStreams) -> FinalSolution | None:
    """A fit to the last surrogate with many components, or None where it is not asked for."""
    if settings.final_fit is None or state.solution is None:
        return None
    gp, mixture = state.solution.gp, state.solution.mixture
    n_components = max(settings.final_fit.n_components, mixture.n_components)
    generator = streams.generator("final fit", state.iteration)
    fitted = fit(
        mixture,
        gp,
        n_components=n_components,
        settings=settings.variational,
        equal_weights=False,
        many_starts=False,
        fast_learning=False,
        generator=generator,
    ).mixture
    elbo = evaluate_elbo(fitted, gp, settings.variational.n_final_entropy_samples, generator)
    shown = calibration(state, np.empty(0), settings)
    evidence, corrected = corrected_posterior(fitted, gp, elbo, shown, settings.evidence, generator)
    posterior = Posterior(corrected, state.transform, state.history[-1].posterior.names)
    return FinalSolution(posterior, elbo.value, elbo.sd, evidence)


def _spread_over_the_box(posterior: Posterior) -> Array:
    """Distance of the posterior's bulk (two sds) from the box's centre, in box widths: (D,)."""
    matrix, offset = posterior.transform.standardised_map()
    mixture = posterior.mixture
    centre = matrix @ mixture.mean + offset
    sd = np.sqrt(np.diag(matrix @ mixture.covariance @ matrix.T))
    return np.abs(centre) + 2.0 * sd


def warnings_for_the_user(
    solution: FinalSolution,
    state: State,
    evaluations: Sequence[Evaluation],
    stop_reason: StopReason,
    settings: Settings,
) -> tuple[str, ...]:
    """What a person should know before trusting the result, each with what to do about it."""
    texts: list[str] = []
    if stop_reason is not StopReason.STABLE:
        texts.append(
            f"the solution did not become stable ({stop_reason}); what is returned is the best "
            "recent one. Allow more evaluations, or compare several runs with other seeds"
        )
    if state.warm_up:
        texts.append(
            "the run ended while still searching for the bulk of the posterior: treat posterior "
            "and evidence as provisional. Allow more evaluations, or give x0 near the mode"
        )
    spread = _spread_over_the_box(solution.posterior)
    worst = int(np.argmax(spread))
    if spread[worst] > FAR_OUTSIDE:
        texts.append(
            f"the posterior of {solution.posterior.names[worst]!r} reaches {spread[worst]:.3g} "
            "widths of the plausible box from its centre. Either the box is far off, or the "
            "density does not fall to zero there: give bounds or a prior"
        )
    failed = [entry for entry in evaluations if entry.failed]
    if failed:
        texts.append(
            f"{len(failed)} of {len(evaluations)} evaluations failed (first: "
            f"{failed[0].message or failed[0].status}); the posterior near those points is a guess"
        )
    pareto_k, limit = solution.evidence.pareto_k, settings.evidence.largest_pareto_k
    if np.isfinite(pareto_k) and pareto_k > limit:
        texts.append(
            f"the importance weights are too heavy-tailed (Pareto k = {pareto_k:.2f} > {limit}):"
            " the log evidence is the lower bound itself"
        )
    return tuple(texts)
