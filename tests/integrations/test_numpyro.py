import math
import pickle

import numpy as np
import pytest
from scipy import stats
from tests.hand_made import make_result

import sparing
from sparing.integrations.numpyro import (
    ModelLogDensity,
    posterior_draws,
    problem_from_model,
    to_arviz,
)

numpyro = pytest.importorskip("numpyro")
dist = pytest.importorskip("numpyro.distributions")

DATA = np.array([0.3, 1.1, -0.2, 0.9])


def normal_model(data, sd=0.7):
    level = numpyro.sample("level", dist.Normal(0.5, 2.0))
    numpyro.deterministic("twice", 2 * level)
    with numpyro.plate("items", len(data)):
        numpyro.sample("data", dist.Normal(level, sd), obs=data)


def test_evidence_and_posterior_of_a_conjugate_model():
    problem = problem_from_model(normal_model, [DATA], {"sd": 0.5})
    result = sparing.infer(problem, seed=1, max_evaluations=40, progress=False)
    covariance = 0.5**2 * np.eye(4) + 2.0**2
    exact = stats.multivariate_normal(np.full(4, 0.5), covariance).logpdf(DATA)
    assert result.log_evidence == pytest.approx(exact, abs=0.01)
    precision = 1 / 2.0**2 + 4 / 0.5**2
    mean = (0.5 / 2.0**2 + DATA.sum() / 0.5**2) / precision
    assert result.posterior.mean[0] == pytest.approx(mean, abs=0.02)
    assert result.posterior.sd[0] == pytest.approx(precision**-0.5, rel=0.05)


def boxes_model():
    numpyro.sample("scale", dist.HalfNormal(2.0))
    numpyro.sample("place", dist.Uniform(-1.0, 3.0))
    numpyro.sample("share", dist.Beta(2.0, 3.0).expand([2]).to_event(1))
    numpyro.sample("cut", dist.TruncatedNormal(0.0, 1.0, low=0.5))
    numpyro.sample("below", dist.TruncatedNormal(0.0, 1.0, high=0.25))
    numpyro.sample("angle", dist.VonMises(0.2, 1.5))
    free = numpyro.sample("free", dist.Normal(0.0, 1.0).expand([2, 1]))
    numpyro.factor("penalty", -0.25 * free.sum() ** 2)


def test_boxes_are_inferred_in_their_own_coordinates():
    problem = problem_from_model(boxes_model)
    assert problem.names == (
        *("scale", "place", "share[0]", "share[1]", "cut", "below", "angle"),
        *("free[0,0]", "free[1,0]"),
    )
    inf, pi = math.inf, math.pi
    assert problem.lower.tolist() == [0.0, -1.0, 0.0, 0.0, 0.5, -inf, -pi, -inf, -inf]
    assert problem.upper.tolist() == [inf, 3.0, 1.0, 1.0, inf, 0.25, pi, inf, inf]
    priors = [
        stats.halfnorm(scale=2.0),
        stats.uniform(-1.0, 4.0),
        stats.beta(2.0, 3.0),
        stats.beta(2.0, 3.0),
        stats.truncnorm(0.5, inf),
        stats.truncnorm(-inf, 0.25),
        stats.vonmises(1.5, 0.2),
        stats.norm(),
        stats.norm(),
    ]
    x = np.array([1.3, 0.4, 0.2, 0.9, 0.8, -0.3, -1.0, 0.6, -1.7])
    expected = sum(prior.logpdf(v) for prior, v in zip(priors, x, strict=True))
    expected += -0.25 * (x[-2] + x[-1]) ** 2
    assert problem.log_joint(x) == pytest.approx(expected, abs=1e-10)
    for i, prior in enumerate(priors):
        box = prior.cdf([problem.plausible_lower[i], problem.plausible_upper[i]])
        np.testing.assert_allclose(box, [0.1587, 0.8413], atol=0.04)


def bent_model():
    top = numpyro.sample("top", dist.HalfNormal(1.0))
    numpyro.sample("part", dist.Uniform(0.0, top))
    numpyro.sample("mix", dist.Dirichlet(np.array([2.0, 3.0, 1.5])))


def test_other_supports_are_inferred_unconstrained():
    problem = problem_from_model(bent_model)
    mix_names = ("mix (unconstrained)[0]", "mix (unconstrained)[1]")
    assert problem.names == ("top", "part (unconstrained)", *mix_names)
    assert problem.lower.tolist() == [0.0, -math.inf, -math.inf, -math.inf]
    x = np.array([1.7, -0.4, 0.3, -0.6])
    share = 1 / (1 + math.exp(0.4))
    interval = stats.halfnorm.logpdf(1.7) - math.log(1.7) + math.log(1.7 * share * (1 - share))

    simplex = dist.biject_to(dist.constraints.simplex)
    # The volume that a step in the coordinates is worth, in the first two entries.
    step = 1e-2  # the map itself is in single precision here
    columns = [
        (simplex(x[2:] + step * e)[:2] - simplex(x[2:] - step * e)[:2]) / (2 * step)
        for e in np.eye(2)
    ]
    point = np.asarray(simplex(x[2:]), dtype=np.float64)
    mix = stats.dirichlet([2.0, 3.0, 1.5]).logpdf(point / point.sum())
    mix += np.log(abs(np.linalg.det(np.array(columns))))
    assert problem.log_joint(x) == pytest.approx(interval + mix, abs=2e-3)


def test_draws_have_the_model_s_shapes():
    pytest.importorskip("arviz")
    problem = problem_from_model(normal_model, [DATA])
    result = make_result(problem, mean=1.0, sd=0.2)
    x = result.posterior.sample(50, seed=3)
    draws = posterior_draws(normal_model, result, [DATA], n=50, seed=3)
    assert list(draws) == ["level", "twice"]
    np.testing.assert_array_equal(draws["level"], x[:, 0])
    np.testing.assert_array_equal(draws["twice"], 2 * x[:, 0])
    posterior = to_arviz(normal_model, result, [DATA], n=50, seed=3).posterior
    np.testing.assert_array_equal(posterior["twice"].values[0], 2 * x[:, 0])


def test_a_copy_from_another_process_is_not_compiled_again(monkeypatch):
    problem = problem_from_model(normal_model, [DATA])
    expected = problem.log_joint([0.4])
    copy = pickle.loads(pickle.dumps(problem))
    monkeypatch.setattr(ModelLogDensity, "_joint", None)
    assert copy.log_joint([0.4]) == expected


def test_what_cannot_be_inferred_is_named():
    def model():
        numpyro.sample("count", dist.Poisson(3.0))
        numpyro.param("tuned", 1.0)
        with numpyro.plate("part", 10, subsample_size=3):
            pass

    with pytest.raises(sparing.ProblemError) as caught:
        problem_from_model(model)
    first, second, third = caught.value.faults
    assert first.startswith("count is discrete")
    assert second.startswith("tuned is a param")
    assert third.startswith("part takes a random part of the data")
    with pytest.raises(sparing.ProblemError, match="nothing to infer"):
        problem_from_model(lambda: None)


def test_a_result_of_another_model_is_refused():
    problem = problem_from_model(normal_model, [DATA])
    with pytest.raises(sparing.SettingsError, match="another model: level, and this one's top"):
        posterior_draws(bent_model, make_result(problem))


def simplex_model():
    numpyro.sample("parts", dist.Dirichlet(np.array([2.0, 3.0, 4.0])))
    numpyro.sample("scale", dist.HalfNormal(2.0))


@pytest.mark.parametrize("model", [boxes_model, simplex_model])
def test_the_gradient_is_that_of_the_log_joint(model):
    problem = problem_from_model(model)
    x = 0.5 * (problem.plausible_lower + problem.plausible_upper)
    value, gradient = problem.log_joint_and_gradient(x)
    assert value == pytest.approx(problem.log_joint(x), rel=1e-13)
    steps = 1e-6 * np.eye(len(x))
    expected = [(problem.log_joint(x + h) - problem.log_joint(x - h)) / 2e-6 for h in steps]
    np.testing.assert_allclose(gradient, expected, rtol=1e-6, atol=1e-7)
    again = pickle.loads(pickle.dumps(problem))
    np.testing.assert_array_equal(again.log_joint_and_gradient(x)[1], gradient)
    assert problem_from_model(model, gradient=False).gradient is None


def test_a_model_without_derivative_gives_its_value():
    jax = pytest.importorskip("jax")

    def outside(data):
        level = numpyro.sample("level", dist.Normal(0.0, 1.0))
        shape = jax.ShapeDtypeStruct((), level.dtype)
        mean = jax.pure_callback(np.sin, shape, level, vmap_method="sequential")
        numpyro.sample("data", dist.Normal(mean, 1.0), obs=data)

    problem = problem_from_model(outside, [0.3])
    value, gradient = problem.log_joint_and_gradient([0.5])
    assert gradient is None
    assert value == problem.log_joint([0.5])
