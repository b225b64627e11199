"""Whole runs that begin at one of two modes: none may stop before it has found the other.

And runs that are told of several modes, which should know them at once.
"""

from dataclasses import replace

import numpy as np
import pytest

from sparing.numerics.random_streams import RandomStreams
from sparing.problem.evaluations import Evaluation, Outcome, Status
from sparing.problem.problem import Problem
from sparing.vbmc.engine import Engine
from sparing.vbmc.exploration import FILL, LOOKING, LookAtOnce, LookElsewhere, Trusting
from sparing.vbmc.settings import Settings
from sparing.vbmc.stopping import StopReason

CENTRES = np.array([[-4.0, 0.0], [4.0, 0.0]])  # eight sds apart


def log_two_normals(x):
    """Of equal weight; the evidence is one."""
    return float(np.logaddexp.reduce(-0.5 * ((x - CENTRES) ** 2).sum(axis=1)) - np.log(4 * np.pi))


def log_normal(x):
    return float(-0.5 * (x @ x))


def run(settings, target=log_two_normals, half_width=12.0, budget=200, n_asked=1, n_told=1):
    """Whoever drives it asks until that many points are pending, and tells the oldest of them."""
    box = np.full(2, half_width)
    problem = Problem(target, -box, box)
    # The whole design lies about the mode on the right.
    start = CENTRES[1] + np.random.default_rng(1).uniform(-2.5, 2.5, size=(10, 2))
    engine = Engine(problem, settings, RandomStreams(2), start, budget)
    while engine.final is None:
        while len(engine.pending) < n_asked:
            engine.apply(engine.propose())
        for proposal in list(engine.pending.values())[:n_told]:
            if engine.final is not None:
                break
            outcome = Outcome(target(proposal.x), Status.OK, 0.1)
            engine.apply(Evaluation(len(engine.log), proposal.identifier, proposal.x, outcome))
    return engine


def share_on_the_left(engine):
    return np.mean(engine.final.posterior.sample(4000, seed=1)[:, 0] < 0.0)


def test_a_run_finds_both_modes_and_says_how():
    engine = run(Settings())
    assert engine.stop_reason is StopReason.STABLE
    assert engine.final.evidence.log_evidence == pytest.approx(0.0, abs=0.1)
    assert share_on_the_left(engine) == pytest.approx(0.5, abs=0.05)
    assert FILL in {entry.rule for entry in engine.log}
    first = next(entry for entry in engine.log if entry.x[0] < -2.0)
    assert first.rule in LOOKING  # it was sought
    assert "look elsewhere" in engine.history[-1].timings


def test_a_run_that_is_never_accurate_enough_looks_all_the_same():
    stopping = replace(Settings().stopping, tolerance_sd=1e-6)
    engine = run(replace(Settings(), stopping=stopping), budget=100)
    assert engine.stop_reason is StopReason.BUDGET
    assert engine.final.evidence.log_evidence == pytest.approx(0.0, abs=0.1)
    assert sum(entry.rule in LOOKING for entry in engine.log) < 0.5 * len(engine.log)


@pytest.mark.parametrize("n_told", [1, 8])  # workers kept busy, or batches
def test_with_points_in_flight_a_run_waits_for_what_it_asked_for(n_told, monkeypatch):
    wanted, iterate = set(), Engine.iterate

    def watched(engine):
        iterate(engine)
        wanted.update(map(tuple, engine.state.agenda.points))

    monkeypatch.setattr(Engine, "iterate", watched)
    engine = run(Settings(), n_asked=8, n_told=n_told)
    assert engine.stop_reason is StopReason.STABLE
    assert engine.final.evidence.log_evidence == pytest.approx(0.0, abs=0.1)
    assert wanted and wanted <= {tuple(entry.x) for entry in engine.log}


def test_a_run_that_trusts_what_is_stable_stops_with_one_of_them():
    """What the test above is worth."""
    engine = run(replace(Settings(), exploration=Trusting()))
    assert engine.stop_reason is StopReason.STABLE
    assert engine.final.evidence.log_evidence == pytest.approx(-np.log(2.0), abs=0.05)
    assert share_on_the_left(engine) == 0.0
    assert not {entry.rule for entry in engine.log} & set(LOOKING)


def test_the_paper_never_looks():
    paper = Settings.paper()
    soon = replace(paper, stopping=replace(paper.stopping, n_stable=3))
    engine = run(soon, log_normal, half_width=3.0, budget=60)
    assert engine.stop_reason is StopReason.STABLE
    assert not {entry.rule for entry in engine.log} & set(LOOKING)
    assert engine.final.posterior.mixture is engine.state.history[-1].posterior.mixture


@pytest.mark.parametrize(("exploration", "known"), [(LookAtOnce(), 1.0), (LookElsewhere(), 0.75)])
def test_a_run_that_is_told_of_all_modes_knows_them_at_once(exploration, known):
    """Of four equal modes q, with two components, knows three; nothing is evaluated for it."""
    centres = np.array([[-6.0, -6.0], [6.0, 0.0], [-6.0, 6.0], [0.0, 0.0]])

    def log_four_normals(x):
        exponents = -0.5 * ((x - centres) ** 2).sum(axis=1)
        return float(np.logaddexp.reduce(exponents) - np.log(8 * np.pi))

    generator = np.random.default_rng(1)
    told = np.vstack([centre + 1.5 * generator.standard_normal((12, 2)) for centre in centres])
    design = replace(Settings().initial_design, n_points=len(told))
    settings = replace(Settings(), exploration=exploration, initial_design=design)
    problem = Problem(log_four_normals, [-9.0, -9.0], [9.0, 9.0])
    engine = Engine(problem, settings, RandomStreams(2), told[:0], 300)
    for index, x in enumerate(told):
        engine.apply(Evaluation(index, None, x, Outcome(log_four_normals(x), Status.OK, 0.1)))
    # A mode more or less is 0.29 nats; what is uncertain of the three adds up to a tenth.
    assert engine.history[-1].log_evidence == pytest.approx(np.log(known), abs=0.1)
    assert len(engine.state.agenda.points) == 0
