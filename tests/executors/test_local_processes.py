import gc
import multiprocessing
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from concurrent.futures import CancelledError, wait
from contextlib import contextmanager, suppress
from pathlib import Path

import numpy as np
import pytest

from sparing.errors import SettingsError
from sparing.executors import LocalProcesses, TimedOutError, WorkerDiedError, child, local_processes

PATIENCE = 30.0


def alive(pid):
    """Whether a process runs; one that nobody has buried yet does not."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] != "Z"
    except (FileNotFoundError, ProcessLookupError):
        return False


def until(condition):
    deadline = time.monotonic() + PATIENCE
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.01)


def hang(folder=None):
    if folder is not None:
        Path(folder, str(os.getpid())).touch()
    while True:
        time.sleep(0.05)


def pid_in(folder):
    until(lambda: list(Path(folder).iterdir()))
    return int(next(Path(folder).iterdir()).name)


@pytest.fixture
def executor():
    with LocalProcesses(2) as executor:
        yield executor
        executor.shutdown(cancel_futures=True)


def test_each_call_has_a_fresh_process(executor):
    pids = [executor.submit(os.getpid).result() for _ in range(3)]
    assert len({*pids, os.getpid()}) == 4
    assert list(executor.map(abs, [-1, -2, -3, -4, -5])) == [1, 2, 3, 4, 5]


def test_closures_need_no_pickling(executor):
    hidden = threading.Lock()  # cannot be pickled
    assert executor.submit(lambda: hidden.locked()).result() is False


def test_large_results_come_back(executor):
    result = executor.submit(np.ones, 4_000_000).result()
    assert result.nbytes == 32_000_000
    assert result.sum() == 4_000_000


def test_exceptions_come_back_with_their_traceback(executor):
    def failing():
        raise KeyError("lost")

    error = executor.submit(failing).exception()
    assert isinstance(error, KeyError)
    assert "in failing" in str(error.__cause__)


def test_exceptions_and_results_that_cannot_be_sent_are_described(executor):
    class LocalError(Exception):
        pass

    class DemandingError(Exception):
        def __init__(self, one, two):
            super().__init__(f"{one} and {two}")

    def raising(error):
        raise error

    assert "LocalError: here" in str(executor.submit(raising, LocalError("here")).exception())
    assert "one and two" in str(executor.submit(raising, DemandingError("one", "two")).exception())
    error = executor.submit(threading.Lock).exception()
    assert "lock) cannot be pickled" in str(error)


def test_a_killed_process_names_the_signal(executor):
    future = executor.submit(lambda: os.kill(os.getpid(), signal.SIGKILL))
    with pytest.raises(WorkerDiedError, match=r"signal 9, SIGKILL"):
        future.result(PATIENCE)


def test_a_process_that_leaves_names_the_exit_code(executor):
    with pytest.raises(WorkerDiedError, match="exit code 3"):
        executor.submit(os._exit, 3).result(PATIENCE)


def test_a_dead_process_with_living_children_is_noticed(executor, tmp_path):
    """They hold the pipe open, so that its end cannot be heard."""

    def dying():
        if os.fork() == 0:
            hang(tmp_path)
        pid_in(tmp_path)
        os.kill(os.getpid(), signal.SIGKILL)

    try:
        with pytest.raises(WorkerDiedError, match="SIGKILL"):
            executor.submit(dying).result(PATIENCE)
    finally:
        os.kill(pid_in(tmp_path), signal.SIGKILL)


def test_the_time_limit_ends_the_process(executor, tmp_path):
    future = executor.submit_limited(0.2, hang, tmp_path)
    pid = pid_in(tmp_path)
    with pytest.raises(TimedOutError, match=r"longer than 0.2 s"):
        future.result(PATIENCE)
    assert not alive(pid)


def test_the_time_limit_ends_what_ignores_it_and_what_it_started(monkeypatch, tmp_path):
    monkeypatch.setattr(local_processes, "GRACE", 0.2)

    def stubborn():
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        subprocess.run([sys.executable, "-S", "-c", "import time; time.sleep(60)"], check=False)

    def children_of(pid):
        tasks = Path(f"/proc/{pid}/task/{pid}/children")
        return tasks.read_text().split() if tasks.exists() else []

    with LocalProcesses(1) as executor:
        future = executor.submit_limited(0.7, stubborn)
        parent = executor._running[0].child.process.pid
        until(lambda: children_of(parent))
        grandchild = int(children_of(parent)[0])
        with pytest.raises(TimedOutError):
            future.result(PATIENCE)
        until(lambda: not alive(grandchild))


def test_a_limit_does_not_touch_quick_calls(executor):
    assert executor.submit_limited(PATIENCE, abs, -3).result() == 3


def test_cancelling_ends_a_running_call(executor, tmp_path):
    future = executor.submit(hang, tmp_path)
    pid = pid_in(tmp_path)
    assert future.running()
    assert future.cancel()
    assert wait([future], PATIENCE).done == {future}
    with pytest.raises(CancelledError):
        future.result()
    until(lambda: not alive(pid))


def test_cancelling_a_waiting_call_is_noticed(executor):
    running = [executor.submit(hang) for _ in range(2)]
    waiting = executor.submit(abs, -1)
    assert not waiting.running()
    assert waiting.cancel()
    assert wait([waiting], PATIENCE).done == {waiting}
    assert all(future.running() for future in running)


def test_never_more_than_the_workers_at_a_time(executor, tmp_path):
    def count(name):
        (tmp_path / name).touch()
        time.sleep(0.05)
        n_running = len(list(tmp_path.iterdir()))
        (tmp_path / name).unlink()
        return n_running

    assert max(executor.map(count, [str(k) for k in range(8)])) <= 2


def test_shutdown_waits_or_kills(tmp_path):
    executor = LocalProcesses(1)
    done, waiting = executor.submit(time.sleep, 0.1), executor.submit(abs, -1)
    executor.shutdown(wait=True)
    assert done.done()
    assert waiting.result() == 1
    with pytest.raises(RuntimeError, match="after shutdown"):
        executor.submit(abs, -1)

    executor = LocalProcesses(1)
    executor.submit(hang, tmp_path)
    pid = pid_in(tmp_path)
    executor.shutdown(wait=True, cancel_futures=True)
    assert not alive(pid)


def test_an_error_in_the_with_block_ends_the_processes(tmp_path):
    with pytest.raises(ZeroDivisionError), LocalProcesses(1) as executor:
        executor.submit(hang, tmp_path)
        pid = pid_in(tmp_path)
        raise ZeroDivisionError
    assert not alive(pid)


def test_nothing_leaks(executor):
    def descriptors():
        gc.collect()
        return len(list(Path("/proc/self/fd").iterdir()))

    executor.submit(abs, -1).result()
    until(lambda: executor._thread is None)
    before, threads = descriptors(), threading.active_count()
    list(executor.map(abs, range(20)))
    executor.submit(os._exit, 1).exception()
    executor.submit_limited(0.05, hang).exception()
    until(lambda: executor._thread is None)
    assert descriptors() == before
    assert threading.active_count() == threads
    assert multiprocessing.active_children() == []


def test_children_forget_the_parents_handlers(executor):
    previous = signal.signal(signal.SIGTERM, lambda *_: None)
    try:
        future = executor.submit(lambda: [signal.getsignal(s) for s in (2, 15)])
        assert future.result() == [signal.SIG_IGN, signal.SIG_DFL]
        assert executor.submit(os.getpgrp).result() != os.getpgrp()
    finally:
        signal.signal(signal.SIGTERM, previous)


def test_a_new_interpreter_needs_pickling_and_its_limit_counts_from_the_call():
    with LocalProcesses(1, start_method="spawn") as executor:
        assert executor.submit_limited(PATIENCE, abs, -3).result() == 3
        assert isinstance(executor.submit(lambda: 3).exception(), Exception)
        with pytest.raises(TimedOutError):
            executor.submit_limited(0.05, time.sleep, 60).result(PATIENCE)


def test_an_interpreter_that_ends_leaves_no_process(tmp_path):
    script = (
        "import sys, time, os, pathlib\n"
        "from sparing.executors import LocalProcesses\n"
        "def hang():\n"
        "    pathlib.Path(sys.argv[1], str(os.getpid())).touch()\n"
        "    time.sleep(600)\n"
        "future = LocalProcesses(1).submit(hang)\n"
        "while not os.listdir(sys.argv[1]): time.sleep(0.01)\n"
    )
    subprocess.run([sys.executable, "-c", script, tmp_path], check=True, timeout=PATIENCE)
    until(lambda: not alive(pid_in(tmp_path)))


def descriptors():
    return {int(path.name) for path in Path("/proc/self/fd").iterdir()}


def scribble(content, spared, then):
    """Write to every descriptor that it finds, as a lost one would."""
    for descriptor in descriptors() - spared:
        with suppress(OSError):
            os.set_blocking(descriptor, False)
            os.write(descriptor, content)
            os.read(descriptor, 1 << 16)
    return then()


@pytest.mark.parametrize("content", [b"\0\0", b"\0" * 64, b"\xff" * 3, b"ready" * 30_000])
def test_what_a_call_writes_to_descriptors_it_inherited_harms_nobody(content):
    spared = descriptors()  # the test's own
    with LocalProcesses(3) as executor:
        quiet = executor.submit(time.sleep, 0.3)
        loud = [executor.submit(scribble, content, spared, os.getpid) for _ in range(4)]
        assert len({future.result(PATIENCE) for future in loud}) == 4
        assert quiet.result(PATIENCE) is None
        assert isinstance(
            executor.submit(scribble, content, spared, die).exception(PATIENCE), WorkerDiedError
        )


def die():
    os.kill(os.getpid(), signal.SIGKILL)


def test_a_message_that_stops_in_the_middle_holds_up_nobody(executor, tmp_path, monkeypatch):
    """The watcher looks after the others and their limits, and hears what is cancelled."""
    sendall = socket.socket.sendall

    def half(sender, message):
        sendall(sender, message[: len(message) // 2] if len(message) > 1000 else message)
        if len(message) > 1000:
            hang(tmp_path)

    monkeypatch.setattr(child.socket.socket, "sendall", half, raising=False)
    stopped = executor.submit(bytes, 2000)
    pid = pid_in(tmp_path)
    assert executor.submit(abs, -3).result(PATIENCE) == 3
    with pytest.raises(TimedOutError):
        executor.submit_limited(0.1, hang).result(PATIENCE)
    stopped.cancel()
    until(lambda: not alive(pid))


def test_a_result_that_was_damaged_on_its_way_is_refused(executor, monkeypatch):
    monkeypatch.setattr(child.zlib, "crc32", lambda message: os.getpid())  # not the parent's
    with pytest.raises(WorkerDiedError, match="damaged"):
        executor.submit(abs, -3).result(PATIENCE)


def test_children_inherit_no_descriptor_of_the_executor(executor):
    def open_descriptors():
        return {
            str(path.readlink()) for path in Path("/proc/self/fd").iterdir() if path.is_symlink()
        }

    before = open_descriptors()
    executor.submit(hang)
    new = executor.submit(open_descriptors).result(PATIENCE) - before
    # Its own end, and what multiprocessing has between the child, its parent and the other child.
    assert len([name for name in new if name.startswith("socket:")]) == 1
    assert len([name for name in new if name.startswith("pipe:")]) <= 4


ORPHANS = """
import os, pathlib, signal, subprocess, sys, threading, time
from sparing.executors import LocalProcesses, guard

def work(kind):
    if kind == "starts a simulator":
        process = subprocess.Popen([sys.executable, "-S", "-c", "import time; time.sleep(600)"])
        pathlib.Path(sys.argv[1], f"simulator-{process.pid}").touch()
    if kind == "does not listen":
        for number in (signal.SIGTERM, signal.SIGHUP):
            signal.signal(number, signal.SIG_IGN)
    pathlib.Path(sys.argv[1], f"worker-{os.getpid()}").touch()
    time.sleep(600)

if __name__ == "__main__":
    for number in (signal.SIGHUP, signal.SIGQUIT):  # which nohup or a shell may have ignored
        signal.signal(number, signal.SIG_DFL)
    start_method, helper = sys.argv[2:]
    executor = LocalProcesses(2, start_method=start_method)
    for kind in ("starts a simulator", "does not listen"):
        submit = lambda: executor.submit(work, kind)
        if helper == "guard":  # the death signal goes by the main thread
            thread = threading.Thread(target=submit)
            thread.start()
            thread.join()
        else:
            submit()
            os.kill(guard.guard._process.pid, signal.SIGKILL)
    print(guard.guard._process.pid, flush=True)
    time.sleep(600)
"""


@pytest.mark.parametrize(
    ("number", "start_method"),
    [(signal.SIGHUP, "fork"), (signal.SIGQUIT, "fork"), (signal.SIGKILL, "spawn")],
)
def test_workers_and_what_they_started_end_with_their_parent(tmp_path, number, start_method):
    with orphans_of(tmp_path, number, start_method, "guard") as (simulator, *workers):
        for pid in (simulator, *workers):
            until(lambda pid=pid: not alive(pid))


@pytest.mark.skipif(sys.platform != "linux", reason="the death signal is Linux's")
def test_workers_end_with_their_parent_where_the_guard_was_killed(tmp_path):
    with orphans_of(tmp_path, signal.SIGKILL, "fork", "death signal") as (_, *workers):
        for pid in workers:
            until(lambda pid=pid: not alive(pid))


@contextmanager
def orphans_of(folder, number, start_method, helper):
    """What one of two workers started, and the workers, of a process that was killed."""
    script, pids = folder / "orphans.py", folder / "pids"
    script.write_text(ORPHANS)
    pids.mkdir()
    command = [sys.executable, str(script), str(pids), start_method, helper]
    with subprocess.Popen(command, stdout=subprocess.PIPE) as parent:
        try:
            watcher = int(parent.stdout.readline())
            until(lambda: len(list(pids.iterdir())) == 3)
            assert alive(watcher) == (helper == "guard")
        finally:
            parent.send_signal(number)
    orphans = [int(path.name.split("-")[1]) for path in sorted(pids.iterdir())]
    try:
        until(lambda: not alive(watcher))
        yield orphans
    finally:
        for pid in orphans:
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)


@pytest.mark.parametrize("workers", [0, -1, 1.5, True])
def test_workers_are_counted(workers):
    with pytest.raises(SettingsError, match="workers must be"):
        LocalProcesses(workers)


def test_unknown_start_methods_are_named():
    with pytest.raises(SettingsError, match=r"one of .*spawn.*, not 'sprout'"):
        LocalProcesses(1, start_method="sprout")
