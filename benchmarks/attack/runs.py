"""The run that is attacked, and what it gives when nobody attacks it."""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

import sparing
from benchmarks.attack.cases import Ending, refused, require
from sparing.strategies import SurrogatePosterior, ThoroughSample

BUDGET, BEGUN = 20, 14
# What a run does matters here, not how precise its answer is.
FEW: dict[str, Any] = {"n_first": 512, "n_draws": 1024, "n_components": 10}
SETTINGS = replace(
    sparing.Settings(), evidence=SurrogatePosterior(**FEW), final_fit=ThoroughSample(**FEW)
)


def log_density(x: np.ndarray) -> float:
    """A curved density in two dimensions."""
    return -0.5 * float((x[0] - x[1] ** 2) ** 2 / 0.3 + x[1] ** 2)


def make_problem(target: Callable[[Any], Any] = log_density) -> sparing.Problem:
    return sparing.Problem(target, [-2.0, -2.0], [2.0, 2.0], names=["a", "b"])


def infer(
    store: Path | None, target: Callable[[Any], Any] = log_density, **options: Any
) -> sparing.Result:
    """The run, or a part of it."""
    options = {"max_evaluations": BUDGET, "settings": SETTINGS, "progress": False, **options}
    return sparing.infer(make_problem(target), seed=1, store=store, **options)


def infer_several(store: Path | None) -> sparing.SeveralRuns:
    """Two runs and a pooled one."""
    options: dict[str, Any] = {"max_evaluations": 12, "settings": SETTINGS, "progress": False}
    return sparing.infer(make_problem(), seed=1, store=store, runs=2, **options)


def begun_inference(store: Path | None = None) -> sparing.Inference:
    """The run, driven from outside."""
    options: dict[str, Any] = {"max_evaluations": BUDGET, "settings": SETTINGS, "store": store}
    return sparing.Inference(make_problem(), seed=1, **options)


def bits(result: sparing.Result) -> list[float]:
    """Whatever must be the same to the last bit."""
    points = [value for entry in result.evaluations for value in (*entry.x, entry.value)]
    draws = result.posterior.sample(20, seed=1).ravel()
    return [result.log_evidence, result.log_evidence_sd, result.elbo, *points, *draws]


@functools.cache
def reference() -> list[float]:
    """The bits of the run that nobody attacked."""
    return bits(infer(None))


@functools.cache
def reference_of_several() -> list[list[float]]:
    """The same of several runs."""
    return several_bits(infer_several(None))


def several_bits(several: sparing.SeveralRuns) -> list[list[float]]:
    require(several.pooled, "no pooled run")
    return [bits(result) for result in (*several.results, several.result)]


def same_or_refused(store: Path) -> Ending:
    """The run in a store goes on to the end of the reference, or is refused."""
    found: list[sparing.Result] = []
    if refused(lambda: found.append(infer(store))):
        return Ending.REFUSED
    require(bits(found[0]) == reference(), "it ended with another result")
    return Ending.RIGHT
