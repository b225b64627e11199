"""Events in, proposals and iterations out."""

import math
from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest

import sparing
from sparing.acquisition.initial_design import INITIAL_DESIGN
from sparing.executors import Outcome
from sparing.numerics.random_streams import RandomStreams
from sparing.problem.evaluations import Evaluation, Proposal
from sparing.strategies import LastFit, PosteriorDraw
from sparing.vbmc.engine import Engine
from sparing.vbmc.exploration import LOOKING

SETTINGS = replace(sparing.Settings(), final_fit=LastFit())  # nobody looks at the answer
RULES = {
    rule.name
    for rules in (SETTINGS.rules, SETTINGS.warm_up.rules, SETTINGS.warm_up.pending_rules)
    for rule in rules
} | set(LOOKING)


def log_density(x):
    return -0.5 * float(x[0] ** 2 + (x[1] - 0.9 * x[0]) ** 2 / 0.05)


def make_engine(budget=60):
    problem = sparing.Problem(log_density, [-2, -2], [2, 2])
    return Engine(problem, SETTINGS, RandomStreams(3), np.empty((0, 2)), budget)


def ask(engine):
    proposal = engine.propose()
    assert engine.apply(proposal) == ()
    return proposal


def tell(engine, proposal):
    outcome = Outcome(log_density(proposal.x), sparing.Status.OK, 0.1)
    return engine.apply(Evaluation(len(engine.log), proposal.identifier, proposal.x, outcome))


def drive(engine, n, in_flight=1):
    """Events of a run with so many points in flight, told newest first; the run goes on from n."""
    events = []
    while len(engine.log) < n:
        while len(engine.pending) < in_flight:
            events.append(ask(engine))
        tell(engine, list(engine.pending.values())[-1])
        events.append(engine.log[-1])
    return events


def bits(engine, n=3):
    """The next points, in detail."""
    return [(p.identifier, p.rule, p.x.tobytes()) for p in (ask(engine) for _ in range(n))]


def test_proposing_changes_nothing():
    engine = make_engine()
    drive(engine, 14)
    ask(engine)
    first, second = engine.propose(), engine.propose()
    assert (first.identifier, first.x.tobytes()) == (second.identifier, second.x.tobytes())
    assert list(engine.pending) == [14]
    assert ask(engine).x.tobytes() == first.x.tobytes()


def test_points_count_on_those_that_are_pending():
    one, other = make_engine(), make_engine()
    for engine in (one, other):
        drive(engine, 14, in_flight=3)
    together = bits(one, 4)
    # The same points, not asked for one after the other: what they teach is worked out anew.
    for identifier, rule, x in together[:3]:
        other.apply(Proposal(identifier, np.frombuffer(x), rule))
    assert bits(other, 1) == together[3:]


def test_an_engine_that_is_told_the_same_events_goes_on_with_the_same_points():
    engine, other = make_engine(), make_engine()
    for event in drive(engine, 45, in_flight=4):
        other.apply(event)
    assert engine._n_since_refit > 0
    assert len(engine.pending) == 3
    assert bits(engine) == bits(other)


def test_the_iterations_that_an_evaluation_completed_are_returned():
    engine = make_engine(budget=40)
    returned, last = [], ()
    while engine.final is None:
        last = tell(engine, ask(engine))
        returned += last
    assert [info.iteration for info in returned] == list(range(1, len(engine.state.history) + 1))
    assert any(a.n_evaluations == b.n_evaluations for a, b in pairwise(returned))
    assert last[-1].iteration == engine.state.history[-1].iteration
    assert "final fit" in last[-1].timings


@pytest.mark.parametrize("in_flight", [1, 4])
def test_every_evaluation_has_the_rule_of_its_proposal(in_flight):
    engine = make_engine()
    events = drive(engine, 40, in_flight)
    proposed = {event.identifier: event.rule for event in events if isinstance(event, Proposal)}
    assert [entry.rule for entry in engine.log] == [proposed[e.identifier] for e in engine.log]
    assert [proposed[i] for i in range(10)] == [INITIAL_DESIGN] * 10
    later = {rule for identifier, rule in proposed.items() if identifier >= 10 + in_flight}
    assert later <= RULES
    assert PosteriorDraw.name in later


def test_a_point_of_the_user_s_own_has_no_rule():
    engine = make_engine()
    outcome = Outcome(-1.0, sparing.Status.OK, math.nan)
    engine.apply(Evaluation(0, None, np.zeros(2), outcome))
    assert engine.log[0].rule == ""


def test_a_restored_engine_goes_on_as_the_one_it_was_taken_from():
    engine = make_engine()
    events = drive(engine, 25)
    while engine._n_since_refit:
        tell(engine, ask(engine))
        events += [Proposal(engine.log[-1].identifier, engine.log[-1].x, "a rule"), engine.log[-1]]
    other = make_engine()
    other.restore(events, engine.state, engine.timings)
    assert len(other.log) == len(engine.log)
    assert bits(other) == bits(engine)
