"""Faults of communicators and backends, planted in what is right otherwise."""

from __future__ import annotations

import pytest
from planted_head import HEAD

pytest_plugins = ["pytester"]
pytestmark = pytest.mark.once  # what is faulty gives other results elsewhere


# -- communicators

COMMUNICATOR = (
    HEAD
    + """
class Faulty(ThreadCommunicator):
{body}

class TestFaulty(CommunicatorSuite):
    slack = 0.5

    def make(self, parties, timeout):
        return Faulty.connected(parties, min(timeout, {most}))
"""
)

DROPS = """
    def send(self, to_rank, key, data):
        self.sent = getattr(self, "sent", 0) + 1
        if self.sent % 7:
            super().send(to_rank, key, data)
"""
REORDERS = """
    def recv(self, from_rank, key):
        run = self._run(key)
        with self._lock:
            mine = [k for k in run.inbox if k[0] == from_rank]
            if mine:  # whatever came first, whatever its key
                return run.inbox.pop(mine[0])
        return super().recv(from_rank, key)
"""
REPEATS = """
    def deliver(self, from_rank, key, data):
        self._run(key).seen.clear()
        super().deliver(from_rank, key, data)
"""
TAKES_ALL = """
    def deliver(self, from_rank, key, data):
        self.open(key.partition("/")[0])
        super().deliver(from_rank, key, data)
"""
LATE = """
    def recv(self, from_rank, key):
        self.timeout = 1.9
        return super().recv(from_rank, key)
"""
SLEEPS = """
    def abort(self, run, reason):
        self.stop(run, reason)
"""
CONVERTS = """
    def send(self, to_rank, key, data):
        super().send(to_rank, key, np.asarray(data, dtype=np.float64))
"""
COUNTS_BACK = """
    def send(self, to_rank, key, data):
        self._peers[to_rank].deliver(self.rank, key, data)
"""


@pytest.mark.parametrize(
    ("fault", "test", "message"),
    [
        (
            "DROPS",
            "found_by_key",
            "RecvTimeoutError: party 1 waited 1 s for a message from party 0*",
        ),
        ("DROPS", "many_threads", "expected: array(*"),
        (
            "REORDERS",
            "found_by_key",
            "the message kit-run/19 from party 0 at party 1 is not what it",
        ),
        ("REORDERS", "runs_are_apart or found_by_key", "expected: array(19)"),
        ("REPEATS", "duplicate", "got: *2"),
        ("TAKES_ALL", "of_no_run", "a message of a run that was never opened is not refused"),
        ("LATE", "deadline", "is given up at a wrong time"),
        ("SLEEPS", "abort_wakes", "all that wait end when a party fails"),
        ("CONVERTS", "as_it_was_sent", "expected: True"),
        ("COUNTS_BACK", "beyond", "a message to party 2 of 2 is not refused"),
    ],
)
def test_a_communicator_that_loses_or_mixes_messages(caught, fault, test, message):
    most = 600.0 if fault == "SLEEPS" else 1.0  # seconds for a message: it must not end by time
    caught(COMMUNICATOR.format(body=globals()[fault], most=most), test, message)


# -- backends

BACKEND = (
    HEAD
    + """
class Faulty(Simulator):
{body}

class TestFaulty(BackendSuite):
    examples = 60

    def make(self, cluster):
        return Faulty(cluster)
"""
)
SWAPS = """
    def fetch(self, var):
        return super().fetch(var)[::-1]
"""
TELLS_ALL = """
    def _explain(self, failures):
        error = super()._explain(failures)
        told = type(error)(f"{error}: {error.__cause__}", rank=error.rank, op=error.op,
                           location=error.location)
        return told
"""
TELLS_NOTHING = """
    def _explain(self, failures):
        return RuntimeError("a party failed")
"""
SHARES = """
    def fetch(self, var):
        return list(var.values)
"""
FORGETS_LAUNCH = """
    def submit(self, program, args, step=None):
        if program.graph.ops[-1].opcode == "simp.shuffle_static":
            return [HostVar(args[0].values) for _ in program.graph.outputs]
        return super().submit(program, args, step)
"""
NEVER_CLOSED = """
    def close(self):
        pass
"""
DIES = """
    def _explain(self, failures):
        self._closed = True
        return super()._explain(failures)
"""


@pytest.mark.parametrize(
    ("fault", "test", "message"),
    [
        ("SWAPS", "every_construct", "call among 2 in standard mode is wrong"),
        ("SWAPS", "random_programs", "a random program in"),  # in either mode, by chance
        ("TELLS_ALL", "names_party_op_and_line", "a failure tells the host what is private"),
        ("TELLS_NOTHING", "names_party_op_and_line", "does not end in a PartyError"),
        ("SHARES", "change_a_value", "a value that was written to from outside is wrong"),
        ("FORGETS_LAUNCH", "every_construct", "static among 2 in standard mode is wrong"),
        ("NEVER_CLOSED", "closed_host", "a program on a closed host is not refused"),
        ("DIES", "ends_everywhere", "RunError: this simulator is closed"),
    ],
)
def test_a_backend_that_changes_what_programs_mean(caught, fault, test, message):
    caught(BACKEND.replace("{body}", globals()[fault]), test, message)
