"""The models with data: likelihoods against other ways to write them, answers of the table."""

import json

import numpy as np
import pytest
from benchmarks.errors import BenchmarkError
from benchmarks.metrics import gskl
from benchmarks.problems import load_problem
from benchmarks.problems.importance import importance_sample, tempered_sample
from benchmarks.problems.models import problems
from benchmarks.problems.models.epidemic import POPULATION, expected_cases
from benchmarks.problems.models.problems import MODELS, TABLE
from benchmarks.problems.shapes import FAMILIES, member_generator, names_in
from scipy import stats
from scipy.integrate import solve_ivp
from scipy.special import expit

NAMES = [f"{family}-{D}-0" for family in MODELS for D in FAMILIES[family].set_dimensions]


def model_of(name):
    family, D, number = name.split("-")
    return MODELS[family](int(D), member_generator(family, int(D), int(number)))


@pytest.mark.parametrize("name", NAMES)
def test_the_table_agrees_with_a_short_importance_sample(name):
    problem, model = load_problem(name, None), model_of(name)
    generator = np.random.default_rng(9)
    start = generator.multivariate_normal(
        problem.posterior_mean, 3 * problem.posterior_covariance, size=1000
    )
    draws = importance_sample(
        model.log_joints, start, generator, 4000, rounds=6, components=30, last_draws=20_000
    )
    assert draws.log_evidence_se < 0.05
    assert abs(draws.log_evidence - problem.log_evidence) < 4 * draws.log_evidence_se + 0.01
    moments = problem.posterior_mean, problem.posterior_covariance
    assert gskl(*draws.moments(), *moments) < 0.05
    sd = np.sqrt(np.diag(problem.posterior_covariance))
    for d, marginal in enumerate(problem.marginals):
        below = draws.weights @ (draws.points[:, d, None] < marginal.quantile([0.025, 0.5, 0.975]))
        np.testing.assert_allclose(below, [0.025, 0.5, 0.975], atol=0.03)
        assert marginal.quantile(np.linspace(0.001, 0.999, 9999)).std() == pytest.approx(
            sd[d], rel=0.05
        )


def test_the_table_has_every_member_of_the_sets_and_both_methods_agreed():
    table = json.loads(TABLE.read_text())
    wanted = [name for name in names_in(["tuning", "held-out"]) if name.split("-")[0] in MODELS]
    assert set(wanted) <= set(table)
    for entry in table.values():
        assert entry["log_evidence_se"] < 0.01
        assert entry["lml_difference"] < 0.06 and entry["gskl"] < 0.01


@pytest.mark.parametrize("name", NAMES)
def test_one_point_and_many_have_the_same_density(name):
    problem, model = load_problem(name, None), model_of(name)
    points = model.sample_prior(5, np.random.default_rng(1))
    together = model.log_joints(points)
    np.testing.assert_allclose([problem.log_joint(x) for x in points], together, rtol=1e-10)


def test_the_epidemic_is_what_an_adaptive_solver_makes_of_it():
    theta = np.array([np.log(2.2), 0.1, np.log(20.0), -0.5, 2.0])
    mean, _ = expected_cases(theta[None], 10)
    gamma = np.exp(theta[1])
    beta = 2.2 * gamma

    def slope(_, state):
        s, i = state
        return [-beta * s * i / POPULATION, beta * s * i / POPULATION - gamma * i]

    exact = solve_ivp(slope, (0, 10), [POPULATION - 20, 20.0], t_eval=np.arange(11.0), rtol=1e-9)
    np.testing.assert_allclose(mean[0], -np.diff(exact.y[0]) * expit(-0.5), rtol=1e-3)


def test_priors_of_the_rates_are_normalised():
    model = model_of("psychometric-4-0")
    points = model.sample_prior(200_000, np.random.default_rng(0))
    ratios = np.exp(model.log_prior_ratios(points))
    assert ratios.mean() == pytest.approx(1.0, abs=0.02)
    cut = stats.beta(1, 10)
    share = ratios @ (points[:, 2] < 0.1) / len(points)
    assert share == pytest.approx(cut.cdf(0.1) / cut.cdf(0.5), abs=0.02)


def test_the_two_samplers_agree_on_a_normal_they_do_not_know():
    covariance = np.array([[1.0, 0.8], [0.8, 1.0]])
    target = stats.multivariate_normal([1.0, -1.0], covariance)
    origin = stats.multivariate_normal([0.0, 0.0], 9.0)
    generator = np.random.default_rng(5)
    start = origin.rvs(2000, random_state=generator)
    log_density = lambda points: target.logpdf(points) + 3.0  # noqa: E731
    particles = tempered_sample(log_density, origin.logpdf, start, generator)
    draws = importance_sample(log_density, start, generator, 3000, rounds=3)
    for sample in (particles, draws):
        assert sample.log_evidence == pytest.approx(3.0, abs=0.1)
        assert gskl(*sample.moments(), target.mean, covariance) < 0.02


def test_members_without_answers_and_other_data_are_explained(monkeypatch):
    with pytest.raises(BenchmarkError, match="no answers for garch-4-77"):
        load_problem("garch-4-77", None)
    table = json.loads(TABLE.read_text())
    table["garch-4-0"]["fingerprint"] += 1.0
    monkeypatch.setattr(problems, "_table", lambda: table)
    with pytest.raises(BenchmarkError, match="make it anew"):
        load_problem("garch-4-0", None)
