"""The neuronal model against a plain transcription of its equations, and its recorded answers.

Tests of the recorded cells need SPARING_BENCHMARK_DATA, the directory with ``neuron/``.
"""

import json
import os
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from benchmarks.errors import BenchmarkError
from benchmarks.problems import load_problem
from benchmarks.problems.neuron import make_synthetic_truth, synthetic_truth
from benchmarks.problems.neuron.cell import Cell
from benchmarks.problems.neuron.likelihood import (
    NeuronLikelihood,
    direction_tuning,
    spatial_tuning,
    temporal_tuning,
)
from benchmarks.problems.neuron.parameters import (
    LOWER,
    PLAUSIBLE_LOWER,
    PLAUSIBLE_UPPER,
    UPPER,
    from_unbounded,
    log_jacobian,
    to_unbounded,
)
from benchmarks.problems.neuron.synthetic import TRUE_PARAMETERS, generate_cell
from scipy import stats

DATA = os.environ.get("SPARING_BENCHMARK_DATA")
needs_data = pytest.mark.skipif(
    DATA is None, reason="SPARING_BENCHMARK_DATA does not name the directory with neuron/"
)
CELLS = {"neuron-v1": "m620r35", "neuron-v2": "m620r12"}


@pytest.fixture(scope="module")
def cell():
    return generate_cell()


def plain_log_likelihood(cell, x):
    """The model's equations, trial by trial, with the count distribution of scipy."""
    theta, s, a, d, g, rho, v = x
    fixed = cell.fixed
    t = np.arange(120) / 120
    total = stats.lognorm.logpdf(rho, 0.3, scale=np.exp(1.15))
    for experiment in cell.experiments:
        F = experiment.preferred_temporal_frequency
        for i, n in enumerate(experiment.count):
            excitation, wave = np.zeros(120), np.zeros(120, dtype=complex)
            for c, k in enumerate(experiment.contrast[i]):
                f = experiment.temporal_frequency[i, c]
                D = np.pi * (theta - experiment.direction[i, c]) / 180
                ahead = (D + np.pi / 2) % (2 * np.pi) < np.pi
                A = (np.cos(D) ** 2 * np.exp(-(a**2 - 1) * np.sin(D) ** 2)) ** (d / 2)
                A *= 1.0 if ahead else 1 - fixed.direction_selectivity
                ratio = experiment.spatial_frequency[i, c] / s
                S = ratio**d * np.exp(-(d / 2) * (ratio**2 - 1))
                Q = (f / F) ** 0.25 * np.exp(-((f / F) ** 2 - 1) / 8)
                excitation += A * S * Q * k * np.cos(2 * np.pi * f * t)
                wave += Q * k * np.exp(2j * np.pi * f * t)
            drive = fixed.early_noise + np.maximum(0, excitation) + g * np.abs(wave)
            drive /= 10 ** (2 * fixed.log10_normalisation) + experiment.pool[i]
            rate = fixed.late_noise + fixed.response_scale * np.mean(np.maximum(0, drive) ** rho)
            mu = max(0.01, experiment.duration[i] * rate)
            P = stats.nbinom.pmf(n, 1 / v, 1 / (1 + v * mu))
            total += np.log(1e-10 + (1 - 1e-10) * P)
    return total


POINTS = {
    "true": TRUE_PARAMETERS,
    "inhibition that silences": np.array([100.0, 2.0, 0.4, 0.5, -0.8, 4.0, 0.5]),
    "excess drive": np.array([250.0, 8.0, 3.0, 3.0, 0.5, 1.2, 5.0]),
    "a corner": np.array([0.0, 0.05, 0.1, 0.1, -1.0, 1.0, 1e-3]),
}


@pytest.mark.parametrize("point", POINTS)
def test_log_likelihood_is_that_of_the_equations(cell, point):
    x = POINTS[point]
    expected = plain_log_likelihood(cell, x)
    assert NeuronLikelihood.of(cell)(x) == pytest.approx(expected, rel=1e-12, abs=1e-9)


def test_a_silent_cell_keeps_the_lowest_mean_count(cell):
    quiet = replace(cell, fixed=replace(cell.fixed, late_noise=1e-4, response_scale=1e-3))
    likelihood = NeuronLikelihood.of(quiet)
    assert np.all(likelihood.expected_counts(TRUE_PARAMETERS) == 0.01)
    expected = plain_log_likelihood(quiet, TRUE_PARAMETERS)
    assert likelihood(TRUE_PARAMETERS) == pytest.approx(expected, rel=1e-12)
    assert expected < 50 * np.log(1e-10)  # the floor of a trial has been reached many times


def test_trials_of_the_same_condition_are_computed_once(cell):
    mixture, gratings = cell.experiments
    likelihood = NeuronLikelihood.of(Cell((gratings,), cell.fixed))
    assert len(gratings.count) == 48 and len(likelihood.inhibition) == 12  # 11 gratings, blanks
    assert len(NeuronLikelihood.of(cell).inhibition) < len(mixture.count) + 12


def test_what_a_grating_without_contrast_would_be_does_not_matter(cell):
    mixture = cell.experiments[0]
    blank = mixture.contrast == 0
    others = replace(
        mixture,
        direction=np.where(blank, 77.0, mixture.direction),
        temporal_frequency=np.where(blank, 1.0, mixture.temporal_frequency),
    )
    original, changed = (NeuronLikelihood.of(Cell((e,), cell.fixed)) for e in (mixture, others))
    assert len(original.inhibition) == len(changed.inhibition)
    assert original(TRUE_PARAMETERS) == pytest.approx(changed(TRUE_PARAMETERS), rel=1e-14)


@pytest.mark.parametrize("parameter", range(7))
def test_not_a_number_is_not_hidden(cell, parameter):
    x = TRUE_PARAMETERS.copy()
    x[parameter] = np.nan
    assert np.isnan(NeuronLikelihood.of(cell)(x))


def test_tuning_is_one_and_stationary_at_the_optimum():
    at = np.array([1.0 - 1e-4, 1.0, 1.0 + 1e-4])
    for curve in (
        direction_tuning(100 + at, 101.0, 2.0, 1.5, 0.8),
        spatial_tuning(3 * at, 3.0, 1.5),
        temporal_tuning(5 * at, 5.0),
    ):
        assert curve[1] == 1
        assert np.all(curve[[0, 2]] < 1) and np.all(curve > 1 - 1e-6)


def test_directions_in_the_other_half_plane_are_attenuated():
    o = np.array([350.0, 20.0, 60.0, -190.0, 200.0])  # theta - o: -340, -10, -50, 200, -190
    selective = direction_tuning(o, 10.0, 1.5, 1.2, 0.7)
    plain = direction_tuning(o, 10.0, 1.5, 1.2, 0.0)
    np.testing.assert_allclose(selective / plain, [1, 1, 1, 0.3, 0.3])


def test_unbounded_coordinates_and_their_jacobian():
    generator = np.random.default_rng(0)
    x = generator.uniform(LOWER, UPPER)
    u = to_unbounded(x)
    np.testing.assert_allclose(from_unbounded(u), x)
    h = 1e-5
    slopes = (from_unbounded(u + h) - from_unbounded(u - h)) / (2 * h)
    assert log_jacobian(u) == pytest.approx(np.log(slopes).sum(), abs=1e-8)
    np.testing.assert_array_equal(from_unbounded(np.full(7, -800.0)), LOWER)
    assert log_jacobian(np.full(7, -800.0)) == pytest.approx(np.log(UPPER - LOWER).sum() - 5600)


def test_normal_prior_problem_subtracts_the_jacobian(cell):
    problem = load_problem("neuron-synthetic", None)
    lower = [-1.098612289, -3.472656346, -2.772588722, -2.772588722]  # as published
    lower = np.array([*lower, -0.6190392084, -1.504077397, -7.012115294])
    upper = [1.098612289, 0.6881346387, 2.335374916, 2.335374916]
    upper = np.array([*upper, 0.6190392084, 0.980829253, -2.198225078])
    np.testing.assert_allclose(problem.plausible_lower, lower, rtol=1e-9)
    np.testing.assert_allclose(problem.plausible_upper, upper, rtol=1e-9)
    u = problem.starting_point(1)
    assert np.all((lower < u) & (u < upper))
    prior = stats.norm.logpdf(u, (lower + upper) / 2, (upper - lower) / 2).sum()
    assert problem.log_prior(u) == pytest.approx(prior)
    z = (from_unbounded(u) - LOWER) / (UPPER - LOWER)
    jacobian = np.sum(np.log((UPPER - LOWER) * z * (1 - z)))  # dx/du = width z (1 - z)
    expected = NeuronLikelihood.of(cell)(from_unbounded(u)) - jacobian + prior
    assert problem.log_joint(u) == pytest.approx(expected)
    assert problem.dimension == 7 and problem.budget == 450 and problem.marginals is None
    assert np.all(problem.lower == -np.inf) and np.all(problem.upper == np.inf)


def test_uniform_prior_problem_is_bounded(cell):
    problem = load_problem("neuron-synthetic-uniform", None)
    np.testing.assert_array_equal(problem.lower, LOWER)
    np.testing.assert_array_equal(problem.upper, UPPER)
    np.testing.assert_array_equal(problem.plausible_lower[:5], PLAUSIBLE_LOWER[:5])
    np.testing.assert_array_equal(problem.plausible_lower[5:], [1.01, 0.015])
    np.testing.assert_array_equal(problem.plausible_upper, PLAUSIBLE_UPPER)
    prior = stats.uniform(LOWER, UPPER - LOWER)
    np.testing.assert_allclose(problem.prior_mean, prior.mean())
    np.testing.assert_allclose(problem.prior_sd, prior.std())
    x = problem.starting_point(2)
    assert np.all((problem.plausible_lower < x) & (x < PLAUSIBLE_UPPER))
    expected = NeuronLikelihood.of(cell)(x) + prior.logpdf(x).sum()
    assert problem.log_joint(x) == pytest.approx(expected)
    assert np.isfinite(problem.log_joint(LOWER)) and np.isfinite(problem.log_joint(UPPER))


def test_the_likelihood_is_not_called_outside_the_hard_box():
    def refuse(x):
        raise AssertionError("called outside")

    problem = replace(load_problem("neuron-synthetic-uniform", None), log_likelihood=refuse)
    for d in range(7):
        for beyond in (LOWER - 1e-9, UPPER + 1e-9):
            x = problem.posterior_mean.copy()
            x[d] = beyond[d]
            assert problem.log_prior(x) == -np.inf and problem.log_joint(x) == -np.inf


def importance_sampling(log_density, mean, covariance, n):
    """Evidence relative to exp(shift), its relative error, points and normalised weights."""
    proposal = stats.multivariate_t(mean, 1.1 * covariance, df=4, seed=3)
    points = proposal.rvs(n)
    log_weights = np.array([log_density(u) for u in points]) - proposal.logpdf(points)
    weights = np.exp(log_weights - log_weights.max())
    log_evidence = np.log(weights.mean()) + log_weights.max()
    error = weights.std() / weights.mean() / np.sqrt(n)
    return log_evidence, error, points, weights / weights.sum()


def check_moments(problem, points, weights):
    sd = np.sqrt(np.diag(problem.posterior_covariance))
    effective = 1 / np.sum(weights**2)
    mean = weights @ points
    assert np.all(np.abs(mean - problem.posterior_mean) < 4 * sd / np.sqrt(effective))
    correlation = (weights[:, None] * (points - mean) / sd).T @ ((points - mean) / sd)
    expected = problem.posterior_covariance / np.outer(sd, sd)
    np.testing.assert_allclose(correlation, expected, atol=0.2)


def test_answers_of_the_generated_cell_agree_with_importance_sampling():
    problem = load_problem("neuron-synthetic", None)
    moments = problem.posterior_mean, problem.posterior_covariance
    estimate, error, *draws = importance_sampling(problem.log_joint, *moments, 5000)
    assert error < 0.03
    assert abs(estimate - problem.log_evidence) < 4 * error
    check_moments(problem, *draws)


def test_uniform_answers_of_the_generated_cell_agree_with_importance_sampling():
    problem = load_problem("neuron-synthetic-uniform", None)
    # Straight in x, where the hard bounds cut the proposal; the table was made in u.
    moments = problem.posterior_mean, problem.posterior_covariance
    estimate, error, *draws = importance_sampling(problem.log_joint, *moments, 5000)
    assert error < 0.04
    assert abs(estimate - problem.log_evidence) < 4 * error
    check_moments(problem, *draws)


def test_the_table_is_made_by_an_estimator_that_knows_a_normal(monkeypatch):
    monkeypatch.setattr(make_synthetic_truth, "ADAPTATION_DRAWS", 500)
    monkeypatch.setattr(make_synthetic_truth, "FINAL_DRAWS", 4000)
    mean, covariance = np.array([1.0, -2.0]), np.array([[2.0, 0.5], [0.5, 0.3]])
    normal = stats.multivariate_normal(mean, covariance)
    draws = make_synthetic_truth.sample_posterior(
        lambda u: normal.logpdf(u) - 700.0, np.zeros(2), np.random.default_rng(0)
    )
    assert draws.log_evidence == pytest.approx(-700.0, abs=4 * draws.log_evidence_se)
    assert 0 < draws.log_evidence_se < 0.02 and 2000 < draws.effective_sample_size < 4000
    found_mean, found_covariance = draws.moments(lambda u: 2 * u)
    np.testing.assert_allclose(found_mean, 2 * mean, atol=0.1)
    np.testing.assert_allclose(found_covariance, 4 * covariance, rtol=0.15)


def test_a_table_of_another_cell_is_refused(cell):
    mixture, gratings = cell.experiments
    other = replace(gratings, count=gratings.count + 1)
    likelihood = NeuronLikelihood.of(Cell((mixture, other), cell.fixed))
    with pytest.raises(BenchmarkError, match="make the table anew"):
        synthetic_truth.read_truth(likelihood, uniform=False)


@pytest.fixture
def recordings(tmp_path, cell):
    """A data directory with the generated cell in the place of m620r35."""
    mixture, gratings = cell.experiments
    folder = tmp_path / "neuron"
    folder.mkdir()
    np.savez(
        folder / "neuron_m620r35.npz",
        tp_ori=mixture.direction,
        tp_tf=mixture.temporal_frequency,
        tp_con=mixture.contrast,
        tp_norm=mixture.pool,
        tp_duration=mixture.duration,
        tp_count=mixture.count.astype(np.int16),
        tp_sf=2.5,
        tp_pref_tf=5.0,
        sf_ori=gratings.direction[:, 0],
        sf_tf=gratings.temporal_frequency[:, 0],
        sf_con=gratings.contrast[:, 0],
        sf_sf=gratings.spatial_frequency[:, 0],
        sf_duration=gratings.duration,
        sf_count=gratings.count.astype(np.int16),
        sf_pref_tf=5.0,
    )
    fixed = dict(vars(cell.fixed))
    fixed["log10_norm_const"] = fixed.pop("log10_normalisation")
    numbers = {
        "fixed_params": fixed,
        "truth": {"mean_u": [1.0] * 7, "cov_u": np.eye(7).tolist(), "lnZ": -5.0},
        "recheck_importance_sampling": {"lnZ": -4.5},
        "alternative_uniform_prior_2020": {
            "mean_x": [2.0] * 7,
            "cov_x": np.eye(7).tolist(),
            "lnZ": -7.0,
        },
    }
    (folder / "truth.json").write_text(json.dumps({"neurons": {"m620r35": numbers}}))
    return tmp_path


def test_a_recorded_cell_is_read_from_a_directory_or_from_beside_a_file(recordings):
    generated = load_problem("neuron-synthetic", None)
    u = generated.starting_point(0)
    for data in (recordings, recordings / "synthetic_problems.json"):
        problem = load_problem("neuron-v1", data)
        assert problem.log_joint(u) == generated.log_joint(u)
        assert problem.log_evidence == -5.0
        assert problem.log_evidence_alternatives == {"recomputed": -4.5}
        np.testing.assert_array_equal(problem.posterior_mean, 1.0)
        np.testing.assert_array_equal(problem.posterior_covariance, np.eye(7))
    uniform = load_problem("neuron-v1-uniform", recordings)
    x = from_unbounded(u)
    assert uniform.log_joint(x) == load_problem("neuron-synthetic-uniform", None).log_joint(x)
    assert uniform.log_evidence == -7.0 and not uniform.log_evidence_alternatives
    np.testing.assert_array_equal(uniform.posterior_mean, 2.0)


def test_missing_and_damaged_data_are_explained(recordings):
    folder = recordings / "neuron"
    with pytest.raises(BenchmarkError, match=r"--data PATH.*neuron_m620r12\.npz.*synthetic, a"):
        load_problem("neuron-v2", None)
    with pytest.raises(BenchmarkError, match="use neuron-synthetic-uniform"):
        load_problem("neuron-v1-uniform", None)
    with pytest.raises(BenchmarkError, match=r"no .*truth\.json: --data names.*needs no data"):
        load_problem("neuron-v1", recordings / "elsewhere" / "problems.json")
    with pytest.raises(BenchmarkError, match=r"holds no cell m620r12 \(it has: m620r35\)"):
        load_problem("neuron-v2", recordings)
    with pytest.raises(BenchmarkError, match=r"unknown problem.*neuron-v1, "):
        load_problem("neuron-v3", recordings)
    with np.load(folder / "neuron_m620r35.npz") as archive:
        arrays = dict(archive)
    del arrays["tp_norm"], arrays["sf_tf"]
    np.savez(folder / "neuron_m620r35.npz", **arrays)
    with pytest.raises(BenchmarkError, match="lacks tp_norm, sf_tf"):
        load_problem("neuron-v1", recordings)
    (folder / "neuron_m620r35.npz").write_bytes(b"PK, but no archive")
    with pytest.raises(BenchmarkError, match="cannot read the recording"):
        load_problem("neuron-v1", recordings)
    (folder / "neuron_m620r35.npz").unlink()
    with pytest.raises(BenchmarkError, match="no recording of the cell"):
        load_problem("neuron-v1", recordings)
    numbers = json.loads((folder / "truth.json").read_text())
    del numbers["neurons"]["m620r35"]["fixed_params"]["early_noise"]
    del numbers["neurons"]["m620r35"]["alternative_uniform_prior_2020"]
    (folder / "truth.json").write_text(json.dumps(numbers))
    with pytest.raises(BenchmarkError, match="m620r35 lacks 'early_noise'"):
        load_problem("neuron-v1", recordings)
    with pytest.raises(BenchmarkError, match="m620r35 lacks 'alternative_uniform_prior_2020'"):
        load_problem("neuron-v1-uniform", recordings)
    (folder / "truth.json").write_text("{")
    with pytest.raises(BenchmarkError, match="cannot read the answers"):
        load_problem("neuron-v1", recordings)


def test_a_directory_as_data_also_serves_the_synthetic_families(tmp_path):
    numbers = {"lumpy": {"1": {"weights": [1.0], "means": [[0.5]], "sds": [[0.4]]}}}
    (tmp_path / "synthetic_problems.json").write_text(json.dumps(numbers))
    by_directory = load_problem("lumpy-1", tmp_path)
    by_file = load_problem("lumpy-1", tmp_path / "synthetic_problems.json")
    assert by_directory.log_evidence == by_file.log_evidence
    (tmp_path / "synthetic_problems.json").unlink()
    with pytest.raises(BenchmarkError, match=r"no file.*synthetic_problems\.json"):
        load_problem("lumpy-1", tmp_path)


@pytest.fixture
def published():
    return json.loads((Path(DATA or "") / "neuron" / "truth.json").read_text())


@needs_data
def test_the_table_of_parameters_is_the_published_one(published):
    table = {"lb": LOWER, "ub": UPPER, "plb": PLAUSIBLE_LOWER, "pub": PLAUSIBLE_UPPER}
    for key, values in table.items():
        np.testing.assert_array_equal(values, published[key])
    problem = load_problem("neuron-v1", Path(DATA or ""))
    np.testing.assert_allclose(problem.prior_mean, published["prior_mean_u"], atol=1e-14)
    np.testing.assert_allclose(problem.prior_sd, published["prior_sd_u"], rtol=1e-14)


@needs_data
@pytest.mark.parametrize("name", CELLS)
def test_recorded_cells_give_the_check_values(published, name):
    problem = load_problem(name, Path(DATA or ""))
    uniform = load_problem(f"{name}-uniform", Path(DATA or ""))
    numbers = published["neurons"][CELLS[name]]
    points = numbers["reference_points"] + numbers["extra_points"]
    assert len(points) == 39
    for point in points:
        u, x = np.array(point["u"]), np.array(point["x"])
        assert abs(uniform.log_likelihood(x) - point["loglik"]) < 1e-8
        assert abs(problem.log_likelihood(u) - point["target"]) < 1e-8
        assert abs(problem.log_joint(u) - point["log_joint"]) < 1e-8
    best = np.array(numbers["xmin_12"])[published["free_index_zero_based"]]
    assert abs(uniform.log_likelihood(best) - numbers["loglik_at_xmin"]) < 1e-8
    assert problem.log_evidence == numbers["truth"]["lnZ"]


@needs_data
def test_evidence_of_the_recorded_v1_cell_agrees_with_importance_sampling():
    problem = load_problem("neuron-v1", Path(DATA or ""))
    uniform = load_problem("neuron-v1-uniform", Path(DATA or ""))
    moments = problem.posterior_mean, problem.posterior_covariance
    estimate, error, *_ = importance_sampling(problem.log_joint, *moments, 1500)
    assert error < 0.05
    assert abs(estimate - problem.log_evidence_alternatives["recomputed"]) < 4 * error
    assert abs(estimate - problem.log_evidence) < 0.3  # the published value is not exact

    def in_u(u):
        return uniform.log_joint(from_unbounded(u)) + log_jacobian(u)

    estimate, error, *_ = importance_sampling(in_u, *moments, 1500)
    assert error < 0.06
    assert abs(estimate - uniform.log_evidence) < 4 * error
