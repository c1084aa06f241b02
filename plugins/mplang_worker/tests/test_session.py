"""Session of a worker: the outcome of a job that fails while it is cancelled, or closed."""

from __future__ import annotations

import asyncio
import logging
from types import SimpleNamespace

import failing_ops
import numpy as np
from mplang_testing.waiting import NEVER
from mplang_worker.base.config import Limits, Timeouts
from mplang_worker.engine.job import Job
from mplang_worker.engine.session import Session
from mplang_worker.front.engine_process import Usage
from mplang_worker.front.session import FrontSession, SessionMpc
from mplang_worker.mpc.services import MpcServices
from mplang_worker.wire.requests import Party, SessionRequest

import mplang_core as mp
from mplang_core.ext import CommError

NO_MPC = MpcServices(lambda service: None)
RUN = "s-0"
PARTY = Party(name="alice", address="127.0.0.1:1")


def comm_of(abort):
    nothing = dict.fromkeys(("begin", "finish", "close"), lambda *_: None)
    return SimpleNamespace(rank=0, world_size=1, timeout=NEVER, abort=abort, **nothing)


def inputs_of(*values):
    return SimpleNamespace(
        values=[SimpleNamespace(value=each) for each in values], resolve=lambda: None
    )


class LostLink:
    """Interpreter of a party that loses a peer; the run has left it when it raises."""

    def evaluate(self, *args, **options):
        error = CommError("the connection ended")
        error.op, error.location = "simp.shuffle", "program.py:3"
        raise error

    def where(self, run):
        return None

    def traffic(self):
        return {}


class CancelsMeanwhile(logging.Handler):
    """Cancels the run as its failure is logged, which is before the failure is its outcome."""

    def __init__(self, session):
        super().__init__()
        self._session = session

    def emit(self, record):
        if record.getMessage().startswith("failed"):
            self._session.cancel(RUN, "party 0 was lost")


def test_a_job_that_fails_as_it_is_cancelled_tells_where_it_was(monkeypatch):
    comm = comm_of(abort=lambda *_: None)
    session = Session(
        "s", comm, owner="host", insecure=True, limits=Limits(), on_end=lambda _: None, mpc=NO_MPC
    )
    monkeypatch.setattr(session, "_followed", lambda *_: [])
    program = mp.trace(mp.TraceContext(mp.ClusterSpec.simple(1)), lambda: mp.constant(1)).program
    job = session._add_job(Job(RUN, "key", program.digest))
    handler = CancelsMeanwhile(session)
    log = logging.getLogger("mplang.http.session")
    log.addHandler(handler)
    try:
        session._execute(LostLink(), job, None, program, inputs_of(), SimpleNamespace(inputs=[]))
    finally:
        log.removeHandler(handler)
    assert job.state == "cancelled"
    assert (job.error.op, job.error.location) == ("simp.shuffle", "program.py:3")


def test_a_failure_counts_if_the_session_is_closed_once_its_peers_are_told(monkeypatch):
    """The engine may be killed before the thread that fails goes on."""
    told, before = [], []

    def abort(run, reason):
        session.close("the coordinator knows enough")
        before.extend((each.run, each.settled, each.op_failed) for each in told)

    comm = comm_of(abort=abort)
    session = Session(
        "s", comm, owner="host", insecure=True, limits=Limits(), on_end=told.append, mpc=NO_MPC
    )
    session.start_generation(0, {})
    monkeypatch.setattr(session, "_followed", lambda *_: [])
    program = mp.trace(
        mp.TraceContext(mp.ClusterSpec.simple(1)),
        lambda x: mp.invoke(failing_ops.fail, x),
        np.float64(1),
    ).program
    job = session._add_job(Job(RUN, "key", program.digest))
    request = SimpleNamespace(inputs=[])
    session._execute(session._worker, job, None, program, inputs_of(np.float64(1)), request)
    assert before[-1] == (RUN, True, True)


def used(megabytes):
    return SimpleNamespace(usage=lambda: Usage(megabytes << 20, 3, "S"))


async def session_mpc():
    return SessionMpc("spu")


async def front_session():
    return FrontSession(("host", "s"), SessionRequest(rank=0, parties=[PARTY]))


def test_an_mpc_process_that_replaces_another_one_raises_no_limit_of_memory():
    """What it has at its start does not count, and that of those before does not, either."""
    session = asyncio.run(front_session())
    session.process, session.baseline = used(40), 30 << 20
    session.natives["spu"] = asyncio.run(session_mpc())
    for _ in range(5):  # each of them has ended
        session.natives["spu"].process, session.natives["spu"].baseline = used(30), 20 << 20
        assert session.excess(Limits(memory=100 << 20), Timeouts()) == ""
        assert session.memory == 20 << 20
    session.natives["spu"].process = used(111)
    assert "(limits.memory)" in session.excess(Limits(memory=100 << 20), Timeouts())
    session.natives["spu"].process = None
    assert session.excess(Limits(memory=100 << 20), Timeouts()) == ""
    assert session.memory == 10 << 20
