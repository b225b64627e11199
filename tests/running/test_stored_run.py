"""A run directory gives its result back, without the model and without a change."""

import dataclasses
import zipfile
from pathlib import Path

import numpy as np
import pytest
from scipy import stats
from tests.store.support import contents

import sparing
from sparing.errors import LoadError, StoreError, StoreMismatchError, TargetError
from sparing.executors import Outcome
from sparing.problem.warning_text import WarningTopic
from sparing.results.files.fingerprint import fingerprint
from sparing.running.load_run import load_run
from sparing.running.stored_run import (
    RESULT,
    latest_iteration,
    pending_proposals,
    require_same_model,
    saved_result,
    stored_identity,
)
from sparing.store import RunDirectory
from sparing.store.json_members import parse_object
from sparing.store.run_group import open_group
from sparing.strategies import (
    CompressedDepths,
    LastFit,
    PosteriorDraw,
    StandIns,
    Trusting,
    VarianceReduction,
)

EARLIER_RESULT = Path(__file__).parents[1] / "results" / "files" / "sample" / "result-v2.sparing"


def log_likelihood(x):
    return -0.5 * float((x[0] - 1.0) ** 2 + (x[1] - 0.3) ** 2 / 0.01)


def make_problem(**changes):
    """A parameter with one bound and one with two, and a prior on each."""
    arguments = {
        "plausible_lower": [0.5, 0.2],
        "plausible_upper": [3.0, 0.8],
        "lower": [0.0, 0.0],
        "upper": [np.inf, 1.0],
        "names": ["rate", "share"],
        "prior": [stats.gamma(3.0, scale=0.5), stats.beta(2.0, 3.0)],
    }
    return sparing.Problem(log_likelihood, **{**arguments, **changes})


def run(store, **options):
    options = {"seed": 2, "max_evaluations": 17, "progress": False, **options}
    return sparing.infer(make_problem(), store=store, **options)


def read_only(path):
    return RunDirectory.open(path, read_only=True)


def assert_same_result(found, expected):
    assert found.log_evidence == expected.log_evidence
    assert found.log_evidence_sd == expected.log_evidence_sd
    assert found.elbo == expected.elbo
    assert found.settings == expected.settings
    assert found.seed == expected.seed
    np.testing.assert_array_equal(
        found.posterior.sample(9, seed=1), expected.posterior.sample(9, seed=1)
    )
    values = [[entry.value for entry in result.evaluations] for result in (found, expected)]
    assert values[0] == values[1]


def test_the_result_comes_back_to_the_last_bit_and_nothing_changes(tmp_path):
    # 17 evaluations: the last iteration has fewer points than usual.
    settings = dataclasses.replace(sparing.Settings(), final_fit=LastFit())
    result = run(tmp_path, x0=[1.0, 0.0], tolerance=0.3, tag="data", settings=settings)
    before = contents(tmp_path)
    found = load_run(tmp_path)
    assert contents(tmp_path) == before
    assert_same_result(found, result)
    assert found.stop_reason is sparing.StopReason.BUDGET
    assert found.warnings[:-1] == result.warnings
    assert "does not record why a run ended" in found.warnings[-1]
    assert found.warnings[-1].topic is WarningTopic.REBUILT_RESULT
    for vector in ("lower", "upper", "plausible_lower", "plausible_upper"):
        expected = getattr(result.problem, vector)
        np.testing.assert_array_equal(getattr(found.problem, vector), expected)
    with pytest.raises(TargetError, match="log density"):
        found.problem.log_joint([1.0, 0.5])


def test_a_run_that_converged(tmp_path):
    problem = sparing.Problem(lambda x: -0.5 * float(x[0]) ** 2, -2, 2)
    result = sparing.infer(problem, seed=1, store=tmp_path, progress=False)
    assert result.converged
    found = load_run(tmp_path)
    assert_same_result(found, result)
    assert (found.stop_reason, found.warnings) == (result.stop_reason, result.warnings)


def test_a_run_in_progress_gives_the_result_so_far(tmp_path):
    with sparing.Inference(make_problem(), seed=2, store=tmp_path) as inference:
        for _ in range(12):
            (proposal,) = inference.ask()
            inference.tell(proposal, inference.problem.log_joint(proposal.x))
        waiting = inference.ask(2)
        found = load_run(tmp_path)
        with read_only(tmp_path) as store:
            pending = pending_proposals(store.events())
            info = latest_iteration(store)
        expected = inference.result()
    assert [p.identifier for p in pending] == [p.identifier for p in waiting]
    assert found.stop_reason is sparing.StopReason.UNFINISHED
    assert_same_result(found, expected)
    assert info is not None
    assert info.log_evidence == expected.history[-1].log_evidence


def test_a_run_without_a_result_says_so(tmp_path):
    with sparing.Inference(make_problem(), seed=2, store=tmp_path) as inference:
        inference.ask(1)
    with pytest.raises(TargetError, match="no result yet"):
        load_run(tmp_path)
    with read_only(tmp_path) as store:
        assert latest_iteration(store) is None


def test_points_that_nobody_proposed_are_not_pending(tmp_path):
    with sparing.Inference(make_problem(), seed=2, store=tmp_path) as inference:
        proposal, other = inference.ask(2)
        inference.tell(np.array([1.0, 0.5]), -1.0)
        inference.tell(other, -2.0)
    with read_only(tmp_path) as store:
        (waiting,) = pending_proposals(store.events())
    assert waiting.identifier == proposal.identifier


class TestSavedResult:
    def test_it_is_used_while_it_has_everything(self, tmp_path):
        result = run(tmp_path, max_evaluations=12)
        changed = dataclasses.replace(result, warnings=("saved",))
        changed.save(tmp_path / RESULT)
        assert load_run(tmp_path).warnings == ("saved",)
        run(tmp_path, max_evaluations=14)
        assert load_run(tmp_path).n_evaluations == 14

    def test_one_of_another_run_or_damaged_is_not_used(self, tmp_path):
        result = run(tmp_path / "one", max_evaluations=12)
        dataclasses.replace(result, seed=77).save(tmp_path / "one" / RESULT)
        assert_same_result(load_run(tmp_path / "one"), result)
        (tmp_path / "one" / RESULT).write_bytes(b"PK")
        with read_only(tmp_path / "one") as store:
            assert saved_result(store) is None
        assert_same_result(load_run(tmp_path / "one"), result)


def test_a_file_is_loaded_as_ever(tmp_path):
    result = run(tmp_path / "run", max_evaluations=12)
    result.save(tmp_path / "file.sparing")
    assert_same_result(load_run(tmp_path / "file.sparing"), result)


def test_the_identity_continues_the_run(tmp_path):
    run(tmp_path, x0=[1.0, 0.5], tolerance=0.3, tag="data", max_evaluations=12)
    with read_only(tmp_path) as store:
        identity = stored_identity(store)
    assert identity.problem.names == ("rate", "share")
    assert identity.settings.stopping.tolerance_sd == 0.3
    options = {**identity.arguments, "max_evaluations": 13, "progress": False}
    assert sparing.infer(make_problem(), store=tmp_path, **options).n_evaluations == 13


class TestSettings:
    """Those of the run in the directory hold, unless others are given, which are refused."""

    def test_without_any_the_run_goes_on_with_its_own(self, tmp_path):
        own = sparing.Settings(n_active=3, rules=(PosteriorDraw(),))
        started = run(tmp_path, settings=own, max_evaluations=12)
        result = run(tmp_path, max_evaluations=14)
        assert result.n_evaluations == 14
        assert result.settings == started.settings
        assert_same_result(run(tmp_path / "whole", settings=own, max_evaluations=14), result)

    def test_others_are_refused_and_what_differs_is_named(self, tmp_path):
        run(tmp_path, settings=sparing.Settings(n_active=3), max_evaluations=12)
        with pytest.raises(StoreMismatchError) as caught:
            run(tmp_path, settings=sparing.Settings())
        assert caught.value.differences == (("settings.n_active", "3", "5"),)
        with pytest.raises(StoreMismatchError) as caught:
            run(tmp_path, tolerance=0.3)
        (difference,) = caught.value.differences
        assert difference == ("settings.stopping.tolerance_sd", "0.1", "0.3")

    def test_a_run_of_an_earlier_release_goes_on_with_the_nearest(self, tmp_path):
        problem = make_problem()
        points = np.array([[1.0, 0.3], [0.7, 0.5], [2.0, 0.4]])
        with RunDirectory.open(tmp_path, earlier_fingerprint(problem), seed=7) as store:
            for i, x in enumerate(points):
                store.append(sparing.Proposal(i, x))
                outcome = Outcome(problem.log_joint(x), sparing.Status.OK, 0.1)
                store.append(sparing.Evaluation(i, i, x, outcome))
        with pytest.raises(StoreMismatchError) as caught:
            run(tmp_path, seed=None, settings=sparing.Settings())
        names = {name.split(".")[1] for name, _, _ in caught.value.differences}
        assert names == {"depths", "rules", "exploration", "edges"}
        result = run(tmp_path, seed=None, max_evaluations=13)
        assert (result.n_evaluations, result.seed) == (13, 7)
        np.testing.assert_array_equal([entry.x for entry in result.evaluations[:3]], points)
        expected = sparing.Settings(
            depths=CompressedDepths(slope=0.05),
            rules=(
                VarianceReduction(),
                PosteriorDraw(),
                VarianceReduction(),
                PosteriorDraw(widening=1.5),
            ),
            exploration=Trusting(),
            edges=StandIns(),
        )
        assert result.settings == expected
        assert_same_result(load_run(tmp_path), result)

    def test_several_runs_go_on_with_their_own(self, tmp_path):
        own = sparing.Settings(n_active=3)
        run(tmp_path, settings=own, max_evaluations=11, runs=2)
        several = run(tmp_path, max_evaluations=12, runs=2)
        for result in (*several.results, several.pooled):
            assert result.settings.n_active == 3

    @pytest.mark.parametrize("settings", [{"surprise": 1}, {"rules": []}, 3, None])
    def test_settings_that_cannot_be_read_are_named(self, tmp_path, settings):
        problem = make_problem()
        now = fingerprint(problem, sparing.Settings(), tag="", starting_points=np.empty((0, 2)))
        RunDirectory.open(tmp_path, {**now, "settings": settings}, seed=1).close()
        with pytest.raises(StoreMismatchError, match=r"- settings"):
            run(tmp_path, seed=None)

    def test_a_path_that_cannot_be_read_is_refused_as_ever(self, tmp_path):
        (tmp_path / "file").write_text("")
        with pytest.raises(StoreError, match="cannot create"):
            sparing.Inference(make_problem(), store=tmp_path / "file")
        run(tmp_path / "run", max_evaluations=12)
        (tmp_path / "run" / "problem.json").write_text("{}")
        with pytest.raises(StoreError, match=r"problem\.json cannot be used"):
            run(tmp_path / "run")


def earlier_fingerprint(problem):
    """What the release before this one wrote of a run with its default settings."""
    with zipfile.ZipFile(EARLIER_RESULT) as archive:
        settings = parse_object(archive.read("record.json"))["settings"]
    del settings["evaluations_per_dimension"]  # it is not part of a run's identity
    settings["coordinates"] = {"kind": "Whitened"}  # those of the sample are not the default
    now = fingerprint(problem, sparing.Settings(), tag="", starting_points=np.empty((0, 2)))
    return {**now, "settings": settings}


def test_no_starting_points(tmp_path):
    run(tmp_path, max_evaluations=12)
    with read_only(tmp_path) as store:
        identity = stored_identity(store)
    assert identity.starting_points.shape == (0, 2)
    assert identity.arguments["x0"] is None


def test_another_model_is_told_apart(tmp_path):
    run(tmp_path, x0=[1.0, 0.5], max_evaluations=12)
    with read_only(tmp_path) as store:
        require_same_model(store, make_problem())
        with pytest.raises(StoreMismatchError) as caught:
            require_same_model(store, make_problem(plausible_upper=[3.0, 0.9]))
        (difference,) = caught.value.differences
        assert difference == ("parameters.share.plausible_upper", "0.8", "0.9")
        with pytest.raises(StoreMismatchError, match="prior"):
            require_same_model(store, make_problem(prior=None))


@pytest.mark.parametrize(
    "fingerprint",
    [
        {},
        {"names": ["a"], "parameters": {}, "tag": "", "starting_points": [], "settings": {}},
        {"names": ["a"], "parameters": {"a": {"lower": "x"}}},
        {
            "names": ["a"],
            "parameters": {"a": {"lower": 0, "upper": 1, "plausible_lower": 0.1,
                                 "plausible_upper": 0.9}},
            "prior": None, "tag": "", "starting_points": [1, 2], "settings": {},
        },
    ],
)  # fmt: skip
def test_a_directory_of_something_else_is_a_load_error(tmp_path, fingerprint):
    with RunDirectory.open(tmp_path, fingerprint, seed=1):
        pass
    with pytest.raises(LoadError, match=r"problem\.json cannot be loaded"):
        load_run(tmp_path)


def test_a_directory_of_several_runs_is_named_as_such(tmp_path):
    open_group(tmp_path, 3, seed=1)
    with pytest.raises(StoreError, match="holds 3 runs: load one of them"):
        load_run(tmp_path)
