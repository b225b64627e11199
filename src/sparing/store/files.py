"""Files that are complete or absent, and operating system errors that say what to do."""

from __future__ import annotations

import contextlib
import errno
import os
import re
import secrets
import stat
from collections.abc import Generator
from pathlib import Path

from sparing.errors import StoreCorruptError, StoreError, StoreFullError

TEMPORARY_SUFFIX = ".tmp"
BINARY = getattr(os, "O_BINARY", 0)  # Windows would otherwise translate line ends
FULL = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG}


@contextlib.contextmanager
def explained_errors(path: Path, action: str) -> Generator[None, None, None]:
    """Turn an `OSError` inside the block into a `StoreError` that says what to do."""
    try:
        yield
    except OSError as error:
        text = f"cannot {action} {path}: {error.strerror or error}"
        if error.errno not in FULL:
            raise StoreError(text) from error
        raise StoreFullError(
            f"{text}. Everything recorded before is safe: make space, then start the run again "
            "with the same store to resume it"
        ) from error


def refuse_link(path: Path) -> None:
    """Refuse a symbolic link: what a run writes, empties or removes stays in its directory."""
    if path.is_symlink():
        raise StoreError(
            f"{path} is a symbolic link to {path.readlink()}, and a run writes to no other place "
            "than its directory: remove the link, or give the place itself as the run directory"
        )


def make_directory(path: Path) -> None:
    """A directory of a run; what it holds may be written and removed."""
    refuse_link(path)
    with explained_errors(path, "create"):
        path.mkdir(exist_ok=True)


def open_to_write(path: Path, flags: int = 0) -> int:
    """A descriptor to read and write a plain file of a run with, which is made if need be."""
    refuse_link(path)
    flags |= os.O_RDWR | os.O_CREAT | BINARY | getattr(os, "O_NOFOLLOW", 0)
    with explained_errors(path, "open"):
        descriptor = os.open(path, flags, 0o666)
    try:
        require_regular(descriptor, path)
    except BaseException:
        os.close(descriptor)
        raise
    return descriptor


def write_durably(path: Path, content: bytes) -> None:
    """Write a whole file so that, whatever happens, the old one or the new one is there."""
    unique = f".{path.name}-{os.getpid()}-{secrets.token_hex(6)}{TEMPORARY_SUFFIX}"
    temporary = path.with_name(unique)
    with explained_errors(path, "write"):
        try:
            descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL | BINARY, 0o666)
            try:
                write_all(descriptor, content)
                os.fsync(descriptor)
            finally:
                os.close(descriptor)
            temporary.replace(path)
        except BaseException:
            with contextlib.suppress(OSError):
                temporary.unlink(missing_ok=True)
            raise
        sync_directory(path.parent)


def write_all(descriptor: int, content: bytes) -> None:
    """Write all of the content; the system may take it in pieces."""
    view = memoryview(content)
    while view:
        written = os.write(descriptor, view)
        if written == 0:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        view = view[written:]


def sync_directory(path: Path) -> None:
    """Make names created in, or removed from, a directory survive a power failure."""
    if os.name == "nt":  # directories cannot be opened there; NTFS journals the names itself
        return
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def read_regular_file(path: Path) -> bytes | None:
    """The content, or None when there is no such file; pipes, devices and folders are refused."""
    with explained_errors(path, "read"):
        try:
            # Without the flag, opening a pipe would wait for a writer for ever.
            descriptor = os.open(path, os.O_RDONLY | BINARY | getattr(os, "O_NONBLOCK", 0))
        except FileNotFoundError:
            return None
        try:
            require_regular(descriptor, path)
            return read_descriptor(descriptor)
        finally:
            os.close(descriptor)


def require_regular(descriptor: int, path: Path) -> None:
    """Refuse anything that is not a plain file."""
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        raise StoreCorruptError(f"{path} is not a regular file")


def read_descriptor(descriptor: int) -> bytes:
    """Everything from the start of an open file."""
    os.lseek(descriptor, 0, os.SEEK_SET)
    with open(descriptor, "rb", closefd=False) as file:
        return file.read()


def numbered_files(directory: Path, name: re.Pattern[str]) -> list[tuple[int, Path]]:
    """Number and path, by number, of the files whose name has this pattern, a number in it."""
    with explained_errors(directory, "read"):
        try:
            paths = list(directory.iterdir())
        except FileNotFoundError:
            return []
    matches = [(name.fullmatch(path.name), path) for path in paths]
    return sorted((int(match[1]), path) for match, path in matches if match)
