"""A density that is zero beyond an edge: a whole run, and what it saves."""

import numpy as np
import pytest
from scipy import stats

import sparing
from sparing.vbmc.exploration import EDGE

pytestmark = pytest.mark.slow

NORMAL_OF_EDGE, CUT = np.array([0.8, 0.6]), 0.3


def log_density(x):
    """Two standard normals where 0.8 a + 0.6 b <= 0.3, and nothing beyond."""
    return -0.5 * float(x @ x) if NORMAL_OF_EDGE @ x <= CUT else -np.inf


@pytest.fixture(scope="module")
def result():
    problem = sparing.Problem(log_density, [-2.0, -2.0], [2.0, 2.0], names=("a", "b"))
    return sparing.infer(problem, seed=3, progress=False)


def test_evidence_and_posterior_are_those_of_the_cut_density(result):
    exact = np.log(2.0 * np.pi) + stats.norm.logcdf(CUT)
    assert result.converged
    assert abs(result.log_evidence - exact) < min(4.0 * result.log_evidence_sd, 0.05)
    along = stats.truncnorm(-np.inf, CUT)
    np.testing.assert_allclose(result.posterior.mean, along.mean() * NORMAL_OF_EDGE, atol=0.03)
    covariance = np.eye(2) + (along.var() - 1.0) * np.outer(NORMAL_OF_EDGE, NORMAL_OF_EDGE)
    np.testing.assert_allclose(result.posterior.covariance, covariance, atol=0.05)


def test_draws_beyond_the_edge_are_not_handed_out(result):
    draws = result.posterior.sample(20_000, seed=1)
    assert np.mean(draws @ NORMAL_OF_EDGE > CUT) < 0.003
    assert np.isneginf(result.posterior.log_density([2.0, 2.0]))
    assert sum(entry.rule == EDGE for entry in result.evaluations) > 0


def test_it_is_saved_and_loaded(result, tmp_path):
    result.save(tmp_path / "cut.sparing")
    loaded = sparing.load(tmp_path / "cut.sparing")
    for one, same in ((result, loaded), (result.history[-1], loaded.history[-1])):
        draws = one.posterior.sample(50, seed=2)
        np.testing.assert_array_equal(draws, same.posterior.sample(50, seed=2))
        np.testing.assert_array_equal(
            one.posterior.log_density(draws), same.posterior.log_density(draws)
        )
    np.testing.assert_array_equal(loaded.posterior.mean, result.posterior.mean)
    margins = [run.surrogate.support.margin(draws) for run in (result, loaded)]
    np.testing.assert_array_equal(*margins)
