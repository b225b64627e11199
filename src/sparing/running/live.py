"""The report of a run in progress, served to a browser on this machine.

The run is not touched: the page reads what the run directory holds. While a process writes to it,
that is the state after the last iteration, so nothing is computed that the run computes itself.
The server listens on 127.0.0.1 only.
"""

from __future__ import annotations

import json
import logging
import sys
import threading
import time
import webbrowser
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, replace
from functools import partial
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from importlib.resources import files
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np

from sparing.errors import SettingsError, SparingError, TargetError
from sparing.problem.evaluations import Evaluation
from sparing.report import LIVE_SCRIPT, LiveStatus, report_page, waiting_page
from sparing.results.result import Result
from sparing.running.inference import Inference
from sparing.running.load_run import load_run
from sparing.running.stored_run import pending_proposals, stored_identity
from sparing.store import Event, MemoryStore, RunDirectory, Snapshot
from sparing.store.lock import Holder, lock_state
from sparing.summary.numbers import counted, duration
from sparing.vbmc.answer import LastFit

HOST = "127.0.0.1"
SCRIPT = files("sparing.report").joinpath("templates", LIVE_SCRIPT)
WAITING = (
    "Nothing to show yet: the first points are being evaluated. The report appears by itself once "
    "there are enough of them for a first surrogate."
)

# Seconds that a browser may take for its request, and connections at a time: one page has three.
PATIENCE = 10.0
MOST_CONNECTIONS = 32

logger = logging.getLogger("sparing")


def watch(directory: str | PathLike[str], port: int = 0, open_browser: bool = True) -> None:
    """Serve the report of the run in a directory until Ctrl-C; port 0 takes a free one.

    The page loads itself again after each iteration of the run. Needs ``sparing[report]``.

    >>> from sparing.running.live import watch
    >>> watch("run")  # doctest: +SKIP
    >>> watch("elsewhere")
    Traceback (most recent call last):
    sparing.errors.StoreError: elsewhere is not a run directory: it has no problem.json
    """
    with make_server(directory, port) as server:
        address = f"http://{HOST}:{server.server_port}/"
        sys.stderr.write(f"sparing: {address} shows {directory}; Ctrl-C ends it, not the run\n")
        if open_browser:
            webbrowser.open(address)
        with suppress(KeyboardInterrupt):
            server.serve_forever()


def make_server(directory: str | PathLike[str], port: int = 0) -> ThreadingHTTPServer:
    """A server that is ready to serve, for one's own thread or event loop.

    >>> import json
    >>> from threading import Thread
    >>> from urllib.request import urlopen
    >>> from sparing.running.live import make_server
    >>> short = sparing.infer(problem, max_evaluations=12, store="run", progress=False)
    >>> with make_server("run") as server:
    ...     Thread(target=server.serve_forever, daemon=True).start()
    ...     with urlopen(f"http://127.0.0.1:{server.server_port}/status") as answer:
    ...         print(json.load(answer)["text"])
    ...     server.shutdown()
    No process is running it: 12 evaluations, the last ended ... ago.
    """
    _look(Path(directory))  # an error now rather than on the page: no such directory
    try:
        return _Server(Path(directory), port)
    except (OSError, OverflowError) as error:
        fault = f"port {port} cannot be used ({error}): leave it out to get a free one"
        raise SettingsError([fault]) from None


@dataclass(frozen=True, eq=False)
class _View:
    """What one look into the run directory found; the store is closed, and can be read."""

    store: RunDirectory
    running: bool
    snapshot: Snapshot | None

    @property
    def status(self) -> LiveStatus:
        """What the page says above the report, which is of the last iteration during a run."""
        events = self.store.events()
        n_used = 0 if self.snapshot is None else self.snapshot.number
        version = f"running {n_used}" if self.running else f"stopped {len(events)}"
        return LiveStatus(version, _text(events, self.running))


def _look(directory: Path) -> _View:
    with RunDirectory.open(directory, read_only=True) as store:
        running = lock_state(directory).holder not in (Holder.NOBODY, Holder.DEAD)
        return _View(store, running, store.latest_snapshot())


def _text(events: Sequence[Event], running: bool) -> str:
    """'Running: 35 evaluations (1 failed), 2 under way, the last ended 12.0 s ago.'"""
    evaluations = [event for event in events if isinstance(event, Evaluation)]
    n_failed = sum(entry.failed for entry in evaluations)
    failed = f" ({n_failed} failed)" if n_failed else ""
    parts = [counted(len(evaluations), "evaluation") + failed]
    if pending := pending_proposals(events):
        parts.append(f"{len(pending)} under way")
    ends = [entry.ended for entry in evaluations if np.isfinite(entry.ended)]
    if ends:
        parts.append(f"the last ended {duration(max(0.0, time.time() - max(ends)))} ago")
    return f"{'Running' if running else 'No process is running it'}: {', '.join(parts)}."


def _result(view: _View) -> Result | None:
    """What the page reports; None before the first iteration.

    While the run goes on, the state after its last iteration, without the final fit; when nobody
    runs it, its result, computed once.
    """
    if not view.running:
        return load_run(view.store.path)
    if view.snapshot is None:
        return None
    identity = stored_identity(view.store)
    shown = replace(identity, settings=replace(identity.settings, final_fit=LastFit()))
    past = _UpToSnapshot(view.store, view.snapshot)
    run = Inference(shown.problem, **shown.arguments, max_evaluations=sys.maxsize, store=past)
    # Warnings are for those who use a result; here the checks say how far it is.
    return replace(run.result(), settings=identity.settings, warnings=view.store.warnings)


class _UpToSnapshot(MemoryStore):
    """The events up to a snapshot, and the snapshot: nothing is left to compute."""

    def __init__(self, store: RunDirectory, snapshot: Snapshot) -> None:
        super().__init__(store.seed)
        self._events = list(store.events()[: snapshot.number])
        self._snapshot = snapshot

    def latest_snapshot(self) -> Snapshot:
        """The one there is."""
        return self._snapshot


class _Server(ThreadingHTTPServer):
    """Serves the page of one run directory, rendered again when the run has something new."""

    request_queue_size = 128  # with the usual 5, a browser waits a second behind a burst of others

    def __init__(self, directory: Path, port: int) -> None:
        super().__init__((HOST, port), _Handler)
        self._directory = directory
        self._rendering = threading.Lock()
        self._free = threading.Semaphore(MOST_CONNECTIONS)
        self._version = ""
        self._html = ""

    def status_json(self) -> str:
        """How the run stands now, for the page's script."""
        return json.dumps(asdict(_look(self._directory).status))

    def html(self) -> str:
        """The page as it is now; two browsers wait for the same rendering."""
        with self._rendering:
            view = _look(self._directory)
            if view.status.version != self._version:
                self._html = self._rendered(view)
                self._version = view.status.version
            return self._html

    def _rendered(self, view: _View) -> str:
        title, waiting = f"Run in {self._directory.resolve().name}", WAITING
        try:
            result = _result(view)
        except TargetError as reason:  # the initial design is not complete, and nobody goes on
            result, waiting = None, str(reason)
        if result is None:
            return waiting_page(waiting, title=title, live=view.status)
        return report_page(result, title=title, live=view.status)

    def process_request(self, request: Any, client_address: Any) -> None:
        """Answer in a thread of its own while there are few; hang up on the others."""
        if not self._free.acquire(blocking=False):
            self.shutdown_request(request)
            return
        try:
            super().process_request(request, client_address)
        except BaseException:  # there is no such thread
            self._free.release()
            raise

    def process_request_thread(self, request: Any, client_address: Any) -> None:
        """In that thread."""
        try:
            super().process_request_thread(request, client_address)
        finally:
            self._free.release()

    def handle_error(self, request: object, client_address: object) -> None:
        """A browser that went away while it was answered is no news."""
        logger.debug("request of %s failed", client_address, exc_info=True)


class _Handler(BaseHTTPRequestHandler):
    """Answers GET for the page, its script and its status, from this machine's browser only."""

    timeout = PATIENCE  # of a silent connection, which is closed then

    def do_GET(self) -> None:
        """Answer, or say why not."""
        server = self.server
        assert isinstance(server, _Server)
        # A page elsewhere may point its own host name at 127.0.0.1 to read what is served here.
        own_names = {f"{name}:{server.server_port}" for name in (HOST, "localhost")}
        if self.headers.get("Host") not in own_names:
            self._answer(HTTPStatus.MISDIRECTED_REQUEST, "text/plain", "not served here\n")
            return
        contents = {
            "/": ("text/html", server.html),
            "/status": ("application/json", server.status_json),
            f"/{LIVE_SCRIPT}": ("text/javascript", partial(SCRIPT.read_text, "utf-8")),
        }
        if self.path not in contents:
            self._answer(HTTPStatus.NOT_FOUND, "text/plain", "no such page\n")
            return
        kind, content = contents[self.path]
        try:
            self._answer(HTTPStatus.OK, kind, content())
        except SparingError as error:  # such as a run directory that was moved away
            self._answer(HTTPStatus.SERVICE_UNAVAILABLE, "text/plain", f"{error}\n")

    def _answer(self, status: HTTPStatus, kind: str, text: str) -> None:
        body = text.encode("utf-8")
        self.send_response(status)
        self.send_header("Content-Type", f"{kind}; charset=utf-8")
        self.send_header("Content-Length", str(len(body)))
        self.send_header("Cache-Control", "no-store")
        self.send_header("X-Content-Type-Options", "nosniff")
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:
        """To the library's log, not to the terminal."""
        logger.debug(format, *args)
