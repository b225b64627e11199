"""Who holds a run directory: the text of the file ``lock``, and whether that process lives."""

from __future__ import annotations

import json
import os
import secrets
import socket
import sys
import time
from dataclasses import asdict, dataclass
from pathlib import Path

from sparing.readable_text import moment_text, readable
from sparing.store.dataclass_json import dataclass_from_json
from sparing.store.json_members import MalformedError, parse_object

TEXT_LENGTH = 2048  # fixed, so that a heartbeat overwrites in place and needs no disk space
LATEST = 2.0**32  # Unix time beyond which a text is damaged
LONGEST_NAME = 100  # characters of a host's name or a command: escaped, both fit the text


@dataclass(frozen=True)
class LockOwner:
    """One holder of the lock; times are Unix times, ``token`` is drawn afresh each time."""

    host: str
    pid: int
    process_started: str  # tells a process from a later one with the same pid; "" if unknown
    token: str
    since: float
    heartbeat: float
    command: str

    def described(self) -> str:
        """For messages: host, process and time."""
        since = moment_text(self.since)
        return readable(f"process {self.pid} on {self.host} since {since} ({self.command})")

    def encoded(self) -> bytes:
        """The text of the lock file."""
        return json.dumps(asdict(self)).encode().ljust(TEXT_LENGTH - 1) + b"\n"


def this_process() -> LockOwner:
    """A new owner: the running process."""
    now = min(max(0.0, time.time()), LATEST)  # a clock may be far off
    return LockOwner(
        host=_shortened(socket.gethostname()),
        pid=os.getpid(),
        process_started=_process_started(os.getpid()),
        token=secrets.token_hex(16),
        since=now,
        heartbeat=now,
        command=_shortened(" ".join(sys.argv)),
    )


def _shortened(name: str) -> str:
    return name[:LONGEST_NAME].encode("ascii", "replace").decode()


def decode_owner(text: bytes) -> LockOwner | None:
    """The owner, or None when the text is not complete: a write in progress, or damage."""
    try:
        owner = dataclass_from_json(parse_object(text), LockOwner, "the lock")
    except MalformedError:
        return None
    return owner if owner.pid >= 0 and 0.0 <= owner.since <= LATEST else None


def is_on_this_host(owner: LockOwner) -> bool:
    """Whether its process would be one of this machine."""
    return owner.host == _shortened(socket.gethostname())


def is_running(owner: LockOwner) -> bool:
    """Whether the process lives, for an owner on this host; in doubt, it does."""
    if os.name == "nt":  # os.kill would end it
        return True
    try:
        os.kill(owner.pid, 0)
    except ProcessLookupError:
        return False
    except (OSError, OverflowError):
        return True
    started = _process_started(owner.pid)
    return not started or not owner.process_started or started == owner.process_started


def _process_started(pid: int) -> str:
    """Boot and clock tick of a process's start where the system tells (Linux), or ""."""
    try:
        boot = Path("/proc/sys/kernel/random/boot_id").read_text().strip()
        # Field 22; the second, the command in parentheses, may itself hold spaces.
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
        return f"{boot}:{fields[19]}"
    except (OSError, IndexError, ValueError):
        return ""
