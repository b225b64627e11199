"""A log density that rounds is told from all others by its evaluations."""

import math
from types import SimpleNamespace

import numpy as np
import pytest
from scipy import stats

import sparing
from sparing.problem.evaluations import Evaluation, Outcome, Status
from sparing.problem.parameter_transform import ParameterTransform
from sparing.summary import Light, Topic, check_run
from sparing.summary.whole_numbers import rounded_parameters

BOX = {"plausible_lower": [0, -1], "plausible_upper": [10, 3], "names": ["number", "level"]}


def record(log_density, n=60, spread=(2.5, 0.6), seed=1, **more):
    """What the check reads of a run; the log density may return (value, log prior in it)."""
    problem = sparing.Problem(lambda x: 0.0, **BOX | more)
    generator = np.random.default_rng(seed)
    points = np.array([5.0, 1.0]) + np.array(spread) * generator.standard_normal((n, 2))
    points = np.clip(points, problem.lower + 1e-3, problem.upper - 1e-3)
    evaluations = []
    for i, x in enumerate(points):
        returned = log_density(x)
        value, log_prior = returned if isinstance(returned, tuple) else (returned, math.nan)
        outcome = Outcome(float(value), Status.OK, 0.0, log_prior=float(log_prior))
        evaluations.append(Evaluation(i, i, x, outcome))
    transform = ParameterTransform.from_problem(problem, sparing.BoundedMap.PROBIT)
    return SimpleNamespace(
        evaluations=evaluations, problem=problem, posterior=SimpleNamespace(transform=transform)
    )


def hill(a, b):
    return -0.5 * ((a - 5.0) / 2.0) ** 2 - 0.5 * ((b - 0.2 * a) / 0.5) ** 2


def counts(size, mean):
    data = [3, 0, 1, 4, 2, 0, 5]
    return stats.nbinom.logpmf(data, size, size / (size + mean)).sum()


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize(
    ("log_density", "more"),
    [
        (lambda x: hill(round(x[0]), x[1]), {}),
        (lambda x: hill(int(x[0]), x[1]), {"lower": [0, None]}),
        (lambda x: counts(max(1, round(x[0])), math.exp(x[1])), {"lower": [0, None]}),
        # The prior, of which the check knows, does not round.
        (lambda x: (hill(round(x[0]), x[1]) - x[0] ** 2, -(x[0] ** 2)), {}),
    ],
)
def test_one_that_rounds_is_noticed(log_density, more, seed):
    assert rounded_parameters(record(log_density, seed=seed, **more)) == ("number",)


def test_all_that_are_rounded_are_named():
    steps = record(lambda x: hill(round(x[0]), 0.3 * round(x[1])), spread=(2.5, 2.5))
    assert rounded_parameters(steps) == ("number", "level")


NOISE = np.random.default_rng(3)
OTHERS = {
    "smooth": lambda x: hill(*x),
    "noisy": lambda x: hill(*x) + 0.5 * NOISE.standard_normal(),
    "a plateau": lambda x: -2.0 * max(0.0, abs(x[0] - 5.0) - 2.0) ** 2,
    "flat but for one step": lambda x: -5.0 * (x[0] > 7.0) - 0.5 * x[1] ** 2,
    "constant": lambda x: -1.0,
    "does not know the number": lambda x: -0.5 * (x[1] / 0.5) ** 2,
    "a kink": lambda x: -abs(x[0] - 4.0) - 0.5 * x[1] ** 2,
    "waves": lambda x: 2.0 * math.sin(2.0 * math.pi * x[0]) + hill(*x),
    "steps of a half": lambda x: hill(round(2.0 * x[0]) / 2.0, x[1]),
    "steps of a sum": lambda x: hill(5.0, round(x[0] + 3.0 * x[1])),
    "heavy tails": lambda x: float(stats.t(3).logpdf([x[0] - 5.0, x[1]]).sum()),
}


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("name", OTHERS)
def test_others_are_not(name, seed):
    assert rounded_parameters(record(OTHERS[name], seed=seed)) == ()


def test_a_narrow_posterior_cannot_tell():
    assert rounded_parameters(record(lambda x: hill(round(x[0]), x[1]), spread=(0.3, 0.6))) == ()


def test_few_evaluations_cannot_tell():
    assert rounded_parameters(record(lambda x: hill(round(x[0]), x[1]), n=15)) == ()


@pytest.mark.slow
def test_a_run_says_so_and_what_to_do():
    problem = sparing.Problem(lambda x: hill(round(x[0]), x[1]), **BOX)
    result = sparing.infer(problem, seed=1, max_evaluations=50, progress=False)
    (check,) = [c for c in check_run(result) if c.topic is Topic.WHOLE_NUMBERS]
    assert check.light is Light.AMBER
    assert "seems to, number:" in check.finding
    assert "problem.fix({'number': 3})" in check.advice[0]
    assert "Does the log density round a parameter? It seems to" in " ".join(str(result).split())

    smooth = sparing.Problem(lambda x: hill(*x), **BOX)
    result = sparing.infer(smooth, seed=1, max_evaluations=40, progress=False)
    assert Topic.WHOLE_NUMBERS not in {c.topic for c in check_run(result)}


@pytest.mark.slow
def test_nothing_is_left_to_infer_where_all_are_whole_numbers():
    problem = sparing.Problem(lambda x: -0.5 * ((round(x[0]) - 4) / 1.2) ** 2, 0, 10)
    result = sparing.infer(problem, seed=1, max_evaluations=40, progress=False)
    (check,) = [c for c in check_run(result) if c.topic is Topic.WHOLE_NUMBERS]
    assert check.advice == ("evaluate the log density at the whole numbers themselves",)
