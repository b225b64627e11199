"""``result.save`` and ``sparing.load``: everything comes back to the last bit."""

import dataclasses
import zipfile

import numpy as np
import pytest
from tests.results.files.support import assert_same

import sparing
from sparing.errors import ProblemError, StoreError, TargetError
from sparing.problem.priors import Prior
from sparing.problem.warning_text import WarningText, WarningTopic, topic_of
from sparing.results.files.result_reader import result_from_parts
from sparing.results.files.result_writer import result_to_parts
from sparing.store.archive import pack, unpack
from sparing.strategies import UncertaintySampling

RESULTS = ["mixed_result", "tilted_result"]


@pytest.fixture(params=RESULTS)
def result(request):
    return request.getfixturevalue(request.param)


@pytest.fixture
def saved(result, tmp_path):
    path = tmp_path / "run.sparing"
    result.save(path)
    return result, path


def test_every_field_comes_back_to_the_last_bit(saved):
    result, path = saved
    loaded = sparing.load(path)
    assert_same(result, loaded, skip=("log_density", "prior", "settings"))
    assert loaded.settings == result.settings
    if result.problem.prior is not None:
        assert_same(result.problem.prior.support(), loaded.problem.prior.support())
        assert loaded.problem.prior.description() == result.problem.prior.description()
    assert loaded.posterior.transform.is_linear == result.posterior.transform.is_linear
    rows = [[info.posterior.transform for info in r.history] for r in (result, loaded)]
    assert [[a is b for a in rows[0]] for b in rows[0]] == [
        [a is b for a in rows[1]] for b in rows[1]
    ]


def test_a_loaded_result_answers_everything_as_before(saved):
    result, path = saved
    loaded = sparing.load(str(path))
    a, b = result.posterior, loaded.posterior
    x = a.sample(50, seed=3)
    for left, right in [
        (x, b.sample(50, seed=3)),
        (a.log_density(x), b.log_density(x)),
        (a.mean, b.mean),
        (a.covariance, b.covariance),
        (a.mode(), b.mode()),
        (a.quantile([0.1, 0.9]), b.quantile([0.1, 0.9])),
        (a.marginal_density(0, x[:, 0]), b.marginal_density(0, x[:, 0])),
    ]:
        np.testing.assert_array_equal(left, right)
    assert loaded.summary() == result.summary()
    assert repr(loaded) == repr(result)
    pytest.importorskip("arviz")
    left, right = loaded.to_arviz(n=20), result.to_arviz(n=20)
    for name in result.posterior.names:
        np.testing.assert_array_equal(left.posterior[name].values, right.posterior[name].values)


def test_a_loaded_result_can_be_saved_again(saved, tmp_path):
    _, path = saved
    again = tmp_path / "again"
    sparing.load(path).save(again)
    assert again.read_bytes() == path.read_bytes()


def test_odd_evaluations_come_back(mixed_result, odd_evaluations):
    odd = dataclasses.replace(
        mixed_result, evaluations=odd_evaluations, elbo=float("nan"), surrogate=None
    )
    again = result_from_parts(*unpack(pack(*result_to_parts(odd))))
    assert_same(again.evaluations, odd_evaluations)
    assert np.isnan(again.elbo)


def test_warnings_come_back_with_their_topics(mixed_result):
    seed_kept = WarningText(WarningTopic.SEED_KEPT, "the run goes on with its seed 1, not with 2")
    warnings = (*mixed_result.warnings, "of a store that knows no topics", seed_kept)
    changed = dataclasses.replace(mixed_result, warnings=warnings)
    again = result_from_parts(*unpack(pack(*result_to_parts(changed)))).warnings
    assert again == warnings
    topics = [topic_of(warning) for warning in again]
    assert topics == [topic_of(warning) for warning in warnings]
    assert topics[-3:] == [WarningTopic.FAILURES, None, WarningTopic.SEED_KEPT]


def test_all_settings_come_back(mixed_result):
    for settings in (sparing.Settings.paper(), sparing.Settings.paper(UncertaintySampling)):
        changed = dataclasses.replace(mixed_result, settings=settings, surrogate=None)
        assert result_from_parts(*result_to_parts(changed)).settings == settings


def test_the_log_density_and_prior_are_not_stored_and_say_so(mixed_result, tilted_result, tmp_path):
    for result in (mixed_result, tilted_result):
        result.save(tmp_path / "file")
        problem = sparing.load(tmp_path / "file").problem
        assert repr(problem).startswith(f"Problem({problem.dimension} parameters")
        for call in (problem.log_density, problem.log_joint):
            with pytest.raises(TargetError, match="loaded from a file without its"):
                call(result.posterior.mean)


def test_a_prior_that_cannot_be_described_in_json_is_refused(mixed_result):
    class Odd(Prior):
        def log_density(self, x):
            return 0.0

        def support(self):
            return np.full(1, -np.inf), np.full(1, np.inf)

        def description(self):
            return {"object": object()}

    problem = sparing.Problem(lambda x: 0.0, [0.0], [1.0], prior=Odd())
    with pytest.raises(ProblemError, match="cannot be written as JSON"):
        result_to_parts(dataclasses.replace(mixed_result, problem=problem))


def test_saving_replaces_a_file_completely_or_not_at_all(mixed_result, tmp_path, monkeypatch):
    path = tmp_path / "run"
    path.write_bytes(b"older")

    def full(descriptor, content):
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr("os.write", full)
        with pytest.raises(StoreError, match="the result is not saved"):
            mixed_result.save(path)
    assert path.read_bytes() == b"older"
    assert [entry.name for entry in tmp_path.iterdir()] == ["run"]
    mixed_result.save(path)
    assert sparing.load(path).seed == mixed_result.seed
    with pytest.raises(StoreError, match="No such file"):
        mixed_result.save(tmp_path / "no folder" / "run")


def test_the_file_is_an_archive_that_numpy_reads(saved):
    result, path = saved
    with np.load(path, allow_pickle=False) as stored:
        np.testing.assert_array_equal(
            stored["evaluations.value"], [entry.value for entry in result.evaluations]
        )
    assert zipfile.ZipFile(path).testzip() is None
