"""The server of the live page: what it serves, to whom, and that it leaves the run alone."""

import http.client
import json
import socket
import threading
import webbrowser
from contextlib import ExitStack, contextmanager, suppress

import pytest
from tests.report.records import log_joint, make_problem

import sparing
from sparing.errors import SettingsError, StoreError
from sparing.running import live
from sparing.summary.numbers import estimate


@contextmanager
def served(directory):
    server = live.make_server(directory)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
    thread.start()
    try:
        yield server
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def get(server, path, **headers):
    connection = http.client.HTTPConnection("127.0.0.1", server.server_port, timeout=60)
    try:
        connection.request("GET", path, headers=headers)
        answer = connection.getresponse()
        return answer.status, answer.headers, answer.read().decode("utf-8")
    finally:
        connection.close()


def evaluate(run, n):
    for _ in range(n):
        (proposal,) = run.ask(1)
        run.tell(proposal, log_joint(proposal.x))


def contents(directory):
    """Every file but the lock, whose owner renews it."""
    files = [path for path in directory.rglob("*") if path.is_file() and path.name != "lock"]
    return {path: path.read_bytes() for path in files}


@pytest.mark.slow
def test_a_run_from_its_first_point_to_its_end(tmp_path):
    run = sparing.Inference(make_problem(), seed=1, max_evaluations=20, store=tmp_path)
    with served(tmp_path) as server:
        with run:
            evaluate(run, 4)
            run.ask(1)
            status = json.loads(get(server, "/status")[2])
            assert status["text"].startswith("Running: 4 evaluations, 1 under way")
            assert "Nothing to show yet" in get(server, "/")[2]

            (pending,) = run.pending
            run.tell(pending, log_joint(pending.x))
            evaluate(run, 8)
            before = contents(tmp_path)
            html = get(server, "/")[2]
            assert contents(tmp_path) == before
            last = run.history[-1]
            assert estimate(last.log_evidence, last.log_evidence_sd) in html
            assert "everything here is provisional" in html
            assert "Settings other than" not in html
            # The page is that of the last iteration, however many points came since.
            version = json.loads(get(server, "/status")[2])["version"]
            evaluate(run, 1)
            assert json.loads(get(server, "/status")[2])["version"] == version
            evaluate(run, 6)
            final = run.result()
        html = get(server, "/")[2]
        assert "No process is running it: 20 evaluations." in html  # nobody timed them
        assert estimate(final.log_evidence, final.log_evidence_sd) in html
        assert json.loads(get(server, "/status")[2])["version"] != version


def test_a_page_is_rendered_once_for_all_who_ask(tmp_path, monkeypatch):
    sparing.Inference(make_problem(), seed=1, store=tmp_path).close()
    rendered = []
    monkeypatch.setattr(
        live, "waiting_page", lambda *args, **rest: rendered.append(1) or "<p>waiting</p>"
    )
    with served(tmp_path) as server:
        assert [get(server, "/")[2] for _ in range(3)] == ["<p>waiting</p>"] * 3
    assert len(rendered) == 1


def test_it_listens_on_this_machine_only_and_answers_to_its_own_name(tmp_path):
    sparing.Inference(make_problem(), seed=1, store=tmp_path).close()
    with served(tmp_path) as server:
        assert server.server_address[0] == "127.0.0.1"
        port = server.server_port
        for host, status in (
            (f"127.0.0.1:{port}", 200),
            (f"localhost:{port}", 200),
            ("127.0.0.1", 421),
            (f"evil.example:{port}", 421),
        ):
            assert get(server, "/status", Host=host)[0] == status


def test_what_it_serves(tmp_path):
    sparing.Inference(make_problem(), seed=1, store=tmp_path).close()
    with served(tmp_path) as server:
        for path, kind in (
            ("/", "text/html"),
            ("/status", "application/json"),
            ("/live.js", "text/javascript"),
        ):
            status, headers, _ = get(server, path)
            assert status == 200
            assert headers["Content-Type"] == f"{kind}; charset=utf-8"
            assert headers["Cache-Control"] == "no-store"
        for path in ("/../pyproject.toml", "/style.css", "/live.js?x"):
            assert get(server, path)[0] == 404


def test_a_directory_that_goes_away_is_told_to_the_browser(tmp_path):
    directory = tmp_path / "run"
    sparing.Inference(make_problem(), seed=1, store=directory).close()
    with served(directory) as server:
        directory.rename(tmp_path / "elsewhere")
        status, _, text = get(server, "/")
    assert status == 503
    assert "is not a run directory" in text


def test_a_directory_without_a_run_is_refused_at_once(tmp_path):
    with pytest.raises(StoreError, match="is not a run directory"):
        live.make_server(tmp_path)


def test_a_port_that_cannot_be_used_is_named(tmp_path):
    sparing.Inference(make_problem(), seed=1, store=tmp_path).close()
    for port in (-1, 70_000):
        with pytest.raises(SettingsError, match=f"port {port} cannot be used"):
            live.make_server(tmp_path, port)
    with served(tmp_path) as server:
        taken = server.server_port
        with pytest.raises(SettingsError, match=f"port {taken} cannot be used"):
            live.make_server(tmp_path, taken)


@pytest.mark.parametrize("open_browser", [True, False])
def test_watch_opens_the_page_and_ends_with_ctrl_c(tmp_path, monkeypatch, capsys, open_browser):
    sparing.Inference(make_problem(), seed=1, store=tmp_path).close()
    opened = []

    def interrupted(server):
        raise KeyboardInterrupt

    monkeypatch.setattr(webbrowser, "open", opened.append)
    monkeypatch.setattr(live._Server, "serve_forever", interrupted)
    live.watch(tmp_path, open_browser=open_browser)
    told = capsys.readouterr().err
    assert str(tmp_path) in told
    assert "http://127.0.0.1:" in told
    assert len(opened) == open_browser
    assert all(address in told for address in opened)


def connect(server):
    return socket.create_connection(("127.0.0.1", server.server_port), timeout=20)


def test_idle_connections_are_few(tmp_path, monkeypatch):
    sparing.Inference(make_problem(), seed=1, store=tmp_path).close()
    monkeypatch.setattr(live, "MOST_CONNECTIONS", 4)
    monkeypatch.setattr(live._Handler, "timeout", 60.0)
    with served(tmp_path) as server:
        with ExitStack() as idle:
            for _ in range(4):
                idle.enter_context(connect(server))
            for _ in range(3):
                with connect(server) as refused:
                    assert refused.recv(1) == b""
        status = 0
        while status != 200:  # as soon as one of the four is known to have gone
            with suppress(OSError, http.client.HTTPException):
                status, *_ = get(server, "/status")


def test_silent_connections_end(tmp_path, monkeypatch):
    assert live._Handler.timeout == live.PATIENCE
    monkeypatch.setattr(live._Handler, "timeout", 0.05)
    sparing.Inference(make_problem(), seed=1, store=tmp_path).close()
    with served(tmp_path) as server, connect(server) as silent:
        silent.sendall(b"GET / HTTP/1.1\r\n")
        assert silent.recv(1) == b""
