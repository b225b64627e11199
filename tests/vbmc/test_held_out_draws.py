"""Which evaluations test the surrogate."""

from itertools import pairwise

import pytest

import sparing
from sparing.problem.evaluations import Proposal
from sparing.store import MemoryStore
from sparing.strategies import EvenDraw, Frontier, PosteriorDraw, TemperedSampling

HELD_OUT = {PosteriorDraw.name, EvenDraw.name, Frontier.name}
EXPLORATION = TemperedSampling.name


def banana(x):
    return -0.5 * float(x[0] ** 2 / 4 + (x[1] - 0.5 * x[0] ** 2) ** 2 / 0.1)


def make_problem():
    return sparing.Problem(banana, [-3, -3], [3, 3])


def drive(in_flight, budget=50):
    """A run with so many points in flight, told in the order they were proposed."""
    problem = make_problem()
    run = sparing.Inference(problem, seed=1)
    while run.n_evaluations < budget:
        while len(run.pending) < in_flight:
            run.ask()
        run.tell(run.pending[0], problem.log_joint(run.pending[0].x))
    return run


def n_draws(run):
    """By iteration, how many points that test the surrogate came in since the one before."""
    ends = [0, *(info.n_evaluations for info in run.history)]
    return [
        sum(entry.rule in HELD_OUT for entry in run.evaluations[start:end])
        for start, end in pairwise(ends)
    ]


@pytest.mark.parametrize("in_flight", [1, 8])
def test_draws_and_the_frontier_are_held_out_and_nothing_else(in_flight):
    run = drive(in_flight)
    assert [info.n_held_out for info in run.history] == n_draws(run)
    assert sum(n_draws(run)) > 5
    if in_flight > 1:  # explored when the warm-up was over, with the number of a later draw
        over = min(info.n_evaluations for info in run.history if not info.warm_up)
        rules = [entry.rule for entry in run.evaluations if entry.index >= over]
        assert EXPLORATION in rules


def test_a_journal_of_the_first_release_which_names_no_rule_goes_on_as_it_did():
    run, old = drive(1), MemoryStore(1)
    for event in run.store.events():
        known = isinstance(event, Proposal)
        old.append(Proposal(event.identifier, event.x) if known else event)
    replayed = sparing.Inference(make_problem(), store=old)
    assert {entry.rule for entry in replayed.evaluations} == {""}
    held_out = [[info.n_held_out for info in each.history] for each in (run, replayed)]
    assert held_out[0] == held_out[1]
    assert run.history[-1].log_evidence_sd == replayed.history[-1].log_evidence_sd
