"""PyMC models as problems; PyTensor runs in Python here, since compiling takes minutes."""

import math
import os
import pickle
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context

import numpy as np
import pytest
from scipy import stats

os.environ["PYTENSOR_FLAGS"] = "mode=FAST_COMPILE,linker=py,cxx=,blas__ldflags="
pymc = pytest.importorskip("pymc")

from tests.hand_made import make_result  # noqa: E402

import sparing  # noqa: E402
from sparing.integrations.pymc import (  # noqa: E402
    ModelLogDensity,
    posterior_draws,
    problem_from_model,
    to_arviz,
)

DATA = np.array([0.3, 1.1, -0.2, 0.9])


def normal_model():
    with pymc.Model(coords={"item": ["a", "b", "c", "d"]}) as model:
        level = pymc.Normal("level", 0.5, 2.0)
        pymc.Deterministic("twice", 2 * level)
        pymc.Normal("data", level, 0.7, observed=DATA, dims="item")
    return model


def test_evidence_and_posterior_of_a_conjugate_model():
    problem = problem_from_model(normal_model())
    result = sparing.infer(problem, seed=1, max_evaluations=40, progress=False)
    covariance = 0.7**2 * np.eye(4) + 2.0**2
    exact = stats.multivariate_normal(np.full(4, 0.5), covariance).logpdf(DATA)
    assert result.log_evidence == pytest.approx(exact, abs=0.01)
    precision = 1 / 2.0**2 + 4 / 0.7**2
    mean = (0.5 / 2.0**2 + DATA.sum() / 0.7**2) / precision
    assert result.posterior.mean[0] == pytest.approx(mean, abs=0.02)
    assert result.posterior.sd[0] == pytest.approx(precision**-0.5, rel=0.05)


def boxes_model():
    with pymc.Model() as model:
        pymc.HalfNormal("scale", 2.0)
        pymc.Uniform("place", -1.0, 3.0)
        pymc.Beta("share", 2.0, 3.0, shape=2)
        pymc.TruncatedNormal("cut", 0.0, 1.0, lower=0.5)
        pymc.VonMises("angle", 0.2, 1.5)
        pymc.Normal("free", 0.0, 1.0, shape=(2, 1))
        pymc.Potential("penalty", -0.25 * model["free"].sum() ** 2)
    return model


def test_boxes_are_inferred_in_their_own_coordinates():
    problem = problem_from_model(boxes_model())
    assert problem.names == (
        *("scale", "place", "share[0]", "share[1]", "cut", "angle", "free[0,0]", "free[1,0]"),
    )
    inf, pi = math.inf, math.pi
    assert problem.lower.tolist() == [0.0, -1.0, 0.0, 0.0, 0.5, -pi, -inf, -inf]
    assert problem.upper.tolist() == [inf, 3.0, 1.0, 1.0, inf, pi, inf, inf]
    priors = [
        stats.halfnorm(scale=2.0),
        stats.uniform(-1.0, 4.0),
        stats.beta(2.0, 3.0),
        stats.beta(2.0, 3.0),
        stats.truncnorm(0.5, inf),
        stats.vonmises(1.5, 0.2),
        stats.norm(),
        stats.norm(),
    ]
    x = np.array([1.3, 0.4, 0.2, 0.9, 0.8, -1.0, 0.6, -1.7])
    expected = sum(prior.logpdf(v) for prior, v in zip(priors, x, strict=True))
    expected += -0.25 * (x[6] + x[7]) ** 2
    # PyMC computes with constants such as 2.0 in single precision: up to 2e-8 per variable.
    assert problem.log_joint(x) == pytest.approx(expected, abs=1e-6)
    # The plausible box is the prior's central 68 %; its error has this many draws behind it.
    for i, prior in enumerate(priors):
        box = prior.cdf([problem.plausible_lower[i], problem.plausible_upper[i]])
        np.testing.assert_allclose(box, [0.1587, 0.8413], atol=0.04)


def bent_model():
    with pymc.Model() as model:
        top = pymc.HalfNormal("top", 1.0)
        pymc.Uniform("part", 0.0, top)
        pymc.Dirichlet("mix", np.array([2.0, 3.0, 1.5]))
    return model


def test_other_supports_are_inferred_unconstrained():
    model = bent_model()
    problem = problem_from_model(model)
    names = ("top", "part_interval__", "mix_simplex__[0]", "mix_simplex__[1]")
    assert problem.names == names
    assert problem.lower.tolist() == [0.0, -math.inf, -math.inf, -math.inf]
    x = np.array([1.7, -0.4, 0.3, -0.6])
    share = 1 / (1 + math.exp(0.4))
    interval = stats.halfnorm.logpdf(1.7) - math.log(1.7) + math.log(1.7 * share * (1 - share))

    def simplex(values):
        result = make_result(problem, mean=np.concatenate([[0.0, 0.0], values]), sd=1e-9)
        return posterior_draws(model, result, n=1)["mix"][0]

    # The volume that a step in the coordinates is worth, in the first two entries.
    step = 1e-4
    columns = [
        (simplex(x[2:] + step * e)[:2] - simplex(x[2:] - step * e)[:2]) / (2 * step)
        for e in np.eye(2)
    ]
    mix = stats.dirichlet([2.0, 3.0, 1.5]).logpdf(simplex(x[2:]))
    mix += np.log(abs(np.linalg.det(np.array(columns))))
    assert problem.log_joint(x) == pytest.approx(interval + mix, abs=1e-5)


def test_draws_have_the_model_s_shapes_and_labels():
    pytest.importorskip("arviz")
    with pymc.Model(coords={"item": ["a", "b"]}) as model:
        level = pymc.Normal("level", 0.0, 1.0, dims="item")
        pymc.HalfNormal("scale", 1.0)
        pymc.Deterministic("total", level.sum())
    problem = problem_from_model(model)
    result = make_result(problem, mean=[1.0, -2.0, 0.1], sd=0.2)
    x = result.posterior.sample(50, seed=3)
    draws = posterior_draws(model, result, n=50, seed=3)
    np.testing.assert_allclose(draws["level"], x[:, :2])
    np.testing.assert_allclose(draws["scale"], x[:, 2])
    np.testing.assert_allclose(draws["total"], x[:, 0] + x[:, 1])
    posterior = to_arviz(model, result, n=50, seed=3).posterior
    assert posterior["level"].dims == ("chain", "draw", "item")
    assert posterior["item"].values.tolist() == ["a", "b"]
    np.testing.assert_allclose(posterior["total"].values[0], draws["total"])


def test_it_works_in_another_process():
    problem = problem_from_model(bent_model())
    x = np.array([1.7, -0.4, 0.3, -0.6])
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as pool:
        assert pool.submit(problem.log_joint, x).result() == problem.log_joint(x)


def test_a_process_compiles_the_model_once(monkeypatch):
    problem = problem_from_model(normal_model())
    expected = problem.log_joint([0.4])
    monkeypatch.setattr(ModelLogDensity, "_compiled", None)
    assert pickle.loads(pickle.dumps(problem)).log_joint([0.4]) == expected


def test_the_plausible_box_of_the_user():
    with pymc.Model() as model:
        pymc.Normal("level", 0.0, 100.0, shape=2)
        pymc.Normal("other", 0.0, 1.0)
    problem = problem_from_model(model, plausible={"level": (-3.0, 3.0), "level[1]": (0.0, 1.0)})
    assert problem.plausible_lower[:2].tolist() == [-3.0, 0.0]
    assert problem.plausible_upper[:2].tolist() == [3.0, 1.0]
    assert problem.plausible_upper[2] == pytest.approx(1.0, abs=0.15)
    with pytest.raises(sparing.ProblemError, match="plausible names 'levle'; the variables are"):
        problem_from_model(model, plausible={"levle": (-3.0, 3.0)})


def test_what_cannot_be_inferred_is_named():
    with pymc.Model() as model:
        pymc.Poisson("count", 3.0)
        pymc.Flat("anything")
        pymc.Normal("level", 0.0, 1.0)
    with pytest.raises(sparing.ProblemError) as caught:
        problem_from_model(model)
    first, second = caught.value.faults
    assert first.startswith("count is discrete")
    assert second.startswith("anything has an improper prior")
    with pytest.raises(sparing.ProblemError, match="nothing to infer"):
        problem_from_model(pymc.Model())


def test_a_result_of_another_model_is_refused():
    problem = problem_from_model(normal_model())
    with pytest.raises(sparing.SettingsError, match="another model: level, and this one's top"):
        posterior_draws(bent_model(), make_result(problem))


def simplex_model():
    with pymc.Model() as model:
        pymc.Dirichlet("parts", [2.0, 3.0, 4.0])
        pymc.HalfNormal("scale", 2.0)
    return model


@pytest.mark.parametrize("make_model", [boxes_model, simplex_model])
def test_the_gradient_is_that_of_the_log_joint(make_model):
    problem = problem_from_model(make_model())
    x = 0.5 * (problem.plausible_lower + problem.plausible_upper)
    value, gradient = problem.log_joint_and_gradient(x)
    assert value == pytest.approx(problem.log_joint(x), rel=1e-12)
    steps = 1e-6 * np.eye(len(x))
    expected = [(problem.log_joint(x + h) - problem.log_joint(x - h)) / 2e-6 for h in steps]
    np.testing.assert_allclose(gradient, expected, rtol=1e-6, atol=1e-7)
    assert problem_from_model(make_model(), gradient=False).gradient is None


def test_a_model_without_derivative_gives_its_value():
    from pytensor.graph.op import Op
    from pytensor.tensor import dscalar

    class Outside(Op):
        itypes, otypes = (dscalar,), (dscalar,)

        def perform(self, node, inputs, outputs):
            outputs[0][0] = np.array(np.sin(inputs[0]))

    with pymc.Model() as model:
        level = pymc.Normal("level", 0.0, 1.0)
        pymc.Normal("data", Outside()(level), 1.0, observed=0.3)
    problem = problem_from_model(model)
    value, gradient = problem.log_joint_and_gradient([0.5])
    assert gradient is None
    assert value == problem.log_joint([0.5])
