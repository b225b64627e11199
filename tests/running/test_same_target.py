"""A stored run goes on, or gives its result, with the target it was begun with alone."""

import concurrent.futures
import os
import pickle
import signal
import sys
import time

import numpy as np
import pytest
from tests.light import LIGHT
from tests.store.support import contents

import sparing
from sparing.errors import TargetChangedError
from sparing.executors import FailedEvaluationError

BUDGET = 20


def log_density(x):
    return -0.5 * float(x @ x) - 40.0


def make_problem(function=log_density):
    return sparing.Problem(function, [-2.0, -2.0], [2.0, 2.0], names=["a", "b"])


def infer(store, function=log_density, **options):
    options = {"max_evaluations": BUDGET, "settings": LIGHT, "progress": False, **options}
    return sparing.infer(make_problem(function), store=store, **options)


class Counted:
    """A target that keeps the points it was called with."""

    def __init__(self, function=log_density):
        self.points, self._function = [], function

    def __call__(self, x):
        self.points.append(x.copy())
        return self._function(x)


def shifted(by):
    return Counted(lambda x: log_density(x) + by)


@pytest.fixture
def store(tmp_path):
    infer(tmp_path / "run", seed=1, max_evaluations=14)
    return tmp_path / "run"


@pytest.mark.parametrize("budget", [14, BUDGET], ids=["finished", "going on"])
@pytest.mark.parametrize("by", [-3.0, 0.01, 1e-3, -np.inf])
def test_a_target_that_has_changed_is_refused(store, budget, by):
    before, edited = contents(store), shifted(by)
    best = max(entry.value for entry in sparing.load_run(store).evaluations)
    with pytest.raises(TargetChangedError, match="seems to have changed") as caught:
        infer(store, edited, max_evaluations=budget)
    error = pickle.loads(pickle.dumps(caught.value))
    assert log_density(np.array(error.x)) == error.stored
    assert best - 3.0 < error.stored < best
    assert set(error.values) == {error.stored + by}
    numbers = (f"{error.x[0]:g}", f"{error.stored:.10g}", f"{error.values[0]:.10g}")
    assert all(part in str(error) for part in (*numbers, "tag=", "another store"))
    assert len(edited.points) == (1 if by == -np.inf else 2)  # the second: it is exact
    np.testing.assert_array_equal(edited.points[0], error.x)
    assert contents(store) == before


@pytest.mark.parametrize("by", [0.0, 2e-5, -2e-5], ids=["same", "rounding", "the other way"])
def test_the_same_target_goes_on_to_the_same_bits(tmp_path, store, by):
    same = shifted(by)
    infer(store, same, max_evaluations=14)
    assert len(same.points) == 1
    found, expected = infer(store), infer(tmp_path / "other", seed=1)
    assert [e.value for e in found.evaluations] == [e.value for e in expected.evaluations]
    assert found.log_evidence == expected.log_evidence


def test_another_scale_is_seen(store):
    with pytest.raises(TargetChangedError):
        infer(store, lambda x: -0.51 * float(x @ x) - 40.0)


def test_it_can_be_left_out(store):
    infer(store, shifted(-3.0), check_target=False)
    with pytest.raises(sparing.SettingsError, match="check_target must be True or False"):
        infer(store, check_target="no")


def test_a_run_without_values_is_not_tested(tmp_path):
    with sparing.Inference(make_problem(), seed=1, settings=LIGHT, store=tmp_path) as begun:
        first, _ = begun.ask(2)
        begun.tell(first, error="the cluster was down")
    counted = Counted()
    infer(tmp_path, counted)
    assert len(counted.points) == BUDGET - 1  # the other one is still to be evaluated


class TestNoise:
    """Values of one target differ by their noise, told or not."""

    @staticmethod
    def estimate(sd, told, by=0.0, seed=1):
        generator = np.random.default_rng(seed)

        def function(x):
            value = log_density(x) + by + sd * generator.standard_normal()
            return (value, sd) if told else value

        return function

    @pytest.mark.parametrize("told", [True, False])
    @pytest.mark.parametrize("sd", [0.02, 0.5])
    def test_it_is_no_change(self, tmp_path, told, sd):
        infer(tmp_path, self.estimate(sd, told), seed=1)
        infer(tmp_path, self.estimate(sd, told, seed=2))

    def test_luck_is_seldom_taken_for_a_change(self):
        """Without a surrogate's word on the noise, and without the target's."""
        n_refused = 0
        for seed in range(400):
            problem = make_problem(self.estimate(0.5, told=False, seed=seed))
            run = sparing.Inference(problem, seed=seed, settings=LIGHT)
            for x in np.zeros((9, 2)):
                run.tell(x, problem.log_joint(x))
            try:
                run.check_target()
            except TargetChangedError:
                n_refused += 1
        assert n_refused <= 2

    @pytest.mark.parametrize("told", [True, False])
    def test_a_change_beyond_it_is_one(self, tmp_path, told):
        infer(tmp_path, self.estimate(0.1, told), seed=1)
        with pytest.raises(TargetChangedError, match=r"and now it is -4.*, -4"):
            infer(tmp_path, self.estimate(0.1, told, by=-3.0, seed=2))


class TestFailures:
    @staticmethod
    def fail(x):
        raise RuntimeError("no licence")

    def test_one_is_no_change_but_said(self, store):
        with pytest.warns(sparing.SparingWarning, match=r"nobody knows.*no licence"):
            infer(store, self.fail, max_evaluations=14)

    def test_the_policy_holds(self, store):
        policy = sparing.FailurePolicy(exception=sparing.RAISE)
        with pytest.raises(FailedEvaluationError, match="no licence"):
            infer(store, self.fail, failures=policy, max_evaluations=14)

    def test_one_that_hangs_is_ended(self, store):
        def hang(x):
            time.sleep(600.0)

        with pytest.warns(sparing.SparingWarning, match="time limit"):
            infer(store, hang, workers=1, time_limit=0.5, max_evaluations=14)


class TestElsewhere:
    def test_workers(self, store):
        with pytest.raises(TargetChangedError):
            infer(store, lambda x: log_density(x) - 1.0, workers=2)
        assert infer(store, workers=2).n_evaluations == BUDGET

    def test_an_executor_of_the_users(self, store):
        with concurrent.futures.ThreadPoolExecutor(2) as executor:
            with pytest.raises(TargetChangedError):
                infer(store, shifted(-1.0), executor=executor)
            assert infer(store, executor=executor).n_evaluations == BUDGET

    @pytest.mark.skipif(sys.platform == "win32", reason="POSIX signals")
    def test_ctrl_c_gives_what_there_is(self, store):
        def interrupt(x):
            os.kill(os.getpid(), signal.SIGINT)
            time.sleep(1.0)
            return log_density(x)

        result = infer(store, interrupt)
        assert result.stop_reason is sparing.StopReason.INTERRUPTED
        assert result.n_evaluations == 14


def test_of_several_runs_one_point_is_evaluated(tmp_path):
    infer(tmp_path, seed=1, runs=2, max_evaluations=12)
    counted, edited = Counted(), shifted(-1.0)
    infer(tmp_path, counted, runs=2, max_evaluations=12)
    assert len(counted.points) == 1
    with pytest.raises(TargetChangedError):
        infer(tmp_path, edited, runs=2, max_evaluations=14)
    assert len(edited.points) == 2


def test_a_run_driven_from_outside_asks_for_it(store):
    for function in (log_density, lambda x: log_density(x) - 1.0):
        options = {"max_evaluations": BUDGET, "settings": LIGHT}
        with sparing.Inference(make_problem(function), store=store, **options) as run:
            if function is log_density:
                run.check_target()
                continue
            with pytest.raises(TargetChangedError):
                run.check_target()
