"""A Dask or Ray cluster as an executor.

Dask has three habits that are wrong for a target. Calls with equal arguments are taken to be one
call, so an equal x would get a stored value: here every call has its own key. A call whose
worker died is run again, up to three times: here it runs at most once. And a client's futures
are not those of `concurrent.futures`: here they are.

Ray, too, runs a call again when its worker dies; here it never does. Ray's workers run one call at
a time and can be killed, so a call past its limit really ends.
"""

from __future__ import annotations

import concurrent.futures
import uuid
from abc import ABC, abstractmethod
from collections.abc import Callable
from concurrent.futures import CancelledError, Executor, Future
from functools import partial
from typing import Any

from sparing.errors import MissingExtraError
from sparing.executors.failures import WorkerDiedError
from sparing.executors.local_processes import EndableFuture

Call = Callable[[], Any]

# For every submission to Dask; a user's `client.get_executor(retries=...)` does not change it.
_DASK_OPTIONS = {"pure": False, "retries": 0}


class _ClusterExecutor(Executor, ABC):
    """Futures of `concurrent.futures` for the calls of a cluster, which outlives this executor."""

    def __init__(self) -> None:
        self._futures: set[Future[Any]] = set()
        self._is_shut_down = False

    @abstractmethod
    def _start(self, call: Call) -> Future[Any]:
        """Hand a call to the cluster."""

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
        """Call fn(*args, **kwargs) in a worker of the cluster."""
        if self._is_shut_down:
            raise RuntimeError("cannot schedule new futures after shutdown")
        return self._start(partial(fn, *args, **kwargs))

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        """Accept no more calls; the cluster stays as it is."""
        self._is_shut_down = True
        futures = list(self._futures)
        for future in futures if cancel_futures else ():
            future.cancel()
        if wait:
            concurrent.futures.wait(futures)

    def _follow(
        self, task: Any, future: Future[Any], transfer: Callable[[Any, Any], None], cancel: Call
    ) -> Future[Any]:
        """The future, which is settled by the cluster's task and whose ``cancel`` ends that."""
        self._futures.add(future)

        def settle(finished: Any) -> None:
            self._futures.discard(future)
            if future.set_running_or_notify_cancel():
                transfer(finished, future)

        def on_cancel(cancelled: Future[Any]) -> None:
            if cancelled.cancelled():
                cancel()

        future.add_done_callback(on_cancel)
        task.add_done_callback(settle)
        return future


class _DaskFuture(Future[Any]):
    """A future that knows whether its call has been started by a worker."""

    def __init__(self, mark: Any) -> None:
        super().__init__()
        self._mark = mark
        self._seen_running = False

    def running(self) -> bool:
        """Whether a worker has begun the call; asks the scheduler."""
        if not self._seen_running and not self.done():
            self._seen_running = bool(self._mark.is_set())
        return self._seen_running and not self.done()


class DaskExecutor(_ClusterExecutor):
    """Runs calls on a Dask cluster, each at most once.

    client   a `distributed.Client`
    options  for `Client.submit`, such as ``resources``, ``workers`` or ``priority``

    `sparing` makes one from a client or from ``client.get_executor()`` by itself. Shutting it
    down leaves the client and its cluster alone.

    >>> from distributed import Client
    >>> from sparing.executors import DaskExecutor
    >>> with Client(processes=False, n_workers=1, threads_per_worker=2) as client:
    ...     executor = DaskExecutor(client, priority=10)
    ...     executor.n_workers, executor.submit(pow, 2, 10).result()
    ...     executor.shutdown()
    (2, 1024)
    """

    def __init__(self, client: Any, **options: Any) -> None:
        super().__init__()
        try:
            import distributed
        except ImportError:
            raise MissingExtraError("distributed", "dask") from None
        self._distributed = distributed
        self._client = client
        self._options = options | _DASK_OPTIONS

    @property
    def n_workers(self) -> int:
        """How many calls the cluster runs at a time, as of now."""
        return max(1, sum(self._client.nthreads().values()))

    def _start(self, call: Call) -> Future[Any]:
        key = f"sparing-{uuid.uuid4().hex}"
        mark = self._distributed.Event(key, client=self._client)
        task = self._client.submit(_run_once, key, call, key=key, **self._options)
        future = self._follow(task, _DaskFuture(mark), _transfer_from_dask, task.cancel)
        task.add_done_callback(lambda _: self._client.loop.add_callback(mark.clear))
        return future


def _transfer_from_dask(task: Any, future: Future[Any]) -> None:
    """Give the finished task's result, or what prevented it, to the future."""
    if task.status == "finished":
        future.set_result(task.result())
        return
    if task.status == "cancelled":
        future.set_exception(CancelledError("the Dask task was cancelled or its scheduler lost"))
        return
    error = task.exception()
    if type(error).__name__ == "KilledWorker":  # its scheduler allows no failures at all
        error = WorkerDiedError("the Dask worker died", certain=False)
    future.set_exception(error)


def _run_once(key: str, call: Call) -> Any:
    """In a worker: refuse a call that another worker had begun, since that one must have died."""
    from distributed import Event, get_worker

    mark = Event(key)
    if mark.is_set():
        # With one thread per worker the dead one was running nothing else.
        raise WorkerDiedError("the Dask worker died", certain=get_worker().state.nthreads == 1)
    mark.set()
    return call()


class RayExecutor(_ClusterExecutor):
    """Runs calls as Ray tasks; connects with ``ray.init()`` when that was not done before.

    num_cpus  CPUs of one call
    options   for the task, such as ``num_gpus`` or ``resources``

    >>> import ray
    >>> from sparing.executors import RayExecutor
    >>> _ = ray.init(num_cpus=1, include_dashboard=False, log_to_driver=False)
    >>> executor = RayExecutor(num_cpus=0.5)
    >>> executor.n_workers, executor.submit(pow, 2, 10).result()
    (2, 1024)
    >>> executor.shutdown()
    >>> ray.shutdown()
    """

    def __init__(self, num_cpus: float = 1.0, **options: Any) -> None:
        super().__init__()
        try:
            import ray
        except ImportError:
            raise MissingExtraError("ray", "ray") from None
        self._ray = ray
        if not ray.is_initialized():
            ray.init()
        self._num_cpus = num_cpus
        fixed = {"num_cpus": num_cpus, "max_retries": 0, "retry_exceptions": False}
        self._run = ray.remote(_call).options(**(options | fixed))

    @property
    def n_workers(self) -> int:
        """How many calls the cluster runs at a time, as of now."""
        n_cpus = self._ray.cluster_resources().get("CPU", 1.0)
        return max(1, int(n_cpus / max(self._num_cpus, 1e-3)))

    def _start(self, call: Call) -> Future[Any]:
        reference = self._run.remote(call)
        future = EndableFuture()
        future.started = True  # Ray does not tell when a call begins
        end = partial(self._ray.cancel, reference, force=True)
        return self._follow(reference.future(), future, _transfer_from_ray, end)


def _transfer_from_ray(finished: Future[Any], future: Future[Any]) -> None:
    """Give the result, or the exception without Ray's wrapping, to the future."""
    from ray import exceptions

    error = finished.exception()
    cause = getattr(error, "cause", None)
    deaths = (exceptions.WorkerCrashedError, exceptions.OutOfMemoryError, exceptions.NodeDiedError)
    if error is None:
        future.set_result(finished.result())
    elif isinstance(error, deaths):
        died = WorkerDiedError(f"the worker process died ({type(error).__name__})")
        future.set_exception(died)
    elif isinstance(error, exceptions.RayTaskError) and isinstance(cause, BaseException):
        future.set_exception(cause)
    else:
        future.set_exception(error)


def _call(call: Call) -> Any:
    return call()
