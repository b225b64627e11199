"""The exact answers, against brute force that shares no code with them."""

import json
from itertools import pairwise

import numpy as np
import pytest
from benchmarks.errors import BenchmarkError
from benchmarks.problems import load_problem
from scipy import stats
from scipy.integrate import quad

FAMILIES = ["lumpy", "student", "cigar"]


def rotated_grid(problem, reach, n):
    """A grid of n x n points along the exact posterior's principal axes, to reach SDs."""
    values, vectors = np.linalg.eigh(problem.posterior_covariance)
    sides = [np.linspace(-reach, reach, n) * np.sqrt(value) for value in values]
    first, second = np.meshgrid(*sides, indexing="ij")
    points = problem.posterior_mean + np.stack([first.ravel(), second.ravel()], axis=1) @ vectors.T
    return points, np.prod([side[1] - side[0] for side in sides])


# The tails of the Student family end with its prior, some 30 posterior SDs out.
@pytest.mark.parametrize(
    ("family", "reach", "n"), [("lumpy", 9, 151), ("student", 32, 281), ("cigar", 9, 151)]
)
def test_truth_agrees_with_a_grid_in_two_dimensions(family, reach, n):
    problem = load_problem(f"{family}-2-g4", None)
    points, cell = rotated_grid(problem, reach, n)
    joint = np.exp([problem.log_joint(x) for x in points]) * cell
    evidence = joint.sum()
    mean = joint @ points / evidence
    centred = points - mean
    covariance = (joint[:, None] * centred).T @ centred / evidence
    sd = np.sqrt(np.diag(covariance))
    assert np.log(evidence) == pytest.approx(problem.log_evidence, abs=1e-6)
    np.testing.assert_allclose(problem.posterior_mean / sd, mean / sd, atol=1e-6)
    np.testing.assert_allclose(
        problem.posterior_covariance / np.outer(sd, sd), covariance / np.outer(sd, sd), atol=1e-6
    )


@pytest.mark.parametrize("family", FAMILIES)
def test_truth_agrees_with_importance_sampling_in_six_dimensions(family):
    problem = load_problem(f"{family}-6-g1", None)
    proposal = stats.multivariate_t(
        loc=problem.posterior_mean,
        shape=0.6 * problem.posterior_covariance,  # pyright: ignore[reportArgumentType]
        df=4,
        seed=0,
    )
    points = proposal.rvs(20_000)
    joint = np.array([problem.log_joint(x) for x in points])
    ratios = np.exp(joint - proposal.logpdf(points) - problem.log_evidence)
    standard_error = ratios.std() / np.sqrt(len(ratios))
    assert standard_error < 0.02
    assert abs(ratios.mean() - 1) < 4 * standard_error
    weights = ratios / ratios.sum()
    effective = 1 / np.sum(weights**2)
    sd = np.sqrt(np.diag(problem.posterior_covariance))
    mean = weights @ points
    assert np.all(np.abs(mean - problem.posterior_mean) < 5 * sd / np.sqrt(effective))
    variance = weights @ (points - mean) ** 2
    np.testing.assert_allclose(variance, sd**2, rtol=0.2)


@pytest.mark.parametrize("family", FAMILIES)
def test_marginals_have_the_exact_moments(family):
    problem = load_problem(f"{family}-4-g2", None)
    for d, marginal in enumerate(problem.marginals):
        mean = np.trapezoid(marginal.grid * marginal.density, marginal.grid)
        second = np.trapezoid((marginal.grid - mean) ** 2 * marginal.density, marginal.grid)
        sd = np.sqrt(problem.posterior_covariance[d, d])
        assert mean == pytest.approx(problem.posterior_mean[d], abs=1e-4 * sd)
        assert second == pytest.approx(sd**2, rel=1e-3)
        p = np.array([0.001, 0.3, 0.5, 0.99])
        np.testing.assert_allclose(marginal.cdf(marginal.quantile(p)), p, atol=1e-9)
        assert marginal.density_at(marginal.grid[0] - sd) == 0


def test_prior_density_is_that_of_scipy_and_the_box_is_one_sd_wide():
    problem = load_problem("student-4-g0", None)
    x = problem.starting_point(3)
    expected = stats.norm.logpdf(x, problem.prior_mean, problem.prior_sd).sum()
    assert problem.log_prior(x) == pytest.approx(expected)
    np.testing.assert_allclose(problem.plausible_upper - problem.prior_mean, problem.prior_sd)
    assert problem.budget == 300


def test_starting_points_come_from_the_seed_and_lie_in_the_box():
    problem = load_problem("cigar-6-g0", None)
    points = np.array([problem.starting_point(seed) for seed in range(50)])
    assert np.all((points > problem.plausible_lower) & (points < problem.plausible_upper))
    assert len(np.unique(points[:, 0])) == 50
    np.testing.assert_array_equal(points[7], problem.starting_point(7))
    fraction = np.random.default_rng(7).uniform(size=6)
    same_stream = problem.plausible_lower + fraction * 2 * problem.prior_sd
    assert not np.allclose(points[7], same_stream)


def test_lumpy_follows_the_definition():
    problem = load_problem("lumpy-4-g0", None)
    np.testing.assert_array_equal(problem.plausible_lower, -1.0)
    np.testing.assert_array_equal(problem.plausible_upper, 2.0)


def test_cigar_has_one_axis_a_hundred_times_longer():
    problem = load_problem("cigar-6-g0", None)
    x = np.linspace(-1, 1, 6)
    hessian = np.empty((6, 6))
    for i in range(6):
        for j in range(6):
            steps = [np.eye(6)[i] * a + np.eye(6)[j] * b for a in (1, -1) for b in (1, -1)]
            signs = (1, -1, -1, 1)
            values = (problem.log_likelihood(x + step) for step in steps)
            hessian[i, j] = sum(s * v for s, v in zip(signs, values, strict=True)) / 4
    covariance = np.linalg.inv(-hessian)
    np.testing.assert_allclose(np.sqrt(np.linalg.eigvalsh(covariance)), [1] * 5 + [100], rtol=1e-6)
    np.testing.assert_allclose(problem.prior_sd, 2 * np.sqrt(np.diag(covariance)) + 1)


PUBLISHED = {
    "student": {"2": {"loc": [1.0, -2.0], "scale": [0.05, 3.0], "df": [2.5, 3.0]}},
    "lumpy": {"1": {"weights": [0.3, 0.7], "means": [[0.0], [1.0]], "sds": [[0.2], [0.6]]}},
    "cigar": {"2": {"rotation": [[0.6, -0.8], [0.8, 0.6]], "mean": [-1, 1], "axes": [1, 100]}},
}


@pytest.fixture
def data(tmp_path):
    path = tmp_path / "published.json"
    path.write_text(json.dumps(PUBLISHED))
    return path


def test_published_student_uses_the_sd_of_the_t_distribution(data):
    problem = load_problem("student-2", data)
    t = {"df": [2.5, 3.0], "loc": [1.0, -2.0], "scale": [0.05, 3.0]}
    np.testing.assert_allclose(problem.prior_sd, 1 + 2 * stats.t.std(**t))
    x = np.array([0.3, 4.0])
    assert problem.log_likelihood(x) == pytest.approx(stats.t.logpdf(x, **t).sum())


def test_published_student_evidence_agrees_with_quad(data):
    problem = load_problem("student-2", data)
    log_evidence = 0.0
    for df, loc, scale, sd in zip(
        [2.5, 3.0], [1.0, -2.0], [0.05, 3.0], problem.prior_sd, strict=True
    ):

        def joint(x, df=df, loc=loc, scale=scale, sd=sd):
            return stats.t.pdf(x, df, loc, scale) * stats.norm.pdf(x, 0, sd)

        edges = np.concatenate([[-20 * sd], loc + scale * np.array([-30, -3, 0, 3, 30]), [20 * sd]])
        edges = np.unique(np.clip(edges, -20 * sd, 20 * sd))
        parts = [quad(joint, a, b, epsabs=1e-14, epsrel=1e-12)[0] for a, b in pairwise(edges)]
        log_evidence += np.log(sum(parts))
    assert problem.log_evidence == pytest.approx(log_evidence, abs=1e-10)


def test_published_cigar_rotates_as_the_transpose_first(data):
    problem = load_problem("cigar-2", data)
    R = np.array([[0.6, -0.8], [0.8, 0.6]])
    C = R.T @ np.diag([1.0, 1e4]) @ R
    x = np.array([3.0, -20.0])
    d = x - np.array([-1.0, 1.0])
    expected = -0.5 * (d @ np.linalg.inv(C) @ d + np.linalg.slogdet(2 * np.pi * C)[1])
    assert problem.log_likelihood(x) == pytest.approx(expected)


def test_published_lumpy_is_the_mixture(data):
    problem = load_problem("lumpy-1", data)
    density = 0.3 * stats.norm.pdf(0.4, 0, 0.2) + 0.7 * stats.norm.pdf(0.4, 1, 0.6)
    assert problem.log_likelihood(np.array([0.4])) == pytest.approx(np.log(density))


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("lumpy-3", "holds no lumpy problem with D = 3"),
        ("banana-2", "unknown problem"),
        ("lumpy", "unknown problem"),
        ("lumpy-0", "unknown problem"),
    ],
)
def test_problems_that_do_not_exist_are_named(data, name, message):
    with pytest.raises(BenchmarkError, match=message):
        load_problem(name, data)


def test_absent_and_damaged_data_are_explained(tmp_path):
    with pytest.raises(BenchmarkError, match="--data PATH"):
        load_problem("lumpy-2", None)
    with pytest.raises(BenchmarkError, match=r"no file.*missing\.json"):
        load_problem("lumpy-2", tmp_path / "missing.json")
    broken = tmp_path / "broken.json"
    broken.write_text("{")
    with pytest.raises(BenchmarkError, match="cannot read"):
        load_problem("lumpy-2", broken)
    broken.write_text('{"lumpy": {"2": {"weights": [1.0]}}}')
    with pytest.raises(BenchmarkError, match="lacks means, sds"):
        load_problem("lumpy-2", broken)


def test_noise_is_normal_repeats_and_leaves_the_answers():
    exact, noisy = load_problem("student-2-g1", None), load_problem("student-2-g1+noise0.5", None)
    assert noisy.name == "student-2-g1+noise0.5"
    assert noisy.log_evidence == exact.log_evidence
    points = np.random.default_rng(1).normal(size=(2000, 2))
    noise = np.array([noisy.log_joint(x) - exact.log_joint(x) for x in points])
    assert np.mean(noise) == pytest.approx(0.0, abs=0.04)
    assert np.std(noise) == pytest.approx(0.5, rel=0.06)
    assert noisy.log_joint(points[0]) == noisy.log_joint(points[0].copy())
    assert exact.noise_sd is None
    assert noisy.noise_sd(points[0]) == 0.5


def test_uneven_noise_is_larger_further_out_and_of_its_size_on_average():
    exact, noisy = load_problem("student-2-g1", None), load_problem("student-2-g1+uneven0.5", None)
    mean, covariance = exact.posterior_mean, exact.posterior_covariance
    points = np.random.default_rng(1).multivariate_normal(mean, covariance, size=4000)
    noise = np.array([noisy.log_joint(x) - exact.log_joint(x) for x in points])
    sds = np.array([noisy.noise_sd(x) for x in points])
    assert np.std(noise / sds) == pytest.approx(1.0, rel=0.04)
    assert np.sqrt(np.mean(noise**2)) == pytest.approx(0.5, rel=0.06)
    assert (
        noisy.noise_sd(mean)
        < 0.36
        < 0.7
        < noisy.noise_sd(mean + 2.0 * np.sqrt(np.diag(covariance)))
    )


WITH_GRADIENTS = [
    *(f"{family}-{D}-g1" for family in FAMILIES for D in (1, 4)),
    *(f"{family}-{D}-{n}" for family in ("banana", "rosenbrock") for D in (2, 5) for n in (0, 1)),
    *(f"modes-3-{n}" for n in range(4)),
    *("banana-10-0", "funnel-4-0", "tails-3-0", "predators-4-0"),
    *("regression-3-0", "regression-3-2", "regression-3-3"),
]


@pytest.mark.parametrize("name", WITH_GRADIENTS)
def test_gradients_are_those_of_the_values(name):
    problem = load_problem(name, None)
    generator = np.random.default_rng(5)
    width = problem.plausible_upper - problem.plausible_lower
    for x in generator.uniform(problem.plausible_lower, problem.plausible_upper, (5, len(width))):
        for function, gradient in (
            (problem.log_likelihood, problem.gradient),
            (problem.log_joint, problem.log_joint_gradient),
        ):
            expected = np.empty(len(x))
            for i, h in enumerate(1e-4 * np.diag(width)):
                values = [function(x + k * h) for k in (-2, -1, 1, 2)]
                expected[i] = (values[0] - 8 * values[1] + 8 * values[2] - values[3]) / (12 * h[i])
            scale = np.max(np.abs(expected)) * 1e-6
            np.testing.assert_allclose(gradient(x), expected, rtol=1e-6, atol=scale)


def test_a_problem_without_a_gradient_says_so():
    problem = load_problem("shell-2-0", None)
    assert problem.gradient is None
    with pytest.raises(AssertionError, match="shell-2-0 has no gradient"):
        problem.log_joint_gradient(problem.posterior_mean)
