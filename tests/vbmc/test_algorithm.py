"""Algorithm 1: how many points, by which rule, in which coordinates, in which order."""

from contextlib import contextmanager
from dataclasses import dataclass, field, replace

import numpy as np
import pytest
from tests.hand_made import with_outcome
from tests.vbmc.support import (
    EXACT,
    LOG_EVIDENCE,
    NAMES,
    ROUGH,
    STREAMS,
    TRANSFORM,
    design,
    evaluation,
    row,
    solution,
    state,
    steep,
    surrogate,
)

from sparing.acquisition.initial_design import LatinHypercube
from sparing.acquisition.way_home import WAY_HOME
from sparing.problem.bending import Bend, Whitening
from sparing.problem.parameter_transform import ParameterTransform
from sparing.problem.problem import Problem
from sparing.surrogate.collapsed_training import Collapsed
from sparing.variational.adam import Adam
from sparing.variational.fit import VariationalSettings
from sparing.variational.mixture import GaussianMixture
from sparing.variational.posterior import Posterior
from sparing.variational.whitening import LastTry, Unwhitened, Whitened
from sparing.vbmc import algorithm as algorithm_module
from sparing.vbmc.algorithm import Algorithm, last_try, proven_coordinates
from sparing.vbmc.settings import Settings
from sparing.vbmc.state import Agenda, Phase, initial_state
from sparing.vbmc.training import train_surrogate
from sparing.vbmc.warm_up import Climbing, WatchingBound


@dataclass(frozen=True)
class Recorded:
    """A rule that always chooses the same point, and notes what it was given."""

    name: str
    point: tuple[float, float] = (0.1, -0.2)
    held_out: bool = False
    reaches_out: bool = False
    asked: list = field(default_factory=list)

    def choose(self, surrogate, mixture, generator):
        self.asked.append((surrogate, mixture, generator.random()))
        return np.array(self.point)


def algorithm(**changes):
    return Algorithm(replace(Settings(), **changes), STREAMS, NAMES)


def with_rules():
    """Three rules, two of the search, and two for when points are pending."""
    warm_up = Climbing(
        rules=(Recorded("climb"), Recorded("look")),
        pending_rules=(Recorded("wait"), Recorded("explore")),
    )
    rules = tuple(Recorded(name) for name in ("reduce", "draw", "widen"))
    return algorithm(rules=rules, warm_up=warm_up)


def names(subject, before, n, process=None, *, pending=False):
    """Of the rules that choose the next n points."""
    process = surrogate() if process is None else process
    return [subject.propose(before, process, i, i, pending=pending).rule for i in range(n)]


# ---------------------------------------------------------------------- how many points


def test_the_first_iteration_evaluates_the_design():
    first = initial_state(TRANSFORM, np.empty((0, 2)))
    assert algorithm(initial_design=LatinHypercube(7)).n_new_points(first) == 7
    many = Problem(lambda x: 0.0, np.full(12, -1.0), np.full(12, 1.0))
    first = initial_state(ParameterTransform.from_problem(many), np.empty((0, 12)))
    assert algorithm(initial_design=LatinHypercube(7)).n_new_points(first) == 13


@pytest.mark.parametrize(
    ("phase", "expected"), [(Phase.SEARCHING, 4), (Phase.ADAPTING, 0), (Phase.SETTLED, 4)]
)
def test_later_ones_evaluate_n_active_points_but_none_while_q_adapts(phase, expected):
    assert algorithm(n_active=4).n_new_points(state(phase=phase)) == expected


@pytest.mark.parametrize("phase", [Phase.SEARCHING, Phase.SETTLED])
def test_on_the_way_up_points_come_one_by_one_in_any_phase(phase):
    uphill = state(trained=steep(), phase=phase)
    assert algorithm(n_active=4).n_new_points(uphill) == 1
    assert algorithm(n_active=4, warm_up=WatchingBound()).n_new_points(uphill) == 4


# ---------------------------------------------------------------------- which rule


def test_the_rules_take_turns():
    assert names(with_rules(), state(), 5) == ["reduce", "draw", "widen", "reduce", "draw"]
    assert names(with_rules(), state(), 2, pending=True) == ["reduce", "draw"]


def test_while_searching_the_rules_of_the_warm_up_do():
    searching = state(phase=Phase.SEARCHING)
    assert names(with_rules(), searching, 3) == ["climb", "look", "climb"]
    assert names(with_rules(), searching, 3, pending=True) == ["wait", "explore", "wait"]


def test_the_search_goes_on_where_the_bulk_turns_out_to_lie_higher():
    """By the surrogate with what has arrived since, not by the last one."""
    uphill = steep().surrogate
    assert names(with_rules(), state(), 2, uphill) == ["climb", "look"]
    assert names(with_rules(), state(), 2, uphill, pending=True) == ["wait", "explore"]
    assert names(with_rules(), state(trained=steep()), 2) == ["reduce", "draw"]


def test_points_are_chosen_with_the_surrogate_that_was_given():
    subject, process = with_rules(), surrogate()
    subject.propose(state(), process, 0, 0, pending=False)
    ((given, _, _),) = subject.settings.rules[0].asked
    assert given is process


def test_the_search_follows_q_and_later_points_the_posterior():
    sampled = Posterior(EXACT, TRANSFORM, NAMES)
    before = state([row(1), row(2, posterior=sampled)], mixture=ROUGH)
    subject = with_rules()
    subject.propose(before, surrogate(), 0, 0, pending=False)
    assert subject.settings.rules[0].asked[0][1] is EXACT
    subject.propose(replace(before, phase=Phase.SEARCHING), surrogate(), 0, 0, pending=False)
    subject.propose(before, steep().surrogate, 0, 0, pending=False)
    assert [asked[1] for asked in subject.settings.warm_up.rules[0].asked] == [ROUGH, ROUGH]


def test_a_rule_that_reaches_out_is_given_q_as_well():
    """q may have followed the surrogate to where nothing is believed."""
    before = state([row(1, posterior=Posterior(EXACT, TRANSFORM, NAMES))], mixture=ROUGH)
    rule = Recorded("reach", reaches_out=True)
    algorithm(rules=(rule,)).propose(before, surrogate(), 0, 0, pending=False)
    given = rule.asked[0][1]
    x = np.random.default_rng(1).normal(size=(5, 2))
    expected = np.logaddexp(EXACT.log_density(x), ROUGH.log_density(x)) - np.log(2.0)
    np.testing.assert_allclose(given.log_density(x), expected)
    warm_up = Climbing(rules=(rule,))
    searching = replace(before, phase=Phase.SEARCHING)
    algorithm(warm_up=warm_up).propose(searching, surrogate(), 0, 0, pending=False)
    assert rule.asked[1][1] is ROUGH


def test_the_agenda_comes_first():
    """By position in the iteration, whatever the identifiers; then the rules go on."""
    agenda = Agenda(np.array([[1.0, 2.0], [3.0, 4.0]]), "look")
    subject, before = with_rules(), state(agenda=agenda)
    found = [subject.propose(before, surrogate(), 7 + i, i, pending=True) for i in range(4)]
    assert [proposal.rule for proposal in found] == ["look", "look", "reduce", "draw"]
    assert [proposal.identifier for proposal in found] == [7, 8, 9, 10]
    np.testing.assert_array_equal([proposal.x for proposal in found[:2]], agenda.points)
    assert subject.n_new_points(before) == 2
    assert subject.n_new_points(replace(before, phase=Phase.ADAPTING)) == 0


def test_points_go_back_into_the_box_in_any_phase():
    far = [(9.0, 9.0), (9.5, 9.0), (9.0, 9.5), (10.0, 9.0), (9.5, 9.5)]
    entries = [*design(3), *(evaluation(3 + i, x, -1.0 - 0.1 * i) for i, x in enumerate(far))]
    entries[:3] = [with_outcome(entry, value=-30.0) for entry in entries[:3]]
    subject, lost = with_rules(), surrogate(entries)
    for before in (state(), state(phase=Phase.SEARCHING)):
        found = [subject.propose(before, lost, i, 0, pending=False) for i in range(6)]
        homeward = [proposal.rule == WAY_HOME for proposal in found]
        assert homeward == [False, False, True] * 2
        assert np.all(np.abs(found[2].x) <= 2.0)
    paper = replace(subject, settings=replace(subject.settings, warm_up=WatchingBound()))
    assert paper.propose(state(), lost, 2, 0, pending=False).rule != WAY_HOME


def test_a_proposal_is_in_the_user_s_coordinates_and_repeats():
    subject = with_rules()
    one, other = (subject.propose(state(), surrogate(), 6, 0, pending=False) for _ in range(2))
    np.testing.assert_allclose(one.x, [0.4, -0.8])  # u = x / 4
    assert (one.identifier, one.rule) == (6, "reduce")
    np.testing.assert_array_equal(one.x, other.x)
    subject.propose(state(), surrogate(), 9, 3, pending=False)
    draws = [asked[2] for asked in subject.settings.rules[0].asked]
    assert draws[0] == draws[1] != draws[2]  # a stream of its own for every identifier


def test_a_proposal_far_out_is_brought_within_reach():
    wild = algorithm(rules=(Recorded("wild", (1e9, 0.3)),))
    proposal = wild.propose(state(), surrogate(), 0, 0, pending=False)
    _, upper = TRANSFORM.reachable_box()
    np.testing.assert_allclose(proposal.x, [4.0 * upper[0], 1.2])


# ---------------------------------------------------------------------- coordinates


def correlated(n=25):
    """Of a t distribution along the diagonal, of which axis-aligned kernels make little."""
    matrix = np.linalg.inv(np.array([[1.0, 0.97], [0.97, 1.0]]))

    def value(x):
        return -8.0 * np.log1p(float(x @ matrix @ x) / 16.0)

    return [evaluation(e.index, e.x, value(e.x), identifier=e.index) for e in design(n)]


DIAGONAL = GaussianMixture(
    np.full(5, 0.2), np.linspace(-0.4, 0.4, 5)[:, None] * np.ones(2), np.full(5, 0.08), np.ones(2)
)
QUICK = VariationalSettings(ascent=Adam(max_steps_base=20))


def trained_solution(subject, before, entries, mixture):
    found = train_surrogate(before, TRANSFORM, entries, subject.settings, STREAMS)
    return replace(solution(mixture), trained=found)


def score(found):
    """Of all that its surrogate was trained on."""
    return Collapsed().score(found.surrogate, found.surrogate.training)


def test_while_searching_q_shows_no_coordinates_but_the_best_points_do():
    subject, searching = algorithm(), state(phase=Phase.SEARCHING)
    assert subject.other_coordinates(searching, DIAGONAL, []) is None
    entries = correlated()
    assert subject.other_coordinates(searching, DIAGONAL, entries[:3]) is None
    (shown,) = subject.other_coordinates(searching, DIAGONAL, entries)
    x = np.array([entry.x for entry in entries])
    best = np.argsort([-entry.value for entry in entries])[:12]
    before, after = (np.corrcoef(points[best].T)[0, 1] for points in (x, shown.to_working(x)))
    assert abs(after) < 0.3 < before
    (candidate,) = subject.other_coordinates(state(), DIAGONAL, [])
    assert candidate.number == 4  # the coming iteration


def test_coordinates_that_gradients_show_are_tried_while_searching():
    matrix = np.linalg.inv(np.array([[1.0, 0.97], [0.97, 1.0]]))
    points = [(-2.0, -2.0), (1.5, 2.0), (2.0, -1.0), (-1.0, 0.5)]
    entries = [evaluation(i, x, -0.5 * x @ matrix @ x) for i, x in enumerate(np.array(points))]
    entries = [with_outcome(e, gradient=tuple(-matrix @ e.x)) for e in entries]
    searching = state(phase=Phase.SEARCHING)
    shown, _ = algorithm().other_coordinates(searching, DIAGONAL, entries)
    u = shown.to_working(np.zeros((1, 2)))
    np.testing.assert_allclose(u, 0.0, atol=1e-9)
    assert len(algorithm().other_coordinates(state(), DIAGONAL, entries)) == 2
    assert algorithm().other_coordinates(searching, DIAGONAL, entries[:3]) is None  # D + 2 do


def test_on_the_way_up_a_gain_must_be_clear():
    entries, searching = correlated(), state(phase=Phase.SEARCHING, mixture=DIAGONAL)
    subject = algorithm(variational=QUICK)
    current = trained_solution(subject, searching, entries, DIAGONAL)
    candidates = subject.other_coordinates(searching, current.mixture, entries)
    best = subject.in_best_coordinates(searching, current, candidates, entries)
    assert best.transform is candidates[0]
    gain = score(best) - score(current)
    needed = np.log(25.0)  # for two scales
    for least, kept in ((gain - needed - 0.1, True), (gain - needed + 0.1, False)):
        subject = algorithm(variational=QUICK, coordinates=Whitened(minimal_gain=least))
        best = subject.in_best_coordinates(searching, current, candidates, entries)
        assert (best is not current) == kept


def test_what_was_tried_on_the_way_up_does_not_count_after_it():
    rows = [row(1, warm_up=True), row(2, warm_up=True), row(3)]
    assert last_try(state(rows[:2], phase=Phase.SEARCHING, last_whitening=1)) is not None
    assert last_try(state(rows, last_whitening=1)) is None
    assert last_try(state(rows, last_whitening=2)) is not None


def test_other_coordinates_are_tried_at_most_every_few_iterations():
    subject = algorithm(coordinates=Whitened(every=3))
    assert subject.other_coordinates(state(last_whitening=1), DIAGONAL, []) is None
    assert len(subject.other_coordinates(state(last_whitening=0), DIAGONAL, [])) == 1
    paper = algorithm(coordinates=Unwhitened())
    assert paper.other_coordinates(state(), DIAGONAL, []) is None


def test_coordinates_that_were_not_kept_are_tried_again_with_more_evaluations():
    turned = TRANSFORM.whitened(np.zeros(2), np.eye(2), 2)
    rows = [whitened_row(1, 0.1, TRANSFORM)] + [whitened_row(t, 0.1, turned) for t in range(2, 6)]
    kept = last_try(state(rows, transform=turned, last_whitening=1))
    assert kept == LastTry(n_iterations=4, growth=30 / 15, was_kept=True)
    again = last_try(state(rows, transform=turned, last_whitening=2))
    assert again == LastTry(n_iterations=3, growth=30 / 20, was_kept=False)
    assert last_try(state(rows, last_whitening=-99)) is None
    rare = algorithm(coordinates=Whitened(growth=1.6))
    before = state(rows, transform=turned, last_whitening=2)
    assert rare.other_coordinates(before, DIAGONAL, []) is None
    assert algorithm().other_coordinates(before, DIAGONAL, [])


def test_other_coordinates_are_tried_at_once_in_a_run_that_was_told_much():
    first = initial_state(TRANSFORM, np.empty((0, 2)))
    told = replace(first, phase=Phase.ADAPTING, history=state().history[:1])
    assert len(algorithm().other_coordinates(told, DIAGONAL, [])) == 1


def whitened_row(iteration, sd, transform, **changes):
    """A solution that is right, in these coordinates."""
    lengths = np.ones(2) if transform.whitening is None else np.diag(transform.whitening.matrix)
    posterior = Posterior(replace(EXACT, lengths=lengths), transform, NAMES)
    facts = {"log_evidence": LOG_EVIDENCE, "log_evidence_sd": sd, "posterior": posterior}
    return row(iteration, **facts, **changes)


def test_coordinates_that_have_served_well_are_tried_again():
    earlier, later = (TRANSFORM.whitened(np.zeros(2), np.diag([2.0, k]), k) for k in (2, 5))
    rows = [
        whitened_row(1, 0.01, TRANSFORM.whitened(np.zeros(2), np.eye(2), 1), warm_up=True),
        whitened_row(2, 0.1, earlier),
        whitened_row(3, 0.5, later),
    ]
    before = state(rows, transform=later)
    assert proven_coordinates(before, []) is earlier
    assert earlier in algorithm().other_coordinates(before, DIAGONAL, [])
    # Not where they are the present ones, or the first, which are tried anyway...
    assert proven_coordinates(state(rows, transform=earlier), []) is None
    first = [*rows, whitened_row(4, 0.05, TRANSFORM)]
    assert proven_coordinates(state(first, transform=later), []) is None
    # ...nor where circles have been cut open elsewhere since, nor before there are any.
    assert proven_coordinates(state(rows, transform=replace(later, turning=-4)), []) is None
    assert proven_coordinates(state(rows[:1], transform=later), []) is None
    assert proven_coordinates(state([], transform=later), []) is None
    # Nothing is tried between times.
    recently = replace(before, last_whitening=before.iteration - 1)
    assert algorithm().other_coordinates(recently, DIAGONAL, []) is None
    # Nor those of a solution that a value contradicts, however sure it was: here another mode.
    elsewhere = [*design(), evaluation(10, (40.0, 0.0), 5.0)]
    assert proven_coordinates(before, design()) is earlier
    assert proven_coordinates(before, elsewhere) is None


def test_coordinates_in_which_the_surrogate_gains_are_kept():
    subject, entries, before = algorithm(variational=QUICK), correlated(), state(mixture=DIAGONAL)
    current = trained_solution(subject, before, entries, DIAGONAL)
    candidates = subject.other_coordinates(before, current.mixture, entries)
    best = subject.in_best_coordinates(before, current, candidates, entries)
    assert best.transform is candidates[0]
    assert score(best) > score(current) + Whitened().minimal_gain
    assert best.mixture.n_components >= DIAGONAL.n_components


def test_the_mixture_goes_along_into_new_coordinates(monkeypatch):
    starts = []

    def fitted(state, trained, start, settings, streams):
        starts.append(start)
        return solution(start)

    monkeypatch.setattr(algorithm_module, "fit_posterior", fitted)
    subject, entries, before = algorithm(), correlated(), state(mixture=ROUGH)
    current = trained_solution(subject, before, entries, DIAGONAL)  # the fit of this iteration
    (transform,) = subject.other_coordinates(before, current.mixture, entries)
    subject.in_best_coordinates(before, current, [transform], entries)
    found = transform.to_user(starts[0].means)
    np.testing.assert_allclose(found, TRANSFORM.to_user(DIAGONAL.means), atol=1e-9)


def test_without_a_gain_the_current_coordinates_are_kept():
    entries, before = design(25), state(mixture=DIAGONAL)  # the target is round, whatever q says
    subject = algorithm(variational=QUICK)
    current = trained_solution(subject, before, entries, DIAGONAL)
    candidates = subject.other_coordinates(before, current.mixture, entries)
    assert len(candidates) == 1
    assert subject.in_best_coordinates(before, current, candidates, entries) is current


def test_the_gain_must_be_worth_it():
    entries, before = correlated(), state(mixture=DIAGONAL)
    strict = algorithm(variational=QUICK, coordinates=Whitened(minimal_gain=1e6))
    current = trained_solution(strict, before, entries, DIAGONAL)
    candidates = strict.other_coordinates(before, current.mixture, entries)
    assert strict.in_best_coordinates(before, current, candidates, entries) is current


@dataclass(frozen=True)
class Dear(Whitened):
    """Coordinates that were fitted have a price."""

    price: float = 1e6

    def charge(self, transform, n_points):
        assert n_points == 25
        return 0.0 if transform.whitening is None else self.price


def test_what_was_fitted_is_charged_for():
    entries, before = correlated(), state(mixture=DIAGONAL)
    for price, kept in ((1e6, False), (0.0, True)):
        subject = algorithm(variational=QUICK, coordinates=Dear(price=price))
        current = trained_solution(subject, before, entries, DIAGONAL)
        candidates = subject.other_coordinates(before, current.mixture, entries)
        best = subject.in_best_coordinates(before, current, candidates, entries)
        assert (best is not current) == kept


def test_of_several_coordinates_the_best_are_kept():
    subject, entries, before = algorithm(variational=QUICK), correlated(), state(mixture=DIAGONAL)
    current = trained_solution(subject, before, entries, DIAGONAL)
    (whitened,) = subject.other_coordinates(before, current.mixture, entries)
    half = TRANSFORM.whitened(np.zeros(2), np.array([[1.0, -0.4], [-0.4, 1.0]]), number=9)
    for candidates in ([whitened, half], [half, whitened]):
        best = subject.in_best_coordinates(before, current, candidates, entries)
        assert best.transform is whitened


def test_coordinates_are_compared_by_what_both_are_trained_on():
    """Unbent ones leave out deep values that a parabola explains: none was to be explained."""
    matrix = np.linalg.inv(np.array([[1.0, 0.97], [0.97, 1.0]]))
    points = [*np.random.default_rng(3).normal(size=(12, 2)), *(9.0 * np.eye(2)), *(-8 * np.eye(2))]
    entries = [evaluation(i, x, -0.5 * x @ matrix @ x) for i, x in enumerate(np.array(points))]
    entries = [with_outcome(e, gradient=tuple(-matrix @ e.x)) for e in entries]
    subject, before = algorithm(), state(mixture=DIAGONAL)
    nothing = Bend(*np.zeros((2, 2)), np.eye(2), np.zeros(2), 5.0, Whitening.nothing(2))
    plain, bent = (
        train_surrogate(before, transform, entries, subject.settings, STREAMS)
        for transform in (TRANSFORM, TRANSFORM.bent([nothing], number=9))
    )
    few, all_of_them = plain.surrogate.training, bent.surrogate.training
    assert few.n_points < all_of_them.n_points == 16
    whole = Collapsed().score(bent.surrogate, all_of_them)
    shared = subject.score(bent, plain) + Whitened().charge(bent.transform, few.n_points)
    assert shared == Collapsed().score(bent.surrogate, all_of_them.shared_with(few)) > whole + 4.0
    assert subject.score(plain, bent) == Collapsed().score(plain.surrogate, few)


# ---------------------------------------------------------------------- an iteration


def iterate(subject, before, entries):
    """The new state, and the phases of the work in their order."""
    phases = []

    @contextmanager
    def stopwatch(phase):
        phases.append(phase)
        yield

    return subject.iterate(before, entries, len(entries), stopwatch), phases


def test_an_iteration_trains_fits_and_judges():
    subject = algorithm(variational=QUICK)
    first = initial_state(TRANSFORM, np.empty((0, 2)))
    after, phases = iterate(subject, first, design())
    assert phases[:3] == ["surrogate", "variational", "assessment"]
    assert phases[3:] == ["coordinates", "assessment", "look elsewhere"]
    assert after.iteration == 1
    assert after.trained.trained_on == tuple(range(10))
    assert after.history[0].posterior.names == NAMES
    again, _ = iterate(subject, first, design())
    np.testing.assert_array_equal(after.mixture.means, again.mixture.means)


def test_other_coordinates_are_tried_between_the_fit_and_the_judgement():
    subject = algorithm(variational=QUICK)
    before = state(mixture=DIAGONAL)
    after, phases = iterate(subject, before, correlated())
    assert phases[2:] == ["assessment", "coordinates", "assessment", "look elsewhere"]
    assert after.last_whitening == 3
    assert after.history[-1].whitened
