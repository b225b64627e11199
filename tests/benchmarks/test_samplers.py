import math
from types import SimpleNamespace

import dynesty
import numpy as np
import pytest
from benchmarks.errors import BenchmarkError
from benchmarks.methods import SAMPLERS
from benchmarks.methods import sampling as shared
from benchmarks.methods.base import LibraryClock
from benchmarks.methods.mcmc import later_half
from benchmarks.methods.nested_sampling import N_LIVE, REMAINING_LOG_EVIDENCE, weigh
from benchmarks.metrics import gskl, mmtv
from benchmarks.problems import load_problem
from scipy.integrate import quad
from scipy.stats import norm

from sparing.errors import MissingExtraError


def run(method, problem, budget, seed=1):
    """The estimate and the number of calls of the target."""
    n_calls = 0

    def target(x):
        nonlocal n_calls
        n_calls += 1
        return problem.log_joint(x)

    clock = LibraryClock()
    x0 = problem.starting_point(seed)
    estimate = SAMPLERS[method].run(problem, clock.exclude(target), x0, seed, budget, clock)
    assert 0.0 < clock.cpu < 60.0
    return estimate, n_calls


@pytest.fixture(scope="module")
def lumpy():
    return load_problem("lumpy-2-g1", None)


@pytest.fixture(scope="module")
def nested(lumpy):
    return run("nested-sampling", lumpy, 30_000)


@pytest.fixture(scope="module")
def chain(lumpy):
    return run("mcmc", lumpy, 24_000)


def divergence(problem, estimate):
    exact = problem.posterior_mean, problem.posterior_covariance
    return gskl(estimate.mean, estimate.covariance, *exact)


def test_nested_sampling_finds_evidence_and_posterior(lumpy, nested):
    estimate, n_calls = nested
    assert estimate.converged and n_calls < 30_000
    assert abs(estimate.log_evidence - lumpy.log_evidence) < 3 * estimate.log_evidence_sd < 0.3
    assert divergence(lumpy, estimate) < 0.02
    assert mmtv(estimate.samples, lumpy.marginals) < 0.1
    assert math.isnan(estimate.elbo)


def test_nested_sampling_agrees_with_what_the_package_says_of_its_own_run(lumpy, nested):
    estimate, n_calls = nested
    counted = SimpleNamespace(n=0)

    def log_likelihood(x):
        counted.n += 1
        return lumpy.log_likelihood(x)

    def prior_transform(u):
        return norm.ppf(u, lumpy.prior_mean, lumpy.prior_sd)

    sampler = dynesty.NestedSampler(
        log_likelihood, prior_transform, 2, nlive=N_LIVE, rstate=np.random.default_rng(1)
    )
    sampler.run_nested(dlogz=REMAINING_LOG_EVIDENCE, print_progress=False)
    assert counted.n == n_calls
    results = sampler.results
    assert estimate.log_evidence == pytest.approx(results.logz[-1], abs=0.01)
    weights = results.importance_weights()
    np.testing.assert_allclose(estimate.mean, weights @ results.samples, atol=0.01)


def test_snapshots_of_nested_sampling_are_what_it_knew_then(lumpy, nested):
    estimate, n_calls = nested
    counts = [snapshot.n_evaluations for snapshot in estimate.snapshots]
    assert counts == sorted(set(counts))
    assert counts[0] > N_LIVE and counts[-1] <= n_calls
    last = estimate.snapshots[-1]
    assert last.log_evidence == pytest.approx(estimate.log_evidence, abs=0.1)
    assert last.log_evidence_sd == pytest.approx(estimate.log_evidence_sd, rel=0.2)
    assert divergence(lumpy, last) < 0.05
    early = estimate.snapshots[5]
    cut_short, n_cut = run("nested-sampling", lumpy, early.n_evaluations - 1)
    assert not cut_short.converged and n_cut == early.n_evaluations
    assert cut_short.log_evidence == pytest.approx(early.log_evidence)
    assert cut_short.log_evidence_sd == pytest.approx(early.log_evidence_sd)
    np.testing.assert_allclose(cut_short.covariance, early.covariance)


def test_weights_follow_the_volumes_left():
    """On volumes exp(-i / M), with live points spread evenly over the rest."""
    M, m, width = 400, 3000, 0.02

    def log_l(x):
        return -x / width

    volumes = np.exp(-np.arange(m + 1) / M)
    middles = 0.5 * (volumes[1:] + volumes[:-1])
    alive = volumes[-1] * (np.arange(M) + 0.5) / M
    points = np.concatenate([middles, alive])[:, None]
    known = weigh(points[:m], log_l(middles), points[m:], log_l(alive))
    evidence = quad(lambda x: math.exp(log_l(x)), 0, 1, points=[width], epsabs=1e-12)[0]
    assert known.log_evidence == pytest.approx(math.log(evidence), abs=1e-5)
    assert known.weights.sum() == pytest.approx(1.0)

    def moment(power):
        return quad(lambda x: x**power * math.exp(log_l(x)), 0, 1, points=[width])[0] / evidence

    assert known.mean == pytest.approx([moment(1)], rel=1e-4)
    assert known.covariance[0, 0] == pytest.approx(moment(2) - moment(1) ** 2, rel=1e-4)
    information = -moment(1) / width - math.log(evidence)
    assert known.log_evidence_sd == pytest.approx(math.sqrt(information / M), rel=1e-4)


def test_mcmc_finds_the_posterior_and_no_evidence(lumpy, chain):
    estimate, n_calls = chain
    assert n_calls == 24_000
    assert math.isnan(estimate.log_evidence) and math.isnan(estimate.log_evidence_sd)
    assert divergence(lumpy, estimate) < 0.05
    assert mmtv(estimate.samples, lumpy.marginals) < 0.15


def test_snapshots_of_mcmc_use_what_was_sampled_by_then(lumpy, chain):
    estimate, _ = chain
    counts = [snapshot.n_evaluations for snapshot in estimate.snapshots]
    assert counts == sorted(set(counts)) and counts[-1] == 24_000
    np.testing.assert_array_equal(estimate.snapshots[-1].mean, estimate.mean)
    shorter, _ = run("mcmc", lumpy, counts[10])
    np.testing.assert_allclose(estimate.snapshots[10].mean, shorter.mean)
    np.testing.assert_allclose(estimate.snapshots[10].covariance, shorter.covariance)


def test_mcmc_converges_when_the_chain_is_many_autocorrelation_times_long(lumpy, chain):
    assert chain[0].converged
    assert not run("mcmc", lumpy, 400)[0].converged


def test_the_first_half_of_a_chain_is_left_out():
    steps = np.arange(5.0)[:, None, None] * np.ones((5, 3, 2))
    np.testing.assert_array_equal(np.unique(later_half(steps)), [2, 3, 4])
    assert later_half(steps).shape == (9, 2)


@pytest.mark.parametrize("method", SAMPLERS)
def test_the_same_seed_gives_the_same_run(lumpy, method):
    first, second = (run(method, lumpy, 2_000)[0] for _ in range(2))
    np.testing.assert_array_equal(first.samples, second.samples)
    other, _ = run(method, lumpy, 2_000, seed=2)
    assert not np.array_equal(first.mean, other.mean)


@pytest.mark.parametrize(("method", "budget"), [("nested-sampling", 500), ("mcmc", 15)])
def test_a_budget_that_is_too_small_is_explained(lumpy, method, budget):
    with pytest.raises(BenchmarkError, match="budget"):
        run(method, lumpy, budget)


def test_an_absent_package_is_named_with_its_extra():
    with pytest.raises(MissingExtraError, match=r"no_such_package.*sparing\[benchmarks\]"):
        shared.import_sampler("no_such_package")


def test_the_unit_cube_is_mapped_to_the_prior(lumpy):
    u = np.random.default_rng(3).uniform(size=(7, 2))
    expected = norm.ppf(u, lumpy.prior_mean, lumpy.prior_sd)
    np.testing.assert_allclose(shared.prior_quantile(lumpy, u), expected)
    box = SimpleNamespace(
        hard_box=object(), lower=np.array([-1.0, 2.0]), upper=np.array([1.0, 8.0])
    )
    np.testing.assert_allclose(shared.prior_quantile(box, np.array([0.25, 0.5])), [-0.5, 5.0])


def test_snapshots_are_even_in_the_logarithm_and_end_with_the_budget():
    counts = shared.snapshot_counts(5_000)
    assert counts[0] == 50 and counts[-1] == 5_000 and len(counts) == 33
    ratios = np.diff(np.log(counts))
    assert ratios.max() / ratios.min() < 1.5
    assert shared.snapshot_counts(20) == [20]
