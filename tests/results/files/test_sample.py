"""A file of each version of the format is kept, and every later release must read it."""

import json
import warnings
import zipfile
from pathlib import Path

import numpy as np
import pytest
from tests.results.files.support import assert_same

import sparing
from sparing.problem.bending import LevelledStretch, Stretch
from sparing.problem.warning_text import topic_of
from sparing.results.files.result_reader import result_from_parts
from sparing.results.files.result_writer import VERSION, result_to_parts
from sparing.store.json_members import MalformedError
from sparing.variational.mixture import GaussianMixture

SAMPLES = Path(__file__).parent / "sample"
VERSIONS = range(1, VERSION + 1)


def test_there_is_a_sample_of_every_version():
    names = {path.name for path in SAMPLES.glob("result-v*.sparing")}
    assert names == {f"result-v{version}.sparing" for version in VERSIONS}


def sample(version):
    """The file's result, and the numbers that were taken from it when it was saved."""
    path = SAMPLES / f"result-v{version}.sparing"
    expected = json.loads(path.with_suffix(".json").read_text(encoding="utf-8"))
    return load(path), expected


def load(path):
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "the support of this problem", sparing.SparingWarning)
        return sparing.load(path)


@pytest.mark.parametrize("version", VERSIONS)
def test_a_sample_reads_as_it_was_written(version):
    result, expected = sample(version)
    exact = {
        "log_evidence": result.log_evidence,
        "elbo": result.elbo,
        "seed": result.seed,
        "converged": result.converged,
        "stop_reason": result.stop_reason.name,
        "names": list(result.problem.names),
        "prior": result.problem.prior and result.problem.prior.description(),
        "bounds": [
            [str(v) for v in b.tolist()] for b in (result.problem.lower, result.problem.upper)
        ],
        "n_iterations": len(result.history),
        "whitened": [info.whitened for info in result.history],
        "statuses": [entry.status.name for entry in result.evaluations],
        "values": [entry.value if entry.usable else None for entry in result.evaluations],
        "first_point": result.evaluations[0].x.tolist(),
        "message": result.evaluations[3].message,
        "bounded_map": result.settings.bounded_map.name,
        "warnings": list(result.warnings),
    }
    assert exact == {name: expected[name] for name in exact}
    # Computed, not stored: libraries may round differently.
    x = np.array(expected["points"])
    for actual, wanted in [
        (result.posterior.mean, expected["mean"]),
        (result.posterior.covariance, expected["covariance"]),
        (result.posterior.log_density(x), expected["log_density"]),
    ]:
        np.testing.assert_allclose(actual, wanted, rtol=1e-9)
    assert "log evidence" in result.summary()
    with pytest.raises(sparing.TargetError, match=r"loaded from a file|which no file holds"):
        result.problem.log_joint(result.evaluations[0].x)


def test_version_1_is_older_than_topics_rules_and_the_surrogate():
    result, _ = sample(1)
    assert not any(topic_of(warning) for warning in result.warnings)
    assert {entry.rule for entry in result.evaluations} == {""}
    assert result.surrogate is None


@pytest.mark.parametrize("version", VERSIONS[1:])
def test_since_version_2_there_are_topics_rules_strategies_and_the_surrogate(version):
    result, expected = sample(version)
    # Read as the nearest that there is now.
    nearest = {"ImportanceCorrected": "SurrogatePosterior"}
    for part, name in expected["strategies"].items():
        expected["strategies"][part] = nearest.get(name, name)
    exact = {
        "warning_topics": [topic_of(warning).name for warning in result.warnings],
        "rules": [entry.rule for entry in result.evaluations],
        "noise_sds": [entry.noise_sd for entry in result.evaluations],
        "strategies": {
            part: type(getattr(result.settings, part)).__name__ for part in expected["strategies"]
        },
        "surrogate_trained_on": list(result.surrogate.trained_on),
        "surrogate_parameters": result.surrogate.surrogate.parameters.tolist(),
    }
    assert exact == {name: expected[name] for name in exact}
    u = result.surrogate.transform.to_working(np.array(expected["points"]))
    mean, variance = result.surrogate.surrogate.predict(u)
    np.testing.assert_allclose(mean, expected["surrogate_mean"], rtol=1e-6)
    np.testing.assert_allclose(variance, expected["surrogate_variance"], rtol=1e-3)


def test_version_3_has_mixtures_of_any_shape():
    result, expected = sample(3)
    kinds = [type(info.posterior.mixture).__name__ for info in result.history]
    assert kinds == expected["mixtures"]
    mixture = result.posterior.mixture
    for name in ("weights", "means", "factors"):
        assert getattr(mixture, name).tolist() == expected[name]


def test_version_4_has_fixed_parameters_a_declared_support_and_log_priors():
    result, expected = sample(4)
    exact = {
        "fixed": result.problem.fixed,
        "all_names": list(result.problem.all_names),
        "support": str(result.problem.support),
        "n_inside": int(result.posterior.mixture.even_inside.sum()),
        "log_priors": [None if np.isnan(e.log_prior) else e.log_prior for e in result.evaluations],
    }
    assert exact == {name: expected[name] for name in exact}
    rate, _, shift = result.posterior.sample(1000, seed=1).T
    assert (shift > 8.5 + rate).all()


def test_version_5_has_bends():
    result, expected = sample(5)
    counts = [len(info.posterior.transform.bends) for info in result.history]
    assert counts == expected["n_bends"]
    transform = result.posterior.transform
    assert len(transform.bends) == len(expected["bends"]) > 0
    for bend, wanted in zip(transform.bends, expected["bends"], strict=True):
        for name in ("direction", "shift", "axes", "rates"):
            assert getattr(bend, name).tolist() == wanted[name]
        for name in ("matrix", "inverse", "centre"):
            assert getattr(bend.whitening, name).tolist() == wanted[name]
        assert bend.whitening.log_determinant == wanted["log_determinant"]
        assert bend.reach == wanted["reach"]
    # What a bend does is no array of the file: it must stay as it was.
    u = transform.to_working(np.array(expected["points"]))
    np.testing.assert_allclose(u, expected["working"], rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(transform.log_jacobian(u), expected["log_jacobian"], rtol=1e-9)


def test_version_6_has_a_stretch():
    result, expected = sample(6)
    transform = result.posterior.transform
    *_, stretch = transform.bends
    assert isinstance(stretch, Stretch)
    for name, wanted in expected["stretch"].items():
        assert getattr(stretch, name).tolist() == wanted
    u = transform.to_working(np.array(expected["points"]))
    np.testing.assert_allclose(u, expected["working"], rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(transform.log_jacobian(u), expected["log_jacobian"], rtol=1e-9)


def test_version_7_begins_with_a_levelled_stretch():
    result, expected = sample(7)
    transform = result.posterior.transform
    first = transform.bends[0]
    assert isinstance(first, LevelledStretch)
    names = ("location", "scale", "skewness", "tail")
    found = {name: getattr(first.stretch, name) for name in names}
    found |= {"middle": first.middle, "spread": first.spread, "reach": np.array(first.reach)}
    assert {name: value.tolist() for name, value in found.items()} == expected["levelled"]
    u = transform.to_working(np.array(expected["points"]))
    np.testing.assert_allclose(u, expected["working"], rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(transform.log_jacobian(u), expected["log_jacobian"], rtol=1e-9)


@pytest.mark.parametrize("version", VERSIONS[:4])
def test_before_version_5_nothing_is_bent(version):
    result, _ = sample(version)
    posteriors = [*(info.posterior for info in result.history), result.posterior]
    assert not any(posterior.transform.bends for posterior in posteriors)


@pytest.mark.parametrize("version", [1, 2])
def test_before_version_3_components_shared_their_shape(version):
    result, _ = sample(version)
    posteriors = [*(info.posterior for info in result.history), result.posterior]
    assert {type(posterior.mixture) for posterior in posteriors} == {GaussianMixture}


@pytest.mark.parametrize("version", VERSIONS)
def test_a_sample_is_written_again_as_a_file_of_today(version, tmp_path):
    result, _ = sample(version)
    result.save(tmp_path / "again.sparing")
    assert_same(load(tmp_path / "again.sparing"), result)


def test_the_surrogate_knows_its_evaluations_however_a_processor_rounds():
    arrays, metadata = result_to_parts(sample(2)[0])
    values = arrays["surrogate.values"]
    arrays["surrogate.values"] = np.nextafter(values, np.inf)
    assert result_from_parts(arrays, metadata).surrogate is not None
    arrays["surrogate.values"] = values + 1e-6
    with pytest.raises(MalformedError, match="trained on other evaluations"):
        result_from_parts(arrays, metadata)


@pytest.mark.parametrize("version", VERSIONS)
def test_a_sample_has_no_member_that_its_description_does_not_name(version):
    description = (Path(__file__).parents[3] / "docs" / "result-file.md").read_text("utf-8")
    with zipfile.ZipFile(SAMPLES / f"result-v{version}.sparing") as archive:
        names = [name.removesuffix(".npy") for name in archive.namelist()]
    missing = [name for name in names if f"`{name}`" not in description]
    assert not missing
