"""Every error and warning sparing raises on purpose; all errors derive from `SparingError`.

They pickle with everything they carry, since they may be raised in a worker process.
"""

from __future__ import annotations

from collections.abc import Iterable


class SparingError(Exception):
    """Base of every error raised by sparing."""


class FaultListError(SparingError, ValueError):
    """Invalid input, described by all of its faults at once."""

    subject = "the input"

    def __init__(self, faults: Iterable[str]) -> None:
        self.faults: tuple[str, ...] = tuple(faults)
        count = len(self.faults)
        heading = f"{self.subject} has {count} fault{'' if count == 1 else 's'}:"
        super().__init__("\n".join([heading, *(f"  - {fault}" for fault in self.faults)]))

    def __reduce__(self) -> tuple[type[FaultListError], tuple[tuple[str, ...]]]:
        return type(self), (self.faults,)


class ProblemError(FaultListError):
    """A problem, or a starting point for it, that cannot be used as given."""

    subject = "the problem"


class SettingsError(FaultListError):
    """Settings or arguments of a run that cannot be used as given."""

    subject = "the settings"


class TargetError(SparingError, RuntimeError):
    """A target that cannot be used, for example one that is nowhere finite."""


class InvalidValueError(TargetError):
    """One evaluation gave something that is no log density: NaN, +inf, None, an array..."""


class MissingExtraError(SparingError, ImportError):
    """An optional package is needed and not installed; the message says how to install it."""

    def __init__(self, package: str, extra: str) -> None:
        self.package = package
        self.extra = extra
        super().__init__(f"{package} is not installed: pip install 'sparing[{extra}]'")

    def __reduce__(self) -> tuple[type[MissingExtraError], tuple[str, str]]:
        return type(self), (self.package, self.extra)


class SparingWarning(UserWarning):
    """Something the user should know about a run that nevertheless goes on."""
