"""The suite of `sparing.testing` for every executor that is supported, and against bad ones."""

import multiprocessing
import os
import signal
import subprocess
import sys
import sysconfig
import time
import warnings
from concurrent.futures import Executor, Future, ProcessPoolExecutor, ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pytest

from sparing import Problem
from sparing.executors import (
    DaskExecutor,
    EvaluationPool,
    FailureKind,
    LocalProcesses,
    RayExecutor,
    UnpicklableProblemError,
    target_call,
)
from sparing.problem.evaluations import Proposal
from sparing.testing import Abilities, check_executor
from sparing.testing.executor import Target


def test_this_process():
    abilities = Abilities(parallel=False, outlives_workers=False, ends_calls=False)
    check_executor(lambda: None, abilities)


def test_local_processes():
    check_executor(lambda: LocalProcesses(2))


def test_threads():
    check_executor(
        lambda: ThreadPoolExecutor(2), Abilities(outlives_workers=False, ends_calls=False)
    )


def test_process_pool():
    check_executor(lambda: ProcessPoolExecutor(2))


def test_process_pool_of_new_interpreters():
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(2, mp_context=context) as executor:
        check_executor(lambda: executor, Abilities(outlives_workers=False), shut_down=False)


def test_loky():
    loky = pytest.importorskip("loky", reason="loky is not installed")
    try:
        check_executor(lambda: loky.get_reusable_executor(2), shut_down=False)
    finally:
        loky.get_reusable_executor(2).shutdown(wait=True, kill_workers=True)


# ---------------------------------------------------------------------- Dask


@contextmanager
def dask_cluster(n_workers, n_threads):
    distributed = pytest.importorskip("distributed", reason="distributed is not installed")
    with (
        distributed.LocalCluster(
            n_workers=n_workers,
            threads_per_worker=n_threads,
            processes=True,
            dashboard_address="127.0.0.1:0",
        ) as cluster,
        distributed.Client(cluster) as client,
    ):
        yield client


@pytest.fixture(scope="module")
def dask_client():
    with dask_cluster(n_workers=2, n_threads=1) as client:
        yield client


def test_dask_client(dask_client):
    check_executor(lambda: dask_client, Abilities(ends_calls=False), shut_down=False)


def test_dask_executor_with_options_that_would_repeat_calls(dask_client):
    check_executor(
        lambda: dask_client.get_executor(pure=True, retries=3), Abilities(ends_calls=False)
    )


def test_dask_capacity_and_shutdown(dask_client):
    executor = DaskExecutor(dask_client)
    dask_client.wait_for_workers(2)
    assert executor.n_workers == 2
    assert executor.submit(abs, -3).result() == 3
    executor.shutdown()
    with pytest.raises(RuntimeError, match="after shutdown"):
        executor.submit(abs, -3)
    assert dask_client.submit(abs, -4).result() == 4


def test_threads_of_a_dead_dask_worker_are_told_apart(tmp_path):
    """Both calls die with the process they share; only the killer does so again."""

    def target(x):  # a closure: the workers cannot import this module
        (tmp_path / f"call-{x[0]:g}-{time.monotonic_ns()}").touch()
        while x[0] == 2.0 and not (tmp_path / "released").exists():
            time.sleep(0.01)
        if x[0] == 1.0:
            time.sleep(1.0)
            os.kill(os.getpid(), signal.SIGKILL)
        return -float(x[0])

    outcomes = {}
    with (
        dask_cluster(n_workers=1, n_threads=2) as client,
        EvaluationPool(Problem(target, [0.0], [5.0]), client) as pool,
    ):
        pool.submit(Proposal(0, np.array([2.0])))
        pool.submit(Proposal(1, np.array([1.0])))
        deadline = time.monotonic() + 120.0
        while pool.n_in_flight and time.monotonic() < deadline:
            outcomes |= {p.identifier: outcome for p, outcome in pool.wait(timeout=0.05)}
            if len(list(tmp_path.glob("call-2-*"))) == 2:
                time.sleep(2.0)  # the killer would strike now, if it ran at the same time
                (tmp_path / "released").touch()
    assert outcomes[0].value == -2.0
    assert outcomes[1].kind is FailureKind.WORKER_DIED


# ---------------------------------------------------------------------- Ray


@pytest.fixture(scope="module")
def ray_cluster():
    ray = pytest.importorskip("ray", reason="ray is not installed")
    before = signal.getsignal(signal.SIGTERM)  # ray.init() sets one that children would inherit
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        ray.init(num_cpus=2, include_dashboard=False, logging_level="ERROR", log_to_driver=False)
        try:
            yield ray
            ray.shutdown()
        finally:
            signal.signal(signal.SIGTERM, before)


@pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::FutureWarning")
def test_ray(ray_cluster):
    check_executor(RayExecutor)


@pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::FutureWarning")
def test_ray_cancels_running_calls_and_gives_back_exceptions(ray_cluster, tmp_path):
    with RayExecutor() as executor:
        assert executor.n_workers == 2
        with pytest.raises(ZeroDivisionError):
            executor.submit(divmod, 1, 0).result()
        hanging = executor.submit(Target(str(tmp_path)), np.array([4.0, 0.0]))
        while not list(tmp_path.glob("call-*")):
            pass
        assert hanging.cancel()
        assert executor.submit(abs, -3).result() == 3


# ---------------------------------------------------------------------- MPI

MPI_SCRIPT = """
from mpi4py.futures import MPIPoolExecutor
from sparing.testing import Abilities, check_executor

if __name__ == "__main__":
    with MPIPoolExecutor() as executor:
        assert executor.num_workers == 2
        check_executor(lambda: executor, Abilities(outlives_workers=False), shut_down=False)
    print("conforms")
"""


def test_mpi(tmp_path):
    pytest.importorskip("mpi4py", reason="mpi4py is not installed")
    mpiexec = Path(sysconfig.get_path("scripts")) / "mpiexec"
    if not mpiexec.exists():
        pytest.skip("no mpiexec: the mpich wheel is not installed")
    script = tmp_path / "run.py"
    script.write_text(MPI_SCRIPT)
    run = subprocess.run(
        [mpiexec, "-n", "3", sys.executable, "-m", "mpi4py.futures", script],
        capture_output=True,
        text=True,
        timeout=180,
        check=False,
    )
    assert run.returncode == 0, run.stderr
    assert "conforms" in run.stdout


# ---------------------------------------------------------------------- the suite finds faults


class Misbehaving(Executor):
    """Runs calls at once in this process, with one fault."""

    _max_workers = 2

    def __init__(self):
        self.calls = {}

    def submit(self, fn, /, *args, **kwargs):
        future = Future()
        future.set_running_or_notify_cancel()
        future.set_result(self.run(fn, *args))
        return future

    def run(self, fn, problem, x, identifier, *more):
        return fn(problem, x, identifier, *more)


class Caching(Misbehaving):
    def run(self, fn, problem, x, *more):
        key = x.tobytes()
        if key not in self.calls:
            self.calls[key] = fn(problem, x, *more)
        return self.calls[key]


class Repeating(Misbehaving):
    def run(self, fn, *args):
        record = fn(*args)
        return record if record["status"] == "ok" else fn(*args)


class Mixing(Misbehaving):
    def run(self, fn, problem, x, *more):
        self.calls.setdefault("first", x)
        return fn(problem, self.calls["first"], *more)


@pytest.mark.parametrize(
    ("make_executor", "abilities", "fault"),
    [
        (Caching, Abilities(False, False, False), "equal_points: 3 equal points were evaluated 1"),
        (Repeating, Abilities(False, False, False), "failures: a failing call was repeated"),
        (Mixing, Abilities(False, False, False), "values: "),
        (lambda: ThreadPoolExecutor(1), Abilities(True, False, False), "overlap: no companion"),
    ],
)
def test_the_suite_finds(monkeypatch, make_executor, abilities, fault):
    monkeypatch.setattr("sparing.testing.executor.PATIENCE", 0.5)
    with pytest.raises(AssertionError, match=f"^{fault}"):
        check_executor(make_executor, abilities)


def test_the_suite_finds_a_limit_that_is_not_kept(monkeypatch):
    monkeypatch.setattr("sparing.testing.executor.PATIENCE", 0.5)
    monkeypatch.setattr("sparing.testing.executor.TIME_LIMIT", 0.1)
    with pytest.raises(AssertionError, match=r"^time_limit: "):
        check_executor(
            lambda: ThreadPoolExecutor(2), Abilities(parallel=False, outlives_workers=False)
        )


def test_modules_for_other_executors_are_not_imported():
    script = (
        "import sys, sparing.executors\n"
        "loaded = {'ray', 'distributed', 'mpi4py', 'loky'} & set(sys.modules)\n"
        "sys.exit(f'{loaded} loaded' if loaded else 0)"
    )
    subprocess.run([sys.executable, "-c", script], check=True)


def test_cloudpickle_executors_take_closures_but_not_locks():
    loky = pytest.importorskip("loky", reason="loky is not installed")
    executor = loky.ProcessPoolExecutor(1)
    scale = 2.0
    EvaluationPool(Problem(lambda x: scale, [0.0], [1.0]), executor)
    lock = multiprocessing.get_context("fork").Lock()
    with pytest.raises(UnpicklableProblemError, match="ProcessPoolExecutor"):
        EvaluationPool(Problem(lambda x: lock, [0.0], [1.0]), executor)
    executor.shutdown()
    assert os.getpid() == int(target_call.worker_name().rsplit(":", 1)[1])
