"""Joins of one session that overlap: each introduces the ends that it verified, or none."""

from __future__ import annotations

import asyncio
import json
import os
from types import SimpleNamespace

import pytest
from mplang_testing.waiting import wait_until_async
from mplang_worker.base.config import WorkerConfig
from mplang_worker.front.engine_process import EngineProcess
from mplang_worker.front.engines import Engines
from mplang_worker.front.process_log import ProcessLog
from mplang_worker.front.session import FrontSession
from mplang_worker.wire import ipc
from mplang_worker.wire.requests import Party, SessionRequest

from mplang_core.errors import AdmissionError

KNOWN, REVOKED = "a" * 32, "e" * 32  # ends of bob


class Engine:
    """Engine of alice, at the other end of the socket to her front: it has all links."""

    def __init__(self):
        self.met = []
        self.front, self._sock = ipc.channel()
        self._sock.setblocking(False)
        asyncio.get_running_loop().add_reader(self._sock, self._answer)

    def close(self):
        asyncio.get_running_loop().remove_reader(self._sock)
        self._sock.close()

    def _answer(self):
        message, file = ipc.receive(self._sock)
        if file is not None:
            os.close(file)
        if message["call"] == "introduce":
            self.met.append(message["args"]["ends"][1]["link"])
            ipc.send(self._sock, {"id": message["id"], "ok": []})
        elif message["call"] == "join":
            ipc.send(self._sock, {"id": message["id"], "ok": message["args"]["generation"]})


async def joins(trusts):
    """Have two joins wait for a third; return what the first gives, and what the engine met."""
    engines = Engines(WorkerConfig(name="alice"), None, SimpleNamespace(close=lambda: None))
    parties = [Party(name=name, address="127.0.0.1:1") for name in ("alice", "bob")]
    session = FrontSession(("host", "s"), SessionRequest(rank=0, parties=parties))
    engines._sessions[session.key] = session
    verify, engine = engines.credentials.verify, Engine()
    child = SimpleNamespace(kill=lambda: None, wait=lambda timeout: 0)
    session.process = EngineProcess(
        child, engine.front, "the engine of worker alice", ProcessLog("alice", "s", as_json=False),
        1000, lambda event, file: None, lambda: None,
    )  # fmt: skip
    engines.credentials.verify = lambda session, role, link, given: (
        trusts(given) or verify(session, role, link, given)
    )

    async def join(bob, generation):
        credentials = [{"link": session.link}, {"link": bob}]
        body = json.dumps({"credentials": credentials, "generation": generation}).encode()
        return await engines.join(*session.key, body)

    async with session.linking:
        given = await waiting(session, join(KNOWN, 1))
        refused = await waiting(session, join(REVOKED, 2))
    with pytest.raises(AdmissionError, match="revoked"):
        await refused
    found = await given
    engine.close()
    await session.process.end("over")
    return found, engine.met, session


async def waiting(session, join):
    """Begin a join, and return its task when it waits for the session."""
    session.seen = 0.0
    task = asyncio.create_task(join)
    await wait_until_async(lambda: session.seen, "the join has found its session")
    return task


def test_a_join_that_is_refused_gives_no_ends_to_another():
    seen = []

    def trusts(credentials):
        bob = credentials[1].link
        seen.append(bob)
        if bob == REVOKED and seen.count(bob) == 2:  # since it was verified first
            raise AdmissionError("it was revoked")

    given, met, session = asyncio.run(joins(trusts))
    assert (given, met) == (1, [KNOWN])
    assert [end.link for end in session.ends] == [session.link, KNOWN]
    assert [each.link for each in session.credentials] == [session.link, KNOWN]
