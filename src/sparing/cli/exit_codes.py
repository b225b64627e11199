"""What the exit code of a command says."""

from __future__ import annotations

import enum

from sparing.errors import (
    LoadError,
    ProblemError,
    SettingsError,
    SparingError,
    StoreCorruptError,
    StoreLockedError,
    StoreMismatchError,
)


class UsageError(SparingError):
    """Arguments that cannot be used together, or name something that cannot be used."""


class ExitCode(enum.IntEnum):
    """Every code a command ends with."""

    OK = 0
    FAILED = 1
    USAGE = 2  # argparse's own code for it as well
    NOT_TRUSTED = 3
    OTHER_PROBLEM = 4
    IN_USE = 5
    DAMAGED = 6
    INTERRUPTED = 130  # as the shell has it: 128 + SIGINT


MEANINGS = {
    ExitCode.OK: "done; a run converged",
    ExitCode.FAILED: "something failed: the target, the disk, a missing package",
    ExitCode.USAGE: "arguments, a model file or a problem that cannot be used",
    ExitCode.NOT_TRUSTED: "there is a result, but a run did not converge, or runs disagree",
    ExitCode.OTHER_PROBLEM: "the run directory belongs to another problem",
    ExitCode.IN_USE: "another process writes to the run directory",
    ExitCode.DAMAGED: "a file is damaged, or was not written by sparing",
    ExitCode.INTERRUPTED: "interrupted by Ctrl-C",
}

_CODES: tuple[tuple[type[SparingError], ExitCode], ...] = (
    (StoreMismatchError, ExitCode.OTHER_PROBLEM),
    (StoreLockedError, ExitCode.IN_USE),
    (StoreCorruptError, ExitCode.DAMAGED),
    (LoadError, ExitCode.DAMAGED),
    (ProblemError, ExitCode.USAGE),
    (SettingsError, ExitCode.USAGE),
    (UsageError, ExitCode.USAGE),
)


def code_for(error: SparingError) -> ExitCode:
    """The exit code for an error."""
    return next((code for kind, code in _CODES if isinstance(error, kind)), ExitCode.FAILED)
