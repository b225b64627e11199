"""Runs that learn from gradients: few evaluations, whatever happens on the way.

The target is a correlated normal in six dimensions, whose evidence is known.
"""

import numpy as np
import pytest
from tests.light import LIGHT

import sparing

ROOT = np.tril(np.random.default_rng(3).uniform(-0.6, 0.6, (6, 6)), -1)
ROOT += np.diag(np.linspace(0.5, 1.5, 6))
PRECISION = np.linalg.inv(ROOT @ ROOT.T)
MEAN = np.linspace(-0.5, 0.5, 6)
LOG_EVIDENCE = 3.0 * np.log(2.0 * np.pi) + np.log(np.diag(ROOT)).sum() - 3.0
# A parabola in six dimensions has 28 coefficients: fewer values than that cannot tell it.
BUDGET = 20
N_DRAWS = LIGHT.final_fit.n_draws


def value(x):
    return -3.0 - 0.5 * float((x - MEAN) @ PRECISION @ (x - MEAN))


def both(x):
    return value(x), -PRECISION @ (x - MEAN)


def infer(log_density=both, gradient=True, **options):
    problem = sparing.Problem(log_density, np.full(6, -3.0), np.full(6, 3.0), gradient=gradient)
    options = {"max_evaluations": BUDGET, "settings": LIGHT, **options}
    return sparing.infer(problem, seed=1, progress=False, **options)


@pytest.fixture(scope="module")
def result():
    return infer()


def assert_right(result):
    assert result.log_evidence == pytest.approx(LOG_EVIDENCE, abs=0.02)
    covariance = ROOT @ ROOT.T
    variances = np.diag(covariance)
    # The posterior is made of draws, so it is right within four standard deviations of theirs.
    errors = result.posterior.mean - MEAN
    np.testing.assert_array_less(np.abs(errors), 4.0 * np.sqrt(variances / N_DRAWS))
    errors = result.posterior.covariance - covariance
    sds = np.sqrt((np.outer(variances, variances) + covariance**2) / N_DRAWS)
    np.testing.assert_array_less(np.abs(errors), 4.0 * sds)


def test_a_few_evaluations_are_enough(result):
    assert_right(result)
    assert len(result.evaluations) == BUDGET
    assert result.surrogate.surrogate.training.has_gradient.any()


def test_so_few_values_alone_are_not(result):
    assert infer(value, None).log_evidence_sd > 10.0 * result.log_evidence_sd


def test_some_gradients_may_be_missing():
    count = 0

    def some(x):
        nonlocal count
        count += 1
        return (value(x), None) if count % 3 == 0 else both(x)

    found = infer(some)
    assert_right(found)
    given = [entry.gradient is not None for entry in found.evaluations]
    assert 0.5 < np.mean(given) < 0.8


def test_batches_work():
    found = infer(batch_size=4)
    assert_right(found)
    assert len(found.evaluations) == BUDGET


class KilledError(BaseException):
    """Stands for a process that ends here."""


@pytest.mark.parametrize("n_made", [9, 15])
def test_a_killed_run_resumes_as_if_nothing_had_happened(result, tmp_path, n_made):
    count = 0

    def dying(x):
        nonlocal count
        count += 1
        if count > n_made:
            raise KilledError
        return both(x)

    with pytest.raises(KilledError):
        infer(dying, store=tmp_path / "run", check_target=False)
    resumed = infer(store=tmp_path / "run", check_target=False)
    assert len(resumed.evaluations) == len(result.evaluations)
    for one, other in zip(resumed.evaluations, result.evaluations, strict=True):
        np.testing.assert_array_equal(one.x, other.x)
        assert one.outcome.gradient == other.outcome.gradient
    assert (resumed.log_evidence, resumed.elbo) == (result.log_evidence, result.elbo)
    draws = [each.posterior.sample(20, seed=1) for each in (resumed, result)]
    np.testing.assert_array_equal(*draws)


def test_a_run_that_is_stopped_goes_on_as_if_nothing_had_happened(result, tmp_path):
    def stop_at_two(info):
        return "stop" if info.iteration == 2 else None

    stopped = infer(store=tmp_path / "run", callback=stop_at_two)
    assert len(stopped.evaluations) < len(result.evaluations)
    resumed = infer(store=tmp_path / "run")
    assert (resumed.log_evidence, resumed.elbo) == (result.log_evidence, result.elbo)


def test_a_saved_result_keeps_the_surrogate(result, tmp_path):
    result.save(tmp_path / "result.sparing")
    again = sparing.load(tmp_path / "result.sparing")
    one, other = (each.surrogate.surrogate for each in (result, again))
    np.testing.assert_array_equal(one.parameters, other.parameters)
    np.testing.assert_array_equal(one.training.has_gradient, other.training.has_gradient)
    queries = 0.3 * np.random.default_rng(1).normal(size=(9, 6))
    np.testing.assert_allclose(one.predict(queries), other.predict(queries), rtol=1e-9, atol=1e-9)


def test_the_algorithm_of_the_paper_knows_no_gradients():
    def run(log_density, gradient):
        problem = sparing.Problem(log_density, [-2.0, -2.0], [2.0, 2.0], gradient=gradient)
        options = {"max_evaluations": 25, "settings": sparing.Settings.paper()}
        return sparing.infer(problem, seed=1, progress=False, check_gradient=False, **options)

    with_gradients = run(lambda x: (-0.5 * float(x @ x), -x), True)
    without = run(lambda x: -0.5 * float(x @ x), None)
    assert with_gradients.log_evidence == without.log_evidence
    assert with_gradients.evaluations[-1].x.tolist() == without.evaluations[-1].x.tolist()


def test_a_vectorised_target_gives_many_gradients_at_once(result):
    def many(x):
        offsets = (x - MEAN) @ PRECISION
        return -3.0 - 0.5 * ((x - MEAN) * offsets).sum(axis=1), -offsets

    problem = sparing.Problem(
        many, np.full(6, -3.0), np.full(6, 3.0), gradient=True, vectorised=True
    )
    options = {"max_evaluations": BUDGET, "settings": LIGHT, "progress": False}
    together = sparing.infer(problem, seed=1, **options)
    assert_right(together)
    first, alone = together.evaluations[0], result.evaluations[0]
    assert first.x.tolist() == alone.x.tolist()
    np.testing.assert_allclose(first.gradient, alone.gradient, rtol=1e-12)
    assert not together.warnings or not any("gradient" in text for text in together.warnings)
