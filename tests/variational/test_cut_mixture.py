"""A mixture cut off at an edge that was learnt, against truncated normals."""

import numpy as np
import pytest
from scipy import stats

from sparing.errors import TargetError
from sparing.problem.evaluations import Evaluation, Outcome, Status
from sparing.problem.parameter_transform import ParameterTransform
from sparing.problem.problem import Problem
from sparing.surrogate.known_support import KnownSupport
from sparing.surrogate.support import learnt_support
from sparing.variational.cut_mixture import CutMixture, cut
from sparing.variational.normal_mixture import NormalMixture
from sparing.variational.posterior import Posterior

EDGE = 0.5
EXACT = stats.truncnorm(-np.inf, EDGE)
TRANSFORM = ParameterTransform.from_problem(Problem(lambda x: 0.0, [-0.5, -0.5], [0.5, 0.5]))
NORMAL = NormalMixture.of_covariances(np.ones(1), np.zeros((1, 2)), np.eye(2)[None])


def evaluations():
    """A standard normal that is zero where x_1 > 1/2, with points close to the edge."""
    generator = np.random.default_rng(1)
    points = generator.normal(size=(80, 2))
    points[60:, 0] = EDGE + 0.005 * np.where(np.arange(20) % 2, 1, -1)
    entries = []
    for index, x in enumerate(points):
        inside = x[0] <= EDGE
        status = Status.OK if inside else Status.OUT_OF_SUPPORT
        outcome = Outcome(-0.5 * x @ x if inside else -np.inf, status, 0.1)
        entries.append(Evaluation(index, index, x, outcome))
    return entries


@pytest.fixture(scope="module")
def half():
    return CutMixture(NORMAL, learnt_support(evaluations(), TRANSFORM))


def test_every_evaluation_is_on_its_side(half):
    for entry in evaluations():
        assert half.contains(entry.x[None])[0] == entry.usable


def test_mass_and_moments_are_those_of_a_truncated_normal(half):
    assert half.mass == pytest.approx(stats.norm.cdf(EDGE), abs=0.005)
    np.testing.assert_allclose(half.mean, [EXACT.mean(), 0.0], atol=0.01)
    np.testing.assert_allclose(half.covariance, np.diag([EXACT.var(), 1.0]), atol=0.015)


def test_draws_stay_inside_and_have_the_same_moments(half):
    draws = half.sample(20_000, np.random.default_rng(2))
    assert draws.shape == (20_000, 2)
    assert np.all(half.contains(draws))
    assert draws[:, 0].max() < EDGE + 0.02
    np.testing.assert_allclose(draws.mean(axis=0), half.mean, atol=0.03)
    np.testing.assert_allclose(np.cov(draws, rowvar=False), half.covariance, atol=0.04)


def test_the_density_integrates_to_one_and_is_zero_outside(half):
    grid = np.linspace(-7.0, 3.0, 401)
    points = np.stack(np.meshgrid(grid, grid + 2.0), axis=-1).reshape(-1, 2)
    density = np.exp(half.log_density(points))
    assert density.sum() * (grid[1] - grid[0]) ** 2 == pytest.approx(1.0, abs=0.02)
    assert np.all(density[points[:, 0] > EDGE + 0.02] == 0.0)


def test_marginals_are_those_of_a_truncated_normal(half):
    posterior = Posterior(half, TRANSFORM, ("a", "b"))
    x = np.array([-2.0, -0.5, 0.3, 0.45, 0.6, 2.0])
    np.testing.assert_allclose(posterior.marginal_density("a", x), EXACT.pdf(x), atol=0.02)
    expected = stats.norm.pdf(x)
    np.testing.assert_allclose(posterior.marginal_density("b", x), expected, atol=0.03)
    np.testing.assert_allclose(
        posterior.quantile([0.025, 0.5, 0.975])[:, 0], EXACT.ppf([0.025, 0.5, 0.975]), atol=0.03
    )
    pair = posterior.pair_density(0, 1, np.array([0.0, 0.7]), np.array([0.0]))
    np.testing.assert_allclose(pair[0], [EXACT.pdf(0.0) * stats.norm.pdf(0.0), 0.0], atol=0.02)


def test_the_mode_is_at_the_edge_where_the_mixture_s_own_is_beyond_it(half):
    np.testing.assert_allclose(half.mode(), [0.0, 0.0], atol=1e-6)
    beyond = NORMAL.image(np.eye(2), np.array([1.5, 0.0]))
    found = CutMixture(beyond, half.support).mode()
    np.testing.assert_allclose(found, [EDGE, 0.0], atol=0.05)


def test_without_a_support_or_with_nothing_inside_a_mixture_is_as_it_is(half):
    assert cut(NORMAL, None) is NORMAL
    far = NORMAL.image(1e-3 * np.eye(2), np.array([3.0, 0.0]))
    assert cut(far, half.support) is far
    assert isinstance(cut(NORMAL, half.support), CutMixture)


# ---------------------------------------------------------------------- a declared support


def declared(support):
    problem = Problem(lambda x: 0.0, [-0.5, -0.5], [0.5, 0.5], support=support)
    return KnownSupport(ParameterTransform.from_problem(problem))


@pytest.mark.parametrize(
    "means",
    [[[0.0, 0.0], [0.0, 1.0]], [[0.0, 0.0], [7.0, 1.0]]],
    ids=["no component inside", "one of two"],
)
def test_a_mixture_that_lies_nearly_all_outside_is_drawn_in(means):
    """A learnt edge may be wrong, and the mixture stays as it is; a declared one is not."""
    mixture = NormalMixture.of_covariances(np.ones(2), np.array(means), np.stack([np.eye(2)] * 2))
    certain = declared(lambda x: (x[..., 0] > 6.99) & (x[..., 0] < 7.01))
    within = cut(mixture, certain, np.array([[7.0, 0.0], [7.0, 2.0]]))
    assert isinstance(within, CutMixture)
    draws = within.sample(1000, np.random.default_rng(1))
    assert certain.contains(draws).all()
    assert np.isfinite(within.log_density(draws)).all()
    assert within.mass > 0.002


def test_a_declared_support_without_volume_is_told():
    certain = declared(lambda x: x[..., 0] == np.pi)
    with pytest.raises(TargetError, match="so thin"):
        cut(NORMAL, certain, np.array([[1.0, 0.0]]))
