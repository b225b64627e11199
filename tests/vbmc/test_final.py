"""What a run returns, and what it tells the user about it."""

import math
from dataclasses import replace

import numpy as np
import pytest
from tests.vbmc.support import (
    EXACT,
    LOG_EVIDENCE,
    NAMES,
    ROUGH,
    STREAMS,
    TRANSFORM,
    design,
    evaluation,
    evidence,
    row,
    state,
)

from sparing.problem.evaluations import Status
from sparing.problem.warning_text import WarningTopic
from sparing.variational.adam import Adam
from sparing.variational.fit import VariationalSettings
from sparing.variational.mixture import GaussianMixture
from sparing.variational.posterior import Posterior
from sparing.vbmc import final
from sparing.vbmc.answer import BestBound, LastFit, RicherFit, SmallestError
from sparing.vbmc.final import FinalSolution, final_solution, richer_fit, warnings_for_the_user
from sparing.vbmc.settings import Settings
from sparing.vbmc.state import Phase
from sparing.vbmc.stopping import StopReason

AS_IT_IS = replace(Settings(), final_fit=LastFit())
# The third has the best bound of the last quarter, the fourth the smallest error.
HISTORY = [
    row(1, elbo=9.0, elbo_sd=0.0, log_evidence_sd=0.5),
    row(2, elbo=1.0, elbo_sd=0.01, log_evidence_sd=0.4),
    row(3, elbo=2.0, elbo_sd=0.01, log_evidence_sd=0.3),
    row(4, elbo=2.5, elbo_sd=0.5, log_evidence_sd=0.1),
    row(5, elbo=1.5, elbo_sd=0.01, log_evidence_sd=0.2),
]


def chosen(settings, *, converged):
    return final_solution(state(HISTORY), settings, STREAMS, converged=converged)


def test_a_stable_run_returns_its_last_solution():
    found = chosen(AS_IT_IS, converged=True)
    assert (found.elbo, found.elbo_sd) == (1.5, 0.01)
    assert found.posterior is HISTORY[-1].posterior
    assert found.evidence is HISTORY[-1].evidence


def test_without_stability_the_answer_s_strategy_chooses():
    by_error = replace(AS_IT_IS, answer=SmallestError(n_recent=3))
    assert chosen(by_error, converged=False).elbo == 2.5
    by_bound = replace(AS_IT_IS, answer=BestBound(fraction=0.6))
    assert chosen(by_bound, converged=False).elbo == 2.0  # 2.5 less five of its sds is less


@pytest.mark.parametrize(
    ("elbo", "elbo_sd", "kept"), [(1.5, 0.01, True), (1.44, 0.0, False), (1.6, 0.04, False)]
)
def test_a_richer_fit_is_kept_only_where_it_does_not_hurt(monkeypatch, elbo, elbo_sd, kept):
    """The last solution's bound is 1.5 - 5 * 0.01 = 1.45."""
    richer = FinalSolution(Posterior(EXACT, TRANSFORM, NAMES), elbo, elbo_sd, evidence())
    monkeypatch.setattr(final, "richer_fit", lambda *_: richer)
    assert (chosen(AS_IT_IS, converged=True) is richer) is kept


def test_no_richer_fit_where_none_is_asked_for_or_possible():
    assert richer_fit(state(), AS_IT_IS, STREAMS) is None
    assert richer_fit(state(trained=None), Settings(), STREAMS) is None


def test_the_richer_fit_has_more_components_and_the_evidence_of_the_surrogate():
    settings = replace(
        Settings(),
        final_fit=RicherFit(6),
        variational=VariationalSettings(ascent=Adam(max_steps_base=200)),
    )
    found = richer_fit(state(), settings, STREAMS)
    assert found.posterior.mixture.n_components == 6
    assert found.posterior.names == NAMES
    assert found.posterior.transform is TRANSFORM
    assert found.elbo == pytest.approx(LOG_EVIDENCE, abs=0.05)
    assert found.evidence.corrected
    assert found.evidence.log_evidence == pytest.approx(LOG_EVIDENCE, abs=0.05)
    np.testing.assert_allclose(found.posterior.sd, 1.0, atol=0.1)
    again = richer_fit(state(), settings, STREAMS)
    np.testing.assert_array_equal(found.posterior.mixture.means, again.posterior.mixture.means)


# ---------------------------------------------------------------------- warnings


def warnings(*, mixture=ROUGH, pareto_k=0.1, entries=None, reason=StopReason.STABLE, **changes):
    solution = FinalSolution(
        Posterior(mixture, TRANSFORM, NAMES), 1.8, 0.1, evidence(pareto_k=pareto_k)
    )
    entries = design() if entries is None else entries
    found = warnings_for_the_user(solution, state(**changes), entries, reason)
    return {warning.topic: str(warning) for warning in found}


def test_nothing_is_said_of_a_good_run():
    assert warnings() == {}
    assert warnings(pareto_k=math.nan) == {}  # the paper's evidence has none
    assert warnings(pareto_k=-math.inf) == {}  # nothing to smooth


def test_an_end_without_stability_is_said_with_its_reason():
    found = warnings(reason=StopReason.BUDGET)
    assert list(found) == [WarningTopic.CONVERGENCE]
    assert str(StopReason.BUDGET) in found[WarningTopic.CONVERGENCE]


def test_an_end_during_the_search_is_provisional():
    found = warnings(phase=Phase.SEARCHING)
    assert list(found) == [WarningTopic.SEARCH]
    assert "provisional" in found[WarningTopic.SEARCH]
    assert warnings(phase=Phase.ADAPTING) == {}


def test_a_posterior_far_outside_the_box_is_named():
    """In widths of the box, at two standard deviations from the mean."""
    far = GaussianMixture([1.0], [[0.0, 9.0]], [0.6], [1.0, 1.0])
    found = warnings(mixture=far)
    assert list(found) == [WarningTopic.BOX]
    assert "'offset' reaches 10.2 widths" in found[WarningTopic.BOX]
    near = GaussianMixture([1.0], [[0.0, 9.0]], [0.4], [1.0, 1.0])
    assert warnings(mixture=near) == {}


def test_failures_are_counted_and_a_density_of_zero_is_none():
    outside = evaluation(10, value=-math.inf, status=Status.OUT_OF_SUPPORT)
    assert warnings(entries=[*design(), outside]) == {}
    failed = [evaluation(i, value=math.nan, status=Status.FAILED) for i in (11, 12)]
    found = warnings(entries=[*design(), outside, *failed])
    assert list(found) == [WarningTopic.FAILURES]
    assert "2 of 13 evaluations failed (first: boom)" in found[WarningTopic.FAILURES]


def test_weights_that_cannot_be_trusted_are_said():
    found = warnings(pareto_k=0.71)
    assert list(found) == [WarningTopic.WEIGHTS]
    assert "0.71 > 0.7" in found[WarningTopic.WEIGHTS]
    assert warnings(pareto_k=0.7) == {}
