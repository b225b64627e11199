"""The spool: one file per result that a worker finished, until the coordinator has recorded it.

A worker writes without the run directory's lock; its file appears complete or not at all. A
coordinator that died meanwhile finds the results when the run is resumed.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from sparing.errors import StoreError
from sparing.problem.warning_text import WarningText, WarningTopic
from sparing.store import files
from sparing.store.checked_json import decode, encode
from sparing.store.json_members import MalformedError, Members, require, to_json_types

NAME = re.compile(r"(0|[1-9][0-9]{0,17})\.json")


def write_spooled_outcome(spool_dir: str, identifier: int, record: Mapping[str, Any]) -> None:
    """Leave the result of a proposal in the spool; for workers, which need no lock.

    ``record`` holds what JSON can: strings, numbers, lists, objects.

    >>> from pathlib import Path
    >>> from sparing.store import Spool, write_spooled_outcome
    >>> Path("spool").mkdir()
    >>> write_spooled_outcome("spool", 7, {"value": -1.5})
    >>> list(Spool(Path("spool")).harvest())
    [(7, {'value': -1.5})]
    """
    content = encode({"identifier": int(identifier), "record": to_json_types(record)})
    files.refuse_link(Path(spool_dir))
    files.write_durably(Path(spool_dir) / f"{int(identifier)}.json", content + b"\n")


def read_spooled_outcome(spool_dir: str, identifier: int) -> dict[str, Any] | None:
    """The result of a proposal that lies in the spool; None when there is none to be used.

    >>> from pathlib import Path
    >>> from sparing.store import read_spooled_outcome, write_spooled_outcome
    >>> Path("spool").mkdir()
    >>> write_spooled_outcome("spool", 7, {"value": -1.5})
    >>> read_spooled_outcome("spool", 7), read_spooled_outcome("spool", 8)
    ({'value': -1.5}, None)
    """
    with suppress(MalformedError, StoreError):
        content = files.read_regular_file(Path(spool_dir) / f"{int(identifier)}.json")
        return None if content is None else _record(content, identifier)
    return None


class Spool:
    """The coordinator's side; without a directory it is always empty.

    >>> from pathlib import Path
    >>> from sparing.store import Spool, write_spooled_outcome
    >>> Path("spool").mkdir()
    >>> spool = Spool(Path("spool"))
    >>> write_spooled_outcome(spool.directory, 7, {"value": -1.5})
    >>> for identifier, record in spool.harvest():
    ...     spool.remove(identifier)
    >>> list(spool.harvest())
    []
    """

    def __init__(self, directory: Path | None, *, read_only: bool = False) -> None:
        self.directory = None if directory is None else str(directory)  # for workers
        self.warnings: list[WarningText] = []
        self._directory = directory
        self._read_only = read_only

    def harvest(self) -> Iterator[tuple[int, dict[str, Any]]]:
        """(proposal identifier, record) of every result lying there, by identifier.

        A damaged file stays where it is, and a warning names it.
        """
        found = files.numbered_files(self._directory, NAME) if self._directory else []
        for identifier, path in found:
            try:
                content = files.read_regular_file(path)
                if content is not None:  # None: removed meanwhile
                    yield identifier, _record(content, identifier)
            except (MalformedError, StoreError) as error:
                text = f"{path} cannot be used: {error}"
                self.warnings.append(WarningText(WarningTopic.DAMAGED_FILE, text))

    def remove(self, identifier: int) -> None:
        """Forget a result, once it is in the journal; nothing happens when there is none."""
        if self._directory is None:
            return
        if self._read_only:
            raise StoreError(f"{self._directory} was opened read-only")
        path = self._directory / f"{int(identifier)}.json"
        files.refuse_link(self._directory)
        # Not synced: a file that comes back after a power failure is harvested twice, no harm.
        with files.explained_errors(path, "remove"):
            path.unlink(missing_ok=True)


def _record(content: bytes, identifier: int) -> dict[str, Any]:
    members = Members(decode(content.rstrip(b"\n")))
    own = members.count("identifier") == identifier
    require(own, "it holds the result of another proposal")
    record = members.object("record")
    members.finish()
    return record
