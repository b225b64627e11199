import dataclasses
import math
import shutil
import time

import pytest

import sparing
from sparing.cli.exit_codes import ExitCode
from sparing.executors import Outcome
from sparing.store.lock import Holder, lock_state
from sparing.store.lock_owner import this_process


@pytest.fixture
def problem(model):
    namespace = {}
    exec(model.read_text(), namespace)
    return namespace["problem"]


def test_a_run_that_ended(sparing_command, directory, result):
    answer = sparing_command("status", directory, "--json")
    assert answer.code == ExitCode.OK
    status = answer.json
    best = max(result.evaluations, key=lambda entry: entry.value)
    assert status["state"] == "stopped"
    assert (status["n_evaluations"], status["n_pending"]) == (15, 0)
    assert status["statuses"] == {"ok": 15}
    assert status["best"] == {"log_joint": best.value, "x": best.x.tolist()}
    assert (status["seed"], status["tag"], status["names"]) == (3, "data 7", ["rate"])
    assert status["target_seconds"] == pytest.approx(result.target_seconds)
    assert status["last_ended"] == result.evaluations[-1].ended
    # The newest snapshot is of the iteration before the last: what ends a run is not saved.
    shown = status["iteration"]
    assert shown["iteration"] == result.history[-2].iteration
    assert shown["log_evidence"] == result.history[-2].log_evidence


def test_for_people(sparing_command, directory):
    text = sparing_command("status", directory).out
    assert "stopped; lock free" in text
    assert "15 (15 ok)" in text
    assert "rate = " in text
    assert "data 7" in text
    assert all(line == line.rstrip() for line in text.splitlines())


HOSTILE = "\x1b[2J\u202e\ud800"


@pytest.mark.parametrize("command", ["status", "verify"])
def test_nothing_in_a_lock_reaches_the_terminal_as_it_is(sparing_command, directory, command):
    owner = dataclasses.replace(this_process(), command=HOSTILE, host=HOSTILE)
    (directory / "lock").write_bytes(owner.encoded())
    answer = sparing_command(command, directory)
    assert r"(\x1b[2J\u202e\ud800)" in answer.out
    assert "\x1b" not in answer.out + answer.err


def test_nothing_in_a_tag_reaches_the_terminal_as_it_is(sparing_command, tmp_path, problem):
    sparing.Inference(problem, store=tmp_path / "run", tag=HOSTILE).close()
    assert r"\x1b[2J\u202e\ud800" in sparing_command("status", tmp_path / "run").out
    error = sparing_command("run", tmp_path / HOSTILE.replace("\ud800", ""), "--quiet")
    assert "\x1b" not in error.err


def test_the_times_of_a_clock_that_is_far_off(sparing_command, tmp_path, problem):
    with sparing.Inference(problem, store=tmp_path / "run") as run:
        outcome = Outcome(-1.0, sparing.Status.OK, 1.0, started=-1e12, ended=-1e12)
        run.tell_outcome(run.ask()[0], outcome)
    assert "-1e+12 s" in sparing_command("status", tmp_path / "run").out


def test_a_saved_result_means_finished(sparing_command, directory, result):
    result.save(directory / "result.sparing")
    status = sparing_command("status", directory, "--json").json
    assert (status["state"], status["finished"], status["converged"]) == ("finished", True, False)
    assert status["iteration"]["iteration"] == result.history[-1].iteration
    assert "NOT converged" in sparing_command("status", directory).out


def test_an_interrupted_run_is_not_finished(sparing_command, directory, result):
    interrupted = dataclasses.replace(result, stop_reason=sparing.StopReason.INTERRUPTED)
    interrupted.save(directory / "result.sparing")
    status = sparing_command("status", directory, "--json").json
    assert (status["state"], status["finished"]) == ("stopped", False)


def test_a_run_in_progress(sparing_command, problem, tmp_path):
    with sparing.Inference(problem, seed=1, store=tmp_path / "run") as run:
        first, _ = run.ask(2)
        run.tell(first, error="the cluster was down")
        answer = sparing_command("status", tmp_path / "run")
        status = sparing_command("status", tmp_path / "run", "--json").json
    assert "running; lock in use by process" in answer.out
    assert "best log joint" not in answer.out
    assert (status["state"], status["n_pending"]) == ("running", 1)
    assert status["statuses"] == {"failed": 1}
    assert status["best"] is None
    assert status["iteration"] is None
    assert status["last_ended"] == "nan"


def test_points_nobody_waits_for(sparing_command, problem, tmp_path):
    with sparing.Inference(problem, seed=1, store=tmp_path / "run") as run:
        for proposal in run.ask(10):
            run.tell(proposal, problem.log_joint(proposal.x))
        run.ask(2)
        run.stop()
        text = sparing_command("status", tmp_path / "run").out
        assert "in flight       2\n" in text
        run.result().save(tmp_path / "run" / "result.sparing")
    text = sparing_command("status", tmp_path / "run").out
    assert "in flight" not in text
    assert "not evaluated   2 still under way when the run ended" in text


def test_a_torn_line_is_said(sparing_command, directory):
    with (directory / "evaluations.jsonl").open("ab") as file:
        file.write(b'{"seq":30,"kin')
    answer = sparing_command("status", directory)
    assert answer.code == ExitCode.OK
    assert "incomplete" in answer.out


def test_not_a_run_directory(sparing_command, tmp_path):
    assert sparing_command("status", tmp_path).code == ExitCode.USAGE
    assert sparing_command("status", tmp_path / "nowhere").code == ExitCode.USAGE


def test_the_directory_above_names_the_runs_in_it(sparing_command, directory, tmp_path):
    shutil.copytree(directory, tmp_path / "several" / "run-1")
    (tmp_path / "several" / "runs.json").touch()
    (tmp_path / "pictures").mkdir()
    answer = sparing_command("status", tmp_path)
    assert answer.code == ExitCode.USAGE
    assert f"runs in it: {directory}, {tmp_path / 'several'}\n" in answer.err


class TestLock:
    def state(self, tmp_path, **changes):
        owner = dataclasses.replace(this_process(), **changes)
        (tmp_path / "lock").write_bytes(owner.encoded())
        return lock_state(tmp_path)

    def test_nobody(self, tmp_path):
        assert lock_state(tmp_path).holder is Holder.NOBODY
        (tmp_path / "lock").write_bytes(b"")
        assert lock_state(tmp_path).holder is Holder.NOBODY

    def test_this_host(self, tmp_path):
        assert self.state(tmp_path).holder is Holder.ALIVE
        gone = self.state(tmp_path, process_started="another boot: 17")
        assert gone.holder is Holder.DEAD
        assert "the next run takes it over" in gone.text

    def test_another_host_lives_while_its_heart_beats(self, tmp_path):
        fresh = self.state(tmp_path, host="elsewhere", heartbeat=time.time() - 20)
        assert (fresh.holder, "last sign of life 20 s ago" in fresh.text) == (Holder.ALIVE, True)
        assert self.state(tmp_path, host="elsewhere", heartbeat=math.pi).holder is Holder.DEAD

    def test_a_text_that_cannot_be_read(self, tmp_path):
        (tmp_path / "lock").write_bytes(b'{"host": "x"')
        assert lock_state(tmp_path).holder is Holder.UNKNOWN
