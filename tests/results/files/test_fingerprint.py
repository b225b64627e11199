"""The fingerprint is equal for equal runs, in any process, and differs with all that matters."""

import dataclasses
import json
import os
import subprocess
import sys

import numpy as np
import pytest
from scipy import stats
from tests.results.files.support import assert_same

import sparing
from sparing.results.files.fingerprint import fingerprint
from sparing.strategies import LatinHypercube, Unwhitened

SCRIPT = """
import json, numpy as np, sparing
from scipy import stats
from sparing.results.files.fingerprint import fingerprint
from sparing.strategies import LatinHypercube, Unwhitened
problem = sparing.Problem(
    lambda x: 0.0, [0.1, 0.2], [1, 2], lower=[0, -np.inf], names=["a", "b"],
    prior=[stats.gamma(2.0), stats.norm(0.0, scale=1 / 3)],
)
print(json.dumps(fingerprint(problem, sparing.Settings.paper(), tag="data 7"), sort_keys=True))
"""


def build(settings=None, tag="tag", x0=None, **changes):
    arguments = {
        "plausible_lower": [0.1, 0.2],
        "plausible_upper": [1.0, 2.0],
        "lower": [0.0, -np.inf],
        "upper": [3.0, np.inf],
        "names": ["a", "b"],
        "prior": None,
        **changes,
    }
    problem = sparing.Problem(lambda x: 0.0, **arguments)
    points = problem.starting_points(x0)
    return fingerprint(problem, settings or sparing.Settings(), tag=tag, starting_points=points)


def changed(value):
    """Another value of the same type."""
    if isinstance(value, bool):
        return not value
    if isinstance(value, int | float):
        return value * 0.5 if np.isfinite(value) and value else 1.0
    members = list(type(value))
    return members[(members.index(value) + 1) % len(members)]


def single_changes(settings):
    """(path, settings) with one field changed, for every field at any depth."""
    for field in dataclasses.fields(settings):
        value = getattr(settings, field.name)
        if dataclasses.is_dataclass(value):
            for path, inner in single_changes(value):
                yield f"{field.name}.{path}", dataclasses.replace(settings, **{field.name: inner})
        elif isinstance(value, tuple):
            yield field.name, dataclasses.replace(settings, **{field.name: value[1:] or 2 * value})
            for path, inner in single_changes(value[0]):
                changed_rules = (inner, *value[1:])
                yield (
                    f"{field.name}.{path}",
                    dataclasses.replace(settings, **{field.name: changed_rules}),
                )
        elif value is not None:
            yield field.name, dataclasses.replace(settings, **{field.name: changed(value)})


def normal(scale):
    return [stats.norm(0.0, scale), stats.norm(0.0, 1.0)]


@pytest.mark.parametrize(
    "changes",
    [
        {"names": ["a", "c"]},
        {"names": ["b", "a"]},
        {"lower": [0.05, -np.inf]},
        {"lower": [-np.inf, -np.inf]},
        {"upper": [np.nextafter(3.0, 4.0), np.inf]},
        {"plausible_lower": [0.1, 0.25]},
        {"plausible_upper": [1.0 + 2**-52, 2.0]},
        {"prior": lambda x: 0.0},
        {"lower": None, "upper": None},
        {"tag": None},
        {"tag": "other"},
        {"x0": [0.5, 0.5]},
        {"settings": sparing.Settings.paper()},
        {"settings": sparing.Settings(coordinates=Unwhitened())},
    ],
)
def test_it_differs_with_the_problem(changes):
    assert build(**changes) != build()


def test_it_differs_with_the_prior():
    bounds = {"lower": None, "upper": None}
    one, other, same = (build(prior=normal(s), **bounds) for s in (1.0, 1.5, 1.0))
    assert one == same
    assert one != other


def test_it_differs_with_every_setting_but_the_default_budget():
    reference = build()
    paths = []
    for path, settings in single_changes(sparing.Settings()):
        paths.append(path)
        assert (build(settings) == reference) == (path == "evaluations_per_dimension"), path
    assert {"bounded_map", "surrogate.prior.hpd_fraction", "rules.n_references"} <= set(paths)


def test_it_is_equal_for_equal_runs_however_they_are_written():
    kind = LatinHypercube(n_points=np.int64(10))
    same = build(
        sparing.Settings(initial_design=kind),
        plausible_lower=np.array([0.1, 0.2]),
        plausible_upper=(1, 2),
        lower=[0, None],
        upper=[3, None],
    )
    assert same == build()
    stopping = dataclasses.replace(sparing.Settings().stopping, tolerance_sd=1)
    one = build(dataclasses.replace(sparing.Settings(), stopping=stopping))
    assert type(one["settings"]["stopping"]["tolerance_sd"]) is float


def test_it_survives_json_exactly():
    original = build(sparing.Settings.paper(), x0=[[0.1, 1 / 3], [0.2, 1.0]])
    again = json.loads(json.dumps(original, allow_nan=False))
    assert_same(original, again)
    assert original["parameters"]["b"]["lower"] == "-inf"


@pytest.mark.slow
def test_it_is_the_same_in_every_process():
    outputs = {
        subprocess.run(
            [sys.executable, "-c", SCRIPT],
            env=os.environ | {"PYTHONHASHSEED": seed},
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for seed in ("1", "2")
    }
    assert len(outputs) == 1
    assert "0.3333333333333333" in outputs.pop()
