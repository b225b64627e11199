"""The iterations of a run as a notebook shows them."""

from __future__ import annotations

from html import escape

from sparing.summary.numbers import estimate
from sparing.summary.render import html_table
from sparing.vbmc.state import IterationInfo

HEADER = (
    "iteration",
    "evaluations",
    "log evidence",
    "lower bound",
    "components",
    "reliability",
    "",
)


class History(tuple[IterationInfo, ...]):
    """One row per iteration, oldest first: a tuple that notebooks show as a table."""

    __slots__ = ()

    def _repr_html_(self) -> str:
        rows = [
            (
                str(info.iteration),
                str(info.n_evaluations),
                estimate(info.log_evidence, info.log_evidence_sd),
                estimate(info.elbo, info.elbo_sd),
                str(info.n_components),
                f"{info.reliability:.2g}",
                escape(standing(info)),
            )
            for info in self
        ]
        return html_table(rows, HEADER, numbers=True)


def standing(info: IterationInfo) -> str:
    """Where the run is, in one word or two."""
    if info.warm_up:
        return "warm-up"
    return "stable" if info.stable else "not yet stable"
