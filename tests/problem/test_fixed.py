"""Parameters that are held at a value."""

import json
import pickle

import numpy as np
import pytest
from scipy import stats

import sparing
from sparing.cli.export import evaluations_csv, samples_csv
from sparing.cli.output import json_text, result_members
from sparing.errors import InvalidValueError, StoreMismatchError
from sparing.problem.priors import Prior

BOX = {"plausible_lower": [0.0, 0.0, -1.0], "plausible_upper": [2.0, 2.0, 1.0]}
NAMES = ["gain", "base", "width"]
BASE = 0.75


def log_likelihood(x):
    gain, base, width = x
    return float(-0.5 * ((gain - base) ** 2 / 0.09 + (width + 0.3 * gain) ** 2 / 0.04))


def problem(**options):
    return sparing.Problem(log_likelihood, **({"names": NAMES} | BOX | options))


def by_hand(x):
    return log_likelihood([x[0], BASE, x[1]])


def faults(**options):
    with pytest.raises(sparing.ProblemError) as caught:
        problem(**options)
    return caught.value.faults


@pytest.fixture(scope="module")
def result():
    return sparing.infer(problem(fixed={"base": BASE}), seed=3, max_evaluations=25, progress=False)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("options", "smaller"),
    [
        ({}, {}),
        (
            {"prior": [stats.norm(1, 1), stats.gamma(2), stats.norm(0, 1)], "lower": [0, 0, -4]},
            {"prior": [stats.norm(1, 1), stats.norm(0, 1)], "lower": [0, -4]},
        ),
    ],
)
def test_the_run_is_that_of_the_smaller_problem_bit_for_bit(options, smaller):
    fixed = problem(fixed={"base": BASE}, **options)
    hand_made = sparing.Problem(by_hand, [0, -1], [2, 1], names=["gain", "width"], **smaller)
    one, two = (
        sparing.infer(p, x0=[0.5, 0.1], seed=3, max_evaluations=25, progress=False)
        for p in (fixed, hand_made)
    )
    assert one.posterior.names == two.posterior.names == ("gain", "width")
    np.testing.assert_array_equal(one.posterior.mean, two.posterior.mean)
    np.testing.assert_array_equal(one.posterior.covariance, two.posterior.covariance)
    assert (one.log_evidence, one.log_evidence_sd) == (two.log_evidence, two.log_evidence_sd)
    assert [e.value for e in one.evaluations] == [e.value for e in two.evaluations]
    assert [e.x.tolist() for e in one.evaluations] == [e.x.tolist() for e in two.evaluations]


def test_the_log_density_gets_all_parameters_in_their_order():
    seen = []
    fixed = sparing.Problem(
        lambda x: float(seen.append(x) or 0.0), **BOX, names=NAMES, fixed={"base": 3, "gain": -1}
    )
    assert fixed.log_joint([0.25]) == fixed.log_joint([-1.0, 3.0, 0.25]) == 0.0
    np.testing.assert_array_equal(seen, [[-1.0, 3.0, 0.25]] * 2)
    assert all(x.flags.writeable for x in seen)
    np.testing.assert_array_equal(fixed.full([[1.0], [2.0]]), [[-1, 3, 1], [-1, 3, 2]])


def test_one_is_freed_and_another_fixed_in_a_new_problem():
    whole = problem(lower=[0, 0, -4], prior=[stats.expon(), stats.expon(), stats.norm(0, 1)])
    nested = whole.fix(base=1.0).fix({"width": 0.5})
    assert (whole.fixed, nested.fixed) == ({}, {"base": 1.0, "width": 0.5})
    assert (nested.names, nested.all_names) == (("gain",), tuple(NAMES))
    again = nested.free("base")
    assert (again.names, again.fixed) == (("gain", "base"), {"width": 0.5})
    np.testing.assert_array_equal(again.lower, [0, 0])
    assert nested.free().names == whole.names
    assert nested.free().log_prior([1, 2, 0]) == whole.log_prior([1, 2, 0])


def test_it_is_shown_as_fixed():
    assert repr(problem(fixed={"base": 0.75}, lower=[None, 0, None])).splitlines()[1:] == [
        "  gain   in (-inf, inf), plausibly [0, 2]",
        "  base   fixed at 0.75",
        "  width  in (-inf, inf), plausibly [-1, 1]",
    ]
    assert repr(problem(fixed={"base": 0.75})).startswith("Problem(2 parameters, 1 fixed, ")


def test_it_needs_neither_plausible_box_nor_prior():
    fixed = sparing.Problem(
        log_likelihood,
        {"gain": 0, "width": -1},
        {"gain": 2, "width": 1},
        names=NAMES,
        prior={"gain": stats.norm(1, 1), "width": stats.norm(0, 1)},
        fixed={"base": BASE},
    )
    assert fixed.names == ("gain", "width")
    expected = stats.norm(1, 1).logpdf(0.5) + stats.norm(0, 1).logpdf(0.1)
    assert fixed.log_prior([0.5, 0.1]) == pytest.approx(expected, abs=1e-12)
    with pytest.raises(sparing.ProblemError, match="prior has no distribution for base"):
        fixed.free("base")
    without_prior = sparing.Problem(
        log_likelihood, [0, None, -1], [2, None, 1], names=NAMES, fixed={"base": BASE}
    )
    with pytest.raises(sparing.ProblemError, match="base: it has no plausible box"):
        without_prior.free("base")
    with pytest.raises(sparing.ProblemError, match="'gain' is not fixed; base is"):
        fixed.free("gain")


def test_a_joint_prior_is_taken_at_the_fixed_value():
    joint = stats.multivariate_normal([0, 0, 0], [[1, 0.5, 0], [0.5, 1, 0], [0, 0, 1]])
    for prior in (joint, joint.logpdf):
        fixed = problem(prior=prior, fixed={"base": BASE})
        assert fixed.log_prior([0.5, 0.1]) == pytest.approx(joint.logpdf([0.5, BASE, 0.1]))


def test_a_prior_of_ones_own_may_be_of_the_free_parameters():
    class Flat(Prior):
        def log_density(self, x):
            assert x.shape == (2,)
            return -1.5

        def support(self):
            return np.full(2, -np.inf), np.full(2, np.inf)

        def description(self):
            return {"kind": "flat"}

    assert problem(prior=Flat(), fixed={"base": BASE}).log_prior([0.5, 0.1]) == -1.5


def test_every_fault_is_listed():
    assert faults(fixed={"bose": 1.0, "gain": "high", "base": -1.0}, lower=0.0) == (
        "fixed names 'bose', which is not a parameter: gain, base, width",
        "fixed: gain is 'high', which is not a finite number",
        "fixed: base = -1 is outside its bounds [0, inf)",
        "width: plausible_lower (-1.0) is below lower (0.0)",
    )
    assert faults(fixed={"gain": 1, "base": 1, "width": 1}) == (
        "fixed holds every parameter: at least one must be free",
    )
    assert faults(fixed=["base"]) == (
        "fixed must map names to values, as {'width': 1.0} does: ['base']",
    )
    assert faults(fixed={"base": np.nan}) == ("fixed: base is nan, which is not a finite number",)


def test_points_of_all_parameters_are_read_and_must_agree():
    fixed = problem(fixed={"base": BASE})
    np.testing.assert_array_equal(fixed.starting_points([0.5, BASE, 0.1]), [[0.5, 0.1]])
    with pytest.raises(sparing.ProblemError, match=r"x0: base = 1, but it is fixed at 0\.75"):
        fixed.starting_points([0.5, 1.0, 0.1])
    with pytest.raises(ValueError, match=r"base = 1, but it is fixed at 0\.75"):
        fixed.log_joint([0.5, 1.0, 0.1])
    one = fixed.fix(gain=1.0)
    with pytest.raises(sparing.ProblemError, match=r"one point of all parameters, \(1, 3\)"):
        one.starting_points([1.0, BASE, 0.1])
    np.testing.assert_array_equal(one.starting_points([[1.0, BASE, 0.1]]), [[0.1]])
    assert one.starting_points([0.1, 0.2]).shape == (2, 1)


def test_a_target_that_fails_is_quoted_with_all_parameters():
    broken = sparing.Problem(lambda x: np.nan, **BOX, names=NAMES, fixed={"base": 2})
    with pytest.raises(InvalidValueError, match=r"gain = 0\.5, base = 2\.0, width = 0\.25"):
        broken.log_joint([0.5, 0.25])


def test_it_travels_to_workers():
    again = pickle.loads(pickle.dumps(problem(fixed={"base": BASE})))
    assert again.log_joint([0.5, 0.1]) == by_hand([0.5, 0.1])
    assert not again.plausible_lower.flags.writeable


@pytest.mark.slow
def test_summary_report_and_exports_show_it(result, tmp_path):
    assert ["base", "0.75", "fixed"] in [line.split() for line in str(result).splitlines()]
    page = result.report(tmp_path / "run.html").read_text()
    assert page.count("fixed at 0.75") == 1
    assert "posterior of 2 parameters" in " ".join(page.split())
    table = result.to_dataframe(n=5)
    assert table.columns.tolist() == NAMES
    assert (table["base"] == BASE).all()
    assert (result.evaluations_dataframe()["base"] == BASE).all()
    data = result.to_arviz(n=5)
    assert data["constant_data"]["base"].item() == BASE
    assert set(data.posterior.data_vars) == {"gain", "width"}
    assert samples_csv(result, 3, 0).splitlines()[1].split(",")[1] == "0.75"
    header, first, *_ = evaluations_csv(result).splitlines()
    assert dict(zip(header.split(","), first.split(","), strict=True))["base"] == "0.75"
    assert json.loads(json_text(result_members(result)))["fixed"] == {"base": 0.75}
    assert result.to_getdist(n=50).ranges.fixedValue("base") == BASE


@pytest.mark.slow
def test_data_are_simulated_with_all_parameters(result):
    data = sparing.posterior_predictive(result, lambda x, generator: x, n=4)
    assert data.shape == (4, 3)
    assert (data[:, 1] == BASE).all()


@pytest.mark.slow
def test_a_file_keeps_it(result, tmp_path):
    result.save(tmp_path / "run.sparing")
    loaded = sparing.load(tmp_path / "run.sparing")
    assert loaded.problem.fixed == {"base": BASE}
    assert loaded.problem.all_names == tuple(NAMES)
    assert loaded.to_dataframe(n=5).equals(result.to_dataframe(n=5))
    loaded.save(tmp_path / "again.sparing")
    assert (tmp_path / "again.sparing").read_bytes() == (tmp_path / "run.sparing").read_bytes()


@pytest.mark.slow
def test_a_stored_run_goes_on_with_the_same_value_only(tmp_path):
    prior = stats.multivariate_normal(np.zeros(3))
    options = {"store": tmp_path / "run", "max_evaluations": 12, "progress": False}
    fixed = problem(fixed={"base": BASE, "width": 0.0}, prior=prior)
    first = sparing.infer(fixed, seed=3, **options)
    loaded = sparing.load_run(tmp_path / "run")
    assert loaded.log_evidence == first.log_evidence
    assert loaded.problem.full([1.0]).tolist() == [1.0, BASE, 0.0]
    assert sparing.infer(fixed, **options).log_evidence == first.log_evidence
    with pytest.raises(StoreMismatchError, match=r"fixed\.base\.value"):
        sparing.infer(fixed.fix(base=1.0), **options)


@pytest.mark.slow
def test_comparisons_name_nested_models(result):
    other = sparing.infer(result.problem.fix(base=0.0), seed=3, max_evaluations=12, progress=False)
    assert {m.name for m in sparing.compare([result, other]).models} == {"base = 0.75", "base = 0"}
    assert sparing.compare([result, result]).best.name == "model 1"
    with pytest.raises(sparing.SettingsError, match="its fixed parameters differ"):
        sparing.diagnose([result, other])
