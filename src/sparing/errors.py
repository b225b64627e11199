"""Every error and warning sparing raises on purpose; all errors derive from `SparingError`.

They pickle with everything they carry, since they may be raised in a worker process.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from sparing.readable_text import readable


class SparingError(Exception):
    """Base of every error raised by sparing.

    >>> try:
    ...     sparing.load("no-such-file")
    ... except sparing.SparingError as error:
    ...     print(error)
    no-such-file cannot be loaded: there is no such file
    """

    def __str__(self) -> str:
        return readable(super().__str__())  # it may quote what a target or a file says


class FaultListError(SparingError, ValueError):
    """Invalid input, described by all of its faults at once."""

    subject = "the input has"

    def __init__(self, faults: Iterable[str]) -> None:
        self.faults: tuple[str, ...] = tuple(faults)
        count = len(self.faults)
        heading = f"{self.subject} {count} fault{'' if count == 1 else 's'}:"
        super().__init__("\n".join([heading, *(f"  - {fault}" for fault in self.faults)]))

    def __reduce__(self) -> tuple[type[FaultListError], tuple[tuple[str, ...]]]:
        return type(self), (self.faults,)


class ProblemError(FaultListError):
    """A problem, or a starting point for it, that cannot be used as given.

    >>> sparing.Problem(lambda x: 0.0, [0.0, 5.0], [1.0, 4.0], lower=[0.5, 0.0])
    Traceback (most recent call last):
    sparing.errors.ProblemError: the problem has 2 faults:
      - x1: ...
      - x2: ...
    """

    subject = "the problem has"


class SettingsError(FaultListError):
    """Settings or arguments of a run that cannot be used as given.

    >>> sparing.infer(problem, max_evaluations=1, tolerance=0.0)
    Traceback (most recent call last):
    sparing.errors.SettingsError: the settings have 2 faults:
      - max_evaluations must be a whole number >= 2, got 1
      - tolerance must be a positive number, got 0.0
    """

    subject = "the settings have"


class TargetError(SparingError, RuntimeError):
    """A target that cannot be used, for example one that is nowhere finite.

    >>> nowhere = sparing.Problem(lambda x: -np.inf, -1.0, 1.0)
    >>> sparing.infer(nowhere, seed=1, progress=False)
    Traceback (most recent call last):
    sparing.errors.TargetError: ...
    """


class InvalidValueError(TargetError):
    """One evaluation gave something that is no log density: NaN, +inf, None, an array..."""


class WrongGradientError(TargetError):
    """A gradient that is not that of the values of its target.

    At ``x`` the log joint changes by ``measured`` along the ``step``, and by ``claimed`` if it
    changes as its gradient says.

    >>> flipped = sparing.Problem(lambda x: (-float(x @ x), 2.0 * x), [-2], [2], gradient=True)
    >>> sparing.infer(flipped, seed=1, progress=False)
    Traceback (most recent call last):
    sparing.errors.WrongGradientError: the gradient is not that of the log density: at (...
    """

    def __init__(
        self, x: Sequence[float], step: Sequence[float], claimed: float, measured: float
    ) -> None:
        self.x, self.step, self.claimed, self.measured = tuple(x), tuple(step), claimed, measured
        length = sum(along**2 for along in self.step) ** 0.5
        point, direction = (
            ", ".join(f"{number:.4g}" for number in numbers)
            for numbers in (self.x, [along / length for along in self.step])
        )
        super().__init__(
            f"the gradient is not that of the log density: at ({point}) the derivative of the log "
            f"joint along ({direction}) is {measured / length:.6g} by its values, and "
            f"{claimed / length:.6g} by its gradient. It must be of all that log_density returns "
            "and no more (the part of prior= is added to it), with respect to the parameters "
            "themselves, not their logarithms, in their order, and not of the negative. "
            "gradient=None does without it. Where you know better, check_gradient=False "
            "(--unchecked) goes on without this test"
        )

    def __reduce__(self) -> tuple[type[WrongGradientError], tuple[object, ...]]:
        return type(self), (self.x, self.step, self.claimed, self.measured)


class StoreError(SparingError):
    """A store that cannot be opened, read or written; the message says what to do."""


class StoreMismatchError(StoreError):
    """A run directory that belongs to another problem; ``differences`` has every key that differs.

    Each difference is (dotted key, stored value, value given now) as text.
    """

    def __init__(self, path: str, differences: Iterable[tuple[str, str, str]]) -> None:
        self.path = path
        self.differences: tuple[tuple[str, str, str], ...] = tuple(differences)
        lines = [f"  - {key}: {stored} there, {now} now" for key, stored, now in self.differences]
        heading = f"{path} holds a run of another problem (give another directory, or undo this):"
        super().__init__("\n".join([heading, *lines]))

    def __reduce__(self) -> tuple[type[StoreMismatchError], tuple[object, ...]]:
        return type(self), (self.path, self.differences)


class TargetChangedError(StoreError):
    """A stored run whose target gives another value at a point than the one that is stored.

    ``x`` is the point, ``stored`` its value in the store, ``values`` what the target gives now.

    >>> first = sparing.infer(problem, max_evaluations=12, store="run", progress=False)
    >>> edited = sparing.Problem(lambda x: -1.0, [0, -1], [2, 1], names=["slope", "offset"])
    >>> sparing.infer(edited, max_evaluations=20, store="run", progress=False)
    Traceback (most recent call last):
    sparing.errors.TargetChangedError: the target seems to have changed since the run was ...
    """

    def __init__(self, x: Sequence[float], stored: float, values: Sequence[float]) -> None:
        self.x, self.stored, self.values = tuple(x), stored, tuple(values)
        point = ", ".join(f"{coordinate:g}" for coordinate in self.x)
        now = ", ".join(f"{value:.10g}" for value in dict.fromkeys(self.values))
        super().__init__(
            f"the target seems to have changed since the run was stored: at ({point}) its log "
            f"joint was {stored:.10g}, and now it is {now}. Evaluations of two targets must not "
            "be mixed: undo the change, or give another store. A tag for each version of code or "
            'data (tag="version 2") has them told apart at once. Where you know better, '
            "check_target=False (--unchecked) goes on without this test"
        )

    def __reduce__(self) -> tuple[type[TargetChangedError], tuple[object, ...]]:
        return type(self), (self.x, self.stored, self.values)


class StoreLockedError(StoreError):
    """A run directory that another live process writes to."""

    def __init__(self, message: str, host: str = "", pid: int | None = None) -> None:
        self.host = host
        self.pid = pid
        super().__init__(message)

    def __reduce__(self) -> tuple[type[StoreLockedError], tuple[object, ...]]:
        return type(self), (str(self), self.host, self.pid)


class StoreCorruptError(StoreError):
    """A file of a run directory that is damaged or was not written by sparing."""


class StoreFullError(StoreError):
    """No space is left for the next entry; everything recorded before is safe."""


class LoadError(SparingError, ValueError):
    """A file that is damaged, or was not written by sparing, or by a newer version of it.

    >>> from pathlib import Path
    >>> _ = Path("notes.txt").write_text("no result")
    >>> sparing.load("notes.txt")
    Traceback (most recent call last):
    sparing.errors.LoadError: notes.txt cannot be loaded: it is not a file that sparing wrote
    """


class MissingExtraError(SparingError, ImportError):
    """An optional package is needed and not installed; the message says how to install it.

    >>> print(sparing.MissingExtraError("matplotlib", "plots"))
    matplotlib is not installed: pip install 'sparing[plots]'
    """

    def __init__(self, package: str, extra: str) -> None:
        self.package = package
        self.extra = extra
        super().__init__(f"{package} is not installed: pip install 'sparing[{extra}]'")

    def __reduce__(self) -> tuple[type[MissingExtraError], tuple[str, str]]:
        return type(self), (self.package, self.extra)


class SparingWarning(UserWarning):
    """Something the user should know about a run that nevertheless goes on.

    >>> import warnings
    >>> warnings.filterwarnings("error", category=sparing.SparingWarning)  # end the run instead
    """
