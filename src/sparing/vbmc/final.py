"""What a run returns, chosen from its history (Section 3.7).

q_t    variational posterior of iteration t        ELCBO   ELBO - beta_lcb sd (Eq. 8)
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from sparing.numerics.arrays import Array
from sparing.numerics.random_streams import RandomStreams
from sparing.problem.evaluations import Evaluation
from sparing.problem.warning_text import WarningText, WarningTopic
from sparing.variational.other_coordinates import moments_in
from sparing.variational.posterior import Posterior
from sparing.vbmc.answer import UNKNOWN_SD, ThoroughAnswer
from sparing.vbmc.assessment import track_record
from sparing.vbmc.evidence import Evidence
from sparing.vbmc.exploration import RECENT_SHARE
from sparing.vbmc.importance import LARGEST_PARETO_K
from sparing.vbmc.looking import what_is_known
from sparing.vbmc.settings import Settings
from sparing.vbmc.state import Iteration, State
from sparing.vbmc.stopping import StopReason

# A posterior whose bulk reaches this many plausible boxes is worth a word.
FAR_OUTSIDE = 10.0
# The last surrogate may be a bad one, or have made up something far away: what is sampled from it
# is preferred to the chosen solution unless its error is larger by more than this factor.
WORTHWHILE = 2.0


@dataclass(frozen=True, eq=False)
class FinalSolution:
    """The posterior and the evidence that are handed to the user."""

    posterior: Posterior
    elbo: float
    elbo_sd: float
    evidence: Evidence


def final_solution(
    state: State,
    evaluations: Sequence[Evaluation],
    settings: Settings,
    streams: RandomStreams,
    *,
    converged: bool,
) -> FinalSolution:
    """The last solution when stable, else the best there was; sampled anew where that helps."""
    index = -1 if converged else settings.answer.choose(state.history, evaluations)
    chosen = state.history[index]
    posterior, evidence = chosen.posterior, chosen.evidence
    thorough = thorough_answer(state, evaluations, settings, streams)
    if thorough is not None:
        if thorough.evidence.sd <= WORTHWHILE * evidence.sd:
            evidence = thorough.evidence
            posterior = Posterior(thorough.mixture, thorough.transform, posterior.names)
        evidence = evidence.doubted(thorough.doubt)
    if evidence.corrected and not converged:
        unsettled = unsettled_sd(state.history, index, evidence.log_evidence)
        evidence = replace(evidence, sd=math.hypot(evidence.sd, unsettled))
    return FinalSolution(posterior, chosen.elbo, chosen.elbo_sd, evidence)


def is_within_tolerance(final: FinalSolution, settings: Settings) -> bool:
    """Whether a stable run may end with this: it is sampled from everywhere, with more draws.

    A run may see there what it does not know of, such as a hill with a thousandth of the mass.
    """
    return not final.evidence.corrected or final.evidence.sd <= settings.stopping.tolerance_sd


def unsettled_sd(history: Sequence[Iteration], index: int, log_evidence: float) -> float:
    """How far other estimates of late are from the answer, where most of them did not know.

    A run that has only just found the posterior, or what it takes for it, knows it only so well.
    """
    first = (1.0 - RECENT_SHARE) * history[-1].n_evaluations
    late = [past for past in history if past.n_evaluations >= first]
    unknown = [past for past in late if past.warm_up or past.log_evidence_sd > UNKNOWN_SD]
    if history[index].n_evaluations < first or 2 * len(unknown) <= len(late):
        return 0.0
    return float(np.median([abs(past.log_evidence - log_evidence) for past in late]))


def thorough_answer(
    state: State,
    evaluations: Sequence[Evaluation],
    settings: Settings,
    streams: RandomStreams,
) -> ThoroughAnswer | None:
    """The posterior and the evidence of the last surrogate; None before there is one to sample."""
    if state.trained is None or state.searching:
        return None
    last = state.history[-1]
    known = what_is_known(state.trained, last, evaluations)
    generator = streams.generator("answer", state.iteration)
    found = settings.final_fit.answer(
        known,
        state.mixture,
        track_record(state.history),
        settings.evidence,
        settings.exploration,
        generator,
    )
    if found is None or found.transform is known.transform:
        return found
    # Coordinates of the answer alone: numbers up to that of the last iteration are taken.
    return replace(found, transform=replace(found.transform, number=state.iteration + 1))


def _spread_over_the_box(posterior: Posterior) -> Array:
    """Distance of the posterior's bulk (two sds) from the box's centre, in box widths: (D,)."""
    transform = posterior.transform
    mean, covariance = moments_in(posterior.mixture, transform, transform.unwhitened())
    return np.abs(mean) + 2.0 * np.sqrt(np.diag(covariance))


def warnings_for_the_user(
    solution: FinalSolution,
    state: State,
    evaluations: Sequence[Evaluation],
    stop_reason: StopReason,
) -> tuple[WarningText, ...]:
    """What a person should know before trusting the result, each with what to do about it."""
    texts: dict[WarningTopic, str] = {}
    if stop_reason is not StopReason.STABLE:
        texts[WarningTopic.CONVERGENCE] = (
            f"the solution did not become stable ({stop_reason}); what is returned is the best "
            "there was. Allow more evaluations, or compare several runs with other seeds"
        )
    if state.searching:
        texts[WarningTopic.SEARCH] = (
            "the run ended while still searching for the bulk of the posterior: treat posterior "
            "and evidence as provisional. Allow more evaluations, or give x0 near the mode"
        )
    spread = _spread_over_the_box(solution.posterior)
    worst = int(np.argmax(spread))
    if spread[worst] > FAR_OUTSIDE:
        texts[WarningTopic.BOX] = (
            f"the posterior of {solution.posterior.names[worst]!r} reaches {spread[worst]:.3g} "
            "widths of the plausible box from its centre. Either the box is far off, or the "
            "density does not fall to zero there: give bounds or a prior"
        )
    failed = [entry for entry in evaluations if entry.failed]
    if failed:
        texts[WarningTopic.FAILURES] = (
            f"{len(failed)} of {len(evaluations)} evaluations failed (first: "
            f"{failed[0].message or failed[0].status}); the posterior near those points is a guess"
        )
    pareto_k = solution.evidence.pareto_k
    if np.isfinite(pareto_k) and pareto_k > LARGEST_PARETO_K:
        texts[WarningTopic.WEIGHTS] = (
            "the importance weights are too heavy-tailed "
            f"(Pareto k = {pareto_k:.2f} > {LARGEST_PARETO_K}): "
            "the log evidence and the posterior may lack a part. Allow more evaluations"
        )
    return tuple(WarningText(topic, text) for topic, text in texts.items())
