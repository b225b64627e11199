"""The methods the paper compares with, each on a problem with a known answer."""

import math
from dataclasses import replace

import numpy as np
import pytest
from benchmarks.errors import BenchmarkError
from benchmarks.methods import agp, log_joint_surrogates, surrogate_posterior
from benchmarks.methods.annealed_importance_sampling import anneal
from benchmarks.methods.bape import exponentiated_variance
from benchmarks.methods.base import LibraryClock
from benchmarks.methods.bayesian_monte_carlo import run_bayesian_monte_carlo
from benchmarks.methods.comparisons import COMPARISON_METHODS
from benchmarks.methods.control import control_snapshots
from benchmarks.methods.log_joint_surrogates import (
    crude_evidence,
    evaluate_round,
    looks_after_rounds,
)
from benchmarks.methods.recording import Record, look_counts, posterior_counts
from benchmarks.methods.simple_monte_carlo import averages
from benchmarks.metrics import gskl
from benchmarks.problems import load_problem
from benchmarks.problems.base import HardBox

BUDGET = 60
# LML error and gsKL allowed after 60 evaluations of a lumpy likelihood in two dimensions.
ACCURACY = {
    "smc": (0.8, 0.1),
    "ais": (4.0, 0.1),
    "bmc": (0.2, 0.1),
    "bbq": (0.1, 0.03),
    "bbq-star": (0.2, 0.03),
    "wsabi-l": (0.02, 0.03),
    "wsabi-m": (0.2, 0.03),
    "bape": (0.2, 0.1),
    "agp": (0.2, 0.3),  # its gsKL here is 0.004 to 22 over seeds: a smaller limit would be luck
}


@pytest.fixture(scope="module")
def problem():
    return load_problem("lumpy-2-g0", None)


@pytest.fixture
def few_draws(monkeypatch):
    for module, names in (
        (surrogate_posterior, ("N_DRAWS",)),
        (log_joint_surrogates, ("N_DRAWS", "N_FINAL_DRAWS")),
    ):
        for name in names:
            monkeypatch.setattr(module, name, 2000)


def run(method, problem, seed=1, budget=BUDGET, log_joint=None):
    calls = []

    def counted(x):
        calls.append(x)
        return (log_joint or problem.log_joint)(x)

    clock = LibraryClock()
    x0 = problem.starting_point(seed)
    estimate = method(problem, clock.exclude(counted), x0, seed, budget, clock)
    return estimate, np.array(calls), clock


@pytest.mark.parametrize("method", COMPARISON_METHODS, ids=lambda method: method.name)
def test_a_run_on_a_known_problem(method, problem, few_draws):
    estimate, calls, clock = run(method.run, problem)
    error, divergence = ACCURACY[method.name]
    assert abs(estimate.log_evidence - problem.log_evidence) < error
    exact = problem.posterior_mean, problem.posterior_covariance
    assert gskl(estimate.mean, estimate.covariance, *exact) < divergence
    assert len(calls) == BUDGET
    if method.name not in ("smc", "ais"):  # these must draw from the prior
        np.testing.assert_allclose(calls[0], problem.starting_point(1))
    assert estimate.samples.shape == (2000, 2)
    last = estimate.snapshots[-1]
    assert last.n_evaluations == BUDGET
    assert last.log_evidence == estimate.log_evidence
    np.testing.assert_allclose(last.mean, estimate.mean)
    counts = [snapshot.n_evaluations for snapshot in estimate.snapshots]
    assert counts == sorted(set(counts))
    assert clock.cpu > 0.0 and not estimate.converged


def test_every_method_is_judged_and_repeats_itself(problem, few_draws):
    assert set(ACCURACY) == {method.name for method in COMPARISON_METHODS}
    first, second = (run(run_bayesian_monte_carlo, problem, budget=30)[0] for _ in range(2))
    assert first.log_evidence == second.log_evidence
    np.testing.assert_array_equal(first.samples, second.samples)


def test_simple_monte_carlo_is_unbiased(problem):
    ratios, reported = [], []
    for seed in range(200):
        record = Record(problem, problem.log_joint, 50)
        *_, last = averages(record, 50, np.random.default_rng(seed))
        ratios.append(math.exp(last.evidence.log_evidence - problem.log_evidence))
        reported.append(ratios[-1] * last.evidence.sd)
    error = np.std(ratios) / math.sqrt(200)
    assert abs(np.mean(ratios) - 1.0) < 3 * error < 0.1
    assert np.sqrt(np.mean(np.square(reported))) == pytest.approx(np.std(ratios), rel=0.15)


def test_annealed_importance_sampling_is_unbiased():
    problem = load_problem("lumpy-1-g0", None)
    ratios = []
    for seed in range(400):
        record = Record(problem, problem.log_joint, 30)
        log_weight = anneal(record, 30, np.random.default_rng(seed))
        ratios.append(math.exp(log_weight - problem.log_evidence))
        assert record.n == 30
    error = np.std(ratios) / math.sqrt(400)
    assert abs(np.mean(ratios) - 1.0) < 3 * error < 0.2


def test_where_a_run_is_looked_at():
    assert look_counts(200) == list(range(10, 201, 10))
    assert look_counts(600) == list(range(30, 601, 30))
    assert look_counts(25) == [10, 20, 25] and look_counts(7) == [7]
    assert posterior_counts(look_counts(200)) == [40, 80, 120, 160, 200]
    assert posterior_counts([10, 20, 25]) == [25]
    assert look_counts(300)[:5] == [15, 30, 45, 60, 75]
    assert sorted(looks_after_rounds(300))[:5] == [20, 30, 50, 60, 80]
    assert max(looks_after_rounds(305)) == 305


def test_the_crude_evidence_is_exact_for_an_exact_posterior():
    log_joint = np.random.default_rng(0).normal(size=50)
    evidence = crude_evidence(log_joint, log_joint + 3.2)
    assert evidence.log_evidence == pytest.approx(-3.2) and evidence.sd == pytest.approx(0.0)
    # Only the best fifth counts, and there the mean of the differences.
    log_posterior = log_joint + np.where(log_joint > np.quantile(log_joint, 0.8), 1.0, -50.0)
    assert crude_evidence(log_joint, log_posterior).log_evidence == pytest.approx(-1.0)
    nowhere = crude_evidence(np.full(5, -np.inf), np.zeros(5))
    assert math.isnan(nowhere.log_evidence)


def test_the_exponentiated_variance_is_that_of_a_log_normal():
    mean, variance = np.array([-1.0, 0.5]), np.array([0.3, 1.2])
    expected = np.log(np.exp(2 * mean + variance) * np.expm1(variance))
    ours = exponentiated_variance(mean, variance, np.zeros(2))
    np.testing.assert_allclose(ours, expected, rtol=1e-12)
    huge = exponentiated_variance(np.zeros(1), np.array([1e5]), np.zeros(1))
    assert huge == pytest.approx(2e5)


def test_points_where_the_target_fails_are_not_fatal(problem, few_draws):
    def failing(x):
        if x[0] > problem.posterior_mean[0] + 1.0:
            return math.nan
        return problem.log_joint(x) if x[1] < problem.posterior_mean[1] + 1.5 else -math.inf

    for method in COMPARISON_METHODS:
        if method.name in ("bbq", "wsabi-l", "bape", "agp"):
            estimate, calls, _ = run(method.run, problem, budget=30, log_joint=failing)
            assert np.isfinite(estimate.log_evidence), method.name
            assert any(not np.isfinite(failing(x)) for x in calls), method.name


def uniform(problem):
    lower, upper = problem.plausible_lower - 1.0, problem.plausible_upper + 1.0
    box = HardBox(lower, upper, problem.plausible_lower, problem.plausible_upper)
    return replace(problem, hard_box=box, prior_mean=box.mean, prior_sd=box.sd)


def test_a_uniform_prior_is_refused_by_quadrature_and_by_no_one_else(problem, few_draws):
    bounded = uniform(problem)
    for method in COMPARISON_METHODS:
        if method.name in ("bmc", "bbq", "bbq-star", "wsabi-l", "wsabi-m"):
            with pytest.raises(BenchmarkError, match="normal prior"):
                run(method.run, bounded, budget=20)
        elif method.name != "bape":  # as agp
            estimate, calls, _ = run(method.run, bounded, budget=20)
            inside = (calls >= bounded.lower) & (calls <= bounded.upper)
            assert inside.all() and np.isfinite(estimate.log_evidence)


def test_the_posterior_of_agp_is_its_next_reference(problem, few_draws, monkeypatch):
    """Also from a prior so poor that the first reference is wrong by tens of nats."""
    shifted = replace(problem, prior_mean=problem.prior_mean + 4.0)
    references = []

    def observed(record, gp, reference, *rest):
        references.append(reference(np.zeros((1, 2))))
        evaluate_round(record, gp, reference, *rest)

    monkeypatch.setattr(agp, "evaluate_round", observed)
    estimate, _, _ = run(agp.run_agp, shifted, budget=40)
    assert references[0] == pytest.approx(-np.log(2 * np.pi))  # the prior, in prior units
    assert references[1] != references[0]
    assert np.isfinite(estimate.mean).all()


def test_control_experiments_on_given_points(problem, few_draws):
    generator = np.random.default_rng(5)
    root = np.linalg.cholesky(2.0 * problem.posterior_covariance)
    points = problem.posterior_mean + generator.standard_normal((60, 2)) @ root.T
    log_joint = np.array([problem.log_joint(x) for x in points])
    snapshots = control_snapshots(problem, points, log_joint, [30, 60], seed=1)
    assert [snapshot.n_evaluations for snapshot in snapshots] == [30, 60]
    assert abs(snapshots[1].log_evidence - problem.log_evidence) < 0.1
    exact = problem.posterior_mean, problem.posterior_covariance
    assert gskl(snapshots[1].mean, snapshots[1].covariance, *exact) < 0.05
