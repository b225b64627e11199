import doctest

import numpy as np
import pytest
from tests.hand_made import make_result, unbounded_problem

import sparing
from sparing.errors import SettingsError
from sparing.running import simulation_based_calibration as calibration
from sparing.running.simulation_based_calibration import simulation_based_calibration

PRIOR_SD, NOISE = 1.0, 0.5
POSTERIOR_SD = (PRIOR_SD**-2 + NOISE**-2) ** -0.5


def simulate(generator):
    """A conjugate normal model: two parameters, one measurement of each."""
    x = generator.normal(0.0, PRIOR_SD, 2)
    return x, generator.normal(x, NOISE)


def exact_mean(data):
    return np.asarray(data) * POSTERIOR_SD**2 / NOISE**2


@pytest.fixture
def inferred(monkeypatch):
    """Sets what stands for the inference: normals about the exact mean, shifted and scaled."""

    def set_to(shift=0.0, scale=1.0):
        def fake_infer(problem, *, seed, progress, **options):
            assert progress is False
            mean = exact_mean(problem.log_density.data) + shift * POSTERIOR_SD
            return make_result(problem, mean=mean, sd=scale * POSTERIOR_SD, seed=seed)

        monkeypatch.setattr(calibration, "infer", fake_infer)

    return set_to


class Target:
    def __init__(self, data):
        self.data = data

    def __call__(self, x):
        raise AssertionError


def make_problem(data):
    return sparing.Problem(Target(data), [-2, -2], [2, 2], names=["a", "b"])


def test_exact_posteriors_are_calibrated(inferred):
    inferred()
    check = simulation_based_calibration(simulate, make_problem, 300, seed=1)
    assert check.calibrated
    assert check.ranks.shape == check.truths.shape == (300, 2)
    assert check.ranks.min() >= 0
    assert check.ranks.max() <= check.n_draws
    np.testing.assert_allclose(check.spread, 1.0, atol=0.12)
    np.testing.assert_allclose(check.fractions.mean(axis=0), 0.5, atol=0.06)
    assert "no sign of miscalibration in 300 simulations" in str(check)


@pytest.mark.parametrize("scale", [0.5, 2.0])
def test_a_wrong_width_is_noticed(inferred, scale):
    inferred(scale=scale)
    check = simulation_based_calibration(simulate, make_problem, 50, seed=1)
    assert not check.calibrated
    np.testing.assert_allclose(check.spread, 1.0 / scale, rtol=0.25)
    assert np.all(check.spread_p_values < 1e-3)
    assert "NOT calibrated" in str(check)


def test_a_shift_is_noticed(inferred):
    inferred(shift=0.7)
    check = simulation_based_calibration(simulate, make_problem, 50, seed=1)
    assert not check.calibrated
    assert np.all(check.uniformity_p_values < 0.01)


def test_p_values_are_uniform_when_calibrated():
    """The tests are what they claim: rejected at 10 % in one case out of ten."""
    generator = np.random.default_rng(3)
    checks = [
        calibration.CalibrationCheck(
            ("a",),
            generator.integers(0, 1000, (40, 1)),
            np.zeros((40, 1)),
            999,
            np.ones(40, dtype=bool),
        )
        for _ in range(400)
    ]
    for name in ("uniformity_p_values", "spread_p_values"):
        rejected = np.mean([getattr(check, name)[0] < 0.1 for check in checks])
        assert rejected == pytest.approx(0.1, abs=0.045)
    assert np.mean([not check.calibrated for check in checks]) < 0.03


def test_same_seed_same_ranks(inferred):
    inferred()
    one, two, other = (
        simulation_based_calibration(simulate, make_problem, 10, seed=seed) for seed in (1, 1, 2)
    )
    np.testing.assert_array_equal(one.ranks, two.ranks)
    assert not np.array_equal(one.ranks, other.ranks)


def test_options_reach_the_inference(monkeypatch):
    seen = []

    def fake_infer(problem, **options):
        seen.append(options)
        return make_result(problem, converged=len(seen) > 3)

    monkeypatch.setattr(calibration, "infer", fake_infer)
    check = simulation_based_calibration(
        simulate, make_problem, 10, max_evaluations=12, progress=True
    )
    assert all(options["max_evaluations"] == 12 and options["progress"] for options in seen)
    assert len({options["seed"] for options in seen}) == 10
    assert check.converged.sum() == 7
    assert "7 of 10 runs converged" in str(check)


class TestFaults:
    def check(self, message, simulate=simulate, make_problem=make_problem, n=10, **options):
        with pytest.raises(SettingsError, match=message):
            simulation_based_calibration(simulate, make_problem, n, **options)

    def test_arguments(self):
        self.check("n must be at least 10", n=3)
        self.check("n_draws must be at least 1", n_draws=0)
        self.check("store cannot be given", store="runs")

    def test_what_the_functions_return(self):
        self.check(
            "simulation 1: make_problem must return a sparing.Problem",
            make_problem=lambda data: None,
        )
        self.check(
            r"simulation 1: simulate must return one number for each of the 1 parameters",
            make_problem=lambda data: unbounded_problem(1),
        )
        bounded = sparing.Problem(Target(0), [0.1, 0.1], [1, 1], lower=[0, 0])
        self.check(
            "outside the problem's bounds",
            simulate=lambda generator: (np.array([-1.0, 1.0]), None),
            make_problem=lambda data: bounded,
        )

    def test_parameters_that_change(self, inferred):
        inferred()
        names = iter([["a", "b"], ["a", "c"]])
        self.check(
            r"simulation 2: .* the same parameters each time \(a, b\)",
            make_problem=lambda data: sparing.Problem(
                Target(data), [-2, -2], [2, 2], names=next(names)
            ),
        )


@pytest.mark.slow
def test_examples():
    """A real inference of a conjugate normal model, ten times."""
    assert doctest.testmod(calibration).failed == 0
