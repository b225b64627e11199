import builtins
import math

import numpy as np
import pytest
from benchmarks.__main__ import main
from benchmarks.beside_nuts import Outcome, Target, logistic_regression, row, run_nuts, run_sparing
from benchmarks.metrics import gskl
from benchmarks.problems import load_problem
from scipy.optimize import approx_fprime, minimize
from scipy.special import logsumexp
from scipy.stats import multivariate_t, norm


@pytest.fixture(scope="module")
def regression():
    return logistic_regression()


def test_the_regression_s_gradient_and_answers(regression):
    x = np.linspace(-1.0, 1.0, 7)
    expected = approx_fprime(x, regression.log_joint, 1e-7)
    np.testing.assert_allclose(regression.log_joint_gradient(x), expected, rtol=1e-4, atol=1e-4)
    assert regression.log_prior(x) == pytest.approx(norm(0, 2).logpdf(x).sum())

    # Plain importance sampling about the mode, one point at a time.
    best = minimize(
        lambda x: -regression.log_joint(x),
        np.zeros(7),
        jac=lambda x: -regression.log_joint_gradient(x),
    )
    proposal = multivariate_t(best.x, 1.3 * best.hess_inv, df=8, seed=1)
    points = proposal.rvs(10_000)
    log_weights = [regression.log_joint(x) for x in points] - proposal.logpdf(points)
    log_evidence = logsumexp(log_weights) - np.log(len(points))
    assert regression.log_evidence == pytest.approx(log_evidence, abs=0.03)
    weights = np.exp(log_weights - logsumexp(log_weights))
    moments = weights @ points, np.cov(points.T, aweights=weights)
    assert gskl(regression.posterior_mean, regression.posterior_covariance, *moments) < 0.01


def test_a_call_takes_the_time_it_should_and_is_counted(regression):
    target = Target(regression, 0.05)
    value, gradient = target(np.zeros(7))
    assert value == target.value(np.zeros(7)) == regression.log_joint(np.zeros(7))
    np.testing.assert_array_equal(gradient, regression.log_joint_gradient(np.zeros(7)))
    assert target.calls == 2
    assert target.wall > 0.09  # two calls of 0.05 s


def test_sparing_s_calls_are_counted_and_its_answer_is_judged():
    outcome = run_sparing(load_problem("cigar-2-g1", None), 1, 0.0, with_gradients=True)
    assert 10 < outcome.evaluations < 100
    assert outcome.lml_error < 0.1 and outcome.gskl < 0.1
    assert math.isnan(outcome.effective_draws)


def test_a_row_has_medians_and_says_what_is_not_estimated():
    runs = [Outcome(n, 0.1 * n, math.nan, math.nan, 0.01 * n, 7.0) for n in (1, 20, 300)]
    assert row("p", "NUTS", runs) == "| p | NUTS | 20 | 2 | - | - | 0.2 | 7 |"


def test_without_numpyro_the_command_says_what_to_install(monkeypatch, capsys):
    original = builtins.__import__

    def without_numpyro(name, *arguments, **options):
        if name == "numpyro":
            raise ModuleNotFoundError("No module named 'numpyro'", name="numpyro")
        return original(name, *arguments, **options)

    monkeypatch.setattr(builtins, "__import__", without_numpyro)
    assert main(["nuts"]) == 2
    assert "numpyro is not installed: pip install" in capsys.readouterr().err


def test_nuts_finds_the_posterior_and_every_leapfrog_step_is_counted(regression):
    pytest.importorskip("numpyro")
    outcome = run_nuts(regression, 1, 0.1, length=200, acceptance=0.8)
    assert outcome.evaluations > 400  # at least one a draw
    assert outcome.seconds > 0.1 * outcome.evaluations
    assert outcome.gskl < 1.0 and outcome.effective_draws > 20
    assert math.isnan(outcome.lml_error)


def test_the_command_prints_a_row_for_each_method(monkeypatch, capsys):
    pytest.importorskip("numpyro")
    monkeypatch.setattr(
        "benchmarks.beside_nuts.run_sparing",
        lambda problem, seed, seconds, *, with_gradients: Outcome(1, 1, 1, 1, 1, 1),
    )
    arguments = ["--problems", "logistic regression", "--seeds", "1", "--draws", "20"]
    assert main(["nuts", *arguments, "--seconds", "0"]) == 0
    rows = [line.split("|")[1:-1] for line in capsys.readouterr().out.splitlines()]
    assert [line[1].strip() for line in rows[2:]] == [
        "sparing, gradients",
        "sparing, values alone",
        "NUTS, 20 + 20",
    ]
