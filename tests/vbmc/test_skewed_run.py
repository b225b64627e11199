"""A run on positive parameters that may be zero, from its start to its end: it is stretched."""

import numpy as np
import pytest
from tests.results.files.support import assert_same

import sparing
from sparing.problem.bending import Stretch
from sparing.vbmc.belief import belief_in
from sparing.vbmc.surrogate_posterior import believed

D = 5
SCALES = np.array([1.0, 0.3, 5.0, 2.0, 0.1])


def log_density(x):
    """Exponential distributions: mean and sd are the scales, the evidence is one."""
    return -float(np.sum(x / SCALES) + np.sum(np.log(SCALES)))


@pytest.fixture(scope="module")
def result():
    problem = sparing.Problem(log_density, 0.1 * SCALES, 2.0 * SCALES, lower=np.zeros(D))
    return sparing.infer(problem, seed=1, max_evaluations=75, progress=False)


def test_the_answer_has_coordinates_of_its_own(result):
    """How much better they are is tested with exact draws, in test_answer.py."""
    posterior = result.posterior
    assert isinstance(posterior.transform.bends[-1], Stretch)
    numbers = [info.posterior.transform.number for info in result.history]
    assert posterior.transform.number not in numbers
    # Weighted by the surrogate its draws count nearly alike.
    x = posterior.sample(2**12, seed=3)
    mean, sd = result.surrogate.log_joint(x)
    belief = belief_in(result.surrogate.surrogate)
    log_weights = believed(mean, sd**2, belief=belief) - posterior.log_density(x)
    weights = np.exp(log_weights - log_weights.max())
    assert weights.sum() ** 2 > 0.8 * len(x) * (weights @ weights)


def test_density_marginals_and_draws_agree(result):
    posterior = result.posterior
    grid = np.linspace(1e-3, 20.0, 6000)
    density = posterior.marginal_density(0, grid)
    assert np.sum(density) * (grid[1] - grid[0]) == pytest.approx(1.0, abs=0.02)
    mean = np.sum(grid * density) * (grid[1] - grid[0])
    assert mean == pytest.approx(posterior.mean[0], rel=0.03)


def test_it_is_saved_and_loaded_to_the_last_bit(result, tmp_path):
    result.save(tmp_path / "run.sparing")
    loaded = sparing.load(tmp_path / "run.sparing")
    assert_same(loaded, result, skip=("problem", "settings"))
    draws = [item.posterior.sample(10, seed=1) for item in (result, loaded)]
    np.testing.assert_array_equal(*draws)
    assert loaded.summary() == result.summary()
