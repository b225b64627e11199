import pickle

import numpy as np
import pytest
from scipy import integrate, stats
from tests.hand_made import make_result

import sparing
from sparing.integrations.cobaya import problem_from_model, to_products

cobaya_model = pytest.importorskip("cobaya.model")


def ridge(a, b):
    return -0.5 * ((a - 1) ** 2 / 0.2**2 + (b - a) ** 2 / 0.3**2)


def model(**options):
    params = {
        "a": {"prior": {"min": -3, "max": 4}, "ref": [1.0, 0.2], "latex": r"\alpha"},
        "b": {"prior": {"dist": "norm", "loc": 0, "scale": 2}, "ref": 0.9, "proposal": 0.2},
        "sum": {"derived": "lambda a, b: a + b"},
    }
    info = {"likelihood": {"ridge": ridge}, "params": params, "debug": 40, **options}
    return cobaya_model.get_model(info)


def test_evidence_and_chain_go_back_to_cobaya():
    cobaya = model()
    result = sparing.infer(problem_from_model(cobaya), seed=1, max_evaluations=60, progress=False)
    products = to_products(cobaya, result, n=2000)

    def integrand(a):
        return np.exp(-0.5 * (a - 1) ** 2 / 0.2**2) * stats.norm(0, np.hypot(2, 0.3)).pdf(a) / 7

    exact = np.log(integrate.quad(integrand, -3, 4)[0] * np.sqrt(2 * np.pi) * 0.3)
    assert products["logZ"] == pytest.approx(exact, abs=0.02)
    assert products["logZstd"] == result.log_evidence_sd
    sample = products["sample"]
    assert len(sample) == 2000
    np.testing.assert_allclose(sample.mean(), result.posterior.mean, atol=0.03)
    data = sample.data
    for _, row in data.head(20).iterrows():
        exact = cobaya.logpost({"a": row["a"], "b": row["b"]})
        assert -row["minuslogpost"] == pytest.approx(exact, abs=0.5)
    assert np.all(np.isnan(data["sum"])) and np.all(np.isnan(data["chi2"]))
    assert sample.to_getdist().getMeans()[0] == pytest.approx(sample.mean()[0])


def test_bounds_box_and_priors_are_the_model_s():
    params = {
        "a": {"prior": {"min": -3, "max": 1.25}, "ref": [1.0, 0.2]},
        "b": {"prior": {"dist": "norm", "loc": 0, "scale": 2}, "ref": 0.9, "proposal": 0.2},
        "c": {"prior": {"min": 0, "max": 1}, "periodic": True},
        "d": 2.0,
    }
    cobaya = model(params=params, likelihood={"all": lambda a, b, c, d: ridge(a, b) - c * d})
    problem = problem_from_model(cobaya)
    assert problem.names == ("a", "b", "c")
    assert (problem.lower.tolist(), problem.upper.tolist()) == ([-3, -np.inf, 0], [1.25, np.inf, 1])
    assert problem.periodic == ("c",)
    half = 0.2 * stats.norm.ppf(0.975)
    np.testing.assert_allclose(problem.plausible_lower, [1 - half, 0.5, 0.1587], atol=1e-4)
    np.testing.assert_allclose(problem.plausible_upper, [1.25, 1.3, 0.8413], atol=1e-4)
    x = [0.7, 0.5, 0.25]
    assert problem.log_joint(x) == pytest.approx(ridge(0.7, 0.5) - 0.5 + cobaya.logprior(x))
    given = problem_from_model(cobaya, plausible={"b": (-1.0, 1.0)})
    assert (given.plausible_lower[1], given.plausible_upper[1]) == (-1.0, 1.0)


def test_priors_of_several_parameters_count():
    cobaya = model(prior={"near": lambda a, b: -((a - b) ** 2)})
    problem = problem_from_model(cobaya)
    assert problem.log_joint([1.2, 0.7]) == pytest.approx(cobaya.logpost([1.2, 0.7]))
    assert problem.log_prior([1.2, 0.7]) == pytest.approx(cobaya.logprior([1.2, 0.7]))
    assert problem.fix(a=1.2).log_joint([0.7]) == problem.log_joint([1.2, 0.7])


def test_a_fixed_parameter_is_in_the_chain():
    cobaya = model()
    nested = problem_from_model(cobaya).fix(a=1.25)
    sample = to_products(cobaya, make_result(nested, mean=1.0, sd=0.2), n=5)["sample"]
    assert sample["a"].tolist() == [1.25] * 5


def test_the_problem_travels_and_makes_its_model_there(monkeypatch):
    problem = problem_from_model(model())
    expected = problem.log_joint([0.9, 1.1])
    made = []
    get_model = cobaya_model.get_model
    monkeypatch.setattr(cobaya_model, "get_model", lambda i: made.append(i) or get_model(i))
    copy = pickle.loads(pickle.dumps(problem))
    assert copy.log_joint([0.9, 1.1]) == expected
    assert made == []  # in this process it is there
    monkeypatch.setattr("sparing.integrations.shared._made", {})
    assert [copy.log_joint([0.9, 1.1]) for _ in range(2)] == [expected] * 2
    assert len(made) == 1


def test_what_cannot_be_inferred_is_named():
    with pytest.raises(sparing.ProblemError, match="plausible names 'c'; the parameters are a, b"):
        problem_from_model(model(), plausible={"c": (0, 1)})
    with pytest.raises(sparing.ProblemError, match="nothing to infer"):
        problem_from_model(model(params={"a": 1.0, "b": 2.0}))
    other = make_result(sparing.Problem(lambda x: 0.0, 0, 1, names=["level"]))
    with pytest.raises(sparing.SettingsError, match="another model: level, and this one's a, b"):
        to_products(model(), other)
