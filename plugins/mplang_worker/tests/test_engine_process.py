"""The end of an engine, as the front sees it: told with its reason, and counted."""

from __future__ import annotations

import asyncio
import contextlib
import os
import select
import signal
import threading
from types import SimpleNamespace

import pytest
from mplang_testing.waiting import DEADLINE, stays_async, wait_until_async
from mplang_worker.base.config import WorkerConfig
from mplang_worker.base.errors import RequestError
from mplang_worker.front.engine_process import EngineProcess
from mplang_worker.front.engines import Engines
from mplang_worker.front.job_calls import JobCalls
from mplang_worker.front.process_log import ProcessLog
from mplang_worker.front.session import FrontSession
from mplang_worker.wire import ipc
from mplang_worker.wire.requests import Party, SessionRequest


class Killed:
    """Child that was killed, and is waited for until it is told to be gone."""

    pid = 2**22 + 1  # no process has it

    def __init__(self):
        self.gone = threading.Event()
        self.killed = False

    def kill(self):
        """Note that it was to be killed."""
        self.killed = True

    def wait(self, timeout=None):
        """Return the exit code once it is told to be gone."""
        assert self.gone.wait(DEADLINE)
        return -signal.SIGKILL


@pytest.fixture
def lost():
    """Return a function that runs a test with a session whose engine has just closed its socket."""

    def run(test):
        async def main():
            config = WorkerConfig(name="alice", limits={"failures": 2})
            engines = Engines(config, None, SimpleNamespace(close=lambda: None))
            engines.check_warm = lambda: None  # there is no fork server
            party = Party(name="alice", address="127.0.0.1:1")
            session = FrontSession(("host", "s"), SessionRequest(rank=0, parties=[party]))
            engines._sessions[session.key] = session
            mine, theirs = ipc.channel()
            child = Killed()
            session.process = EngineProcess(
                child, mine, "the engine of worker alice", ProcessLog("alice", "s", as_json=False),
                1000, lambda event: None, lambda: engines.begin(engines._lost(session)),
            )  # fmt: skip
            await test(engines, session, theirs, child)

        asyncio.run(main())

    return run


def test_a_call_while_an_engine_ends_is_told_how_it_ended(lost):
    async def test(engines, session, theirs, child):
        before = asyncio.ensure_future(session.process.call("status", run="r"))
        await asyncio.sleep(0)
        theirs.close()
        await wait_until_async(lambda: session.ending)
        during = asyncio.ensure_future(session.process.call("status", run="r"))
        await stays_async(lambda: not during.done(), 0.01)
        child.gone.set()
        for call in (before, during):
            with pytest.raises(RequestError, match="ended by SIGKILL; its values are lost"):
                await call

    lost(test)


@pytest.mark.parametrize("close", [False, True], ids=["by itself", "while its session is closed"])
def test_an_engine_that_ends_before_it_answers_the_submission_counts(lost, close):
    async def test(engines, session, theirs, child):
        calls = JobCalls(engines._config, engines)
        submitted = asyncio.ensure_future(calls.submit("host", "s", "r", b""))
        await wait_until_async(lambda: session.process.pending)
        closing = asyncio.ensure_future(engines.close("host", "s")) if close else None
        await asyncio.sleep(0)
        theirs.close()
        await wait_until_async(lambda: session.process.lost)
        child.gone.set()
        with contextlib.suppress(RequestError):  # or it is told that it is queued
            await submitted
        if closing is not None:
            await closing
        await wait_until_async(lambda: not len(engines))
        assert engines.budget.used("host") == 1

    lost(test)


@pytest.mark.parametrize("size", [-1, 1001, 2**63, "1", None])
def test_an_engine_that_tells_no_size_of_a_value_is_refused(lost, size):
    async def test(engines, session, theirs, child):
        asked = asyncio.ensure_future(session.process.download("get", name="x"))
        os.close(await answer(theirs, size))
        with pytest.raises(RequestError, match="the engine of worker alice gave a value of"):
            await asked

    lost(test)


def test_an_engine_that_writes_less_or_more_than_it_told(lost):
    async def test(engines, session, theirs, child):
        for written in (b"abc", b"abcdefgh"):
            asked = asyncio.ensure_future(session.process.download("get", name="x"))
            file = await answer(theirs, 5)
            os.write(file, written)
            os.close(file)
            chunks = (await asked).chunks()
            assert await anext(chunks) == written[:5]
            with pytest.raises(EOFError if len(written) < 5 else StopAsyncIteration):
                await anext(chunks)

    lost(test)


def test_a_file_that_an_engine_sends_unasked_does_not_stay_open(lost):
    async def test(engines, session, theirs, child):
        asked = asyncio.ensure_future(session.process.download("get", name="x"))
        read, write = os.pipe()
        os.set_blocking(read, False)
        os.close(await answer(theirs, 5, extra=write))
        (await asked).close()
        os.close(write)
        assert os.read(read, 1) == b""  # its end: nobody else has the other side
        os.close(read)

    lost(test)


def is_asked(theirs):
    """Return whether there is a call to read."""
    return select.select([theirs], [], [], 0)[0]


async def answer(theirs, size, extra=None):
    """Answer a call as an engine does; return the socket that came with it."""
    message, file = {"call": None}, None
    while message["call"] != "get":
        if file is not None:
            os.close(file)
        await wait_until_async(lambda: is_asked(theirs))
        message, file = ipc.receive(theirs)
    ipc.send(theirs, {"id": message["id"], "ok": size}, extra)
    return file
