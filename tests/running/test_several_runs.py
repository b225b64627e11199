"""Several independent runs from one call, and the pooled run that is told what they evaluated."""

import io
import os
import re
import signal
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
from rich.console import Console
from tests.hand_made import make_result, with_outcome
from tests.light import LIGHT

import sparing
from sparing import StopReason
from sparing.errors import SettingsError, StoreCorruptError, StoreError, StoreMismatchError
from sparing.results.several_runs import SeveralRuns
from sparing.running import several
from sparing.running.loop import shares
from sparing.running.progress.display import LiveRuns, PlainDisplay, make_display
from sparing.running.progress.progress import Progress
from sparing.running.several import (
    deal_points,
    gather_points,
    pooled_settings,
    run_seed,
    tell_known,
)
from sparing.store import MemoryStore
from sparing.store.run_group import GROUP, open_group, read_group
from sparing.strategies import LatinHypercube, LookAtOnce, LookElsewhere, UniformDesign

BUDGET = 13
EXACT = 0.5 * np.log(2 * np.pi)


def log_density(x):
    return -0.5 * float(x @ x)


def make_problem(function=log_density):
    return sparing.Problem(function, [-2.0], [2.0], names=["location"])


def run(problem=None, **options):
    options = {"runs": 2, "seed": 1, "max_evaluations": BUDGET, "settings": LIGHT, **options}
    return sparing.infer(problem or make_problem(), **{"progress": False, **options})


def run_alone(seed, **options):
    options = {"seed": seed, "max_evaluations": BUDGET, "settings": LIGHT, **options}
    return sparing.infer(make_problem(), progress=False, **options)


def points(result):
    return np.array([entry.x for entry in result.evaluations])


def assert_same_result(first, second):
    np.testing.assert_array_equal(points(first), points(second))
    assert [e.value for e in first.evaluations] == [e.value for e in second.evaluations]
    assert (first.log_evidence, first.log_evidence_sd, first.elbo) == (
        second.log_evidence,
        second.log_evidence_sd,
        second.elbo,
    )
    np.testing.assert_array_equal(
        first.posterior.sample(20, seed=1), second.posterior.sample(20, seed=1)
    )


def assert_same(first, second):
    assert len(first.results) == len(second.results)
    for one, other in zip(first.results, second.results, strict=True):
        assert_same_result(one, other)
    assert_same_result(first.pooled, second.pooled)


@pytest.fixture(scope="module")
def both():
    return run()


class Counted:
    """The density, counting its calls; something happens at one of them."""

    def __init__(self, at=None, what=None):
        self.n_calls = 0
        self._at, self._what = at, what

    def __call__(self, x):
        self.n_calls += 1
        if self.n_calls == self._at:
            self._what()
        return log_density(x)


class KilledError(BaseException):
    """Stands for a process that ends here."""


def die():
    raise KilledError


def interrupt():
    os.kill(os.getpid(), signal.SIGINT)


class TestShares:
    @pytest.mark.parametrize(
        ("n_points", "limits", "expected"),
        [
            (8, [50, 50, 50, 50], [2, 2, 2, 2]),
            (5, [50, 50, 50, 50], [2, 1, 1, 1]),
            (2, [50, 50, 50, 50], [1, 1, 0, 0]),  # fewer workers than runs: the last ones wait
            (2, [0, 50, 50, 50], [0, 1, 1, 0]),  # a run that has ended frees its share
            (8, [1, 50, 0, 50], [1, 4, 0, 3]),  # what a run cannot use goes to the others
            (8, [1, 2], [1, 2]),
            (3, [50], [3]),
            (0, [50, 50], [0, 0]),
            (-1, [50, 50], [0, 0]),
        ],
    )
    def test_points_are_dealt_out_in_turn(self, n_points, limits, expected):
        assert shares(n_points, limits) == expected


class TestIndependence:
    def test_each_run_is_what_it_would_be_alone(self, both):
        assert isinstance(both, SeveralRuns)
        for result in both.results:
            assert_same_result(result, run_alone(result.seed))

    def test_runs_share_no_point(self, both):
        first, second = map(points, both.results)
        assert not np.isin(first, second).any()

    def test_seeds_are_derived_from_one(self, both):
        seeds = [run_seed(1, number) for number in range(100)]
        assert len(set(seeds)) == 100
        assert [result.seed for result in both.results] == seeds[1:3]
        assert both.pooled.seed == seeds[0]
        assert both.seed == 1

    def test_starting_points_are_dealt_out(self):
        x0 = [[0.1], [0.2], [0.3]]
        starts = [points(result)[:2, 0] for result in run(x0=x0, max_evaluations=4).results]
        assert starts[0].tolist() == [0.1, 0.3]
        assert starts[1][0] == 0.2

    @pytest.mark.parametrize("n_points", [0, 1, 2, 3, 7])
    def test_dealt_points_are_gathered_in_their_order(self, n_points):
        x0 = np.arange(2.0 * n_points).reshape(n_points, 2)
        dealt = deal_points(x0, 3)
        assert sum(map(len, dealt)) == n_points
        np.testing.assert_array_equal(gather_points(dealt), x0)


class TestOneRun:
    def test_it_is_the_run_without_the_option(self):
        result = run_alone(1, runs=1)
        assert isinstance(result, sparing.Result)
        assert_same_result(result, run_alone(1))

    def test_resumed_with_a_budget_that_is_spent_it_ends(self, tmp_path):
        store = tmp_path / "run"
        options = {"seed": 1, "max_evaluations": 30, "store": store, "settings": LIGHT}
        with sparing.Inference(make_problem(), **options) as begun:
            while len(begun.history) < 2:  # the last event is a result, and a snapshot has it
                (proposal,) = begun.ask()
                begun.tell(proposal, log_density(proposal.x))
            n_evaluations = begun.n_evaluations
        result = run_alone(1, store=store, max_evaluations=12)
        assert result.stop_reason is StopReason.BUDGET
        assert result.n_evaluations == n_evaluations > 12

    @pytest.mark.parametrize("runs", [0, -1, 1.5, True, "4"])
    def test_other_numbers_are_refused(self, runs):
        with pytest.raises(SettingsError, match="runs must be a whole number >= 1"):
            run(runs=runs)


def ended(**result):
    """What the settings of a pooled run need of a run that has ended."""
    return SimpleNamespace(settings=sparing.Settings(), result=lambda: make_result(**result))


def agreeing():
    return ended(seed=1), ended(seed=2)


def late():
    return ended(seed=3, converged=False)


class TestPooledSettings:
    def test_where_runs_have_agreed_it_looks_in_its_surrogate_and_stops_soon(self):
        settings = pooled_settings(agreeing(), [None] * 70)
        assert settings.initial_design.n_points == 70
        look = settings.exploration
        assert (type(look), look.largest_round, look.climbing_share) == (LookAtOnce, 0, 0.0)
        assert settings.stopping.n_stable == settings.evidence.calibration.n_estimates == 2
        assert settings.variational.growth.next(2, None) == 2  # the ELBO does not rise by itself

    def test_where_they_differ_it_looks_elsewhere_as_well(self):
        settings = pooled_settings((*agreeing(), ended(seed=3, log_evidence=1.0)), [None] * 70)
        look, usual = settings.exploration, LookElsewhere()
        assert look.largest_round == usual.largest_round
        assert look.climbing_share == usual.climbing_share
        assert settings.stopping.n_stable == 2

    def test_where_one_did_not_converge_it_is_as_careful_as_any_run(self):
        settings = pooled_settings((*agreeing(), late()), [None] * 70)
        assert settings.initial_design.n_points == 70
        assert settings.exploration == LookAtOnce(largest_outside=0.01)
        own = {"initial_design": LatinHypercube(), "exploration": LookElsewhere()}
        assert replace(settings, **own) == sparing.Settings()

    def test_the_paper_stays_as_it_is(self):
        first, second = agreeing()
        first.settings = sparing.Settings.paper()
        settings = pooled_settings((first, second), [None] * 70)
        assert replace(settings, initial_design=UniformDesign()) == sparing.Settings.paper()


class TestPooled:
    def test_it_is_told_everything_before_its_first_fit(self, both):
        told = np.concatenate([points(result) for result in both.results])
        n_told = len(told)
        np.testing.assert_array_equal(points(both.pooled)[:n_told], told)
        assert all(entry.identifier is None for entry in both.pooled.evaluations[:n_told])
        assert both.pooled.history[0].n_evaluations == n_told
        own = both.pooled.evaluations[n_told:]
        assert [entry.identifier for entry in own] == list(range(len(own)))
        assert len(own) > 0
        assert both.n_evaluations == n_told + len(own)

    def test_it_keeps_what_is_known_of_an_evaluation(self, both):
        first, copy = both.results[0].evaluations[0], both.pooled.evaluations[0]
        for name in ("value", "status", "duration", "started", "ended", "worker", "message"):
            assert getattr(copy, name) == getattr(first, name)

    def test_its_budget_is_its_own(self):
        several = run(max_evaluations=11, tolerance=1e-9)
        assert [result.n_evaluations for result in several.results] == [11, 11]
        assert several.n_evaluations == 33
        assert several.pooled.stop_reason is StopReason.BUDGET
        assert not several.converged

    def test_the_result_is_right(self, both):
        assert both.result is both.pooled
        assert both.result.log_evidence == pytest.approx(EXACT, abs=0.01)
        assert both.result.posterior.sd[0] == pytest.approx(1.0, abs=0.02)

    @pytest.mark.parametrize("runs", [agreeing(), (*agreeing(), late())], ids=["soon", "later"])
    def test_it_finds_both_modes_of_which_each_run_knew_one(self, runs):
        """Equal normals 8 sds apart: half of the mass each, and an evidence of exactly one."""
        centre = np.full(2, 4 / np.sqrt(2))

        def mixture(x):
            left, right = (-0.5 * np.sum((x - c) ** 2) for c in (-centre, centre))
            return float(np.logaddexp(left, right) - np.log(2) - np.log(2 * np.pi))

        problem = sparing.Problem(mixture, -centre - 3, centre + 3)
        known = []
        for sign in (-1, 1):

            def one_mode(x, sign=sign):
                return -0.5 * float(np.sum((x - sign * centre) ** 2))

            blind = sparing.Problem(one_mode, -centre - 3, centre + 3)
            result = sparing.infer(blind, seed=1, max_evaluations=25, progress=False)
            near = [e for e in result.evaluations if sign * np.sum(e.x) > 0]
            known += [with_outcome(entry, value=mixture(entry.x)) for entry in near]
        settings = pooled_settings(runs, known)
        pooled = sparing.Inference(
            problem, seed=1, settings=settings, max_evaluations=len(known) + 60
        )
        tell_known(pooled, known)
        assert [info.n_evaluations for info in pooled.history[:1]] == [len(known)]
        while not pooled.finished:
            for proposal in pooled.ask():
                pooled.tell(proposal, mixture(proposal.x))
        result = pooled.result()
        assert result.log_evidence == pytest.approx(0.0, abs=0.05)
        right = result.posterior.sample(4000, seed=1).sum(axis=1) > 0
        assert np.mean(right) == pytest.approx(0.5, abs=0.05)


class TestSharedWorkers:
    def test_all_workers_are_busy_from_the_first_moment(self):
        together = threading.Barrier(4)

        def meet(x):
            if not met.is_set():
                together.wait(timeout=60.0)  # broken unless four are under way at once
                met.set()
            return log_density(x)

        met = threading.Event()
        with ThreadPoolExecutor(4) as executor:
            several = run(make_problem(meet), executor=executor)
        assert not together.broken
        assert all(e.status is sparing.Status.OK for e in several.pooled.evaluations)
        assert several.result.log_evidence == pytest.approx(EXACT, abs=0.02)

    def test_with_one_worker_runs_take_place_one_after_the_other(self, both):
        several = run(workers=1)
        assert_same(several, both)
        first, second = (result.evaluations for result in several.results)
        assert first[-1].ended <= second[0].started

    def test_more_runs_than_workers(self):
        several = run(runs=3, workers=2, max_evaluations=11)
        assert len(several.results) == 3
        assert {result.n_evaluations for result in several.results} == {11}
        identifiers = [sorted(e.identifier for e in r.evaluations) for r in several.results]
        assert identifiers == [list(range(11))] * 3


class TestDurability:
    def test_a_store_changes_nothing(self, tmp_path, both):
        store = tmp_path / "runs"
        assert_same(run(store=store), both)
        n_told = sum(result.n_evaluations for result in both.results)
        names = sorted(path.name for path in store.iterdir())
        assert names == [f"pooled-{n_told}", "run-1", "run-2", GROUP]
        finished = Counted()
        assert_same(run(make_problem(finished), store=store, seed=None), both)
        assert finished.n_calls == 1  # whether it is the same

    # In run 1, its last evaluation, in run 2, and in the pooled run: its first and another one.
    @pytest.mark.parametrize("killed_at", [4, 13, 20, 27, 29])
    def test_killed_and_resumed(self, tmp_path, both, killed_at):
        store = tmp_path / "runs"
        with pytest.raises(KilledError):
            run(make_problem(Counted(killed_at, die)), store=store)
        rest = Counted()
        assert_same(run(make_problem(rest), store=store), both)
        # Nothing twice, but one point of all the runs, to see whether the target is the same.
        assert rest.n_calls == both.n_evaluations - killed_at + 1 + 1

    def test_killed_while_the_pooled_run_is_told(self, tmp_path, both, monkeypatch):
        store = tmp_path / "runs"
        original = sparing.Inference.tell_outcome

        def dies(self, point, outcome):
            if not isinstance(point, sparing.Proposal) and self.n_evaluations == 15:
                raise KilledError
            return original(self, point, outcome)

        monkeypatch.setattr(sparing.Inference, "tell_outcome", dies)
        with pytest.raises(KilledError):
            run(store=store)
        monkeypatch.undo()
        assert_same(run(store=store), both)

    def test_a_larger_budget_wastes_nothing(self, tmp_path):
        store = tmp_path / "runs"
        first = run(store=store, max_evaluations=11, tolerance=1e-9)
        more = Counted()
        second = run(make_problem(more), store=store, max_evaluations=12, tolerance=1e-9)
        assert [result.n_evaluations for result in second.results] == [12, 12]
        own = points(first.pooled)[22:]
        np.testing.assert_array_equal(points(second.pooled)[24 : 24 + len(own)], own)
        assert second.n_evaluations == 24 + len(own) + 12
        assert more.n_calls == second.n_evaluations - first.n_evaluations + 1
        again = run(store=store, max_evaluations=12, tolerance=1e-9)
        assert_same(again, second)

    def test_a_pooled_run_goes_on_with_the_settings_it_began_with(self, tmp_path, monkeypatch):
        """An earlier release may have chosen others."""
        store = tmp_path / "runs"
        own = replace(sparing.Settings(), initial_design=LatinHypercube(2 * BUDGET), n_active=3)
        monkeypatch.setattr(several, "pooled_settings", lambda runs, known: own)
        with pytest.raises(KilledError):
            run(make_problem(Counted(2 * BUDGET + 2, die)), store=store)
        monkeypatch.undo()
        assert run(store=store).pooled.settings.n_active == 3

    def test_what_does_not_fit_the_directory_is_refused(self, tmp_path):
        store = tmp_path / "runs"
        run(store=store)
        with pytest.raises(SettingsError, match="holds 2 runs: give runs=2") as caught:
            run(store=store, runs=3, seed=2)
        assert "seed is 2, but the runs in" in str(caught.value)
        with pytest.raises(StoreError, match="holds 2 runs: give runs=2 to go on"):
            run_alone(1, store=store)
        with pytest.raises(StoreMismatchError, match="plausible_lower"):
            run(sparing.Problem(log_density, [-3.0], [2.0], names=["location"]), store=store)
        with pytest.raises(SettingsError, match="store must be a path"):
            run(store=MemoryStore())
        single = tmp_path / "single"
        run_alone(1, store=single)
        with pytest.raises(StoreError, match="holds a single run: leave runs= out"):
            run(store=single)

    def test_faults_are_found_before_a_directory_is_made(self, tmp_path):
        with pytest.raises(SettingsError, match="tolerance"):
            run(store=tmp_path / "runs", tolerance=-1.0)
        assert not (tmp_path / "runs").exists()

    def test_a_damaged_group_file_is_refused(self, tmp_path):
        group = open_group(tmp_path, 3, 5)
        assert read_group(tmp_path) == group
        content = (tmp_path / GROUP).read_text()
        (tmp_path / GROUP).write_text(content.replace('"runs": 3', '"runs": 4'))
        with pytest.raises(StoreCorruptError, match="checksum"):
            read_group(tmp_path)

    def test_a_seed_that_was_drawn_is_kept(self, tmp_path):
        drawn = run(store=tmp_path / "runs", seed=None)
        again = run(store=tmp_path / "runs", seed=None)
        assert again.seed == drawn.seed
        assert_same(again, drawn)


@pytest.mark.skipif(sys.platform == "win32", reason="POSIX signals")
class TestInterruption:
    def test_in_the_second_run_what_there_is_comes_back(self, tmp_path, both):
        store = tmp_path / "runs"
        several = run(make_problem(Counted(14, interrupt)), store=store)
        assert several.interrupted
        assert not several.converged
        assert (several.pooled, several.diagnosis) == (None, None)
        assert several.result is several.results[0]
        assert several.n_evaluations == 13
        assert several.summary().startswith("It was interrupted")
        assert_same_result(several.results[0], both.results[0])
        assert_same(run(store=store), both)

    def test_late_in_the_second_run_the_best_so_far_is_chosen(self):
        several = run(make_problem(Counted(25, interrupt)))
        assert several.pooled is None
        assert several.results[1].stop_reason is StopReason.INTERRUPTED
        assert several.result is several.results[several.diagnosis.best - 1]

    def test_in_the_pooled_run(self, tmp_path, both):
        store = tmp_path / "runs"
        several = run(make_problem(Counted(28, interrupt)), store=store)
        assert several.interrupted
        assert several.pooled.stop_reason is StopReason.INTERRUPTED
        assert len(several.results) == 2
        assert_same(run(store=store), both)

    def test_before_there_is_anything(self):
        with pytest.raises(KeyboardInterrupt, match="interrupted after 1 evaluations"):
            run(make_problem(Counted(2, interrupt)))


class TestCallbackAndFailures:
    def test_the_callback_hears_which_run(self, both):
        heard = []
        several = run(callback=lambda info: heard.append((info.run, info.iteration)))
        assert_same(several, both)
        numbers = [number for number, _ in heard]
        assert list(dict.fromkeys(numbers)) == [1, 2, None]
        for number, result in zip((1, 2), several.results, strict=True):
            own = [iteration for run_number, iteration in heard if run_number == number]
            assert own == [info.iteration for info in result.history]

    def test_stop_ends_that_run_alone(self, both):
        several = run(callback=lambda info: "stop" if info.run == 1 else None)
        assert several.results[0].stop_reason is StopReason.CALLBACK
        assert several.results[0].n_evaluations == 10
        assert_same_result(several.results[1], both.results[1])

    def test_a_failure_is_recorded_in_the_run_it_belongs_to(self, tmp_path):
        def fail():
            raise RuntimeError("diverged")

        store = tmp_path / "runs"
        policy = sparing.FailurePolicy(exception=sparing.RAISE)
        with pytest.raises(sparing.TargetError, match="diverged"):
            run(make_problem(Counted(15, fail)), store=store, failures=policy)
        with sparing.Inference(make_problem(), max_evaluations=9, store=store / "run-2") as second:
            assert [entry.status for entry in second.evaluations] == [
                sparing.Status.OK,
                sparing.Status.FAILED,
            ]

    def test_too_many_failures_are_counted_in_each_run(self):
        class FailsLater(Counted):
            def __call__(self, x):
                super().__call__(x)
                if self.n_calls > 14 and self.n_calls % 4:
                    raise RuntimeError("diverged")
                return log_density(x)

        # Of all evaluations less than half had failed when the second run was given up.
        with pytest.raises(sparing.TooManyFailuresError) as caught:
            run(make_problem(FailsLater()))
        assert caught.value.n_total < BUDGET


def together(*results, **pooled):
    return SeveralRuns(results, make_result(seed=9, **pooled), seed=0)


class TestVerdict:
    def test_all_is_well(self):
        several = together(*(make_result(seed=seed) for seed in (1, 2, 3)), error=0.005)
        assert several.agree
        assert several.converged
        assert several.verdict == (
            "All runs agree, log evidences to 0 and standard deviations to 0 %. "
            "Use the result of the pooled run."
        )
        assert repr(several).startswith("SeveralRuns(3 runs, log_evidence=0.0000 ± 0.0050")

    def test_runs_that_disagree(self):
        several = together(make_result(seed=1), make_result(seed=2, mean=5.0))
        assert not several.agree
        assert several.verdict.startswith("The runs disagree; run 2 differs from run 1: moments by")
        assert "Nothing confirms the pooled run" in several.verdict

    def test_one_run_of_four_missed_something(self):
        results = [make_result(seed=seed) for seed in (1, 2, 3)]
        several = together(*results, make_result(seed=4, log_evidence=-0.7), error=0.005)
        assert not several.converged
        text = "Most runs agree; run 4 differs from run 1: log evidence by 0.7 ± 0.014. Nothing"
        assert several.verdict.startswith(text)

    def test_a_pooled_run_that_found_something_else(self):
        several = together(*(make_result(seed=seed) for seed in (1, 2)), log_evidence=0.7)
        assert several.diagnosis.verdict.name == "AGREE"
        assert not several.converged
        assert "; the pooled run differs from run 1: log evidence by 0.7" in several.verdict
        assert several.result is several.pooled  # it knows more

    def test_a_check_that_fails_is_part_of_the_verdict(self):
        """Amber: to look closer; red: not to rely on it."""
        runs = [make_result(seed=seed, error=2.0) for seed in (1, 2)]
        amber = together(*runs, error=0.5)
        assert amber.converged
        text = "but look closer: its standard deviation is 0.5, where 0.1 was asked for."
        assert amber.verdict.endswith(text)
        red = together(*runs, error=1.5)
        assert red.agree
        assert not red.converged
        assert "Do not rely on the pooled run yet: its standard deviation is 1.5" in red.verdict


class TestResultToUse:
    """The pooled run is never used where one of the runs is better."""

    def test_a_run_that_agrees_and_has_a_smaller_error(self):
        several = together(make_result(seed=1, error=0.05), make_result(seed=2), error=0.02)
        assert several.result is several.results[1]
        assert several.converged
        assert several.verdict.endswith("Use the result of run 2.")
        assert "the result of run 2\n" in several.summary()

    def test_a_tenth_of_the_tolerance_is_precise_enough(self):
        several = together(*(make_result(seed=seed, error=0.001) for seed in (1, 2)), error=0.009)
        assert several.result is several.pooled

    def test_a_smaller_error_of_a_run_that_differs_is_none(self):
        missed = make_result(seed=2, log_evidence=-0.7, error=0.001)
        several = together(*(make_result(seed=seed) for seed in (1, 3)), missed, error=0.02)
        assert several.result is several.results[0]

    def test_a_pooled_run_that_did_not_converge(self):
        results = [make_result(seed=seed) for seed in (1, 2)]
        several = together(*results, converged=False, error=0.001)
        assert several.agree
        assert several.result is several.results[0]
        assert several.converged
        assert "; the pooled run did not converge. Use the result of run 1." in several.verdict
        other = together(*results, converged=False, error=0.001, log_evidence=0.7)
        assert other.result is other.results[0]
        assert not other.converged

    def test_nothing_converged(self):
        late = [make_result(seed=seed, converged=False) for seed in (1, 2)]
        several = together(*late, converged=False, error=0.001)
        assert several.result is several.pooled
        assert not several.converged
        assert "Next: allow more evaluations" in several.verdict

    def test_runs_that_ran_out_of_evaluations_confirm_the_pooled_one(self):
        late = [make_result(seed=seed, converged=False) for seed in (1, 2)]
        several = together(*late, error=0.005)
        assert several.converged
        assert "run 1 did not converge; run 2 did not converge. Use the result" in several.verdict


class TestSummary:
    def test_the_summary_has_every_run_and_the_pooled_result(self, both):
        text = str(both)
        lines = text.splitlines()
        names = [line.split("  ")[0] for line in lines[3:6]]
        assert names == ["run 1", "run 2", "the pooled run"]
        assert both.result.summary() in text

    def test_for_a_notebook(self):
        results = [make_result(seed=1), make_result(seed=2, mean=5.0)]
        html = together(*results)._repr_html_()
        assert html.count("<tr>") > 4
        assert "the marginal of x1 by a total variation of 0.99" in html
        assert "converged, differs" in html
        assert make_result(seed=9)._repr_html_() in html


class TestDisplay:
    def test_plain_lines_name_their_run(self, capsys):
        run(progress=True)
        lines = capsys.readouterr().err.splitlines()
        assert "sparing: 1 parameter, 2 runs of at most 13 evaluations" in lines
        for name in ("run 1", "run 2"):
            assert f"sparing: {name}: 1 parameter, at most 13 evaluations" in lines
            assert any(line.startswith(f"sparing: {name}: iteration 1: 10/13") for line in lines)
        assert any(line.startswith("sparing: pooled: iteration") for line in lines)
        assert any("All runs agree, log evidences to" in line for line in lines)

    def test_a_panel_has_a_row_for_each_run(self, both):
        stream = io.StringIO()
        console = Console(file=stream, force_terminal=True, width=120)
        with LiveRuns(Progress(1, BUDGET, n_runs=2), console) as display:
            first = display.part("run 1", Progress(1, BUDGET))
            last = both.results[1].history[-1]
            display.part("run 2", Progress(1, BUDGET, n_evaluations=BUDGET, last=last))
            display.part("run 3", Progress(1, BUDGET))
            display.start()
            first.start()
            first.running(1)
            first.evaluation(3, 1, 0.5)
            display.finish("the end")
        shown = stream.getvalue()
        assert "1 parameter, 2 runs of at most 13 evaluations" in shown
        assert "3/13 evaluations (1 failed), 1 running  initial design" in shown
        assert re.search(r"13/13 evaluations +log evidence 0\.9", shown)
        assert "waits" in shown
        assert "the end" in shown

    def test_silence_on_request(self, capsys):
        display = make_display(False, make_problem(), BUDGET, n_runs=2)
        display.part("run 1", Progress(1, BUDGET)).start()
        display.start()
        assert capsys.readouterr() == ("", "")

    def test_a_pipe_gets_plain_lines(self):
        assert isinstance(make_display(True, make_problem(), BUDGET, n_runs=2), PlainDisplay)
