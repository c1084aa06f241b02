"""Fork server: children are new processes, alike in nothing but what was imported."""

from __future__ import annotations

import json
import os
import queue
import signal
import socket
import subprocess
import threading
from pathlib import Path

import pytest
from mplang_testing.waiting import DEADLINE, in_time, pause, wait_until
from mplang_worker.engine.warm import SPARES
from mplang_worker.process import forks
from mplang_worker.process.fork_server import IDLE
from mplang_worker.process.forks import ForkServer
from processes import children, fork_server_of, spares_of

MODULE = """
import json, os, random, signal, socket, sys
import numpy as np
from mplang_worker.process.fork_server import end_with_parent

SPARES, rehearsed = 2, None

def rehearse(argument):
    global rehearsed
    rehearsed = argument
    raise OSError("a rehearsal may fail")

def prepare(argument):
    if "fast" in argument:
        return
    os.write(1, b"prepares")
    signal.pause()

def run(argument, file):
    end_with_parent(signal.SIGKILL)
    line = socket.socket(fileno=file)
    if argument["do"] == "fail":
        raise RuntimeError("as was asked")
    if argument["do"] == "exit":
        sys.exit(argument["code"])
    files = [name for name in os.listdir("/proc/self/fd") if int(name) > 2]
    told = {"pid": os.getpid(), "drawn": [random.random(), np.random.random()], "files": files}
    told["rehearsed"] = rehearsed
    line.sendall(json.dumps(told).encode())
    if argument["do"] == "wait":
        signal.pause()
"""


@pytest.fixture
def server(tmp_path, monkeypatch):
    (tmp_path / "module_of_children.py").write_text(MODULE)
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    made = ForkServer("module_of_children")
    yield made
    made.close()


def begin(server, do, **more):
    """Start a child, and return it with its line."""
    ours, theirs = socket.socketpair()
    with theirs:
        child = server.fork({"do": do, **more}, theirs.fileno())
    ours.settimeout(DEADLINE)
    return child, ours


def told(line):
    with line:
        return json.loads(line.recv(4096))


def gone(pid):
    wait_until(lambda: not Path(f"/proc/{pid}").exists(), f"the end of process {pid}")


def test_children_are_processes_that_draw_different_numbers(server):
    begun = [begin(server, "tell") for _ in range(3)]
    found = [told(line) for _, line in begun]
    assert [each["pid"] for each in found] == [child.pid for child, _ in begun]
    assert len({number for each in found for number in each["drawn"]}) == 6
    assert [child.wait(DEADLINE) for child, _ in begun] == [0, 0, 0]


def test_a_child_has_its_file_and_no_other(server):
    running, line = begin(server, "wait")
    told(line)
    _, line = begin(server, "tell")
    assert len(told(line)["files"]) == 2  # and the folder that it lists
    assert running.poll() is None


FAST = {"fast": True}


def spares(server):
    """Return the children that wait for what they are to run, once all of them do."""
    assert server.prepare(FAST) is None
    wait_until(lambda: len(children(server.pid)) == 2, "spare children")
    return children(server.pid)


def test_a_child_is_forked_ahead_and_replaced(server):
    ahead = spares(server)
    begun = [begin(server, "wait") for _ in range(3)]
    found = [told(line) for _, line in begun]
    assert {child.pid for child, _ in begun[:2]} == set(ahead)
    assert begun[2][0].pid not in ahead
    assert [each["pid"] for each in found] == [child.pid for child, _ in begun]
    assert len({number for each in found for number in each["drawn"]}) == 6
    assert {len(each["files"]) for each in found} == {2}  # and the folder that it lists
    assert sorted(map(str, (each["rehearsed"] for each in found))) == ["None", *2 * [str(FAST)]]
    wait_until(lambda: len(children(server.pid)) == 5, "other spare children")


def test_a_spare_child_that_ended_is_not_missed(server):
    for pid in spares(server):
        os.kill(pid, signal.SIGKILL)
        gone(pid)
    child, line = begin(server, "exit", code=7)
    assert child.wait(DEADLINE) == 7
    line.close()
    wait_until(lambda: len(children(server.pid)) == 2, "other spare children")


def test_spare_children_are_as_prepared_last(server):
    ahead = spares(server)
    server.prepare(FAST)
    wait_until(lambda: not set(ahead) & set(children(server.pid)), "the end of those before")
    wait_until(lambda: len(children(server.pid)) == 2, "other spare children")


def test_nothing_is_forked_ahead_of_a_server_that_was_not_prepared(server):
    child, line = begin(server, "exit", code=7)
    assert child.wait(DEADLINE) == 7
    line.close()
    pause(2 * IDLE, "the server has time")
    assert not children(server.pid)


@pytest.mark.parametrize(
    ("do", "code"), [("fail", 1), ("exit", 7), ("exit", 0)], ids=["raises", "exits", "ends"]
)
def test_exit_codes(server, do, code):
    child, line = begin(server, do, code=code)
    assert child.wait(DEADLINE) == child.returncode == code
    line.close()


def test_only_the_children_that_ended_last_are_known(server, monkeypatch):
    """Each session left the codes of its processes behind, for as long as its worker ran."""
    monkeypatch.setattr(forks, "MAX_CODES", 2)
    codes = [begin(server, "exit", code=code)[0].wait(DEADLINE) for code in range(5)]
    assert codes == [0, 1, 2, 3, 4]
    assert len(server._codes) == 2


def test_signals(server):
    child, line = begin(server, "wait")
    told(line)
    with pytest.raises(subprocess.TimeoutExpired):
        child.wait(0)
    child.kill()
    assert child.wait(DEADLINE) == -signal.SIGKILL
    child.kill()  # of one that has ended nothing is signalled


def test_children_end_with_the_server_which_ends_with_its_client(server):
    child, line = begin(server, "wait")
    told(line)
    (pid,) = [each for each in children(os.getpid()) if child.pid in children(each)]
    server.close()
    gone(pid)
    gone(child.pid)
    assert child.wait(0) == -signal.SIGKILL
    assert not server.alive
    with pytest.raises(OSError, match="fork server has ended"):
        begin(server, "tell")


def test_one_who_waits_for_a_child_keeps_nobody(server):
    (slow, line), (quick, other) = begin(server, "wait"), begin(server, "wait")
    told(line), told(other)
    waiting = threading.Thread(target=slow.wait)
    waiting.start()
    quick.kill()
    assert quick.wait(DEADLINE) == -signal.SIGKILL
    assert slow.poll() is None
    slow.kill()
    waiting.join(DEADLINE)
    assert slow.returncode == -signal.SIGKILL


def test_a_server_that_does_not_answer_is_given_up(server, monkeypatch):
    child, line = begin(server, "wait")
    told(line)
    monkeypatch.setattr(forks, "FORK_TIMEOUT", 0.5)  # not before the server has imported
    (pid,) = [each for each in children(os.getpid()) if child.pid in children(each)]
    os.kill(pid, signal.SIGSTOP)
    with pytest.raises(OSError, match="does not answer in 0.5 s"):
        begin(server, "tell")
    assert child.poll() is None  # it still runs
    server.close()
    gone(child.pid)
    assert child.poll() == -signal.SIGKILL


def test_a_server_that_imports_still_is_closed_at_once(server):
    made, refused = ForkServer("module_of_children", captured=True), queue.Queue()

    def prepare():
        try:
            made.prepare({})
        except OSError as error:
            refused.put(str(error))

    threading.Thread(target=prepare, daemon=True).start()
    assert os.read(made.output, 100) == b"prepares"
    with in_time():
        made.close()
    assert "has ended" in refused.get(timeout=DEADLINE)


def test_children_are_reaped_where_sigchld_was_ignored(server):
    ignored = signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    try:
        made = ForkServer("module_of_children")
    finally:
        signal.signal(signal.SIGCHLD, ignored)
    for code in (3, 4):
        child, line = begin(made, "exit", code=code)
        assert child.wait(DEADLINE) == code
        line.close()
    made.close()


def test_the_server_of_a_worker_has_no_files(tls_workers):
    for worker in tls_workers.workers:
        wait_until(lambda front=worker.pid: len(spares_of(front)) == SPARES, "spare children")
        pid = fork_server_of(worker.pid)
        files = {
            os.readlink(each) for each in Path(f"/proc/{pid}/fd").iterdir() if int(each.name) > 2
        }
        assert {each.partition(":")[0] for each in files} <= {"socket", "anon_inode"}, files
        assert sum(each.startswith("socket") for each in files) == 1 + SPARES


def test_spare_children_have_started_no_thread(tls_workers):
    """Each thread would be one more to confine, once it is known what the process is."""
    for worker in tls_workers.workers:
        wait_until(lambda front=worker.pid: len(spares_of(front)) == SPARES, "spare children")
        most = threads_of(fork_server_of(worker.pid))  # libspu starts its own in each child
        for pid in spares_of(worker.pid):
            assert threads_of(pid) <= most


def threads_of(pid):
    return len(list(Path(f"/proc/{pid}/task").iterdir()))
