"""A run that continues from a saved state is the run that never stopped, to the last bit."""

import contextlib
import dataclasses
import io
import json

import numpy as np
import pytest
from tests.hand_made import with_outcome
from tests.results.files.support import assert_same, whitening_often

import sparing
from sparing.errors import LoadError
from sparing.results.files.state_codec import state_from_parts, state_to_parts
from sparing.strategies import LookElsewhere
from sparing.variational.mixture import GaussianMixture
from sparing.variational.normal_mixture import NormalMixture


def through_bytes(arrays, metadata):
    """What a snapshot does to the parts: npz without pickle, and strict JSON."""
    content = io.BytesIO()
    np.savez(content, allow_pickle=False, **arrays)
    content.seek(0)
    with np.load(content, allow_pickle=False) as stored:
        return dict(stored), json.loads(json.dumps(metadata, allow_nan=False))


def drive(run, problem, until):
    """At least so many evaluations, and on to the next refit."""
    while not run.finished and (run.n_evaluations < until or run._engine._n_since_refit > 0):
        for proposal in run.ask():
            run.tell(proposal, problem.log_joint(proposal.x))


def restored_state(run, problem, base):
    return state_from_parts(
        *through_bytes(*state_to_parts(run._engine.state, run._engine.timings)),
        base=base,
        evaluations=run.evaluations,
        names=problem.names,
        settings=run.settings,
    )


def resumed(run, problem, options):
    """A fresh run put where the other one is, just after a refit."""
    assert run._engine._n_since_refit == 0 and not run.pending
    fresh = sparing.Inference(problem, **options)
    events = run.store.events()
    for event in events:
        fresh.store.append(event)
    engine = fresh._engine
    engine.restore(events, *restored_state(run, problem, engine.state.transform))
    return fresh


def endless(settings):
    """Settings with which a run ends by its budget only."""
    stopping = dataclasses.replace(settings.stopping, n_stable=99)
    return dataclasses.replace(settings, stopping=stopping)


def looking():
    """Settings with which a run looks everywhere before it ends."""
    return dataclasses.replace(sparing.Settings(), exploration=LookElsewhere(largest_hidden=-1.0))


def drive_to_a_look(run, problem):
    """Until the coming iteration has points to evaluate first."""
    while not len(run._engine.state.agenda.points):
        assert not run.finished
        drive(run, problem, run.n_evaluations + 1)


CASES = {
    "default, in the warm-up": (sparing.Settings(), 20, 35),
    "default, after the warm-up": (endless(sparing.Settings()), 45, 60),
    "whitened again and again": (endless(whitening_often()), 40, 50),
    "paper": (sparing.Settings.paper(), 15, 25),
}


@pytest.mark.parametrize("case", CASES)
def test_a_restored_run_continues_as_if_it_had_never_stopped(case, tilted_problem):
    settings, stop, end = CASES[case]
    options = {"seed": 3, "max_evaluations": end, "settings": settings}
    whole = sparing.Inference(tilted_problem, **options)
    drive(whole, tilted_problem, stop)
    if "whitened" in case:
        assert whole._engine.state.transform.whitening is not None
    other = resumed(whole, tilted_problem, options)
    for run in (whole, other):
        drive(run, tilted_problem, end)
    assert whole.n_evaluations > stop
    assert_same_runs(whole, other)


def assert_same_runs(whole, other):
    assert whole.finished and other.finished
    assert whole.n_evaluations == other.n_evaluations
    assert_same(whole.evaluations, other.evaluations, skip=("duration",))
    assert_same(whole.history, other.history, skip=("timings",))
    a, b = whole.result(), other.result()
    assert_same(a, b, skip=("timings", "problem"))
    np.testing.assert_array_equal(a.posterior.sample(5, seed=1), b.posterior.sample(5, seed=1))


def test_a_run_restored_while_it_looks_elsewhere_goes_on_looking(tilted_problem):
    options = {"seed": 3, "max_evaluations": 80, "settings": looking()}
    whole = sparing.Inference(tilted_problem, **options)
    drive_to_a_look(whole, tilted_problem)
    other = resumed(whole, tilted_problem, options)
    agenda = whole._engine.state.agenda
    (proposal,) = other.ask()
    assert proposal.rule == agenda.rule
    np.testing.assert_array_equal(proposal.x, agenda.points[0])
    other.tell(proposal, tilted_problem.log_joint(proposal.x))
    for run in (whole, other):
        drive(run, tilted_problem, 80)
    assert whole.result().converged
    assert_same_runs(whole, other)


def test_every_field_is_restored(tilted_problem):
    settings = dataclasses.replace(whitening_often(), exploration=looking().exploration)
    run = sparing.Inference(tilted_problem, seed=3, max_evaluations=80, settings=settings)
    base = run._engine.state.transform
    drive_to_a_look(run, tilted_problem)
    run._engine.state = dataclasses.replace(run._engine.state, trimmed=frozenset({2, 5}))
    state = run._engine.state
    assert any(info.whitened for info in state.history)
    kinds = {type(info.posterior.mixture) for info in state.history}
    assert kinds == {GaussianMixture, NormalMixture}
    again, timings = restored_state(run, tilted_problem, base)
    assert_same(state, again)
    assert [dict(row) for row in timings] == [dict(row) for row in run._engine.timings]
    numbers = [info.posterior.transform.number for info in again.history]
    assert numbers[0] < numbers[-1] == again.transform.number == len(numbers)
    assert len({*numbers}) > 2  # whitened again and again


def test_points_out_of_support_train_the_surrogate_again():
    def half(x):
        return -0.5 * float(x @ x) if x[0] > -0.5 else -np.inf

    problem = sparing.Problem(half, [-2, -2], [2, 2])
    run = sparing.Inference(problem, seed=1, max_evaluations=20)
    base = run._engine.state.transform
    drive(run, problem, 20)
    assert any(entry.status is sparing.Status.OUT_OF_SUPPORT for entry in run.evaluations)
    assert_same(run._engine.state, restored_state(run, problem, base)[0])


def test_the_state_before_the_first_iteration(tilted_problem):
    run = sparing.Inference(tilted_problem, seed=3)
    again, timings = restored_state(run, tilted_problem, run._engine.state.transform)
    assert_same(run._engine.state, again)
    assert timings == []


@pytest.fixture(scope="module")
def saved(tilted_problem):
    run = sparing.Inference(tilted_problem, seed=3, max_evaluations=80, settings=looking())
    arguments = {"base": run._engine.state.transform, "names": tilted_problem.names}
    drive_to_a_look(run, tilted_problem)
    arguments |= {"evaluations": run.evaluations, "settings": run.settings}
    return *state_to_parts(run._engine.state, run._engine.timings), arguments


def test_a_state_goes_with_its_own_log_and_coordinates_only(saved):
    arrays, metadata, arguments = saved
    other = sparing.Problem(lambda x: 0.0, [-2, -2], [2, 2.5])
    base = sparing.Inference(other)._engine.state.transform
    with pytest.raises(LoadError, match="other coordinates"):
        state_from_parts(arrays, metadata, **{**arguments, "base": base})
    log = arguments["evaluations"]
    with pytest.raises(LoadError, match="points at nothing"):
        state_from_parts(arrays, metadata, **{**arguments, "evaluations": log[:-1]})
    changed = [*log[:-1], with_outcome(log[-1], value=log[-1].value + 1e-12)]
    with pytest.raises(LoadError, match="other evaluations"):
        state_from_parts(arrays, metadata, **{**arguments, "evaluations": changed})


@pytest.mark.parametrize(
    ("change", "text"),
    [
        ({"format": "sparing result"}, "not a sparing state"),
        ({"version": 1}, "another version"),
        ({"version": 2}, "another version"),
        ({"version": 3}, "another version"),
        ({"version": 4}, "another version"),
        ({"version": 5}, "another version"),
        ({"version": 7}, "another version"),
        ({"release": "0.0.1"}, "another release"),
        ({"transform": -1}, "points at nothing"),
        ({"sampling_stopped": 1}, "not true or false"),
        ({"phase": "RESTING"}, "not one of SEARCHING"),
        ({"timings": [["a"]]}, "shape"),
        ({"agenda": None}, "not a string"),
    ],
)
def test_metadata_that_does_not_fit_is_refused(saved, change, text):
    arrays, metadata, arguments = saved
    with pytest.raises(LoadError, match=text):
        state_from_parts(arrays, {**metadata, **change}, **arguments)


def test_q_is_a_mixture_whose_components_share_their_shape(saved):
    arrays, metadata, arguments = saved
    for row, any_shape in enumerate(arrays["mixtures.any_shape"]):
        changed = {**metadata, "mixture": row}
        if any_shape:
            with pytest.raises(LoadError, match="do not share their shape"):
                state_from_parts(arrays, changed, **arguments)
        else:
            state_from_parts(arrays, changed, **arguments)


@pytest.mark.parametrize(
    ("points", "text"),
    [
        ([[0.0, np.nan]], "out of bounds"),
        ([[0.0, -np.inf]], "out of bounds"),
        ([[0.0, 2.5]], "out of bounds"),
        ([[0.0, 0.0], [-0.5, 0.0]], "out of bounds"),
        ([[0.0]], "expected points"),
        ([0.0, 0.0], "shape"),
    ],
)
def test_an_agenda_that_cannot_be_evaluated_is_refused(points, text):
    problem = sparing.Problem(lambda x: 0.0, [0, 0], [1, 1], lower=[0, 0], upper=[2, 2])
    run = sparing.Inference(problem, seed=1)
    base = run._engine.state.transform
    arrays, metadata = state_to_parts(run._engine.state, [])
    arguments = {"base": base, "names": problem.names, "evaluations": [], "settings": run.settings}
    for inside in ([[0.0, 2.0]], np.empty((0, 2)), np.empty((0, 0))):
        arrays["agenda.points"] = np.array(inside)
        state, _ = state_from_parts(arrays, metadata, **arguments)
        assert_same(state.agenda.points, np.array(inside))
    arrays["agenda.points"] = np.array(points)
    with pytest.raises(LoadError, match=text):
        state_from_parts(arrays, metadata, **arguments)


def test_arrays_that_do_not_fit_are_refused(saved):
    """Each array absent, of another type, of another shape, or full of NaN."""
    arrays, metadata, arguments = saved
    for name, array in arrays.items():
        missing = {key: value for key, value in arrays.items() if key != name}
        broken = [missing, {**arrays, name: array.astype(np.float32)}]
        broken.append({**arrays, name: np.append(array.ravel(), array.ravel()[:1])[None]})
        for changed in broken:
            absent = name in ("transforms.number", "supports.n_surfaces") or ".support" in name
            if changed is missing and absent:
                continue  # files of earlier versions have none
            with pytest.raises(LoadError):
                state_from_parts(changed, metadata, **arguments)
        nan = np.full(array.shape, np.nan if array.dtype.kind == "f" else 99, array.dtype)
        with contextlib.suppress(LoadError):  # where NaN is a possible value it is read back
            state_from_parts({**arrays, name: nan}, metadata, **arguments)
