"""What is on record of a run whose session ends while the gate writes that it begins."""

from __future__ import annotations

import asyncio
import threading
from types import SimpleNamespace

from mplang_testing.waiting import DEADLINE
from mplang_worker.front.gate import FrontGate
from mplang_worker.front.session import FrontSession

ASKED = SimpleNamespace(reads=(), storage=(), stores={})


class SlowGate:
    """Gate that takes its time to write that a run begins."""

    def __init__(self) -> None:
        self.log: list[str] = []
        self.writes, self.goes_on = threading.Event(), threading.Event()

    def decide(self, asking):
        return SimpleNamespace(allowed=True, approval_id="")

    def uses_up(self, asking, decision):
        return False

    def begin(self, asking, decision):
        self.writes.set()
        assert self.goes_on.wait(DEADLINE)
        self.log.append("run")
        return b"", ""

    def end(self, fields, run, heads):
        self.log.append(f"end: {fields['run']} {fields['state']}")


async def run_while_the_session_ends(gate: FrontGate, slow: SlowGate) -> None:
    request = SimpleNamespace(parties=[SimpleNamespace(name="clinic")], rank=0)
    session = FrontSession(("analyst", "s"), request)
    begins = asyncio.create_task(gate.begin(session, {"run": "s-0"}))
    assert await asyncio.to_thread(slow.writes.wait, DEADLINE)
    await gate.end_all(session)
    slow.goes_on.set()
    await begins


def test_a_run_whose_session_ends_meanwhile_ends_on_record(monkeypatch):
    async def asking(self, session, run, args):
        return SimpleNamespace(asked=ASKED)

    monkeypatch.setattr(FrontGate, "_asking", asking)
    gate, slow = FrontGate.__new__(FrontGate), SlowGate()
    gate._gate = slow
    asyncio.run(run_while_the_session_ends(gate, slow))
    assert slow.log == ["run", "end: s-0 ended with its session"]
