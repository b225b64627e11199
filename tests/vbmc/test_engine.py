"""The engine: events in, proposals and states out."""

import math
from dataclasses import dataclass, replace

import numpy as np
import pytest
from tests.vbmc.support import PROBLEM, log_joint

from sparing.acquisition.initial_design import INITIAL_DESIGN, LatinHypercube
from sparing.errors import TargetError
from sparing.numerics.random_streams import RandomStreams
from sparing.problem.evaluations import Evaluation, Outcome, Proposal, Status
from sparing.variational.adam import Adam
from sparing.variational.fit import VariationalSettings
from sparing.variational.normal_mixture import unchanged
from sparing.vbmc import engine as engine_module
from sparing.vbmc.answer import ThoroughSample
from sparing.vbmc.engine import MAX_DESIGN_EXTENSIONS, Engine
from sparing.vbmc.evidence import Doubt
from sparing.vbmc.exploration import Trusting
from sparing.vbmc.final import final_solution
from sparing.vbmc.posterior_error import Untested
from sparing.vbmc.settings import Settings
from sparing.vbmc.state import Phase
from sparing.vbmc.stopping import Stopping, StopReason

N_INITIAL, N_ACTIVE = 6, 3
QUICK = replace(
    Settings(),
    n_active=N_ACTIVE,
    initial_design=LatinHypercube(N_INITIAL),
    variational=VariationalSettings(ascent=Adam(max_steps_base=50), n_final_entropy_samples=100),
    final_fit=ThoroughSample(2**9, 2**10, 10),
)


def make(settings=QUICK, *, x0=(), budget=60, seed=1):
    points = np.array(x0, dtype=float).reshape(-1, 2)
    return Engine(PROBLEM, settings, RandomStreams(seed), points, budget)


def answer(engine, proposal, value=None, status=Status.OK, message=""):
    """The evaluation of a proposed point, as it comes back."""
    value = log_joint(proposal.x) if value is None else value
    outcome = Outcome(value, status, 0.1, message)
    return Evaluation(len(engine.log), proposal.identifier, proposal.x, outcome)


def failure(engine, proposal):
    return answer(engine, proposal, math.nan, Status.FAILED, "the solver diverged")


def step(engine, make_answer=answer):
    """One point proposed and evaluated; the iterations it completed."""
    proposal = engine.propose()
    assert engine.apply(proposal) == ()
    return engine.apply(make_answer(engine, proposal))


def after_design(**options):
    engine = make(**options)
    for _ in range(N_INITIAL):
        step(engine)
    return engine


def run_until(condition, **options):
    """The engine after so many steps, and all that happened."""
    engine, events = make(**options), []
    while not condition(engine):
        proposal = engine.propose()
        engine.apply(proposal)
        events.append(proposal)
        events.append(answer(engine, proposal))
        engine.apply(events[-1])
    return engine, events


# ---------------------------------------------------------------------- proposals


def test_proposing_does_not_register():
    engine = make()
    one, other = engine.propose(), engine.propose()
    assert one.identifier == other.identifier == 0
    np.testing.assert_array_equal(one.x, other.x)
    assert engine.pending == {}


def test_a_proposal_that_is_applied_is_pending_until_its_evaluation():
    engine = make()
    proposal = engine.propose()
    assert engine.apply(proposal) == ()
    assert engine.pending == {0: proposal}
    assert engine.propose().identifier == 1
    assert engine.apply(answer(engine, proposal)) == ()
    assert engine.pending == {}
    assert [entry.identifier for entry in engine.log] == [0]


def test_identifiers_go_on_from_the_largest():
    engine = make()
    engine.apply(Proposal(7, np.zeros(2)))
    assert engine.propose().identifier == 8
    engine.apply(Proposal(3, np.ones(2)))
    assert engine.propose().identifier == 8


def test_the_design_starts_with_the_user_s_points_and_fills_the_box():
    engine = make(x0=[[1.5, -0.5]])
    points = []
    for _ in range(N_INITIAL):
        proposal = engine.propose()
        engine.apply(proposal)
        assert proposal.rule == INITIAL_DESIGN
        points.append(proposal.x)
    np.testing.assert_array_equal(points[0], [1.5, -0.5])
    assert np.all(np.abs(points) <= 2.0)
    # One of the others in each fifth of the box, in either direction.
    slices = np.floor((np.array(points[1:]) + 2.0) / 4.0 * (N_INITIAL - 1))
    for column in slices.T:
        np.testing.assert_array_equal(np.sort(column), np.arange(N_INITIAL - 1))


def test_asked_beyond_the_design_before_it_is_told():
    engine = make()
    for _ in range(N_INITIAL):
        engine.apply(engine.propose())
    more = []
    for _ in range(3):
        more.append(engine.propose())
        engine.apply(more[-1])
    assert [proposal.identifier for proposal in more] == [N_INITIAL + i for i in range(3)]
    assert {proposal.rule for proposal in more} == {INITIAL_DESIGN}
    points = np.array([proposal.x for proposal in engine.pending.values()])
    assert np.all(np.abs(points) <= 2.0)
    assert len(np.unique(points[:, 0])) == N_INITIAL + 3


def test_the_design_is_no_longer_than_the_budget():
    engine = make(budget=4)
    for n in range(4):
        assert engine.stop_reason is StopReason.UNFINISHED
        rows = step(engine)
        assert bool(rows) == (n == 3)
    assert engine.stop_reason is StopReason.BUDGET
    assert engine.final is not None


def test_pending_points_shape_the_next_proposal():
    """The same identifier, and so the same random numbers: what differs is what is pending."""
    found = []
    for pending in ([0.0, 0.0], [0.0, 0.0], [1.5, 1.5]):
        engine = after_design()
        engine.apply(Proposal(N_INITIAL, np.array(pending)))
        found.append(engine.propose())
    assert {proposal.identifier for proposal in found} == {N_INITIAL + 1}
    np.testing.assert_array_equal(found[0].x, found[1].x)
    assert not np.array_equal(found[0].x, found[2].x)


def test_other_rules_search_while_something_is_pending():
    engine = after_design()
    engine.apply(engine.propose())
    waiting = engine.propose()
    assert waiting.rule == engine.settings.warm_up.pending_rules[waiting.identifier % 2].name
    engine = after_design()
    step(engine)
    alone = engine.propose()
    assert alone.identifier == waiting.identifier
    assert alone.rule == engine.settings.warm_up.rules[0].name != waiting.rule


def test_what_is_pending_counts_the_same_whenever_it_was_asked():
    """One by one with proposals in between, or all at once."""
    engines = [after_design(), after_design()]
    engines[0].propose()  # makes the surrogate that counts on pending points
    for engine in engines:
        for identifier, x in enumerate(([0.3, 0.1], [-0.4, 0.9]), start=N_INITIAL):
            engine.apply(Proposal(identifier, np.array(x)))
    one, other = (engine.propose() for engine in engines)
    np.testing.assert_array_equal(one.x, other.x)


def test_a_pending_point_is_not_proposed_again():
    engine = after_design()
    points = []
    for _ in range(6):
        proposal = engine.propose()
        engine.apply(proposal)
        points.append(proposal.x)
    distances = [np.linalg.norm(a - b) for i, a in enumerate(points) for b in points[:i]]
    assert min(distances) > 0.05


# ---------------------------------------------------------------------- evaluations


def test_the_rule_that_chose_a_point_reaches_the_log():
    engine = after_design()
    step(engine)
    *first, last = engine.log
    assert {entry.rule for entry in first} == {INITIAL_DESIGN}
    assert last.rule == engine.settings.warm_up.rules[0].name
    own = Evaluation(len(engine.log), None, np.zeros(2), Outcome(0.0, Status.OK, 0.1))
    engine.apply(own)
    assert engine.log[-1].rule == ""


def test_a_point_of_the_user_leaves_what_is_pending_alone():
    engine = make()
    engine.apply(engine.propose())
    engine.apply(Evaluation(0, None, np.zeros(2), Outcome(0.0, Status.OK, 0.1)))
    assert list(engine.pending) == [0]
    assert len(engine.log) == 1


def test_the_evaluation_that_completes_the_design_returns_its_iteration():
    engine = make()
    for _ in range(N_INITIAL - 1):
        assert step(engine) == ()
    (info,) = step(engine)
    assert (info.iteration, info.n_evaluations, info.warm_up) == (1, N_INITIAL, True)
    assert {"surrogate", "variational", "assessment"} <= set(info.timings)
    assert info.seconds > 0.0
    for _ in range(N_ACTIVE - 1):
        assert step(engine) == ()
    (info,) = step(engine)
    assert (info.iteration, info.n_evaluations) == (2, N_INITIAL + N_ACTIVE)


def test_results_may_come_in_any_order():
    engine = make()
    proposals = []
    for _ in range(N_INITIAL):
        proposals.append(engine.propose())
        engine.apply(proposals[-1])
    *most, last = reversed(proposals)
    for proposal in most:
        assert engine.apply(answer(engine, proposal)) == ()
    assert len(engine.apply(answer(engine, last))) == 1
    assert [entry.identifier for entry in engine.log] == list(range(N_INITIAL))[::-1]


def test_the_end_of_the_warm_up_brings_two_iterations_at_once():
    engine = after_design()
    while engine.state.phase is Phase.SEARCHING:
        rows = step(engine)
    assert [info.warm_up for info in rows] == [True, False]
    assert [info.iteration for info in rows] == [engine.state.iteration - 1, engine.state.iteration]
    assert rows[0].n_evaluations == rows[1].n_evaluations == len(engine.log)
    assert engine.state.phase is Phase.SETTLED


def test_a_failure_counts_as_an_evaluation_but_teaches_no_value():
    engine = after_design()
    step(engine, failure)
    for _ in range(N_ACTIVE - 1):
        rows = step(engine)
    (info,) = rows
    assert info.n_evaluations == N_INITIAL + N_ACTIVE
    assert info.n_training == N_INITIAL + N_ACTIVE - 1


def test_a_value_shapes_the_next_proposal():
    found = []
    for value in (0.0, 0.0, -8.0):
        engine = after_design()
        proposal = engine.propose()
        engine.apply(proposal)
        engine.apply(answer(engine, proposal, value))
        found.append(engine.propose().x)
    np.testing.assert_array_equal(found[0], found[1])
    assert not np.array_equal(found[0], found[2])


@pytest.mark.parametrize("n_later", [0, N_ACTIVE - 1], ids=["at once", "after a refit"])
def test_where_a_point_failed_shapes_the_next_proposal(n_later):
    """The surrogate is wary of the place from then on; it has learned no value there."""
    found = []
    for place in ([0.1, 0.1], [0.1, 0.1], [1.9, 1.9]):
        engine = after_design()
        lost = Outcome(math.nan, Status.FAILED, 0.1, "the solver diverged")
        engine.apply(Evaluation(len(engine.log), None, np.array(place), lost))
        for x in ([-1.0, 0.5], [0.4, -0.7])[:n_later]:
            known = Outcome(log_joint(np.array(x)), Status.OK, 0.1)
            engine.apply(Evaluation(len(engine.log), None, np.array(x), known))
        assert engine.state.iteration == (2 if n_later else 1)
        found.append(engine.propose().x)
    np.testing.assert_array_equal(found[0], found[1])
    assert not np.array_equal(found[0], found[2])


# ---------------------------------------------------------------------- designs of no use


def test_a_design_of_which_nothing_is_usable_is_extended():
    engine = make()
    for _ in range(N_INITIAL):
        assert step(engine, failure) == ()
    assert engine.state.iteration == 0
    points = [entry.x for entry in engine.log]
    for _ in range(N_INITIAL - 1):
        proposal = engine.propose()
        assert proposal.rule == INITIAL_DESIGN
        assert not any(np.array_equal(proposal.x, x) for x in points)
        step(engine)
    (info,) = step(engine)
    assert (info.iteration, info.n_training) == (1, N_INITIAL)


def test_the_user_s_points_are_not_tried_again_in_an_extension():
    engine = make(x0=[[1.5, -0.5]])
    for _ in range(N_INITIAL):
        step(engine, failure)
    own = engine.log[0].x
    for _ in range(N_INITIAL):
        assert not np.array_equal(engine.propose().x, own)
        step(engine, failure)


def test_the_run_gives_up_when_extensions_do_not_help():
    engine = make(budget=10_000)
    with pytest.raises(TargetError, match="the solver diverged") as raised:
        for _ in range(10_000):
            step(engine, failure)
    n = N_INITIAL * (MAX_DESIGN_EXTENSIONS + 1)
    assert len(engine.log) == n
    assert f"{n} of {n} evaluations" in str(raised.value)


def test_one_value_is_not_enough_and_the_budget_ends_the_search_for_more():
    engine = make(budget=N_INITIAL + 2)
    step(engine)
    for _ in range(N_INITIAL):
        assert step(engine, failure) == ()
    with pytest.raises(TargetError, match=f"{N_INITIAL + 1} of {N_INITIAL + 2} evaluations"):
        step(engine, failure)


# ---------------------------------------------------------------------- the end


def test_the_budget_ends_a_run():
    engine, _ = run_until(lambda engine: engine.final is not None, budget=N_INITIAL + N_ACTIVE + 1)
    assert len(engine.log) == N_INITIAL + N_ACTIVE + 1
    assert engine.stop_reason is StopReason.BUDGET
    assert engine.state.history[-1].n_evaluations == len(engine.log)  # the last point is used too


EASY = replace(QUICK, stopping=Stopping(1e9, 1e9, 1e9, n_stable=2), accuracy=Untested())


def test_a_stable_solution_ends_a_run():
    engine, _ = run_until(lambda engine: engine.final is not None, settings=EASY)
    assert engine.stop_reason is StopReason.STABLE
    assert engine.state.history[-1].stable
    assert len(engine.log) < engine.max_evaluations
    assert engine.history[-1].timings["final fit"] > 0.0


@dataclass(frozen=True)
class DoubtfulAt:
    """A last sample that is doubted until there are so many evaluations."""

    n_evaluations: int

    def answer(self, known, mixture, record, evidence, exploration, generator):
        found = ThoroughSample().answer(known, mixture, record, evidence, Trusting(), generator)
        doubt = Doubt(0.0 if len(known.values) >= self.n_evaluations else 0.2)
        return replace(found, doubt=doubt, evidence=replace(found.evidence, sd=0.05))


def test_a_run_goes_on_where_its_last_sample_is_not_sure_enough():
    sure, _ = run_until(lambda engine: engine.final is not None, settings=EASY)
    n_evaluations = len(sure.log) + N_ACTIVE + 1
    tolerance = replace(EASY.stopping, tolerance_sd=0.1)
    easy = replace(EASY, stopping=tolerance, final_fit=DoubtfulAt(n_evaluations))
    engine, _ = run_until(lambda engine: engine.final is not None, settings=easy, budget=100)
    assert engine.stop_reason is StopReason.STABLE
    assert n_evaluations <= len(engine.log) < engine.max_evaluations
    assert [past.stable for past in engine.state.history][-2:] == [False, True]
    assert engine.final.evidence.sd < 0.1
    never = replace(easy, final_fit=DoubtfulAt(1000))
    engine, _ = run_until(lambda engine: engine.final is not None, settings=never)
    assert engine.stop_reason is StopReason.BUDGET
    assert not engine.state.history[-1].stable


@pytest.mark.parametrize("reason", [StopReason.CALLBACK, StopReason.STABLE])
def test_whoever_ends_a_run_says_why(monkeypatch, reason):
    asked = []

    def chosen(*arguments, converged):
        asked.append(converged)
        return final_solution(*arguments, converged=converged)

    monkeypatch.setattr(engine_module, "final_solution", chosen)
    engine = after_design()
    engine.finish(reason)
    assert engine.stop_reason is reason
    assert engine.final is not None
    assert asked == [reason is StopReason.STABLE]  # else a better one than the last is looked for


# ---------------------------------------------------------------------- restoring


def facts(engine):
    """Everything of an engine that a resumed run must have to the last bit."""
    state = engine.state
    arrays = [*state.mixture.arrays, *(part for info in engine.history for part in vars_of(info))]
    if state.trained is not None:
        arrays += [state.trained.surrogate.parameters, state.trained.surrogate.training.inputs]
    arrays += [entry.x for entry in engine.log]
    words = (state.phase, state.trimmed, state.transform.number, list(engine.pending))
    rules = [entry.rule for entry in engine.log]
    return [np.array(array) for array in arrays], (words, rules, engine.stop_reason)


def vars_of(info):
    numbers = [info.elbo, info.elbo_sd, info.log_evidence, info.log_evidence_sd, info.n_components]
    mixture = unchanged(info.posterior.mixture)
    parts = [mixture.weights, mixture.means, mixture.factors]
    return [*numbers, info.n_held_out, info.held_out_squares, *parts]


def assert_equal(one, other):
    (arrays, words), (other_arrays, other_words) = facts(one), facts(other)
    assert words == other_words
    assert len(arrays) == len(other_arrays)
    for array, same in zip(arrays, other_arrays, strict=True):
        np.testing.assert_array_equal(array, same)


def settled(engine):
    return engine.state.phase is Phase.SETTLED and engine.state.iteration >= 5


def test_the_same_events_give_the_same_state():
    engine, events = run_until(settled)
    again = make()
    for event in events:
        again.apply(event)
    assert_equal(engine, again)
    np.testing.assert_array_equal(engine.propose().x, again.propose().x)


def test_restoring_a_snapshot_equals_replaying_everything():
    engine, events = run_until(lambda engine: engine.state.phase is Phase.SETTLED)
    timings = [dict(seconds) for seconds in engine.timings]
    restored = make()
    restored.restore(events, engine.state, timings)
    assert_equal(engine, restored)
    assert [dict(info.timings) for info in restored.history] == timings
    n_iterations = engine.state.iteration
    while engine.state.iteration < n_iterations + 2:
        proposals = [each.propose() for each in (engine, restored)]
        np.testing.assert_array_equal(proposals[0].x, proposals[1].x)
        assert proposals[0].identifier == proposals[1].identifier
        for each, proposal in zip((engine, restored), proposals, strict=True):
            each.apply(proposal)
            each.apply(answer(each, proposal))
    assert_equal(engine, restored)


def test_a_restored_engine_goes_on_with_the_agenda():
    engine, events = run_until(lambda engine: len(engine.state.agenda.points) > 1, settings=EASY)
    agenda, n_iterations = engine.state.agenda, engine.state.iteration
    restored = make(EASY)
    restored.restore(events, engine.state, engine.timings)
    for each in (engine, restored):
        for point in agenda.points:
            proposal = each.propose()
            np.testing.assert_array_equal(proposal.x, point)
            assert proposal.rule == agenda.rule
            each.apply(proposal)
        *first, last = list(each.pending.values())
        for proposal in first:
            assert each.apply(answer(each, proposal)) == ()
        assert each.state.iteration == n_iterations
        assert len(each.apply(answer(each, last))) == 1
    assert_equal(engine, restored)


def test_a_restored_engine_knows_what_is_pending_and_what_failed():
    engine, events = make(), []

    def apply(event):
        events.append(event)
        return engine.apply(event)

    def tell(make_answer=answer):
        proposal = engine.propose()
        apply(proposal)
        return apply(make_answer(engine, proposal))

    for _ in range(N_INITIAL):
        tell()
    slow = engine.propose()
    apply(slow)
    tell(failure)
    while not tell():
        pass
    restored = make()
    restored.restore(events, engine.state, engine.timings)
    assert list(restored.pending) == list(engine.pending) == [slow.identifier]
    assert_equal(engine, restored)
    assert [entry.status for entry in restored.log].count(Status.FAILED) == 1
    np.testing.assert_array_equal(restored.propose().x, engine.propose().x)
