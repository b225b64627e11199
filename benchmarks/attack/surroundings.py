"""What is around a run: pools of the user's, and the page on which it is watched."""

from __future__ import annotations

import importlib.util
import multiprocessing
import os
import shutil
import signal
import socket
import subprocess
import sys
import sysconfig
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from contextlib import ExitStack, contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

import sparing
from benchmarks.attack.cases import BrokenError, Case, Ending, chosen, require
from benchmarks.attack.runs import BEGUN, BUDGET, infer, log_density
from benchmarks.child_process import PROJECT_ROOT
from sparing.running import live

PAGE_PATIENCE = 5.0  # seconds for an answer
TIME_LIMIT = 3.0  # seconds an evaluation may take


# -------------------------------------------------------------------------- the user's pools


class FragileTarget:
    """The density; some of its first calls, over all processes, go wrong in one way each."""

    def __init__(self, marks: Path, faults: Sequence[str]) -> None:
        self.marks, self.faults = str(marks), tuple(faults)

    def __call__(self, x: np.ndarray) -> float:
        for fault in self.faults:
            with suppress(FileExistsError):
                os.close(os.open(f"{self.marks}/{fault}", os.O_CREAT | os.O_EXCL))
                self._fail(fault)
        return log_density(x)

    def _fail(self, fault: str) -> None:
        if fault == "dies":
            os.kill(os.getpid(), signal.SIGKILL)
        if fault == "hangs":
            time.sleep(10.0 * TIME_LIMIT)
        raise ValueError("\ud800")


@contextmanager
def _threads() -> Iterator[Any]:
    with ThreadPoolExecutor(2) as executor:
        yield executor


@contextmanager
def _processes(method: str) -> Iterator[Any]:
    with ProcessPoolExecutor(2, multiprocessing.get_context(method)) as executor:
        yield executor


@contextmanager
def _loky() -> Iterator[Any]:
    import loky

    executor = loky.get_reusable_executor(2)
    yield executor
    executor.shutdown(wait=True, kill_workers=True)


@contextmanager
def _dask() -> Iterator[Any]:
    from distributed import Client, LocalCluster

    options: dict[str, Any] = {"dashboard_address": None, "threads_per_worker": 1}
    with LocalCluster(n_workers=2, **options) as cluster, Client(cluster) as client:
        yield client


@contextmanager
def _ray() -> Iterator[Any]:
    import ray

    from sparing.executors import RayExecutor

    options: dict[str, Any] = {"include_dashboard": False, "log_to_driver": False}
    ray.init(num_cpus=2, logging_level="ERROR", **options)
    with RayExecutor() as executor:
        yield executor
    ray.shutdown()


POOLS: dict[str, tuple[str | None, Callable[[], Any]]] = {
    "threads": (None, _threads),
    "forked processes": (None, partial(_processes, "fork")),
    "spawned processes": (None, partial(_processes, "spawn")),
    "loky": ("loky", _loky),
    "Dask": ("distributed", _dask),
    "Ray": ("ray", _ray),
}


def pools(n_cases: int, generator: np.random.Generator) -> list[Case]:
    """Every kind of pool: one evaluation raises, one kills its worker, one hangs; then a resume."""
    cases = [
        Case(name, partial(_pooled, name=name, package=package, pool=pool), 180.0)
        for name, (package, pool) in POOLS.items()
    ]
    return chosen([*cases, Case("MPI", _mpi, 180.0)], n_cases, generator)


def _pooled(directory: Path, name: str, package: str | None, pool: Callable[[], Any]) -> Ending:
    if package is not None and importlib.util.find_spec(package) is None:
        return Ending.ABSENT
    # A thread that dies is this process.
    faults = ("raises", "hangs") if name == "threads" else ("raises", "dies", "hangs")
    with pool() as executor:
        run_on(executor, directory, faults)
    return Ending.RIGHT


def run_on(executor: Any, directory: Path, faults: Sequence[str]) -> None:
    """A run on a pool, and its continuation; BrokenError unless what failed is what had to."""
    target = FragileTarget(directory, faults)
    # The first evaluation may be the one that raises.
    policy = sparing.FailurePolicy(first_exception=sparing.SKIP)
    options: dict[str, Any] = {"executor": executor, "time_limit": TIME_LIMIT, "failures": policy}
    infer(directory / "run", target, max_evaluations=BEGUN, **options)
    result = infer(directory / "run", target, **options)
    failed = [entry.message for entry in result.evaluations if entry.failed]
    # Whatever was running when a worker died is tried again, alone: also the one that hung.
    fewest = 1 if "dies" in faults else len(faults)
    require(fewest <= len(failed) <= len(faults), f"{len(failed)} failed: {failed}")
    good = [entry for entry in result.evaluations if entry.usable]
    values = [log_density(entry.x) for entry in good]
    require([entry.value for entry in good] == values, "a value is wrong")
    identifiers = [entry.identifier or 0 for entry in result.evaluations]
    require(sorted(identifiers) == list(range(BUDGET)), "a point is missing, or there twice")


MPI_SCRIPT = """
import sys
from pathlib import Path
from mpi4py.futures import MPIPoolExecutor
from benchmarks.attack.surroundings import run_on

if __name__ == "__main__":
    with MPIPoolExecutor() as executor:
        run_on(executor, Path(sys.argv[1]), ("raises", "hangs"))
"""


def _mpi(directory: Path) -> Ending:
    """Without a death: with MPI that ends the whole job."""
    mpiexec = Path(sysconfig.get_path("scripts")) / "mpiexec"
    if importlib.util.find_spec("mpi4py") is None or not mpiexec.exists():
        return Ending.ABSENT
    script = directory / "script.py"
    script.write_text(MPI_SCRIPT)
    command = [mpiexec, "-n", "3", sys.executable, "-m", "mpi4py.futures", script, directory]
    paths = [str(PROJECT_ROOT), *filter(None, [os.environ.get("PYTHONPATH")])]
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(paths)}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    require(done.returncode == 0, f"{done.stdout[-200:]} {done.stderr[-500:]}")
    return Ending.RIGHT


# ------------------------------------------------------------------------------ the live page


REQUESTS: dict[str, bytes] = {
    "no request": b"\r\n\r\n",
    "binary": bytes(range(256)) * 4,
    "no end": b"GET / HTTP/1.1\r\nHost: ",
    "another host": b"GET / HTTP/1.1\r\nHost: evil.example\r\n\r\n",
    "a path outside": b"GET /../../../../etc/passwd HTTP/1.1\r\nHost: localhost\r\n\r\n",
    "an encoded path": b"GET /%2e%2e/%2e%2e/etc/passwd HTTP/1.1\r\nHost: localhost\r\n\r\n",
    "a long line": b"GET /" + b"a" * 100_000 + b" HTTP/1.1\r\n\r\n",
    "many headers": b"GET / HTTP/1.1\r\n" + b"A: b\r\n" * 10_000 + b"\r\n",
    "POST": b"POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 10\r\n\r\n0123456789",
    "a length that is a lie": b"POST / HTTP/1.1\r\nContent-Length: 99999999\r\n\r\n",
}


def live_page(n_cases: int, generator: np.random.Generator) -> list[Case]:
    """Strange requests, idle connections and a run that vanishes; then the page still answers."""
    cases = [Case(name, partial(_requested, request=r)) for name, r in REQUESTS.items()]
    cases += [Case("500 idle connections", _idle), Case("the run vanishes", _vanishing)]
    return chosen(cases, n_cases, generator)


@contextmanager
def _served(directory: Path) -> Iterator[Any]:
    infer(directory / "run", max_evaluations=BEGUN)
    server = live.make_server(directory / "run")
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    yield server
    server.shutdown()


def _ask(server: Any, request: bytes, patience: float = PAGE_PATIENCE) -> bytes:
    """What the server answers until it closes the connection or says no more."""
    answer = b""
    with suppress(OSError), socket.create_connection(server.server_address, patience) as connection:
        connection.sendall(request)
        while received := connection.recv(65536):
            answer += received
    return answer


def _status(server: Any) -> bytes:
    host, port = server.server_address[:2]
    request = f"GET /status HTTP/1.1\r\nHost: {host}:{port}\r\nConnection: close\r\n\r\n"
    return _ask(server, request.encode())


def _requested(directory: Path, request: bytes) -> Ending:
    with _served(directory) as server:
        answer = _ask(server, request)
        require(b" 200 " not in answer[:20], f"it was answered: {answer[:200]!r}")
        require(b"root:" not in answer, "a file of the system was served")
        require(b" 200 " in _status(server)[:20], "the page does not answer any more")
    return Ending.REFUSED


def _idle(directory: Path) -> Ending:
    before = threading.active_count()
    with _served(directory) as server, ExitStack() as connections:
        for _ in range(500):
            with suppress(OSError):
                connection = socket.create_connection(server.server_address, PAGE_PATIENCE)
                connections.enter_context(connection)
        n_threads = threading.active_count() - before
        require(n_threads <= live.MOST_CONNECTIONS + 1, f"{n_threads} threads for idle connections")
        deadline = time.monotonic() + live.PATIENCE + PAGE_PATIENCE
        while b" 200 " not in _status(server)[:20]:
            require(time.monotonic() < deadline, "the page does not answer any more")
            time.sleep(0.2)
    return Ending.RIGHT


def _vanishing(directory: Path) -> Ending:
    with _served(directory) as server:
        require(b" 200 " in _status(server)[:20], "the page does not answer")
        shutil.rmtree(directory / "run")
        require(_status(server), "the page does not answer any more")
    if (directory / "run").exists():
        raise BrokenError("what was removed is there again")
    return Ending.RIGHT
