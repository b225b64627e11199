"""Runs that lose nothing: killed anywhere and resumed, they end as if nothing had happened."""

import errno
import math
import os
import shutil
import signal
import subprocess
import sys
import textwrap
import threading
import time
from pathlib import Path

import numpy as np
import pytest
from scipy import stats
from tests.light import LIGHT

import sparing
from sparing.errors import SparingError, StoreError
from sparing.executors import BrokenTargetError, InvalidRecordError, Outcome
from sparing.problem.evaluations import Evaluation, Status
from sparing.store import MemoryStore, RunDirectory

TARGET = stats.multivariate_normal([0.5, -0.3], [[1.0, 0.8], [0.8, 1.0]])
BUDGET = 27  # five iterations, the last with two points


def log_density(x):
    return float(TARGET.logpdf(x))


def misspelt(x):
    return log_densty(x)  # noqa: F821


def make_problem(function=log_density):
    return sparing.Problem(function, [-2, -2], [2, 2])


def run(store=None, problem=None, **options):
    options = {"seed": 1, "progress": False, "max_evaluations": BUDGET, **options}
    return sparing.infer(problem or make_problem(), store=store, **{"settings": LIGHT, **options})


def begun(store):
    options = {"seed": 1, "max_evaluations": BUDGET, "settings": LIGHT}
    return sparing.Inference(make_problem(), store=store, **options)


def assert_identical(first, second):
    assert first.log_evidence == second.log_evidence
    assert first.elbo == second.elbo
    assert first.elbo_sd == second.elbo_sd
    np.testing.assert_array_equal(
        first.posterior.sample(20, seed=1), second.posterior.sample(20, seed=1)
    )
    assert [entry.value for entry in first.evaluations] == [
        entry.value for entry in second.evaluations
    ]
    for a, b in zip(first.evaluations, second.evaluations, strict=True):
        np.testing.assert_array_equal(a.x, b.x)
        assert (a.rule, a.outcome.kind) == (b.rule, b.outcome.kind)


class KilledError(BaseException):
    """Stands for a process that ends here."""


@pytest.fixture(scope="module")
def uninterrupted():
    return run()


def test_a_store_changes_nothing(tmp_path, uninterrupted):
    assert_identical(run(tmp_path / "run"), uninterrupted)


@pytest.mark.parametrize("snapshots", [True, False])
@pytest.mark.parametrize("killed_at", [1, 7, 10, 12, 20, 26])
def test_killed_in_an_evaluation_and_resumed(tmp_path, uninterrupted, killed_at, snapshots):
    store = tmp_path / "run"
    calls = []

    def dies(x):
        calls.append(x)
        if len(calls) == killed_at:
            raise KilledError
        return log_density(x)

    with pytest.raises(KilledError):
        run(store, make_problem(dies))
    if not snapshots:
        for path in (store / "snapshots").iterdir():
            path.unlink()
    evaluated = []

    def counted(x):
        evaluated.append(x)
        return log_density(x)

    assert_identical(run(store, make_problem(counted)), uninterrupted)
    n_checked = int(killed_at > 1)  # a stored point
    assert len(evaluated) == BUDGET - killed_at + 1 + n_checked  # nothing else twice


def test_a_snapshot_of_another_release_is_passed_over(tmp_path, uninterrupted, monkeypatch):
    from sparing.errors import LoadError
    from sparing.running import stored_run

    store = tmp_path / "run"
    run(store, max_evaluations=20)

    def refuse(*arguments, **options):
        raise LoadError("made by another release")

    monkeypatch.setattr(stored_run, "state_from_parts", refuse)
    result = run(store)
    assert result.n_evaluations == uninterrupted.n_evaluations


def test_a_finished_run_is_read_back_without_an_evaluation(tmp_path, uninterrupted):
    store = tmp_path / "run"
    run(store)

    def never(x):
        raise AssertionError("evaluated")

    assert_identical(run(store, make_problem(never), check_target=False), uninterrupted)


def test_a_finished_run_goes_on_with_a_larger_budget(tmp_path):
    store = tmp_path / "run"
    run(store, max_evaluations=12)
    result = run(store, max_evaluations=20)
    assert result.n_evaluations == 20


@pytest.mark.parametrize("snapshots", [True, False])
def test_a_smaller_budget_does_not_change_a_finished_run(tmp_path, snapshots):
    finished = run(tmp_path, max_evaluations=24)
    if not snapshots:
        shutil.rmtree(tmp_path / "snapshots")
    again = run(tmp_path, max_evaluations=10)
    assert_identical(again, finished)
    assert (again.stop_reason, len(again.history)) == (finished.stop_reason, len(finished.history))


def test_another_problem_is_refused_and_named(tmp_path):
    store = tmp_path / "run"
    run(store, max_evaluations=12)
    other = sparing.Problem(log_density, [-2, -3], [2, 2])
    with pytest.raises(SparingError, match=r"plausible_lower"):
        run(store, other)
    with pytest.raises(SparingError, match="seed"):
        run(store, seed=2)
    with pytest.raises(SparingError, match="tag"):
        run(store, tag="other data")


def test_results_left_in_the_spool_are_taken_up(tmp_path):
    """A worker finished after the coordinator had died."""
    from sparing.executors import Outcome, outcome_to_record
    from sparing.store import write_spooled_outcome

    store = tmp_path / "run"
    with begun(store) as run_:
        proposals = run_.ask(3)
        directory = run_.store.spool.directory
    assert directory is not None
    outcome = Outcome(log_density(proposals[1].x), sparing.Status.OK, 0.1)
    write_spooled_outcome(directory, proposals[1].identifier, outcome_to_record(outcome))
    evaluated = []

    def counted(x):
        evaluated.append(tuple(x))
        return log_density(x)

    result = run(store, make_problem(counted))
    assert result.n_evaluations == BUDGET
    assert tuple(proposals[1].x) not in evaluated
    assert {tuple(proposals[0].x), tuple(proposals[2].x)} <= set(evaluated)


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"value": 1e300}, "of a size up to 1e\\+12, not 1e\\+300"),
        ({"value": "nan"}, "is finite"),
        ({"status": "splendid"}, "splendid"),
        ({"tries": 2}, "unknown in an outcome: tries"),
        ({"noise_sd": 1e200}, "noise"),
        ({"noise_sd": "nan"}, "noise"),
    ],
)
def test_a_spooled_result_that_says_nonsense_is_named_and_evaluated_again(tmp_path, change, reason):
    from sparing.executors import Outcome, outcome_to_record
    from sparing.store import write_spooled_outcome

    store = tmp_path / "run"
    with begun(store) as run_:
        (proposal,) = run_.ask()
    record = outcome_to_record(Outcome(-1.0, sparing.Status.OK, 0.1)) | change
    write_spooled_outcome(str(store / "spool"), 0, record)
    with pytest.warns(sparing.SparingWarning, match=rf"spool/0\.json .*{reason}"):
        result = run(store, max_evaluations=10)
    assert result.evaluations[0].value == log_density(proposal.x)
    assert not list((store / "spool").iterdir())


def remove(folder):
    shutil.rmtree(folder, ignore_errors=True)


def replace_by_a_file(folder):
    shutil.rmtree(folder, ignore_errors=True)
    folder.unlink(missing_ok=True)
    folder.touch()


def test_a_run_goes_on_when_its_snapshots_are_removed(tmp_path, uninterrupted):
    store = tmp_path / "run"
    result = run(store, callback=lambda info: remove(store / "snapshots"))
    assert_identical(result, uninterrupted)
    assert_identical(run(store), uninterrupted)


def test_a_run_goes_on_without_snapshots_that_cannot_be_written(tmp_path, uninterrupted):
    store = tmp_path / "run"
    with pytest.warns(sparing.SparingWarning, match="go on without a snapshot.*snapshots"):
        result = run(store, callback=lambda info: replace_by_a_file(store / "snapshots"))
    assert_identical(result, uninterrupted)


def test_a_disk_that_is_full_at_a_snapshot_does_not_end_the_run(
    tmp_path, uninterrupted, monkeypatch
):
    from sparing.store import files

    write_durably = files.write_durably

    def full(path, content):
        if path.suffix == ".npz":
            with files.explained_errors(path, "write"):
                raise OSError(errno.ENOSPC, "No space left on device")
        write_durably(path, content)

    monkeypatch.setattr(files, "write_durably", full)
    with pytest.warns(sparing.SparingWarning, match="No space left on device"):
        result = run(tmp_path / "run")
    assert_identical(result, uninterrupted)


def test_points_evaluated_elsewhere_survive_a_resume(tmp_path):
    store = tmp_path / "run"
    own = np.array([0.4, -0.2])
    with begun(store) as first:
        first.tell(own, log_density(own))
        first.tell(np.array([1.0, 1.0]), error="the cluster was down")
    with sparing.Inference(make_problem(), max_evaluations=BUDGET, store=store) as second:
        assert second.n_evaluations == 2
        np.testing.assert_array_equal(second.evaluations[0].x, own)
        assert second.evaluations[1].message == "the cluster was down"
        assert second.seed == 1


POISON = {
    "noise": Outcome(-1.0, Status.OK, 0.1, noise_sd=1e200),
    "value": Outcome(1e300, Status.OK, 0.1),
    "a value where there is none": Outcome(-1.0, Status.FAILED, 0.1),
    "duration": Outcome(-1.0, Status.OK, "long"),
    "text": Outcome("-1.0", Status.OK, 0.1),
    "a truth": Outcome(True, Status.OK, 0.1),
    "message": Outcome(math.nan, Status.FAILED, 0.1, message=None),
}


@pytest.mark.parametrize("outcome", POISON.values(), ids=POISON)
def test_what_could_not_be_read_back_is_not_recorded(tmp_path, outcome):
    with begun(tmp_path) as driven:
        (proposal,) = driven.ask()
        with pytest.raises(InvalidRecordError):
            driven.tell_outcome(proposal, outcome)
    with begun(tmp_path) as driven:
        assert (driven.n_evaluations, len(driven.pending)) == (0, 1)


def test_an_event_of_a_store_that_cannot_be_used_is_named(tmp_path):
    """Of an earlier release, say: nothing is refused without a word on what to do."""
    store = MemoryStore(1)
    store.append(sparing.Proposal(0, np.array([1e300, 0.0])))
    with pytest.raises(StoreError, match=r"(?s)event 1 of the stored run.*1e\+300.*tell"):
        sparing.Inference(make_problem(), store=store)


def test_a_disk_that_is_full_stops_the_run_and_nothing_is_lost(
    tmp_path, monkeypatch, uninterrupted
):
    store = tmp_path / "run"
    original, n_writes = os.write, 0

    def full(descriptor, data):
        nonlocal n_writes
        n_writes += 1
        if n_writes > 40:
            raise OSError(28, "No space left on device")
        return original(descriptor, data)

    monkeypatch.setattr(os, "write", full)
    with pytest.raises(SparingError, match=r"(?i)space|full"):
        run(store)
    monkeypatch.setattr(os, "write", original)
    assert_identical(run(store), uninterrupted)


SCRIPT = """
import sys, time
import sparing
sys.path[:0] = {directories!r}
from test_durable_runs import log_density, BUDGET, LIGHT

def slow(x):
    time.sleep(0.05)
    return log_density(x)

problem = sparing.Problem(slow, [-2, -2], [2, 2])
print("ready", flush=True)
result = sparing.infer(
    problem, seed=1, max_evaluations=BUDGET, store=sys.argv[1], settings=LIGHT, progress=False
)
print(result.stop_reason.name, result.n_evaluations, flush=True)
"""


def start(store):
    here = Path(__file__).parent
    script = textwrap.dedent(SCRIPT.format(directories=[str(here), str(here.parents[1])]))
    process = subprocess.Popen(
        [sys.executable, "-c", script, str(store)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "ready\n"
    journal = store / "evaluations.jsonl"
    while not journal.exists() or journal.read_text().count('"result"') < 13:
        assert process.poll() is None, process.communicate()
        time.sleep(0.01)
    return process


@pytest.mark.skipif(sys.platform == "win32", reason="POSIX signals")
def test_killed_for_real_and_resumed(tmp_path, uninterrupted):
    store = tmp_path / "run"
    process = start(store)
    process.kill()
    process.communicate()
    assert_identical(run(store), uninterrupted)


@pytest.mark.skipif(sys.platform == "win32", reason="POSIX signals")
def test_interrupted_returns_the_result_so_far_and_resumes(tmp_path, uninterrupted):
    store = tmp_path / "run"
    process = start(store)
    process.send_signal(signal.SIGINT)
    output, errors = process.communicate(timeout=60)
    assert output.startswith("INTERRUPTED"), errors
    assert_identical(run(store), uninterrupted)


@pytest.mark.skipif(sys.platform == "win32", reason="POSIX signals")
def test_terminated_exits_and_says_how_to_resume(tmp_path, uninterrupted):
    store = tmp_path / "run"
    process = start(store)
    process.send_signal(signal.SIGTERM)
    _, errors = process.communicate(timeout=60)
    assert process.returncode == 128 + signal.SIGTERM
    assert str(store) in errors
    assert_identical(run(store), uninterrupted)


def test_a_store_in_use_is_refused(tmp_path):
    store = tmp_path / "run"
    with (
        sparing.Inference(make_problem(), seed=1, store=store),
        pytest.raises(SparingError, match=str(os.getpid())),
    ):
        sparing.Inference(make_problem(), store=store)


class TestExecution:
    """The driver on workers: the same bookkeeping whatever evaluates the target."""

    def test_workers_give_a_good_result_and_say_who_they_are(self):
        result = run(workers=2, max_evaluations=60)
        assert abs(result.log_evidence) < 0.05
        workers = {entry.worker for entry in result.evaluations}
        assert len(workers) == result.n_evaluations  # one process each
        # The run may end while an earlier point than its last is still in flight.
        identifiers = {entry.identifier for entry in result.evaluations}
        assert len(identifiers) == result.n_evaluations
        assert identifiers <= set(range(result.n_evaluations + 1))

    def test_one_worker_is_the_sequential_run(self, uninterrupted):
        assert_identical(run(workers=1), uninterrupted)

    def test_a_worker_that_hangs_or_dies_is_a_recorded_failure(self):
        def fragile(x):
            if 0.0 < x[0] < 0.15:
                time.sleep(60.0)
            if x[0] < -1.7:
                os.kill(os.getpid(), signal.SIGKILL)
            return log_density(x)

        x0 = np.array([[0.1, 0.0], [-1.8, 0.0]])
        problem = make_problem(fragile)
        result = run(problem=problem, x0=x0, workers=2, time_limit=1.0, max_evaluations=20)
        assert result.evaluations[0].identifier is not None
        by_identifier = {entry.identifier: entry for entry in result.evaluations}
        assert by_identifier[0].status is sparing.Status.TIMED_OUT
        assert by_identifier[1].status is sparing.Status.FAILED
        assert "signal" in by_identifier[1].message
        assert any("failed" in text for text in result.warnings)

    def test_a_policy_can_end_the_run_and_the_failure_is_recorded(self, tmp_path):
        def broken(x):
            if x[0] > 1.0:
                raise RuntimeError("diverged")
            return log_density(x)

        store = tmp_path / "run"
        with pytest.raises(SparingError, match="diverged"):
            run(
                store,
                make_problem(broken),
                failures=sparing.FailurePolicy(exception=sparing.RAISE),
            )
        with sparing.Inference(make_problem(), max_evaluations=BUDGET, store=store) as resumed:
            assert resumed.evaluations[-1].status is sparing.Status.FAILED
            assert "RuntimeError" in resumed.evaluations[-1].traceback

    def test_too_many_failures_stop_the_run_with_the_list(self):
        def mostly_broken(x):
            if x[0] > -1.0:
                raise RuntimeError("diverged")
            return log_density(x)

        patient = sparing.FailurePolicy(first_exception=sparing.SKIP)
        with pytest.raises(sparing.TooManyFailuresError, match="diverged") as caught:
            run(problem=make_problem(mostly_broken), failures=patient)
        error = caught.value
        assert error.n_total > len(error.entries) > error.n_total / 2
        assert all(entry.failed for entry in error.entries)
        assert f"{len(error.entries)} of {error.n_total} evaluations failed" in str(error)
        assert "): ok" not in str(error)

    @pytest.mark.parametrize("workers", [None, 2])
    def test_a_broken_target_stops_at_once_with_its_own_traceback(self, tmp_path, workers):
        options = {"store": tmp_path / "run", "workers": workers}
        with pytest.raises(BrokenTargetError) as caught:
            run(problem=make_problem(misspelt), **options)
        text = str(caught.value)
        assert "NameError" in text
        assert "return log_densty(x)" in text
        assert "sparing/executors" not in text
        assert "first_exception=sparing.SKIP" in text
        with RunDirectory.open(tmp_path / "run", read_only=True) as store:
            told = [event for event in store.events() if isinstance(event, Evaluation)]
        assert 1 <= len(told) <= (workers or 1)
        # The same run goes on once the target is mended.
        assert run(problem=make_problem(log_density), **options).n_evaluations > len(told)

    def test_one_value_is_enough_to_go_on(self):
        calls = []

        def fails_later(x):
            calls.append(x)
            if len(calls) in (2, 3):
                raise RuntimeError("diverged")
            return log_density(x)

        assert len(run(problem=make_problem(fails_later)).failed) == 2

    def test_a_retry_can_succeed(self, tmp_path):
        marker = tmp_path / "tried"

        def flaky(x):
            if not marker.exists():
                marker.touch()
                raise RuntimeError("the licence server was busy")
            return log_density(x)

        policy = sparing.FailurePolicy(exception=sparing.retry(2))
        result = run(problem=make_problem(flaky), failures=policy, max_evaluations=12)
        assert all(entry.status is sparing.Status.OK for entry in result.evaluations)


def test_threads_that_share_a_run_take_turns(tmp_path, monkeypatch):
    from sparing.vbmc.engine import Engine

    propose, apply = Engine.propose, Engine.apply

    def slow(method):
        def call(engine, *arguments):
            found = method(engine, *arguments)
            time.sleep(0.002)  # lets the other threads in
            return found

        return call

    monkeypatch.setattr(Engine, "propose", slow(propose))
    monkeypatch.setattr(Engine, "apply", slow(apply))
    problems = []

    def work(shared):
        try:
            while proposals := shared.ask(2):
                for proposal in proposals:
                    shared.tell(proposal, log_density(proposal.x))
        except Exception as error:
            problems.append(error)

    with begun(tmp_path / "run") as shared:
        threads = [threading.Thread(target=work, args=(shared,)) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert problems == []
    monkeypatch.undo()
    with begun(tmp_path / "run") as again:
        assert sorted(entry.identifier for entry in again.evaluations) == list(range(BUDGET))
        assert [entry.value for entry in again.evaluations] == [
            log_density(entry.x) for entry in again.evaluations
        ]


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 0), (signal.SIGTERM, 143)])
def test_a_signal_does_not_wait_for_a_process_pool_of_the_users(tmp_path, number, code):
    script = tmp_path / "pool.py"
    script.write_text(
        textwrap.dedent("""
            import os, pathlib, signal, sys, time
            from concurrent.futures import ProcessPoolExecutor
            import sparing

            def log_density(x):
                handler = signal.getsignal(signal.SIGTERM)
                pathlib.Path(sys.argv[1], str(os.getpid())).write_text(f"{handler!r}")
                time.sleep(600.0)

            if __name__ == "__main__":
                signal.signal(signal.SIGINT, signal.default_int_handler)
                problem = sparing.Problem(log_density, [-2, -2], [2, 2])
                with ProcessPoolExecutor(2) as executor:
                    try:
                        sparing.infer(problem, executor=executor, progress=False)
                    except KeyboardInterrupt:
                        pass
        """)
    )
    pids = tmp_path / "pids"
    pids.mkdir()
    command = [sys.executable, str(script), str(pids)]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as process:
        try:
            deadline = time.monotonic() + 60.0
            while sum(path.stat().st_size > 0 for path in pids.iterdir()) < 2:  # both have written
                assert time.monotonic() < deadline
                time.sleep(0.01)
            process.send_signal(number)
            _, complaints = process.communicate(timeout=60.0)
        finally:
            for pid in [process.pid, *(int(path.name) for path in pids.iterdir())]:
                if process.returncode is None:
                    os.kill(pid, signal.SIGKILL)
    assert process.returncode == code
    assert "its workers were ended" in complaints
    assert {path.read_text() for path in pids.iterdir()} == {repr(signal.SIG_DFL)}
