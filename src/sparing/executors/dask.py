"""A Dask cluster as an executor.

Dask has three habits that are wrong for a target. Calls with equal arguments are taken to be one
call, so an equal x would get a stored value: here every call has its own key. A call whose
worker died is run again, up to three times: here it runs at most once. And a client's futures
are not those of `concurrent.futures`: here they are.
"""

from __future__ import annotations

import concurrent.futures
import uuid
from collections.abc import Callable
from concurrent.futures import CancelledError, Executor, Future
from typing import Any

from sparing.errors import MissingExtraError
from sparing.executors.failures import WorkerDiedError

# What every submission says; a user's `client.get_executor(retries=...)` does not change it.
_FIXED_OPTIONS = {"pure": False, "retries": 0}


class DaskFuture(Future[Any]):
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


class DaskExecutor(Executor):
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
        try:
            import distributed
        except ImportError:
            raise MissingExtraError("distributed", "dask") from None
        self._distributed = distributed
        self._client = client
        self._options = options | _FIXED_OPTIONS
        self._futures: set[DaskFuture] = set()
        self._is_shut_down = False

    @property
    def n_workers(self) -> int:
        """How many calls the cluster runs at a time, as of now."""
        return max(1, sum(self._client.nthreads().values()))

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
        """Call fn(*args, **kwargs) on a worker of the cluster."""
        if self._is_shut_down:
            raise RuntimeError("cannot schedule new futures after shutdown")
        key = f"sparing-{uuid.uuid4().hex}"
        mark = self._distributed.Event(key, client=self._client)
        future = DaskFuture(mark)
        task = self._client.submit(_run_once, key, fn, args, kwargs, key=key, **self._options)
        self._futures.add(future)

        def settle(finished: Any) -> None:
            self._futures.discard(future)
            if future.set_running_or_notify_cancel():
                _transfer(finished, future)
            self._client.loop.add_callback(mark.clear)

        def on_cancel(cancelled: Future[Any]) -> None:
            if cancelled.cancelled():
                task.cancel()

        task.add_done_callback(settle)
        future.add_done_callback(on_cancel)
        return future

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        """Accept no more calls; the cluster stays as it is."""
        self._is_shut_down = True
        futures = list(self._futures)
        for future in futures if cancel_futures else ():
            future.cancel()
        if wait:
            concurrent.futures.wait(futures)


def _transfer(task: Any, future: Future[Any]) -> None:
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


def _run_once(
    key: str, function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]
) -> Any:
    """In a worker: refuse a call that another worker had begun, since that one must have died."""
    from distributed import Event, get_worker

    mark = Event(key)
    if mark.is_set():
        # With one thread per worker the dead one was running nothing else.
        raise WorkerDiedError("the Dask worker died", certain=get_worker().state.nthreads == 1)
    mark.set()
    return function(*args, **kwargs)
