"""The exclusive lock of a run directory: one writer, and a dead writer's lock is taken over.

Two things must agree. The operating system's lock on the file ``lock`` ends with the process that
holds it, so on one host it alone tells a live owner from a dead one. Some network file systems
keep such locks per host or not at all; there the text of the file decides, which its owner renews
every few seconds: an owner on another host is dead when its text stops changing. Only changes are
compared, so the hosts' clocks need not agree.
"""

from __future__ import annotations

import contextlib
import enum
import errno
import os
import threading
import time
from collections.abc import Generator
from dataclasses import dataclass, replace
from pathlib import Path

from sparing.errors import StoreError, StoreLockedError
from sparing.store import files
from sparing.store.lock_owner import (
    TEXT_LENGTH,
    LockOwner,
    decode_owner,
    is_on_this_host,
    is_running,
    this_process,
)

LOCK = "lock"
HEARTBEAT_SECONDS = 10.0
WATCH_SECONDS = 60.0  # six heartbeats that never came: the owner on another host is dead
UNSUPPORTED = {errno.ENOLCK, errno.ENOSYS, errno.EOPNOTSUPP}

if os.name == "nt":
    import msvcrt

    def _try_system_lock(descriptor: int) -> bool | None:
        # Far behind the text: a locked byte cannot be read by others there.
        os.lseek(descriptor, 1 << 30, os.SEEK_SET)
        try:
            msvcrt.locking(descriptor, msvcrt.LK_NBLCK, 1)
        except OSError:
            return False
        return True

else:
    import fcntl

    def _try_system_lock(descriptor: int) -> bool | None:
        """Whether the lock was taken; None where the file system has none."""
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        except OSError as error:
            if error.errno in UNSUPPORTED:
                return None
            raise
        return True


class RunLock:
    """The lock, held from construction to `release`."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.previous: LockOwner | None = None  # a dead owner it was taken over from
        self._stop = threading.Event()
        self._text_in_use = threading.Lock()  # the heartbeat rewrites what `verify` reads
        with files.explained_errors(path, "lock"):
            self._descriptor = files.open_to_write(path)
            try:
                self._owner = self._acquire()
            except BaseException:
                os.close(self._descriptor)
                raise
        self._heart = threading.Thread(target=self._beat, name="sparing-lock", daemon=True)
        self._heart.start()

    def _acquire(self) -> LockOwner:
        locked = _try_system_lock(self._descriptor)
        text = self._text()
        if locked is False:
            raise self._refusal(text)
        owner = decode_owner(text)
        if _is_free(text):
            pass
        elif owner is not None and is_on_this_host(owner):
            if locked is None and is_running(owner):
                raise self._refusal(text)
        else:
            self._watch(text)
        self.previous = owner
        mine = this_process()
        certain = locked and (owner is None or is_on_this_host(owner))
        with contextlib.nullcontext() if certain else self._claim():
            if (now := self._text()) != text:
                raise self._refusal(now)  # somebody else was faster
            _overwrite(self._descriptor, mine)
            os.ftruncate(self._descriptor, TEXT_LENGTH)  # a damaged text may have been longer
        return mine

    def _watch(self, text: bytes) -> None:
        """Return when the text did not change for long enough; refuse as soon as it does."""
        deadline = time.monotonic() + WATCH_SECONDS
        while time.monotonic() < deadline:
            time.sleep(min(1.0, WATCH_SECONDS / 10))
            if (now := self._text()) != text:
                raise self._refusal(now)

    @contextlib.contextmanager
    def _claim(self) -> Generator[None, None, None]:
        """Exclude processes on other hosts for the moment of a take-over."""
        claim = self.path.with_name(f"{self.path.name}.claim")
        try:
            os.close(os.open(claim, os.O_CREAT | os.O_EXCL | os.O_WRONLY))
        except FileExistsError:
            raise StoreLockedError(
                f"{self.path.parent} is being taken over by another process; if none is running, "
                f"delete {claim}"
            ) from None
        try:
            yield
        finally:
            claim.unlink(missing_ok=True)

    def _refusal(self, text: bytes) -> StoreLockedError:
        owner = decode_owner(text)
        who = owner.described() if owner else "another process"
        if owner is not None and is_on_this_host(owner) and owner.pid == os.getpid():
            who = f"this process itself ({who}); close it first"
        message = f"{self.path.parent} is in use by {who}; reading it is possible meanwhile"
        return StoreLockedError(message, owner.host if owner else "", owner.pid if owner else None)

    def _text(self) -> bytes:
        # By name, not by descriptor: a network file system then asks the server.
        return files.read_regular_file(self.path) or b""

    def verify(self) -> None:
        """Raise unless this process still holds the lock: another host may have taken it over."""
        if self._descriptor < 0:
            raise StoreError(f"{self.path.parent} is closed")
        with self._text_in_use:
            owner = decode_owner(self._text())
        if owner is None or owner.token != self._owner.token:
            who = f"taken over by {owner.described()}" if owner else "removed"
            raise StoreError(f"the lock {self.path} was {who}; this run must not write any more")

    def _beat(self) -> None:
        while not self._stop.wait(HEARTBEAT_SECONDS):
            try:
                self.verify()
                with self._text_in_use:
                    _overwrite(self._descriptor, replace(self._owner, heartbeat=time.time()))
            except StoreError:
                return  # the next append reports it
            except OSError:
                continue  # no space or a server away: the next heartbeat may get through

    def release(self) -> None:
        """Give the lock back; doing so again does nothing."""
        if self._descriptor < 0:
            return
        self._stop.set()
        self._heart.join()
        with contextlib.suppress(OSError, StoreError):
            self.verify()
            os.ftruncate(self._descriptor, 0)
        self.abandon()

    def abandon(self) -> None:
        """Close the file without a word, as a forked child must: the lock is its parent's."""
        self._stop.set()
        if self._descriptor >= 0:
            os.close(self._descriptor)
            self._descriptor = -1


def _overwrite(descriptor: int, owner: LockOwner) -> None:
    os.lseek(descriptor, 0, os.SEEK_SET)
    files.write_all(descriptor, owner.encoded())
    os.fsync(descriptor)


class Holder(enum.Enum):
    """Whether somebody writes to a run directory."""

    NOBODY = "nobody"
    ALIVE = "a live process"
    DEAD = "a dead process"
    UNKNOWN = "unknown"  # the file is being written, or is damaged


@dataclass(frozen=True)
class LockState:
    """The holder of the lock and a sentence about it."""

    holder: Holder
    text: str


def lock_state(directory: Path) -> LockState:
    """Who holds the directory, seen from outside: nothing is locked, written or waited for.

    An owner on another host lives while its heartbeat is fresh.
    """
    content = files.read_regular_file(directory / LOCK) or b""
    if _is_free(content):
        return LockState(Holder.NOBODY, "free")
    owner = decode_owner(content)
    if owner is None:
        return LockState(Holder.UNKNOWN, "its text cannot be read: somebody is just taking it")
    if is_on_this_host(owner):
        alive, who = is_running(owner), owner.described()
    else:
        silence = time.time() - owner.heartbeat
        alive = silence < WATCH_SECONDS
        who = f"{owner.described()}, last sign of life {silence:.0f} s ago"
    if alive:
        return LockState(Holder.ALIVE, f"in use by {who}")
    return LockState(Holder.DEAD, f"left by a dead {who}; the next run takes it over")


def _is_free(text: bytes) -> bool:
    """Whether the lock is new, or was released by its last owner."""
    return not text.strip(b"\0 \n")
