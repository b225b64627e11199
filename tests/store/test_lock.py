import contextlib
import json
import os
import signal
import subprocess
import sys
import threading
import time

import pytest
from tests.store.support import contents, opened, proposal, started

from sparing.errors import StoreError, StoreLockedError
from sparing.store import lock as lock_module
from sparing.store.lock import RunLock
from sparing.store.lock_owner import TEXT_LENGTH, decode_owner, is_running, this_process

HOLDER = """
    import sys, time
    from tests.store.support import opened, proposal
    store = opened(sys.argv[1], seed=1)
    store.append(proposal())
    print("ready", flush=True)
    time.sleep(600)
"""


@contextlib.contextmanager
def holder(path, script=HOLDER):
    """Another process that holds the run directory; killed at the end."""
    with started(script, path) as process:
        try:
            assert process.stdout.readline() == "ready\n"
            yield process
        finally:
            process.kill()


@pytest.mark.slow
def test_a_second_process_is_refused_until_the_first_is_dead(tmp_path):
    with holder(tmp_path) as process:
        with pytest.raises(StoreLockedError) as caught:
            opened(tmp_path)
        assert caught.value.pid == process.pid
        assert f"process {process.pid} on {caught.value.host} since 20" in str(caught.value)
        before = contents(tmp_path)
        with opened(tmp_path, read_only=True) as store:
            assert len(store.events()) == 1
        assert contents(tmp_path) == before
        process.kill()
        process.wait()
        with opened(tmp_path) as store:
            assert len(store.events()) == 1
            assert store.warnings == ()  # killed and started again: nothing to worry about


def test_the_same_process_is_refused_too_and_told_so(tmp_path):
    with opened(tmp_path), pytest.raises(StoreLockedError, match="this process itself"):
        opened(tmp_path)
    with opened(tmp_path) as store:
        assert store.warnings == ()


def test_a_forgotten_store_releases_its_lock(tmp_path):
    store = opened(tmp_path)
    del store
    opened(tmp_path).close()


def test_a_failed_opening_releases_the_lock(tmp_path):
    opened(tmp_path).close()
    (tmp_path / "evaluations.jsonl").write_bytes(b"bad\nbad\n")
    for _ in range(2):
        with pytest.raises(StoreError, match="line 1"):
            opened(tmp_path)
    assert (tmp_path / "lock").read_bytes() == b""


@pytest.mark.slow
def test_an_orphaned_worker_does_not_keep_the_lock(tmp_path):
    """A forked child outlives the killed owner: it must not hold the owner's lock."""
    script = """
        import os, sys, time
        from sparing.errors import StoreError
        from tests.store.support import opened, proposal
        store = opened(sys.argv[1], seed=1)
        if os.fork() == 0:
            try:
                store.append(proposal())
            except StoreError as error:
                print(error, flush=True)
            else:
                print("the child wrote to its parent's store", flush=True)
            time.sleep(600)
        time.sleep(600)
    """
    with started(script, tmp_path, start_new_session=True) as process:
        try:
            assert process.stdout.readline().endswith("is closed\n")
            with pytest.raises(StoreLockedError):
                opened(tmp_path)
            os.kill(process.pid, signal.SIGKILL)
            process.wait()
            with opened(tmp_path) as store:
                assert store.events() == ()
        finally:
            os.killpg(process.pid, signal.SIGKILL)


def test_a_removed_lock_stops_its_owner(tmp_path):
    with opened(tmp_path) as first:
        (tmp_path / "lock").unlink()
        with opened(tmp_path) as second:
            second.append(proposal())
            with pytest.raises(StoreError, match="taken over by process"):
                first.append(proposal())
        with pytest.raises(StoreError, match="was removed"):
            first.append(proposal())


@pytest.fixture
def without_system_lock(monkeypatch):
    """A file system that has no locks, and short waits."""
    monkeypatch.setattr(lock_module, "_try_system_lock", lambda descriptor: None)
    monkeypatch.setattr(lock_module, "WATCH_SECONDS", 0.3)
    monkeypatch.setattr(lock_module, "HEARTBEAT_SECONDS", 0.02)


def other_owner(**changed):
    """The text of a lock of somebody else."""
    members = json.loads(this_process().encoded())
    return json.dumps(members | changed).encode().ljust(TEXT_LENGTH)


def test_identity_decides_where_the_system_has_no_locks(tmp_path, without_system_lock):
    path = tmp_path / "lock"
    path.write_bytes(other_owner())
    with pytest.raises(StoreLockedError, match="this process itself"):
        RunLock(path)
    for dead in ({"process_started": "another:1"}, {"pid": 2**22 + 1}):
        path.write_bytes(other_owner(**dead))
        lock = RunLock(path)
        with pytest.raises(StoreLockedError):
            RunLock(path)
        lock.release()
    assert not (tmp_path / "lock.claim").exists()


@pytest.mark.parametrize("system_lock", [None, True])
def test_an_owner_on_another_host_is_dead_when_its_heart_stops(
    tmp_path, without_system_lock, monkeypatch, system_lock
):
    monkeypatch.setattr(lock_module, "_try_system_lock", lambda descriptor: system_lock)
    path = tmp_path / "lock"
    path.write_bytes(other_owner(host="elsewhere", heartbeat=1e12))  # its clock is wrong: no matter
    lock = RunLock(path)
    assert lock.previous.host == "elsewhere"
    lock.release()


def test_an_owner_on_another_host_lives_while_its_heart_beats(
    tmp_path, without_system_lock, monkeypatch
):
    owner = RunLock(tmp_path / "lock")
    monkeypatch.setattr(lock_module, "is_on_this_host", lambda owner: False)
    with pytest.raises(StoreLockedError, match=f"process {os.getpid()}"):
        RunLock(tmp_path / "lock")
    owner.verify()
    owner.release()


@pytest.mark.slow
def test_only_one_of_many_takes_over_without_system_locks(tmp_path, without_system_lock):
    for attempt in range(5):
        path = tmp_path / f"lock-{attempt}"
        path.write_bytes(other_owner(host="elsewhere"))
        outcomes = []

        def take(path=path, outcomes=outcomes):
            try:
                outcomes.append(RunLock(path))
            except StoreLockedError as error:
                outcomes.append(error)

        threads = [threading.Thread(target=take) for _ in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        locks = [outcome for outcome in outcomes if isinstance(outcome, RunLock)]
        assert len(locks) == 1
        locks[0].release()


def test_a_slower_process_sees_that_the_lock_was_taken(tmp_path, without_system_lock, monkeypatch):
    path = tmp_path / "lock"
    path.write_bytes(other_owner(host="elsewhere"))
    claim = RunLock._claim

    @contextlib.contextmanager
    def late_claim(self):
        path.write_bytes(other_owner(host="faster"))
        with claim(self):
            yield

    monkeypatch.setattr(RunLock, "_claim", late_claim)
    with pytest.raises(StoreLockedError, match="on faster"):
        RunLock(path)
    assert decode_owner(path.read_bytes()).host == "faster"


def test_a_take_over_in_progress_is_left_alone(tmp_path, without_system_lock):
    (tmp_path / "lock").write_bytes(other_owner(host="elsewhere"))
    (tmp_path / "lock.claim").touch()
    with pytest.raises(StoreLockedError, match=r"delete .*lock\.claim"):
        RunLock(tmp_path / "lock")


def test_the_heartbeat_is_renewed_in_place(tmp_path, monkeypatch):
    monkeypatch.setattr(lock_module, "HEARTBEAT_SECONDS", 0.01)
    lock = RunLock(tmp_path / "lock")
    first = decode_owner((tmp_path / "lock").read_bytes())
    deadline = time.monotonic() + 20
    while decode_owner((tmp_path / "lock").read_bytes()) == first:
        assert time.monotonic() < deadline
        time.sleep(0.01)
    lock.verify()
    assert (tmp_path / "lock").stat().st_size == TEXT_LENGTH
    lock.release()
    assert (tmp_path / "lock").read_bytes() == b""


def test_closing_ends_the_heartbeat_thread(tmp_path):
    before = threading.active_count()
    with opened(tmp_path):
        assert threading.active_count() == before + 1
    assert threading.active_count() == before


@pytest.mark.parametrize(
    "text",
    [
        *(b"{", b"[]", b'{"pid": "1"}', b"\xff", b"{" * 10**5, b'{"host": 1}', b"text"),
        *(other_owner(since="nan"), other_owner(since=1e300)),
    ],
    ids=lambda text: repr(text[:20]),
)
def test_a_damaged_lock_is_watched_then_taken(tmp_path, monkeypatch, text):
    monkeypatch.setattr(lock_module, "WATCH_SECONDS", 0.02)
    (tmp_path / "lock").write_bytes(text)
    with opened(tmp_path) as store:
        store.append(proposal())


def test_the_text_fits_whatever_the_command(monkeypatch):
    monkeypatch.setattr(sys, "argv", ["\x1f\u00e9" * 1000, "\n"])
    assert len(this_process().encoded()) == TEXT_LENGTH
    assert decode_owner(this_process().encoded()) is not None


@pytest.mark.parametrize("now", [-1e12, 1e300])
def test_a_clock_that_is_far_off_loses_no_lock(tmp_path, monkeypatch, now):
    monkeypatch.setattr(time, "time", lambda: now)
    with opened(tmp_path) as store:
        store.append(proposal())
        with pytest.raises(StoreLockedError, match="this process itself"):
            opened(tmp_path)


def test_processes_are_told_apart():
    mine = this_process()
    assert is_running(mine)
    with subprocess.Popen([sys.executable, "-c", ""]) as ended:
        pass
    members = json.loads(mine.encoded()) | {"pid": ended.pid}
    assert not is_running(decode_owner(json.dumps(members).encode()))
