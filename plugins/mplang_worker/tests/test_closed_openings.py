"""Sessions that are closed while their processes start: whoever opens one is answered at once."""

from __future__ import annotations

import asyncio
import json
import os
import socket
from types import SimpleNamespace

import pytest
from mplang_testing.waiting import DEADLINE, NEVER, wait_until_async
from mplang_worker.base.config import WorkerConfig
from mplang_worker.base.errors import RequestError
from mplang_worker.front import slow_start
from mplang_worker.front.engines import Engines
from mplang_worker.wire import ipc

PARTY = {"name": "alice", "address": "127.0.0.1:1"}
KEY = ("host", "s")


class Forks:
    """Fork server whose children are ready where a test says so."""

    def __init__(self, ready: tuple[str, ...]) -> None:
        self._ready = ready
        self.sockets: dict[str, socket.socket] = {}

    def fork(self, argument, file):
        (role,) = argument
        self.sockets[role] = socket.socket(fileno=os.dup(file))
        if role in self._ready:
            ipc.send(self.sockets[role], {"event": "ready", "key": None})
        return SimpleNamespace(pid=2**22 + 1, kill=lambda: None, wait=lambda timeout: 0)

    def check(self):
        return True


def processes(session):
    """Return the engine and the MPC process of a session, each `None` until it is forked."""
    natives = [each.process for each in session.natives.values()]
    return {"engine": session.process, "mpc": next(iter(natives), None)}


@pytest.mark.parametrize("starts", ["engine", "mpc"])
def test_a_session_that_is_closed_while_it_starts_is_not_waited_for(monkeypatch, starts):
    monkeypatch.setattr(slow_start, "START_TIMEOUT", NEVER)
    forks = Forks(ready=("engine",) if starts == "mpc" else ())

    async def main():
        engines = Engines(WorkerConfig(name="alice"), None, forks)
        engines.warm.state, engines.warm.info = "ready", {"native": ["spu"]}
        body = json.dumps({"rank": 0, "parties": [PARTY], "native": ["spu"]}).encode()
        opening = asyncio.ensure_future(engines.open(*KEY, body))
        (session,) = await wait_until_async(lambda: engines.sessions)
        await wait_until_async(lambda: processes(session)[starts] is not None)
        if starts == "mpc":
            await wait_until_async(session.started.done)
        await engines.close(*KEY)
        with pytest.raises(RequestError, match="the coordinator ended the session"):
            await asyncio.wait_for(opening, DEADLINE)
        assert engines.sessions == []

    asyncio.run(main())
