"""What the exit code of a command says."""

from __future__ import annotations

import enum
from typing import Self

from sparing import errors
from sparing.errors import SparingError


class UsageError(SparingError):
    """Arguments that cannot be used together, or name something that cannot be used."""


class ExitCode(enum.IntEnum):
    """Every code a command ends with, and what it says."""

    meaning: str

    OK = 0, "done; a run converged"
    FAILED = 1, "something failed: the target, the disk, a missing package"
    # argparse's own code for it as well
    USAGE = 2, "arguments, a model file or a problem that cannot be used"
    NOT_TRUSTED = 3, "there is a result, but a run did not converge, or runs disagree"
    OTHER_PROBLEM = 4, "the run directory belongs to another problem"
    IN_USE = 5, "another process writes to the run directory"
    DAMAGED = 6, "a file is damaged, or was not written by sparing"
    INTERRUPTED = 130, "interrupted by Ctrl-C"  # as the shell has it: 128 + SIGINT

    def __new__(cls, code: int, meaning: str) -> Self:
        """A number that carries its meaning."""
        member = int.__new__(cls, code)
        member._value_, member.meaning = code, meaning
        return member


_CODES: tuple[tuple[type[SparingError], ExitCode], ...] = (
    (errors.StoreMismatchError, ExitCode.OTHER_PROBLEM),
    (errors.TargetChangedError, ExitCode.OTHER_PROBLEM),
    (errors.StoreLockedError, ExitCode.IN_USE),
    (errors.StoreCorruptError, ExitCode.DAMAGED),
    (errors.LoadError, ExitCode.DAMAGED),
    (errors.FaultListError, ExitCode.USAGE),
    (UsageError, ExitCode.USAGE),
)


def code_for(error: SparingError) -> ExitCode:
    """The exit code for an error."""
    return next((code for kind, code in _CODES if isinstance(error, kind)), ExitCode.FAILED)
