"""Who holds a run directory, seen from outside: nothing is locked, written or waited for."""

from __future__ import annotations

import enum
import time
from dataclasses import dataclass
from pathlib import Path

from sparing.store.files import read_regular_file
from sparing.store.lock.lock import WATCH_SECONDS
from sparing.store.lock.owner import LockOwner, decode_owner, is_on_this_host, is_running
from sparing.store.run_directory import LOCK


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
    """Who holds the directory; an owner on another host lives while its heartbeat is fresh."""
    content = read_regular_file(directory / LOCK) or b""
    if not content.strip(b"\0 \n"):
        return LockState(Holder.NOBODY, "free")
    owner = decode_owner(content)
    if owner is None:
        return LockState(Holder.UNKNOWN, "its text cannot be read: somebody is just taking it")
    if is_on_this_host(owner):
        return _described(owner, is_running(owner), "")
    silence = time.time() - owner.heartbeat
    return _described(owner, silence < WATCH_SECONDS, f", last sign of life {silence:.0f} s ago")


def _described(owner: LockOwner, alive: bool, heartbeat: str) -> LockState:
    if alive:
        return LockState(Holder.ALIVE, f"in use by {owner.described()}{heartbeat}")
    text = f"left by a dead {owner.described()}{heartbeat}; the next run takes it over"
    return LockState(Holder.DEAD, text)
