"""The answers of the other shapes, against grids and Monte Carlo that share no code with them."""

import numpy as np
import pytest
from benchmarks.errors import BenchmarkError
from benchmarks.metrics import gskl
from benchmarks.problems import load_problem
from benchmarks.problems.base import Marginal
from benchmarks.problems.importance import importance_sample
from benchmarks.problems.shapes import FAMILIES, names_in
from scipy import stats

LEVELS = np.array([0.025, 0.5, 0.975])


def log_joints(problem, points):
    return np.array([problem.log_joint(x) for x in points])


def check_moments(problem, log_evidence, points, weights, tolerance):
    """Weighted points of the posterior have its evidence and moments; tolerance is in sds."""
    sd = np.sqrt(np.diag(problem.posterior_covariance))
    mean = weights @ points
    covariance = ((points - mean) * weights[:, None]).T @ (points - mean)
    assert log_evidence == pytest.approx(problem.log_evidence, abs=tolerance)
    np.testing.assert_allclose(problem.posterior_mean / sd, mean / sd, atol=tolerance)
    scaled = (covariance - problem.posterior_covariance) / np.outer(sd, sd)
    np.testing.assert_allclose(scaled, 0.0, atol=3 * tolerance)


# A grid cuts an edge into steps, and thin shapes need a fine one.
@pytest.mark.parametrize(
    ("name", "n", "tolerance"),
    [
        ("modes-2-1", 84, 1e-4),
        ("shell-2-0", 120, 5e-3),
        ("crescent-2-0", 180, 5e-3),
        ("crescent-2-1", 150, 5e-3),
        ("banana-2-1", 210, 1e-3),
        ("rosenbrock-2-1", 150, 1e-3),
        ("skewed-2-3", 70, 5e-3),  # a product
        ("skewed-2-1", 80, 5e-3),  # a copula
        ("positive-2-0", 80, 5e-3),
        ("positive-2-4", 80, 5e-3),
        ("halfspace-2-0", 105, 2e-2),
        ("halfspace-2-1", 105, 2e-2),
        ("simplex-2-1", 150, 2e-2),
        ("tails-2-1", 140, 1e-3),
    ],
)
def test_answers_agree_with_a_grid_in_two_dimensions(name, n, tolerance):
    problem = load_problem(name, None)
    # Marginals that lean on their lower bound need their nodes there.
    steps = np.linspace(0, 1, n + 1) ** (2 if name.startswith(("skewed", "positive")) else 1)
    ends = [m.quantile([1e-7, 1 - 1e-7]) for m in problem.marginals]
    edges = [low + (high - low) * steps for low, high in ends]
    sides = [0.5 * (edge[1:] + edge[:-1]) for edge in edges]
    points = np.stack(np.meshgrid(*sides, indexing="ij"), axis=-1).reshape(-1, 2)
    cell = np.outer(*(np.diff(edge) for edge in edges)).ravel()
    joint = np.exp(log_joints(problem, points) - problem.log_evidence) * cell
    total = joint.sum()
    check_moments(problem, problem.log_evidence + np.log(total), points, joint / total, tolerance)
    sd = np.sqrt(np.diag(problem.posterior_covariance))
    for d, marginal in enumerate(problem.marginals):
        mass = joint.reshape(n, n).sum(axis=1 - d) / total
        limits = np.interp(LEVELS, np.append(0.0, np.cumsum(mass)), edges[d])
        np.testing.assert_allclose(
            marginal.quantile(LEVELS) / sd[d], limits / sd[d], atol=2 * tolerance + 5e-3
        )


def test_modes_in_one_dimension_agree_with_a_grid():
    problem = load_problem("modes-1-0", None)
    grid = problem.marginals[0].grid
    joint = np.exp(log_joints(problem, grid[:, None])) * (grid[1] - grid[0])
    total = joint.sum()
    check_moments(problem, np.log(total), grid[:, None], joint / total, 1e-5)
    shares = joint / total @ problem.modes.memberships(grid[:, None])
    np.testing.assert_allclose(shares, problem.modes.weights, atol=1e-6)


@pytest.mark.parametrize(
    "name",
    ["modes-3-1", "shell-3-0", "crescent-3-4", "banana-3-0", "rosenbrock-6-0", "skewed-3-2",
     "halfspace-5-0", "simplex-5-0", "tails-6-0", "regression-3-0", "regression-5-0",
     "regression-5-4"],
)  # fmt: skip
def test_answers_agree_with_importance_sampling_in_more_dimensions(name):
    problem = load_problem(name, None)
    generator = np.random.default_rng(1)
    start = generator.multivariate_normal(
        problem.posterior_mean, problem.posterior_covariance, size=2000
    )
    draws = importance_sample(
        lambda points: log_joints(problem, points),
        start, generator, 2000, rounds=5, components=40, last_draws=8000,
    )  # fmt: skip
    assert draws.log_evidence_se < 0.08
    error = draws.log_evidence - problem.log_evidence
    assert abs(error) < 4 * draws.log_evidence_se + 0.01
    moments = problem.posterior_mean, problem.posterior_covariance
    assert gskl(*draws.moments(), *moments) < 0.1
    if problem.modes is not None:
        shares = draws.weights @ problem.modes.memberships(draws.points)
        np.testing.assert_allclose(shares, problem.modes.weights, atol=0.03)


def weigh(problem, points, log_proposal):
    log_weights = log_joints(problem, points) - log_proposal
    top = log_weights.max()
    weights = np.exp(log_weights - top)
    return top + np.log(weights.mean()), weights / weights.sum()


@pytest.mark.parametrize("name", ["funnel-3-0", "funnel-10-1"])
def test_a_funnel_agrees_with_draws_down_its_neck(name):
    problem = load_problem(name, None)
    generator = np.random.default_rng(2)
    wide = 1.2 * np.sqrt(problem.posterior_covariance[0, 0])
    v = wide * generator.standard_normal(40_000)
    scale = 1.1 * np.exp(0.5 * v)[:, None]
    others = scale * generator.standard_normal((len(v), problem.dimension - 1))
    log_proposal = stats.norm.logpdf(v, 0, wide) + stats.norm.logpdf(others, 0, scale).sum(axis=1)
    log_evidence, weights = weigh(problem, np.column_stack([v, others]), log_proposal)
    sd = np.sqrt(np.diag(problem.posterior_covariance))
    points = np.column_stack([v, others])
    assert log_evidence == pytest.approx(problem.log_evidence, abs=0.02)
    np.testing.assert_allclose(weights @ points / sd, problem.posterior_mean / sd, atol=0.05)
    limits = Marginal.of_draws(points[:, 1], weights).quantile(LEVELS)
    np.testing.assert_allclose(
        limits / sd[1], problem.marginals[1].quantile(LEVELS) / sd[1], atol=0.08
    )
    s2 = problem.posterior_covariance[0, 0]
    np.testing.assert_allclose(np.diag(problem.posterior_covariance)[1:], np.exp(s2 / 2))


@pytest.mark.parametrize("name", ["hierarchy-3-0", "hierarchy-5-0"])
def test_a_hierarchical_model_agrees_with_draws_of_every_width(name):
    problem = load_problem(name, None)
    generator = np.random.default_rng(3)
    n = 60_000
    mean, sd = problem.posterior_mean, np.sqrt(np.diag(problem.posterior_covariance))
    mu = mean[0] + 1.2 * sd[0] * generator.standard_t(5, n)
    log_tau = mean[1] + 1.3 * sd[1] * generator.standard_normal(n)
    tau = np.exp(log_tau)[:, None]
    log_proposal = stats.t.logpdf(mu, 5, mean[0], 1.2 * sd[0])
    log_proposal += stats.norm.logpdf(log_tau, mean[1], 1.3 * sd[1])
    # Half of the groups near mu, half where the data are.
    near = generator.uniform(size=(n, problem.dimension - 2)) < 0.5
    z = generator.standard_normal(near.shape)
    theta = np.where(near, mu[:, None] + tau * z, mean[2:] + 1.1 * sd[2:] * z)
    density = stats.norm.pdf(theta, mu[:, None], tau) + stats.norm.pdf(
        theta, mean[2:], 1.1 * sd[2:]
    )
    log_proposal += np.log(0.5 * density).sum(axis=1)
    points = np.column_stack([mu, log_tau, theta])
    log_evidence, weights = weigh(problem, points, log_proposal)
    assert 1 / np.sum(weights**2) > 2000
    check_moments(problem, log_evidence, points, weights, 0.06)


@pytest.mark.parametrize("family", FAMILIES)
def test_every_family_has_its_dimensions_and_marginals_with_the_exact_moments(family):
    form = FAMILIES[family]
    for D in (form.dimensions[0], form.dimensions[-1]):
        problem = load_problem(f"{family}-{D}-2", None)
        assert problem.dimension == D
        np.linalg.cholesky(problem.posterior_covariance)
        assert np.all(problem.plausible_lower < problem.plausible_upper)
        assert np.all(problem.lower < problem.plausible_lower)
        assert np.all(problem.plausible_upper < problem.upper)
        assert np.isfinite(problem.log_joint(problem.posterior_mean)) or family == "halfspace"
        levels = (np.arange(200_000) + 0.5) / 200_000
        for d, marginal in enumerate(problem.marginals):
            values = marginal.quantile(levels)
            sd = np.sqrt(problem.posterior_covariance[d, d])
            assert values.mean() == pytest.approx(problem.posterior_mean[d], abs=5e-3 * sd)
            assert values.std() == pytest.approx(sd, rel=2e-2)
    with pytest.raises(BenchmarkError, match=f"{family} has .* dimensions"):
        load_problem(f"{family}-{form.dimensions[-1] + 1}-0", None)


def test_members_come_from_their_number_alone():
    again, same, other = (load_problem(f"modes-3-{i}", None) for i in (4, 4, 5))
    x = again.starting_point(1)
    assert again.log_joint(x) == same.log_joint(x) != other.log_joint(x)


def test_modes_are_as_many_and_as_heavy_as_promised():
    for number in range(20):
        for D in (1, 2, 5):
            modes = load_problem(f"modes-{D}-{number}", None).modes
            assert 2 <= len(modes.weights) <= 6
            assert modes.weights.min() >= 0.08 - 1e-12
            assert modes.weights.sum() == pytest.approx(1)
    few = [len(load_problem(name, None).modes.weights) for name in names_in(["tuning-fewmodes"])]
    assert len(few) == 20 and set(few) == {2, 3, 4}


def test_neighbouring_modes_are_4_to_20_sds_apart():
    for number in range(12):
        mixture = load_problem(f"modes-3-{number}", None).modes.memberships.__self__
        for k, mean in enumerate(mixture.means):
            apart = []
            for other in range(len(mixture.means)):
                if other == k:
                    continue
                line = mixture.means[other] - mean
                unit = line / np.linalg.norm(line)
                sds = [np.sqrt(unit @ mixture.covariances[i] @ unit) for i in (k, other)]
                apart.append(np.linalg.norm(line) / np.mean(sds))
            assert 3.5 < min(apart) < 20.5  # a normal prior draws them together a little


def test_zero_beyond_the_edge():
    simplex = load_problem("simplex-3-0", None)
    assert simplex.log_joint(np.array([0.5, 0.3, 0.3])) == -np.inf
    assert np.isfinite(simplex.log_joint(np.array([0.4, 0.2, 0.2])))
    half = load_problem("halfspace-2-0", None)
    angles = np.linspace(0, 2 * np.pi, 50)
    around = half.posterior_mean + 5 * np.column_stack([np.cos(angles), np.sin(angles)])
    values = log_joints(half, around)
    assert np.any(values == -np.inf) and np.any(np.isfinite(values))


def test_sets_have_even_and_odd_members_and_share_none():
    tuning, held_out = names_in(["tuning"]), names_in(["held-out"])
    assert all(int(name.split("-")[-1]) % 2 == 0 for name in tuning)
    assert all(int(name.split("-")[-1]) % 2 == 1 for name in held_out)
    assert {name.split("-")[0] for name in tuning} == set(FAMILIES) - {
        "fewmodes", "positive", "regression",
    }  # fmt: skip
    assert len(tuning) == len(held_out) == len(set(tuning))
    assert names_in(["tuning-shell", "shell-2-0", "lumpy-2"]) == [
        "shell-2-0", "shell-2-2", "shell-3-0", "shell-3-2", "lumpy-2",
    ]  # fmt: skip
