"""A Ray cluster as an executor.

Ray runs a call again, up to three times, when its worker dies; here it never does. Ray's workers
run one call at a time and can be killed, so a call past its limit really ends.
"""

from __future__ import annotations

import concurrent.futures
from collections.abc import Callable
from concurrent.futures import Executor, Future
from typing import Any

from sparing.errors import MissingExtraError
from sparing.executors.failures import WorkerDiedError


class RayFuture(Future[Any]):
    """A future whose ``cancel`` ends a running call.

    For the base class it stays pending until its call has ended, hence cancellable.
    """

    cancel_ends_call = True

    def running(self) -> bool:
        """Whether the call is not done: Ray does not tell when it begins."""
        return not self.done()


class RayExecutor(Executor):
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
        self._references: dict[RayFuture, Any] = {}
        self._is_shut_down = False

    @property
    def n_workers(self) -> int:
        """How many calls the cluster runs at a time, as of now."""
        n_cpus = self._ray.cluster_resources().get("CPU", 1.0)
        return max(1, int(n_cpus / max(self._num_cpus, 1e-3)))

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
        """Call fn(*args, **kwargs) in a worker of the cluster."""
        if self._is_shut_down:
            raise RuntimeError("cannot schedule new futures after shutdown")
        reference = self._run.remote(fn, args, kwargs)
        future = RayFuture()
        self._references[future] = reference

        def settle(finished: Future[Any]) -> None:
            self._references.pop(future, None)
            if not future.set_running_or_notify_cancel():
                return
            error = finished.exception()
            if error is None:
                future.set_result(finished.result())
            else:
                future.set_exception(self._translated(error))

        def on_cancel(cancelled: Future[Any]) -> None:
            if cancelled.cancelled():
                self._ray.cancel(reference, force=True)

        future.add_done_callback(on_cancel)
        reference.future().add_done_callback(settle)
        return future

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        """Accept no more calls; Ray itself stays up, ``ray.shutdown()`` ends it."""
        self._is_shut_down = True
        futures = list(self._references)
        for future in futures if cancel_futures else ():
            future.cancel()
        if wait:
            concurrent.futures.wait(futures)

    def _translated(self, error: BaseException) -> BaseException:
        """Ray's wrapping of an exception undone, and a crash named as such."""
        from ray import exceptions

        died = (
            exceptions.WorkerCrashedError,
            exceptions.OutOfMemoryError,
            exceptions.NodeDiedError,
        )
        if isinstance(error, died):
            return WorkerDiedError(f"the worker process died ({type(error).__name__})")
        cause = getattr(error, "cause", None)
        if isinstance(error, exceptions.RayTaskError) and isinstance(cause, BaseException):
            return cause
        return error


def _call(function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    return function(*args, **kwargs)
