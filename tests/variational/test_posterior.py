"""The posterior in the user's coordinates, against quadrature and its own samples."""

from dataclasses import replace

import numpy as np
import pytest
from scipy.integrate import trapezoid

from sparing.problem.bending import Bend, Whitening
from sparing.problem.parameter_transform import BoundedMap, ParameterTransform
from sparing.problem.problem import Problem
from sparing.variational.expectation_maximisation import fitted_mixture
from sparing.variational.mixture import GaussianMixture
from sparing.variational.normal_mixture import NormalMixture
from sparing.variational.posterior import Posterior

MIXTURE = GaussianMixture(
    np.array([0.6, 0.4]),
    np.array([[-0.1, 0.2], [0.3, -0.2]]),
    np.array([0.8, 1.2]),
    np.array([0.2, 0.3]),
)


def posterior(*, bounded: bool, whitened: bool) -> Posterior:
    bounds = {"lower": [0.0, 0.0], "upper": [4.0, np.inf]} if bounded else {}
    problem = Problem(lambda x: 0.0, [1.0, 0.5], [3.0, 2.0], names=["a", "b"], **bounds)
    transform = ParameterTransform.from_problem(problem, BoundedMap.PROBIT)
    if whitened:
        transform = transform.whitened(np.array([0.1, -0.1]), np.array([[1.0, 0.5], [-0.3, 0.9]]))
    return Posterior(MIXTURE, transform, problem.names)


CASES = [
    pytest.param(posterior(bounded=b, whitened=w), id=f"bounded={b}-whitened={w}")
    for b in (False, True)
    for w in (False, True)
]


def grid(item: Posterior):
    if item.transform.is_linear:
        a, b = np.linspace(-4, 8, 801), np.linspace(-4, 7, 801)
    else:
        a, b = np.linspace(1e-6, 4 - 1e-6, 801), np.geomspace(1e-3, 60, 1601)
    points = np.stack(np.meshgrid(a, b, indexing="ij"), axis=-1).reshape(-1, 2)
    return a, b, item.density(points).reshape(len(a), len(b))


@pytest.mark.parametrize("item", CASES)
def test_the_density_integrates_to_one_and_has_the_stated_moments(item):
    a, b, density = grid(item)
    assert trapezoid(trapezoid(density, b, axis=1), a) == pytest.approx(1.0, abs=2e-3)
    marginal_a = trapezoid(density, b, axis=1)
    marginal_b = trapezoid(density, a, axis=0)
    mean = [trapezoid(a * marginal_a, a), trapezoid(b * marginal_b, b)]
    np.testing.assert_allclose(item.mean, mean, rtol=5e-3)
    variance = trapezoid(a**2 * marginal_a, a) - mean[0] ** 2
    assert item.covariance[0, 0] == pytest.approx(variance, rel=1e-2)


@pytest.mark.parametrize("item", CASES)
def test_marginals_agree_with_the_joint_density(item):
    a, b, density = grid(item)
    marginal_a = trapezoid(density, b, axis=1)
    middle = slice(100, 700, 50)
    found = item.marginal_density("a", a[middle])
    np.testing.assert_allclose(found, marginal_a[middle], rtol=1e-2, atol=1e-4)
    found = item.marginal_density(1, b[::100])
    expected = trapezoid(density, a, axis=0)[::100]
    np.testing.assert_allclose(found, expected, rtol=1e-2, atol=1e-3)


@pytest.mark.parametrize("item", CASES)
def test_samples_have_the_moments_and_quantiles(item):
    draws = item.sample(40_000, seed=1)
    error = draws.std(axis=0) / np.sqrt(len(draws))
    assert np.all(np.abs(draws.mean(axis=0) - item.mean) < 5 * error)
    np.testing.assert_allclose(np.cov(draws.T), item.covariance, rtol=0.1, atol=0.02)
    np.testing.assert_allclose(
        np.quantile(draws, [0.1, 0.9], axis=0), item.quantile([0.1, 0.9]), rtol=0.05, atol=0.02
    )
    np.testing.assert_array_equal(draws[:5], item.sample(40_000, seed=1)[:5])


@pytest.mark.parametrize("item", CASES)
def test_the_mode_is_the_highest_point_of_the_grid(item):
    _, _, density = grid(item)
    assert item.density(item.mode()) >= np.max(density) * (1 - 1e-4)


def test_outside_the_bounds_the_density_is_zero():
    item = posterior(bounded=True, whitened=False)
    assert item.log_density([-1.0, 1.0]) == -np.inf
    assert item.log_density([5.0, 1.0]) == -np.inf
    assert item.marginal_density("a", -1.0)[0] == 0.0
    values = item.log_density([[1.0, 1.0], [1.0, -1.0]])
    assert np.isfinite(values[0])
    assert values[1] == -np.inf


def test_a_point_of_the_wrong_length_is_refused_by_name():
    with pytest.raises(ValueError, match="a, b"):
        posterior(bounded=False, whitened=False).log_density([1.0, 2.0, 3.0])


def test_repr_names_the_parameters():
    assert "a:" in repr(posterior(bounded=True, whitened=True))


def three_dimensional(*, whitened: bool) -> Posterior:
    """Parameters without a bound, with one and with two."""
    problem = Problem(
        lambda x: 0.0,
        [-2.0, 0.5, 0.2],
        [2.0, 3.0, 0.8],
        lower=[-np.inf, 0.0, 0.0],
        upper=[np.inf, np.inf, 1.0],
    )
    transform = ParameterTransform.from_problem(problem)
    if whitened:
        mixing = np.array([[1.0, 0.0, 0.0], [0.5, 1.0, 0.0], [-0.3, 0.4, 1.0]])
        transform = transform.whitened(np.full(3, 0.1), mixing)
    mixture = GaussianMixture(
        [0.5, 0.3, 0.2],
        [[0.1, -0.1, 0.0], [-0.2, 0.1, 0.2], [0.0, 0.2, -0.1]],
        [0.1, 0.15, 0.2],
        [0.8, 1.0, 1.2],
    )
    return Posterior(mixture, transform, problem.names)


def axis(posterior: Posterior, index: int, n: int) -> np.ndarray:
    """Cell centres of a grid over nearly all of a parameter's mass."""
    low, high = posterior.quantile([0.001, 0.999])[:, index]
    return low + (high - low) * (np.arange(n) + 0.5) / n


@pytest.mark.parametrize("whitened", [False, True])
@pytest.mark.parametrize("pair", [(0, 1), (2, 0), (1, 2)])
def test_pair_density_against_a_histogram_of_draws(pair, whitened):
    item = three_dimensional(whitened=whitened)
    fine = [axis(item, index, 200) for index in pair]
    views = [(x[0] - 0.5 * (x[1] - x[0]), x[-1] + 0.5 * (x[1] - x[0])) for x in fine]
    draws = item.sample(400_000, seed=3)[:, list(pair)]
    counts, x_edges, y_edges = np.histogram2d(*draws.T, bins=20, range=views)
    cell = np.diff(x_edges)[0] * np.diff(y_edges)[0]
    empirical = counts.T / (len(draws) * cell)
    # Averaged over the histogram's cells.
    exact = item.pair_density(*pair, *fine).reshape(20, 10, 20, 10).mean(axis=(1, 3))
    error = np.sqrt(exact / (len(draws) * cell)) + 1e-3 * exact.max()
    assert np.max(np.abs(empirical - exact) / error) < 5.0


@pytest.mark.parametrize("item", CASES)
def test_pair_density_in_two_dimensions_is_the_density(item):
    x, y = axis(item, 0, 30), axis(item, 1, 25)
    points = np.stack(np.meshgrid(x, y), axis=-1).reshape(-1, 2)
    expected = item.density(points).reshape(25, 30)
    np.testing.assert_allclose(item.pair_density(0, 1, x, y), expected, rtol=1e-9)
    np.testing.assert_allclose(item.pair_density(1, 0, y, x), expected.T, rtol=1e-9)


def test_pair_density_integrates_to_the_marginal():
    item = three_dimensional(whitened=True)
    x, y = axis(item, 0, 15), np.linspace(1e-6, 1.0 - 1e-6, 4000)
    marginal = trapezoid(item.pair_density(0, 2, x, y), y, axis=0)
    np.testing.assert_allclose(marginal, item.marginal_density(0, x), rtol=1e-4)


@pytest.mark.parametrize("bounded", [False, True])
@pytest.mark.parametrize("exponent", [-1000, -600, 600, 1000])
def test_moments_and_densities_at_scales_whose_squares_no_float_can_hold(bounded, exponent):
    def at(scale):
        bounds = {"lower": [-4.0 * scale, -4.0 * scale]} if bounded else {}
        box = np.array([1.0, 1.5]) * scale
        problem = Problem(lambda x: 0.0, -box, box, **bounds)
        return Posterior(MIXTURE, ParameterTransform.from_problem(problem), problem.names)

    scale = 2.0**exponent
    one, item = at(1.0), at(scale)
    np.testing.assert_allclose(item.mean / scale, one.mean, rtol=1e-9)
    np.testing.assert_allclose(item.sd / scale, one.sd, rtol=1e-9)
    np.testing.assert_array_equal(np.diag(item.covariance), np.inf if exponent > 0 else 0.0)
    x = np.array([[0.3, 0.2]])
    log_density = one.log_density(x) - 2 * np.log(scale)
    np.testing.assert_allclose(item.log_density(x * scale), log_density, rtol=1e-9)
    assert item.density(x * scale) == (np.inf if exponent < 0 else 0.0)
    assert item.log_density(np.full((1, 2), 1e308)) < -1e3


# ---------------------------------------------------------------------- bent coordinates


def bent(dimension: int, kind: str, *, bounded: bool) -> Posterior:
    """Two normals that are nearly one, seen through a bend along the first coordinate."""
    bounds = {}
    if bounded:
        free = [np.inf] * (dimension - 1)
        bounds = {"lower": [0.0, *np.negative(free)], "upper": [4.0, *free]}
    problem = Problem(
        lambda x: 0.0, [1.0] + [-1.0] * (dimension - 1), [3.0] + [1.0] * (dimension - 1), **bounds
    )
    width, along = 0.25, np.eye(dimension)[0]
    shift = 1.2 * np.eye(dimension)[1] if kind == "ridge" else np.zeros(dimension)
    rates = 0.5 * (1.0 - along) if kind == "funnel" else np.zeros(dimension)
    nothing = Whitening.nothing(dimension)
    bend = Bend(along / width, width * shift, np.eye(dimension), rates, 5.0, nothing)
    mixing = np.eye(dimension) + 0.2 * np.random.default_rng(1).normal(size=(dimension, dimension))
    transform = ParameterTransform.from_problem(problem)
    transform = transform.whitened(np.full(dimension, 0.05), mixing).bent([bend], number=2)
    means = np.array([[0.05], [-0.05]]) * np.ones(dimension)
    covariances = 0.06 * np.stack([np.eye(dimension)] * 2)
    mixture = NormalMixture.of_covariances(np.array([0.6, 0.4]), means, covariances)
    return Posterior(mixture, transform, problem.names)


BENT = [
    pytest.param(bent(2, kind, bounded=bounded), id=f"{kind}-bounded={bounded}")
    for kind in ("ridge", "funnel")
    for bounded in (False, True)
]


def bent_grid(item: Posterior, n: int = 400):
    """Cells that hold nearly all of it, their size, and the density at their middles, (n, n)."""
    draws = item.sample(20_000, seed=1)
    low, high = draws.min(axis=0), draws.max(axis=0)
    widths = (high - low) / n
    a, b = (low[:, None] + widths[:, None] * (np.arange(n) + 0.5)).tolist()
    points = np.stack(np.meshgrid(a, b, indexing="ij"), axis=-1).reshape(-1, 2)
    return np.array(a), np.array(b), widths, item.density(points).reshape(n, n)


@pytest.mark.parametrize("item", BENT)
def test_a_bent_density_integrates_to_one_and_has_the_stated_moments_and_mode(item):
    a, b, widths, density = bent_grid(item)
    masses = density * widths.prod()
    assert masses.sum() == pytest.approx(1.0, abs=2e-3)
    masses /= masses.sum()
    mean = np.array([masses.sum(axis=1) @ a, masses.sum(axis=0) @ b])
    assert np.all(np.abs(item.mean - mean) < 0.01 * item.sd)
    second = [masses.sum(axis=1) @ (a - mean[0]) ** 2, masses.sum(axis=0) @ (b - mean[1]) ** 2]
    np.testing.assert_allclose(item.sd, np.sqrt(second), rtol=0.02)
    cross = (a - mean[0]) @ masses @ (b - mean[1])
    assert item.covariance[0, 1] == pytest.approx(cross, abs=0.02 * item.sd.prod())
    assert item.density(item.mode()) >= density.max() * (1 - 1e-4)


@pytest.mark.parametrize("item", BENT)
def test_bent_draws_have_the_density_and_the_quantiles(item):
    a, b, widths, density = bent_grid(item)
    draws = item.sample(200_000, seed=2)
    edges = [np.append(x - 0.5 * (x[1] - x[0]), 1.5 * x[-1] - 0.5 * x[-2])[::20] for x in (a, b)]
    counts, _, _ = np.histogram2d(*draws.T, bins=edges)
    masses = density.reshape(20, 20, 20, 20).sum(axis=(1, 3)) * widths.prod()
    error = np.sqrt(masses / len(draws)) + 2e-4  # and the cells' size
    assert np.max(np.abs(counts / len(draws) - masses) / error) < 5.0
    for index, (x, other) in enumerate(((a, 1), (b, 0))):
        cumulated = np.cumsum(density.sum(axis=other)) * widths.prod()
        expected = np.interp([0.05, 0.5, 0.95], cumulated, x + 0.5 * widths[index])
        found = item.quantile([0.05, 0.5, 0.95])[:, index]
        assert np.all(np.abs(found - expected) < 0.02 * item.sd[index])
    np.testing.assert_allclose(np.cov(draws.T), item.covariance, rtol=0.05, atol=0.005)


@pytest.mark.parametrize("item", BENT)
def test_densities_of_bent_parameters_are_those_of_small_pieces(item):
    """In total variation 0.003 of one of them, and 0.0065 of both."""
    a, b, widths, density = bent_grid(item)
    for index, (x, other) in enumerate(((a, 1), (b, 0))):
        expected = density.sum(axis=other) * widths[other]
        found = item.marginal_density(index, x)
        assert 0.5 * np.abs(found - expected).sum() * widths[index] < 0.004
    found = item.pair_density(0, 1, a[::5], b[::4])
    assert found.shape == (100, 80)
    difference = np.abs(found.T - density[::5, ::4])
    assert 0.5 * difference.sum() * 20 * widths.prod() < 0.008
    other = item.pair_density(1, 0, b[::16], a[::15])
    np.testing.assert_allclose(other.T, found[::4, ::3], atol=1e-5 * found.max())


@pytest.mark.parametrize("kind", ["ridge", "funnel"])
def test_densities_of_bent_parameters_have_no_wiggles(kind):
    """A mixture of many normals, as runs end with: each density rises and falls once."""
    item = bent(3, kind, bounded=False)
    generator = np.random.default_rng(4)
    draws = generator.standard_normal((2**13, 3)) @ np.linalg.cholesky(item.mixture.covariance).T
    even = np.full(len(draws), 1.0 / len(draws))
    item = replace(item, mixture=fitted_mixture(draws, even, 60, 5, generator))
    for index in range(3):
        x = np.linspace(*item.quantile([0.02, 0.98])[:, index], 60)
        density = item.marginal_density(index, x)
        turns = np.diff(np.sign(np.diff(density, 2)))
        assert np.count_nonzero(turns) == 2  # the inflection on each side


@pytest.mark.parametrize("kind", ["ridge", "funnel"])
def test_densities_of_bent_parameters_against_a_histogram_of_draws(kind):
    """In four dimensions 0.005 of one parameter, and 0.008 of two, with the histogram's noise."""
    item = bent(4, kind, bounded=True)
    draws = item.sample(2**19, seed=3)
    for index in range(4):
        edges = np.linspace(*np.quantile(draws[:, index], [1e-3, 1 - 1e-3]), 31)
        shares = np.histogram(draws[:, index], edges)[0] / len(draws)
        fine = edges[0] + (edges[-1] - edges[0]) * (np.arange(600) + 0.5) / 600
        found = item.marginal_density(index, fine).reshape(30, 20).sum(axis=1) * (fine[1] - fine[0])
        assert 0.5 * np.abs(found - shares).sum() < 0.008
    for pair in ((0, 1), (1, 2)):
        quantiles = [np.quantile(draws[:, i], [1e-3, 1 - 1e-3]) for i in pair]
        edges = [np.linspace(*ends, 16) for ends in quantiles]
        shares = np.histogram2d(*draws[:, pair].T, bins=edges)[0] / len(draws)
        fine = [e[0] + (e[-1] - e[0]) * (np.arange(150) + 0.5) / 150 for e in edges]
        cell = (fine[0][1] - fine[0][0]) * (fine[1][1] - fine[1][0])
        found = item.pair_density(*pair, *fine).T.reshape(15, 10, 15, 10).sum(axis=(1, 3)) * cell
        assert 0.5 * np.abs(found - shares).sum() < 0.012
