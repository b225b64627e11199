"""The pages in a real browser; skipped where there is none."""

import threading
import time
from contextlib import contextmanager

import pytest
from tests.report import webdriver
from tests.report.records import failing, log_joint, made_by_hand, make_problem

import sparing
from sparing.running import live

pytestmark = pytest.mark.skipif(webdriver.find_programs() is None, reason=webdriver.MISSING)

PHONE, DESK = (360, 740), (1200, 900)


@pytest.fixture(scope="module")
def window(tmp_path_factory):
    with webdriver.browser(tmp_path_factory.mktemp("profile")) as browser:
        yield browser


@pytest.fixture
def browser(window):
    window.open("about:blank")
    window.console()
    window.requested()  # whatever the browser itself loads when it starts
    return window


@pytest.fixture(scope="module")
def reports(tmp_path_factory):
    directory = tmp_path_factory.mktemp("reports")
    many = made_by_hand(12, n_evaluations=100)
    return {
        "hostile": failing().report(directory / "hostile.html"),
        "many": many.report(directory / "many.html"),
    }


@pytest.mark.parametrize("size", [PHONE, DESK])
@pytest.mark.parametrize("name", ["hostile", "many"])
def test_the_report_is_readable_and_silent(browser, reports, name, size):
    path = reports[name]
    assert path.stat().st_size < 6e6
    browser.resize(*size)
    browser.open(path.as_uri())
    assert browser.console() == []
    outside = [url for url in browser.requested() if not url.startswith("data:")]
    assert outside == [path.as_uri()]
    # Nothing but the wide pictures and tables, each in a box of its own, scrolls sideways.
    assert browser.run("return document.documentElement.scrollWidth") <= size[0]
    smallest = browser.run(
        "return Math.min(...[...document.querySelectorAll('h1,h2,h3,p,td,th,li,dd,dt,summary')]"
        ".map(element => parseFloat(getComputedStyle(element).fontSize)))"
    )
    assert smallest >= 12
    drawn = browser.run(
        "return [...document.querySelectorAll('figure svg')].map(svg => {"
        " const box = svg.getBoundingClientRect(); return Math.min(box.width, box.height) })"
    )
    assert len(drawn) == 4
    assert min(drawn) > 100
    if size == PHONE:
        scale = browser.run(
            "return Math.min(...[...document.querySelectorAll('figure svg')]"
            ".map(svg => svg.getBoundingClientRect().width / svg.viewBox.baseVal.width))"
        )
        assert scale > 0.6  # of the size its text was set for


def test_names_do_not_become_elements(browser, reports):
    browser.open(reports["hostile"].as_uri())
    assert browser.run("return document.querySelectorAll('b, solver, script').length") == 0
    assert "<b>share</b>" in browser.run("return document.body.innerText")


@contextmanager
def served(directory):
    server = live.make_server(directory)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05})
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}/"
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def wait_for(browser, text):
    """Wait until the page says so; a page that is being loaded again says nothing."""
    deadline = time.monotonic() + 30.0
    while time.monotonic() < deadline:
        if text in (browser.run("return document.body?.innerText") or ""):
            return
        time.sleep(0.1)
    raise AssertionError(browser.run("return document.body?.innerText"))


def test_the_live_page_follows_the_run(browser, tmp_path, monkeypatch):
    script = live._script()
    monkeypatch.setattr(live, "_script", lambda: script.replace("SECONDS = 5", "SECONDS = 0.2"))
    run = sparing.Inference(make_problem(), seed=1, max_evaluations=20, store=tmp_path)

    def evaluate(n):
        for _ in range(n):
            (proposal,) = run.ask(1)
            run.tell(proposal, log_joint(proposal.x))

    browser.resize(*PHONE)
    with run:
        evaluate(3)
        with served(tmp_path) as address:
            browser.open(address)
            wait_for(browser, "Running: 3 evaluations")
            wait_for(browser, "Nothing to show yet")
            evaluate(9)
            wait_for(browser, "everything here is provisional")
            wait_for(browser, "Running: 12 evaluations")
            assert browser.run("return document.querySelectorAll('figure svg').length") == 4
            assert browser.run("return document.documentElement.scrollWidth") <= PHONE[0]
            evaluate(8)
            run.close()
            wait_for(browser, "No process is running it: 20 evaluations")
            wait_for(browser, "20\n0 failed")
            requested = [url for url in browser.requested() if not url.startswith("data:")]
            assert set(requested) == {address, f"{address}status", f"{address}live.js"}
            assert browser.console() == []
        wait_for(browser, "The server has been stopped")
