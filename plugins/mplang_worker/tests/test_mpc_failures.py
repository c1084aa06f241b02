"""What an engine passes on of the failures that its MPC process tells, which peers may hold."""

from __future__ import annotations

import socket
import threading

import pytest
from mplang_worker.mpc import channel as mpc_channel
from mplang_worker.mpc.calls import MpcCalls
from mplang_worker.mpc.failures import MpcFailures

from mplang_core.errors import AbortedError, CommError, MPLangError, RecvTimeoutError, RunError
from mplang_core.ext import Failure

SECRET = "31415926"
WITHHELD = "the reason is in that party's log, at log_level: debug"
WAITED = (
    "party 0 waited 5 s for a message from party 1, which is not known to be at work; "
    "timeouts.message of workers, or timeout= of mp.connect, sets the limit"
)
OVERDUE = (
    "party 0 waited for a message from party 1 until the run had taken 900 s; timeouts.job of "
    "workers sets the limit"
)
LOST = "party 0 has lost its link to the MPC process of party 1 (bob): the connection ended"


@pytest.fixture
def fails():
    """Return a function that has a call answered by an error, and returns what is raised."""
    near, far = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    failures = MpcFailures(0, ["alice", "bob"], 5.0, 900.0)
    calls = MpcCalls("alice", failures, 1 << 20, 60.0, 60.0, lambda: None)
    calls.attach(near)

    def answer(reply):
        mpc_channel.receive(far, 1 << 20)
        mpc_channel.send(far, {"traffic": {}, **reply})

    def call(kind, text, aborted=None):
        thread = threading.Thread(target=answer, args=({"ok": {}},))
        thread.start()
        calls.begin("r", [0, 1], None)
        thread.join()
        if aborted is not None:
            calls.abort("r", aborted)
            mpc_channel.receive(far, 1 << 20)
        thread = threading.Thread(target=answer, args=({"error": [kind, text]},))
        thread.start()
        with pytest.raises(MPLangError) as caught:
            calls.call("r", "run", {})
        thread.join()
        return caught.value

    with near, far:
        yield call


@pytest.mark.parametrize(
    ("kind", "text", "error"),
    [
        ("RecvTimeoutError", WAITED, RecvTimeoutError),
        ("RecvTimeoutError", OVERDUE, RecvTimeoutError),
        ("CommError", LOST, CommError),
    ],
)
def test_what_it_waited_for_is_told(fails, kind, text, error):
    found = fails(kind, text)
    assert (type(found), str(found)) == (error, text)


def test_why_the_run_was_aborted_is_told_as_the_engine_knows_it(fails):
    why = Failure("AbortedError", "party 0 stopped: the coordinator cancelled it")
    found = fails(why.kind, why.text, aborted=why)
    assert (type(found), str(found)) == (AbortedError, why.text)


@pytest.mark.parametrize("kind", ["CommError", "RecvTimeoutError", "AbortedError"])
@pytest.mark.parametrize(
    "text",
    [
        SECRET,
        f"{WAITED} {SECRET}",
        WAITED.replace("5 s", f"{SECRET} s"),
        WAITED.replace("party 1", f"party {SECRET}"),
        LOST.replace("bob", SECRET),
        LOST.replace("the connection ended", SECRET),
        f"party 0 stopped: {SECRET}",
    ],
)
def test_no_other_text_of_the_transport_is_told(fails, kind, text):
    found = fails(kind, text)
    assert isinstance(found, CommError)  # that it is not an op's failure stays as it was
    assert (type(found).__name__, str(found)) == (kind, WITHHELD)
    assert Failure.public(found).text == WITHHELD


@pytest.mark.parametrize(
    "kind",
    [
        "RunError",
        "KernelError",
        "AdmissionError",
        "ShutdownError",
        "PartyError",
        "WireError",
        SECRET,
    ],
)
def test_any_other_kind_is_a_failure_without_a_text(fails, kind):
    """An AdmissionError would go to the coordinator as it is, from within an op as well."""
    found = fails(kind, SECRET)
    assert type(found) is RunError
    told = Failure.public(found)
    assert SECRET not in str(told)
    assert SECRET in str(found.__cause__)  # for the worker's own log
