"""Parameters that wrap at their bounds: nothing depends on where the seam is."""

from functools import cache

import numpy as np
import pytest
from scipy import stats
from scipy.integrate import trapezoid
from scipy.special import gammaln, ive, logsumexp
from tests.light import LIGHT
from tests.running.test_durable_runs import KilledError, assert_identical

import sparing
from sparing.plots import plot_posterior
from sparing.results.agreement import pair_agreement
from sparing.summary.checks import Topic, check_run

PI = np.pi
DIRECTIONS = np.linspace(-PI, PI, 24, endpoint=False)
COUNTS = np.random.default_rng(3).poisson(np.exp(2.0 + 2.0 * (np.cos(DIRECTIONS) - 1.0)) + 1.0)


class Neuron:
    """A tuning curve: a preferred direction, and a gain; all directions turned by an angle."""

    def __init__(self, turned_by):
        self.turned_by = turned_by

    def __call__(self, x):
        difference = DIRECTIONS + self.turned_by - x[0]
        rate = np.exp(x[1] + 2.0 * (np.cos(difference) - 1.0)) + 1.0
        log_likelihood = np.sum(COUNTS * np.log(rate) - rate - gammaln(COUNTS + 1))
        log_prior = -np.log(2.0 * PI) - 0.5 * (x[1] - 1.0) ** 2 - 0.5 * np.log(2.0 * PI)
        return float(log_likelihood + log_prior)


def neuron(turned_by, periodic=("direction",)):
    return sparing.Problem(
        Neuron(turned_by),
        [-PI, -1.0],
        [PI, 3.0],
        lower=[-PI, None],
        upper=[PI, None],
        names=["direction", "gain"],
        periodic=periodic,
    )


@cache
def found(turned_by, seed=1):
    return sparing.infer(neuron(turned_by), seed=seed, progress=False)


@pytest.fixture(scope="module")
def exact():
    """Log evidence, circular mean, and sd about it, on a grid; directions turned by none."""
    angles, gains = np.linspace(-PI, PI, 200, endpoint=False), np.linspace(-3.0, 5.0, 200)
    target = Neuron(0.0)
    log_joint = np.array([[target((a, g)) for g in gains] for a in angles])
    cell = (angles[1] - angles[0]) * (gains[1] - gains[0])
    weights = np.exp(log_joint - log_joint.max()).sum(axis=1)
    mean = np.angle(weights @ np.exp(1j * angles))
    variance = np.average((angles - mean) ** 2, weights=weights)
    return logsumexp(log_joint) + np.log(cell), mean, np.sqrt(variance)


def on_the_circle(angle):
    return (angle + PI) % (2.0 * PI) - PI


@pytest.mark.parametrize("turned_by", [0.0, 2.9, PI])
def test_the_answer_does_not_depend_on_where_the_bounds_are(turned_by, exact):
    log_evidence, mean, sd = exact
    result = found(turned_by)
    assert result.converged
    assert result.n_evaluations < 80  # cut through its middle it takes more
    assert abs(result.log_evidence - log_evidence) < 2.0 * result.log_evidence_sd + 0.001
    assert result.log_evidence_sd < 0.02
    posterior = result.posterior
    assert on_the_circle(posterior.mean[0] - mean - turned_by) == pytest.approx(0.0, abs=0.05 * sd)
    assert posterior.sd[0] == pytest.approx(sd, rel=0.05)
    draws = posterior.sample(4000, seed=2)
    assert np.all(np.abs(draws[:, 0]) <= PI)
    assert on_the_circle(draws[:, 0] - mean - turned_by).std() == pytest.approx(sd, rel=0.05)


def test_an_interval_is_one_piece_and_a_density_has_no_end():
    posterior = found(PI).posterior
    low, high = posterior.quantile([0.025, 0.975])[:, 0]
    assert 0.3 < high - low < 0.7
    x = posterior.mean[0] + np.linspace(-PI, PI, 801)[:-1]
    assert posterior.marginal_density("direction", x).sum() * (x[1] - x[0]) == pytest.approx(1.0)
    point = np.array([3.5, 2.0])
    same = point - [2.0 * PI, 0.0]
    assert posterior.log_density(point) == pytest.approx(posterior.log_density(same), abs=1e-9)


def test_mass_all_the_way_round(exact):
    def log_density(x):
        return float(0.5 * np.cos(x[0] - 3.0) - np.log(2.0 * PI * ive(0, 0.5)) - 0.5)

    problem = sparing.Problem(log_density, -PI, PI, -PI, PI, periodic="x1")
    result = sparing.infer(problem, seed=1, progress=False)
    assert result.log_evidence == pytest.approx(0.0, abs=0.01)
    draws = result.posterior.sample(20_000, seed=3)[:, 0]
    assert np.exp(1j * (draws - 3.0)).mean() == pytest.approx(ive(1, 0.5) / ive(0, 0.5), abs=0.02)


def test_killed_and_resumed_where_seams_have_moved(tmp_path):
    options = {"seed": 1, "progress": False, "settings": LIGHT, "max_evaluations": 30}
    undisturbed = sparing.infer(neuron(PI), **options)
    assert undisturbed.posterior.transform.turning < 0
    calls = []

    def killing(x):
        calls.append(x)
        if len(calls) > 22:
            raise KilledError
        return Neuron(PI)(x)

    problem = neuron(PI)
    object.__setattr__(problem, "log_density", killing)
    with pytest.raises(KilledError):
        sparing.infer(problem, store=tmp_path / "run", **options)
    resumed = sparing.infer(neuron(PI), store=tmp_path / "run", **options)
    assert_identical(resumed, undisturbed)
    assert sparing.load_run(tmp_path / "run").problem.periodic == ("direction",)


def test_without_periodic_another_run_is_meant(tmp_path):
    options = {"seed": 1, "progress": False, "settings": LIGHT, "max_evaluations": 15}
    sparing.infer(neuron(PI), store=tmp_path / "run", **options)
    with pytest.raises(sparing.SparingError, match="direction"):
        sparing.infer(neuron(PI, periodic=None), store=tmp_path / "run", **options)


def test_in_a_file(tmp_path):
    result = found(PI)
    result.save(tmp_path / "result.npz")
    loaded = sparing.load(tmp_path / "result.npz")
    assert loaded.problem.periodic == ("direction",)
    np.testing.assert_array_equal(loaded.posterior.mean, result.posterior.mean)
    for before, after in zip(result.history, loaded.history, strict=True):
        assert before.posterior.transform.number == after.posterior.transform.number
        np.testing.assert_array_equal(
            before.posterior.sample(5, seed=1), after.posterior.sample(5, seed=1)
        )


def test_in_words_and_pictures():
    result = found(PI)
    assert "direction (wraps)" in str(result)
    assert "where it wraps" in repr(result.problem)
    ax = plot_posterior(result).axes[0]
    low, high = ax.get_xlim()
    assert low < PI < high or low < -PI < high
    x, density = ax.lines[0].get_data()
    assert density.sum() * (x[1] - x[0]) == pytest.approx(1.0, abs=0.01)


def test_runs_whose_means_are_on_either_side_of_the_bounds_agree():
    pair = pair_agreement(0, 1, [found(PI - 0.002), found(PI + 0.01)])
    assert pair.divergence < 0.05
    assert max(pair.total_variation) < 0.1


def test_a_bound_is_asked_whether_it_is_one():
    """Only where the parameter is not named as periodic."""

    def about_bounds(result):
        (check,) = [check for check in check_run(result) if check.topic is Topic.BOUNDS]
        return check

    assert "no:" in about_bounds(found(PI)).finding
    options = {"seed": 1, "progress": False, "max_evaluations": 60}
    check = about_bounds(sparing.infer(neuron(PI, periodic=None), **options))
    assert "Is direction an angle?" in check.advice[0]


def test_a_fixed_angle_wraps_no_more_and_a_freed_one_again():
    problem = neuron(PI)
    assert problem.fix(gain=2.0).periodic == ("direction",)
    held = problem.fix(direction=1.0)
    assert held.periodic == ()
    assert held.free().periodic == ("direction",)
    with pytest.raises(sparing.ProblemError, match="direction: give lower and upper"):
        sparing.Problem(Neuron(PI), [-PI, -1], [PI, 3], names=["direction", "gain"],
                        periodic="direction")  # fmt: skip


def test_bounds_of_a_circle_may_come_from_the_prior():
    problem = sparing.Problem(
        lambda x: float(4.0 * np.cos(x[0] - PI)), prior=stats.uniform(-PI, 2.0 * PI), periodic="x1"
    )
    assert (problem.lower[0], problem.upper[0]) == pytest.approx((-PI, PI))
    result = sparing.infer(problem, seed=1, progress=False)
    exact = np.log(ive(0, 4.0)) + 4.0
    assert result.log_evidence == pytest.approx(exact, abs=0.01)
    assert abs(result.posterior.mean[0]) > 3.0


def test_a_support_on_a_circle_whose_seam_has_moved():
    """Only one half of the circle, across the bounds, and the mass at its end."""

    def log_density(x):
        return float(2.0 * np.cos(x[0] - 2.0) - 0.5 * x[1] ** 2)

    problem = sparing.Problem(
        log_density,
        [-PI, -1.0],
        [PI, 1.0],
        [-PI, None],
        [PI, None],
        periodic=["x1"],
        support=lambda x: np.cos(x[..., 0]) < 0.0,
    )
    result = sparing.infer(problem, seed=1, progress=False)
    angles = np.linspace(PI / 2, 3 * PI / 2, 20_001)
    exact = np.log(trapezoid(np.exp(2.0 * np.cos(angles - 2.0)), angles) * np.sqrt(2.0 * PI))
    assert abs(result.log_evidence - exact) < 2.0 * result.log_evidence_sd + 0.005
    draws = result.posterior.sample(20_000, seed=1)
    assert np.all(np.cos(draws[:, 0]) < 0.0)
