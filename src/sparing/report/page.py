"""The page: collects what it says, hands it to the templates, writes it to a file."""

from __future__ import annotations

import time
from collections import Counter
from dataclasses import dataclass
from importlib.metadata import version
from importlib.resources import files
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike

from sparing.errors import MissingExtraError
from sparing.numerics.arrays import Array
from sparing.problem.warning_text import topic_of
from sparing.readable_text import moment_text, readable
from sparing.report.meanings import MEANINGS, WARNING_MEANINGS
from sparing.report.pictures import draw_pictures, draw_posterior
from sparing.report.questions import density_name, joint_prior, questions
from sparing.report.reproduction import reproduction
from sparing.store.files import write_durably
from sparing.summary.numbers import counted, derived_rows, duration, estimate, parameter_rows
from sparing.summary.story import sentence, tell_story
from sparing.vbmc.run_record import RunRecord

if TYPE_CHECKING:
    from jinja2 import Template

# What a page may load. The report: nothing. The live page: its own server's status.
OFFLINE = "default-src 'none'; style-src 'unsafe-inline'; img-src data:"
LIVE = f"{OFFLINE}; script-src 'self'; connect-src 'self'"
LIVE_SCRIPT = "live.js"
MOST_FAILURES = 10  # kinds of failure listed


@dataclass(frozen=True)
class LiveStatus:
    """What the live page says above the report; ``version`` changes when the report does.

    >>> from sparing.report import LiveStatus
    >>> status = LiveStatus(version="running 35", text="Running: 35 evaluations.")
    """

    version: str
    text: str


def write_report(
    record: RunRecord,
    path: str | PathLike[str],
    *,
    title: str,
    reference: ArrayLike | None = None,
    data: tuple[Array, Array] | None = None,
) -> Path:
    """Write the page to a file, complete or not at all, and return where it is.

    ``data`` are those simulated at draws from the posterior, (n, ...), and those observed.

    >>> from sparing.report import write_report
    >>> path = write_report(result, "run.html", title="Slope and offset")
    >>> path.exists()
    True
    """
    destination = Path(path)
    page = report_page(record, title=title, reference=reference, data=data)
    write_durably(destination, page.encode("utf-8"))
    return destination


def report_page(
    record: RunRecord,
    *,
    title: str,
    reference: ArrayLike | None = None,
    data: tuple[Array, Array] | None = None,
    live: LiveStatus | None = None,
) -> str:
    """The whole page as text.

    >>> from sparing.report import report_page
    >>> page = report_page(result, title="Slope and offset")
    >>> "<title>Slope and offset</title>" in page
    True
    """
    seconds = Counter[str]()
    for info in record.history:
        seconds.update(info.timings)
    page = _template("report.html").render(
        _frame(title, live),
        record=record,
        story=tell_story(record),
        meanings=MEANINGS,
        questions=questions(record.problem),
        joint_prior=joint_prior(record.problem),
        log_density=density_name(record.problem),
        rows=[*parameter_rows(record), *derived_rows(record)[0]],
        correlations=_correlations(record),
        derived_failure=derived_rows(record)[1],
        estimate=estimate,
        duration=duration,
        counted=counted,
        sentence=sentence,
        warnings=[(text, WARNING_MEANINGS[topic_of(text)]) for text in record.warnings],
        failures=Counter(entry.message for entry in record.failed).most_common(MOST_FAILURES),
        phases=seconds.most_common(),
        period=_period(record),
        wall_seconds=_wall_seconds(record),
        portrait=draw_posterior(record, reference),
        pictures=draw_pictures(record, data),
        reproduction=reproduction(record),
    )
    return readable(page)


def waiting_page(text: str, *, title: str, live: LiveStatus) -> str:
    """What the live page shows while there is nothing to report.

    >>> from sparing.report import LiveStatus, waiting_page
    >>> status = LiveStatus(version="running 0", text="Running: 3 evaluations.")
    >>> page = waiting_page("Nothing to show yet.", title="A run", live=status)
    >>> "Nothing to show yet." in page
    True
    """
    return readable(_template("waiting.html").render(_frame(title, live), text=text))


def _frame(title: str, live: LiveStatus | None) -> dict[str, object]:
    """What every page has."""
    return {
        "title": title,
        "live": live,
        "live_script": LIVE_SCRIPT,
        "content_policy": OFFLINE if live is None else LIVE,
        "style": files("sparing.report").joinpath("templates/style.css").read_text("utf-8"),
        "written": _minute(),
        "version": version("sparing"),
    }


def _template(name: str) -> Template:
    try:
        from jinja2 import Environment, PackageLoader, StrictUndefined
    except ImportError as problem:
        raise MissingExtraError("jinja2", "report") from problem
    environment = Environment(
        loader=PackageLoader("sparing.report"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    return environment.get_template(name)


def _period(record: RunRecord) -> tuple[str, str] | None:
    """When the first evaluation began and the last ended, in local time, if they were timed."""
    moments = _moments(record)
    return (_minute(min(moments)), _minute(max(moments))) if moments else None


def _wall_seconds(record: RunRecord) -> float | None:
    """From the first evaluation to the end of what followed the last, if they were timed."""
    moments = _moments(record)
    return max(moments) - min(moments) + record.history[-1].seconds if moments else None


def _moments(record: RunRecord) -> list[float]:
    moments = (m for entry in record.evaluations for m in (entry.started, entry.ended))
    return [moment for moment in moments if np.isfinite(moment)]


def _correlations(record: RunRecord) -> list[tuple[str, list[str]]]:
    """Each parameter but the first with its correlations to those before it."""
    posterior = record.posterior
    with np.errstate(all="ignore"):  # moments beyond what a float can hold
        correlations = posterior.covariance / np.outer(posterior.sd, posterior.sd)
    rows = zip(posterior.names[1:], correlations[1:], strict=True)
    return [(name, [f"{r:z.2f}" for r in row[: i + 1]]) for i, (name, row) in enumerate(rows)]


def _minute(moment: float | None = None) -> str:
    return moment_text(time.time() if moment is None else moment, to_the_minute=True)
