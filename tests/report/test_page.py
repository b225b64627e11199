"""The page itself: what it says, that it needs nothing else, that nothing in it is live."""

import re
import sys
from dataclasses import replace
from html.parser import HTMLParser
from xml.etree import ElementTree

import numpy as np
import pytest
from tests.hand_made import with_outcome
from tests.report.records import (
    converged,
    failing,
    good,
    log_joint,
    make_problem,
    one_dimensional,
    too_short,
    with_evidence,
)

import sparing
from sparing.errors import MissingExtraError, StoreError
from sparing.report import LiveStatus, report_page, waiting_page
from sparing.report.meanings import MEANINGS
from sparing.report.pictures import inline_svg
from sparing.report.reproduction import reproduction
from sparing.strategies import LastFit
from sparing.summary import Topic

VOID = {"meta", "link", "br", "img"}


class Page(HTMLParser):
    """Tags with their attributes, and the visible text; nesting is checked on the way."""

    def __init__(self, html):
        super().__init__()
        self.tags, self.words, self._open = [], [], []
        self.feed(html)
        self.close()
        assert self._open == []

    def handle_starttag(self, tag, attrs):
        self.tags.append((tag, dict(attrs)))
        if tag not in VOID:
            self._open.append(tag)

    def handle_startendtag(self, tag, attrs):
        self.tags.append((tag, dict(attrs)))

    def handle_endtag(self, tag):
        assert self._open.pop() == tag

    def handle_data(self, data):
        if "style" not in self._open:
            self.words.append(data)

    @property
    def text(self):
        return " ".join(" ".join(self.words).split())


@pytest.fixture(scope="module")
def failing_html():
    result = with_evidence(failing(), sd=2.0)  # a red light, whatever else there is
    return report_page(result, title="A <hostile> & long title")


def test_a_page_can_be_written_whatever_the_target_said_and_its_clock_showed(tmp_path):
    entry = failing().failed[0]
    worst = with_outcome(entry, message="\x1b[2J\ud800", started=-1e12, ended=-1e12)
    evaluations = (*failing().evaluations, replace(worst, index=failing().n_evaluations))
    page = replace(failing(), evaluations=evaluations).report(tmp_path / "run.html")
    text = page.read_text("utf-8")
    assert r"\x1b[2J\ud800" in text
    assert "\x1b" not in text
    assert "-1e+12 s" in text


def test_report_writes_one_file_and_returns_its_path(tmp_path):
    path = good().report(tmp_path / "run.html", title="Two lines")
    assert path == tmp_path / "run.html"
    assert list(tmp_path.iterdir()) == [path]
    page = Page(path.read_text(encoding="utf-8"))
    assert "Two lines" in page.text
    assert "No check found a fault." in page.text


def test_a_directory_that_does_not_exist_is_named(tmp_path):
    with pytest.raises(StoreError, match="nowhere"):
        converged().report(tmp_path / "nowhere" / "run.html")


def test_it_says_what_was_asked_and_what_came_out(failing_html):
    result, page = failing(), Page(failing_html)
    for name in result.problem.names:
        assert name in page.text
    for text in ("gamma(2.0, scale=0.5)", "[0, 1]", "[0, inf)", "none", "log_likelihood"):
        assert text in page.text
    for text in ("95 % interval", "What to do next", "Can it be trusted?", "not converged"):
        assert text in page.text
    assert f"RuntimeError: {'the <solver> diverged'}" in page.text


def test_each_check_has_a_light_and_a_meaning(failing_html):
    assert set(MEANINGS) == set(Topic)
    page = Page(failing_html)
    lights = [attrs["class"] for tag, attrs in page.tags if "light " in (attrs.get("class") or "")]
    assert len(lights) >= 6
    assert {"light RED", "light GREEN"} <= set(lights)
    assert "gave no value" in page.text


def test_each_warning_has_a_meaning(failing_html):
    page = Page(failing_html)
    for warning in failing().warnings:
        assert warning[1:] in page.text
    assert "The answer is the best so far, not the final one." in page.text
    unknown = replace(one_dimensional(), warnings=("something <new>",))
    text = Page(report_page(unknown, title="t")).text
    assert "Something <new>. This warning has no further explanation." in text


def test_nothing_is_loaded_and_nothing_runs(failing_html):
    page = Page(failing_html)
    tags = {tag for tag, _ in page.tags}
    assert not tags & {"script", "iframe", "img", "object", "embed", "b", "solver", "hostile"}
    for _, attrs in page.tags:
        assert not any(name.startswith("on") for name in attrs)
        for name in ("src", "href", "xlink:href", "action"):
            assert (attrs.get(name) or "#").startswith(("#", "data:"))
    assert not re.search(r"url\((?!#)|@import", failing_html)
    (policy,) = [a["content"] for tag, a in page.tags if a.get("http-equiv")]
    assert policy.startswith("default-src 'none'")
    assert "script" not in policy


def test_pictures_are_well_formed_and_do_not_share_identifiers(failing_html):
    pictures = re.findall(r"<svg.*?</svg>", failing_html, re.DOTALL)
    assert len(pictures) == 4
    for picture in pictures:
        root = ElementTree.fromstring(picture)
        identifiers = {element.get("id") for element in root.iter() if element.get("id")}
        link = "{http://www.w3.org/1999/xlink}href"
        used = {element.get(link)[1:] for element in root.iter() if element.get(link)}
        used |= set(re.findall(r"url\(#([^)]+)\)", picture))
        assert used
        assert used <= identifiers
    every = re.findall(r'\sid="([^"]*)"', failing_html)
    assert len(every) == len(set(every))


def test_equal_figures_give_equal_svg_with_text_in_it():
    from sparing.plots import plot_posterior

    first, again = (inline_svg(plot_posterior(converged()), "p") for _ in range(2))
    assert first == again
    assert ">slope</text>" in first
    assert inline_svg(plot_posterior(converged()), "q") == first.replace('"p-', '"q-').replace(
        "#p-", "#q-"
    )


def test_reference_samples_are_shown():
    reference = converged().posterior.sample(2000, seed=1)
    page = Page(report_page(converged(), title="t", reference=reference))
    assert "Black lines are the reference samples." in page.text
    assert "reference samples" in page.text


def test_the_call_makes_the_same_run_again():
    result = too_short()
    call = reproduction(result).call
    names = {"sparing": sparing, "problem": make_problem()}
    exec(call.replace("    problem,", "    problem, progress=False,"), names)
    again = names["result"]
    assert again.log_evidence == result.log_evidence
    assert again.n_evaluations == result.n_evaluations


def test_settings_are_told_by_how_they_differ():
    result = converged()
    assert reproduction(result).changed == ()
    assert "settings" not in reproduction(result).call
    paper = replace(result, settings=sparing.Settings.paper())
    assert reproduction(paper).preset == "Settings.paper()"
    assert "settings=sparing.Settings.paper()" in reproduction(paper).call
    changed = replace(sparing.Settings(), final_fit=LastFit(), bounded_map=sparing.BoundedMap.LOGIT)
    told = reproduction(replace(result, settings=changed))
    usual_fit = vars(sparing.Settings().final_fit)
    assert {name: (here, there) for name, here, there in told.changed} == {
        "bounded_map": ("LOGIT", "PROBIT"),
        **{f"final_fit.{name}": ("None", str(value)) for name, value in usual_fit.items()},
    }
    assert "with the changes below" in told.call
    # A file may hold 5.0 where the code has 5.
    usual = sparing.Settings().stopping
    same = replace(changed, stopping=replace(usual, n_stable=float(usual.n_stable)))
    assert reproduction(replace(result, settings=same)).changed == told.changed


def test_a_loaded_result_reports_the_name_of_its_density(tmp_path):
    converged().save(tmp_path / "run.sparing")
    loaded = sparing.load(tmp_path / "run.sparing")
    text = Page(report_page(loaded, title="t")).text
    assert f"{log_joint.__module__}.log_joint" in text
    assert "StoredLogDensity" not in text


def test_live_pages_run_their_own_script_only():
    live = LiveStatus("7", "Running: <3 evaluations")
    page = Page(waiting_page("Nothing yet.", title="t", live=live))
    assert "Nothing yet." in page.text
    assert "Running: <3 evaluations" in page.text
    assert [a for tag, a in page.tags if tag == "script"] == [{"src": "live.js", "defer": None}]
    (policy,) = [a["content"] for tag, a in page.tags if a.get("http-equiv")]
    assert "script-src 'self'; connect-src 'self'" in policy
    assert "unsafe-eval" not in policy


@pytest.mark.parametrize(
    ("module", "extra"), [("jinja2", "report"), ("matplotlib.figure", "plots")]
)
def test_without_the_packages_the_error_names_the_extra(module, extra, monkeypatch, tmp_path):
    monkeypatch.setitem(sys.modules, module, None)
    with pytest.raises(MissingExtraError, match=rf"sparing\[{extra}\]"):
        converged().report(tmp_path / "run.html")
    assert not list(tmp_path.iterdir())


def test_the_posterior_comes_first_with_its_correlations():
    html = report_page(good(), title="A run")
    parts = ['id="result"', 'id="title-posterior"', "Correlations", 'id="checks"', 'id="question"']
    places = [html.index(part) for part in parts]
    assert places == sorted(places)
    posterior = good().posterior
    r = posterior.covariance[0, 1] / np.prod(posterior.sd)
    assert f'<td class="number">{r:z.2f}</td>' in html
    assert 'id="warnings"' not in html  # there are none
    assert "Correlations" not in report_page(one_dimensional(), title="A run")


def test_time_is_that_on_the_wall():
    """Two evaluations side by side, of a minute each, took a minute, and what followed three s."""
    result = good()
    last = replace(result.history[-1], timings={"final fit": 3.0})
    result = replace(result, history=(*result.history[:-1], last))
    outcome = replace(result.evaluations[0].outcome, duration=60.0, started=1e9, ended=1e9 + 60.0)
    evaluations = tuple(replace(entry, outcome=outcome) for entry in result.evaluations[:2])
    page = Page(report_page(replace(result, evaluations=evaluations), title="A run"))
    assert "time 63.0 s the function took 2.0 min in all" in page.text


def test_observed_data_among_simulated_ones(tmp_path):
    def simulate(x, generator):
        return generator.normal(x[0], 1.0, 4)

    path = good().report(tmp_path / "run.html", simulate=simulate, observed=[1.0, 0.5, 2.0, 1.5])
    assert "The data under the model" in path.read_text(encoding="utf-8")
    with pytest.raises(sparing.SparingError, match="both simulate and observed"):
        good().report(tmp_path / "run.html", simulate=simulate)
    with pytest.raises(ValueError, match=r"observed has shape \(3,\).*\(4,\)"):
        good().report(tmp_path / "run.html", simulate=simulate, observed=[1.0, 0.5, 2.0])
