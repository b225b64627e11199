import functools
import math
import multiprocessing
import os
import signal
import threading
import time
from concurrent.futures import Executor, Future, ProcessPoolExecutor, ThreadPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from pathlib import Path

import numpy as np
import pytest

from sparing import Problem
from sparing.errors import SettingsError, SparingWarning
from sparing.executors import (
    RAISE,
    EvaluationPool,
    ExecutorError,
    FailedEvaluationError,
    FailureKind,
    FailurePolicy,
    LocalProcesses,
    UnpicklableProblemError,
    retry,
)
from sparing.executors import (
    pool as pool_module,
)
from sparing.problem.evaluations import Proposal, Status
from sparing.store import Spool


def square(x):
    return -(float(x[0]) ** 2)


def make(log_density=square):
    return Problem(log_density, [-10.0], [10.0])


def point(identifier, value=None):
    return Proposal(identifier, np.array([float(identifier if value is None else value)]))


def gather(pool, n):
    found = {}
    while len(found) < n:
        assert pool.n_in_flight
        found |= {proposal.identifier: outcome for proposal, outcome in pool.wait(timeout=60.0)}
    return found


def run(pool, n):
    for identifier in range(n):
        pool.submit(point(identifier))
    return gather(pool, n)


# ---------------------------------------------------------------------- in this process


def test_in_this_process_submit_is_lazy_and_keeps_the_order():
    calls = []
    pool = EvaluationPool(make(lambda x: calls.append(x[0]) or square(x)))
    assert pool.capacity == 1
    pool.submit(point(3))
    pool.submit(point(4))
    assert (calls, pool.n_in_flight) == ([], 2)
    ((proposal, outcome),) = pool.wait()
    assert (proposal.identifier, outcome.value, calls) == (3, -9.0, [3.0])
    assert pool.wait()[0][1].value == -16.0
    assert pool.n_in_flight == 0
    assert pool.wait() == []


def test_an_interrupt_in_this_process_reaches_the_caller():
    def interrupted(x):
        raise KeyboardInterrupt

    pool = EvaluationPool(make(interrupted))
    pool.submit(point(0))
    with pytest.raises(KeyboardInterrupt):
        pool.wait()


@pytest.mark.parametrize("workers", [None, 2])
def test_retries_are_counted_and_told(tmp_path, workers):
    def moody(x):
        (tmp_path / str(len(list(tmp_path.iterdir())))).touch()
        raise RuntimeError("bad mood")

    policy = FailurePolicy(exception=retry(2))
    with EvaluationPool(make(moody), workers=workers, policy=policy) as pool:
        outcome = run(pool, 1)[0]
    assert outcome.message == "RuntimeError: bad mood (after 3 tries)"
    assert len(list(tmp_path.iterdir())) == 3


def test_a_retry_that_succeeds_is_a_value(tmp_path):
    def moody(x):
        if not (tmp_path / "called").exists():
            (tmp_path / "called").touch()
            raise RuntimeError("bad mood")
        return square(x)

    pool = EvaluationPool(make(moody), policy=FailurePolicy(exception=retry(1)))
    assert run(pool, 1)[0].status is Status.OK


def test_only_the_kind_that_failed_is_retried():
    calls = []
    policy = FailurePolicy(exception=retry(5))
    pool = EvaluationPool(make(lambda x: calls.append(1) or math.nan), policy=policy)
    assert run(pool, 1)[0].kind is FailureKind.INVALID_VALUE
    assert len(calls) == 1


def test_raising_keeps_what_else_has_finished():
    def one_is_bad(x):
        if x[0] == 1:
            raise RuntimeError("bad")
        return square(x)

    problem, policy = make(one_is_bad), FailurePolicy(exception=RAISE)
    with EvaluationPool(problem, workers=3, policy=policy) as pool:
        for identifier in range(3):
            pool.submit(point(identifier))
        found = {}
        with pytest.raises(FailedEvaluationError, match=r"at \(1\) failed: .*bad") as caught:
            while True:
                found |= {p.identifier: o for p, o in pool.wait()}
        found |= gather(pool, pool.n_in_flight)
    assert caught.value.proposal.identifier == 1
    assert caught.value.outcome.status is Status.FAILED
    assert sorted(found) == [0, 2]


# ---------------------------------------------------------------------- processes of our own


def test_runs_that_share_a_pool_have_their_own_spools(tmp_path):
    """Two runs number their points alike: an outcome goes to the spool it was submitted with."""
    spools = [Spool(tmp_path / name) for name in ("first", "second")]
    proposals = [point(0, value=2.0), point(0, value=3.0)]
    with EvaluationPool(make(), workers=2) as pool:
        for spool, proposal in zip(spools, proposals, strict=True):
            Path(spool.directory).mkdir()
            pool.submit(proposal, spool.directory)
        outcomes = {}
        while pool.n_in_flight:
            outcomes |= dict(pool.wait())
    for spool, proposal, value in zip(spools, proposals, (-4.0, -9.0), strict=True):
        assert outcomes[proposal].value == value
        ((identifier, record),) = spool.harvest()
        assert (identifier, record["value"]) == (0, value)


def die():
    os.kill(os.getpid(), signal.SIGKILL)


def close_pipes():
    """As a worker does whose pipe breaks: everything but its standard streams is closed."""
    os.closerange(3, 256)


@pytest.mark.parametrize("end", [die, close_pipes, lambda: time.sleep(60)])
def test_what_reached_the_spool_is_not_lost_with_its_worker(tmp_path, monkeypatch, end):
    from sparing import store

    write = store.write_spooled_outcome
    monkeypatch.setattr(store, "write_spooled_outcome", lambda *all_: (write(*all_), end()))
    with EvaluationPool(make(), workers=2, time_limit=2.0) as pool:
        for identifier in range(3):
            pool.submit(point(identifier), str(tmp_path))
        outcomes = gather(pool, 3)
    assert [outcomes[k].value for k in range(3)] == [0.0, -1.0, -4.0]


def test_what_reached_the_spool_is_not_evaluated_again_when_a_pool_breaks(tmp_path, monkeypatch):
    from sparing import store

    write = store.write_spooled_outcome
    monkeypatch.setattr(store, "write_spooled_outcome", lambda *all_: (write(*all_), die()))
    forked = multiprocessing.get_context("fork")  # which alone knows what was changed here
    with (
        ProcessPoolExecutor(1, mp_context=forked) as executor,
        EvaluationPool(make(noted), executor) as pool,
    ):
        pool.submit(point(2), str(tmp_path))
        assert gather(pool, 1)[2].value == -4.0
    assert Path(os.environ["NOTES"]).read_text() == "2.0 "


def noted(x):
    with Path(os.environ["NOTES"]).open("a") as file:
        file.write(f"{x[0]} ")
    return square(x)


@pytest.fixture(autouse=True)
def notes(tmp_path_factory, monkeypatch):
    monkeypatch.setenv("NOTES", str(tmp_path_factory.mktemp("notes") / "calls"))


def test_a_spooled_outcome_of_an_earlier_try_is_not_that_of_a_later_one(tmp_path):
    def failing_then_dying(x):
        if not Path(os.environ["NOTES"]).exists():
            noted(x)
            raise ValueError("first")
        die()

    policy = FailurePolicy(exception=retry(1))
    with EvaluationPool(make(failing_then_dying), workers=1, policy=policy) as pool:
        pool.submit(point(1), str(tmp_path))
        assert gather(pool, 1)[1].kind is FailureKind.WORKER_DIED


def test_workers_evaluate_closures_and_name_themselves():
    scale = 2.0
    with EvaluationPool(make(lambda x: scale * square(x)), workers=2) as pool:
        assert pool.capacity == 2
        outcomes = run(pool, 5)
    assert [outcomes[k].value for k in range(5)] == [-2.0 * k**2 for k in range(5)]
    assert len({outcome.worker for outcome in outcomes.values()}) == 5


def test_a_time_limit_alone_means_a_process():
    def hanging(x):
        while x[0] == 0:
            pass
        return square(x)

    with EvaluationPool(make(hanging), time_limit=0.3) as pool:
        outcomes = run(pool, 2)
    assert (outcomes[0].status, outcomes[0].kind) == (Status.TIMED_OUT, FailureKind.TIMED_OUT)
    assert "time limit of 0.3 s" in outcomes[0].message
    assert outcomes[0].ended - outcomes[0].started >= 0.3
    assert outcomes[1].value == -1.0


def test_a_timeout_of_wait_returns_nothing_and_close_ends_the_processes(tmp_path):
    def hanging(x):
        (tmp_path / str(os.getpid())).touch()
        time.sleep(600)

    pool = EvaluationPool(make(hanging), workers=1)
    pool.submit(point(0))
    assert pool.wait(timeout=0.05) == []
    assert pool.n_in_flight == 1
    pool.close()
    assert pool.n_in_flight == 0
    for path in tmp_path.iterdir():
        with pytest.raises(ProcessLookupError):
            os.kill(int(path.name), 0)


def test_closing_without_cancel_lets_calls_end(tmp_path):
    def slow(x):
        time.sleep(0.2)
        (tmp_path / "done").touch()
        return 0.0

    pool = EvaluationPool(make(slow), workers=1)
    pool.submit(point(0))
    pool.close(cancel=False)
    assert (tmp_path / "done").exists()


def test_a_users_executor_is_not_shut_down():
    with ThreadPoolExecutor(1) as executor:
        with EvaluationPool(make(), executor) as pool:
            run(pool, 1)
        assert executor.submit(abs, -1).result() == 1


# ---------------------------------------------------------------------- dying workers


def dies_at_one(x):
    if x[0] == 1:
        os.kill(os.getpid(), signal.SIGKILL)
    time.sleep(0.1)
    return square(x)


class PoolWithItsOwnArguments(ProcessPoolExecutor):
    def __init__(self):
        super().__init__(2)


@pytest.mark.parametrize("kind", ["pool", "subclass", "our own"])
def test_one_dead_worker_loses_nothing(kind, recwarn):
    makers = {
        "pool": lambda: ProcessPoolExecutor(2),
        "subclass": PoolWithItsOwnArguments,
        "our own": lambda: LocalProcesses(2),
    }
    with makers[kind]() as executor, EvaluationPool(make(dies_at_one), executor) as pool:
        outcomes = run(pool, 6)
    assert outcomes[1].kind is FailureKind.WORKER_DIED
    assert "died (signal 9, SIGKILL)" in outcomes[1].message
    assert [outcomes[k].value for k in (0, 2, 3, 4, 5)] == [0.0, -4.0, -9.0, -16.0, -25.0]
    warned = [str(warning.message) for warning in recwarn if warning.category is SparingWarning]
    assert [("broken" in text) for text in warned] == ([True] if kind == "subclass" else [])


def test_a_killer_can_be_retried():
    policy = FailurePolicy(worker_died=retry(1))
    with (
        ProcessPoolExecutor(2) as executor,
        EvaluationPool(make(dies_at_one), executor, policy=policy) as pool,
    ):
        outcomes = run(pool, 3)
    assert "(after 2 tries)" in outcomes[1].message
    assert outcomes[2].value == -4.0


def test_a_pool_that_broke_while_idle_is_replaced():
    with ProcessPoolExecutor(1) as executor, EvaluationPool(make(), executor) as pool:
        run(pool, 1)
        for process in executor._processes.values():
            process.kill()
            process.join()
        with pytest.raises(BrokenProcessPool):
            while True:  # until the pool has noticed
                executor.submit(abs, -1).result()
        assert run(pool, 2)[1].value == -1.0


# ---------------------------------------------------------------------- executors that fail


class OneShot(Executor):
    """Answers every submission with one exception, the first few times."""

    _max_workers = 1

    def __init__(self, error, n_times=10**9):
        self.error = error
        self.n_left = n_times

    def submit(self, fn, /, *args, **kwargs):
        future = Future()
        future.set_running_or_notify_cancel()
        if self.n_left > 0:
            self.n_left -= 1
            future.set_exception(self.error)
        else:
            future.set_result(fn(*args, **kwargs))
        return future


def test_what_the_executor_does_wrong_is_not_the_targets_failure():
    pool = EvaluationPool(make(), OneShot(OSError("no route to host")))
    pool.submit(point(0))
    with pytest.raises(ExecutorError, match=r"OneShot .* OSError: no route to host"):
        pool.wait()
    assert pool.n_in_flight == 1


def test_a_call_interrupted_in_its_worker_is_run_again():
    pool = EvaluationPool(make(), OneShot(KeyboardInterrupt(), n_times=2))
    assert run(pool, 1)[0].message == ""
    pool = EvaluationPool(make(), OneShot(KeyboardInterrupt()))
    pool.submit(point(0))
    with pytest.raises(ExecutorError, match="KeyboardInterrupt"):
        pool.wait()


def test_a_broken_executor_of_unknown_kind_is_replaced_by_processes():
    with EvaluationPool(make(), OneShot(BrokenProcessPool("gone"))) as pool:
        pool.submit(point(3))
        with pytest.warns(SparingWarning, match="OneShot is broken"):
            assert gather(pool, 1)[3].value == -9.0


# ---------------------------------------------------------------------- limits elsewhere


def test_a_stuck_thread_is_given_up_and_its_worker_not_counted(monkeypatch):
    monkeypatch.setattr(pool_module, "LIMIT_GRACE", 0.0)
    release = threading.Event()
    stuck = make(lambda x: (x[0] < 1 and release.wait(60.0)) or square(x))
    with ThreadPoolExecutor(2) as executor:
        pool = EvaluationPool(stuck, executor, time_limit=0.2)
        with pytest.warns(SparingWarning, match=r"past its time limit.*1 left"):
            outcomes = run(pool, 3)
        assert outcomes[0].status is Status.TIMED_OUT
        assert [outcomes[1].value, outcomes[2].value] == [-1.0, -4.0]
        assert pool.capacity == 1
        release.set()
        deadline = time.monotonic() + 60.0
        while pool.capacity < 2:
            assert time.monotonic() < deadline
        assert pool.wait() == []  # the late result is not used


def test_workers_that_are_all_stuck_end_the_run(monkeypatch):
    monkeypatch.setattr(pool_module, "LIMIT_GRACE", 0.0)
    release = threading.Event()
    with ThreadPoolExecutor(1) as executor:
        pool = EvaluationPool(make(lambda x: release.wait(60.0)), executor, time_limit=0.1)
        pool.submit(point(0))
        pool.submit(point(1))
        with pytest.warns(SparingWarning, match="0 left"):
            assert gather(pool, 1)[0].status is Status.TIMED_OUT
        with pytest.raises(ExecutorError, match="all workers of ThreadPoolExecutor"):
            pool.wait()
        release.set()


def test_time_spent_in_a_queue_does_not_count(monkeypatch):
    """More points than workers, all together longer than the limit, each far within it."""
    monkeypatch.setattr(pool_module, "LIMIT_GRACE", 0.0)
    slow = make(lambda x: time.sleep(0.2) or square(x))
    with ThreadPoolExecutor(1) as executor:
        outcomes = run(EvaluationPool(slow, executor, workers=8, time_limit=1.2), 8)
    assert {outcome.status for outcome in outcomes.values()} == {Status.OK}


# ---------------------------------------------------------------------- arguments


class Simulator:
    def __init__(self):
        self.handle = threading.Lock()

    def __call__(self, x):
        return square(x)


@pytest.mark.parametrize(
    ("target", "culprit"),
    [
        (lambda x: 0.0, r"problem.log_density \(.*<lambda>\)"),
        (Simulator(), r"problem.log_density.handle \(lock\)"),
        (functools.partial(square, handle=threading.Lock()), r"log_density.keywords\['handle'\]"),
    ],
)
def test_what_cannot_be_pickled_is_named_before_the_first_evaluation(target, culprit):
    with (
        ProcessPoolExecutor(1) as executor,
        pytest.raises(UnpicklableProblemError, match=culprit) as caught,
    ):
        EvaluationPool(make(target), executor)
    assert "workers=N" in str(caught.value)
    assert "top level of a module" in str(caught.value)


def test_threads_and_forked_processes_take_anything():
    with ThreadPoolExecutor(1) as executor:
        assert run(EvaluationPool(make(Simulator()), executor), 1)[0].status is Status.OK
    with EvaluationPool(make(Simulator()), workers=1) as pool:
        assert run(pool, 1)[0].status is Status.OK


def test_capacity_is_what_the_executor_or_the_user_says():
    with ThreadPoolExecutor(3) as executor:
        assert EvaluationPool(make(), executor).capacity == 3
        assert EvaluationPool(make(), executor, workers=7).capacity == 7

    class Silent(Executor):
        pass

    assert EvaluationPool(make(), Silent()).capacity == os.cpu_count()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"workers": 0}, "workers must be"),
        ({"time_limit": 0.0}, "time_limit must be"),
        ({"time_limit": math.inf}, "time_limit must be"),
        ({"executor": "dask"}, "executor must be a concurrent.futures.Executor"),
    ],
)
def test_arguments_that_cannot_be_meant_are_refused(options, message):
    with pytest.raises(SettingsError, match=message):
        EvaluationPool(make(), **options)
