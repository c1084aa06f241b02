"""What is on record of a run whose session ends while the gate writes that it begins."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Mapping
from types import SimpleNamespace
from typing import NamedTuple

import pytest
from mplang_testing.waiting import DEADLINE
from mplang_worker.base.errors import RequestError
from mplang_worker.front import stopping
from mplang_worker.front.engine_events import EngineEvents
from mplang_worker.front.gate import FrontGate
from mplang_worker.front.gate_runs import MAX_HEARD, GateRuns
from mplang_worker.front.session import FrontSession, Permitted


class Asked(NamedTuple):
    """What a run does, as its checker tells."""

    questions: tuple[str, ...] = ()
    storage: tuple[tuple[str, str, tuple[int, ...]], ...] = ()
    stores: Mapping[str, Mapping[int, object]] = {}


ASKED = Asked()
QUESTION = SimpleNamespace(digest="digest")
OVER = {"settled": True, "op_failed": False}


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

    def record(self, kind, fields):
        self.log.append(f"{kind}: {fields['run']} {fields['why']}")

    def end(self, coordinator, fields, run, heads):
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
        return SimpleNamespace(loaded=(), asked=ASKED)

    monkeypatch.setattr(FrontGate, "_asking", asking)
    gate, slow = FrontGate.__new__(FrontGate), SlowGate()
    gate._gate = slow
    asyncio.run(run_while_the_session_ends(gate, slow))
    assert slow.log == ["run", "end: s-0 ended with its session"]


@pytest.mark.parametrize("late", [False, True])
def test_a_run_of_a_session_that_is_stopped_does_not_begin_or_may_nothing(monkeypatch, late):
    """Its engine has a moment to tell its peers, and could store what nothing withdraws."""

    async def asking(self, session, run, args):
        return SimpleNamespace(loaded=(), asked=ASKED._replace(storage=(("store", "x", (0,)),)))

    async def main() -> None:
        request = SimpleNamespace(parties=[SimpleNamespace(name="clinic")], rank=0)
        session = FrontSession(("analyst", "s"), request)
        session.closed = not late
        session.gate_runs.asked["s-0"] = {"program": "digest", "name": "program"}
        begins = asyncio.create_task(gate.begin(session, {"run": "s-0"}))
        if late:
            assert await asyncio.to_thread(slow.writes.wait, DEADLINE)
            session.closed = True
            slow.goes_on.set()
        await begins
        assert not gate.may_store(session, "remove", {"name": "x"})
        assert not session.permitted.storage

    monkeypatch.setattr(FrontGate, "_asking", asking)
    gate, slow = FrontGate.__new__(FrontGate), SlowGate()
    gate._gate = slow
    asyncio.run(main())
    ended = "attempt: s-0 it has not begun here: its session was ended meanwhile"
    assert slow.log == ["run" if late else ended]


def test_a_run_whose_checker_ended_with_its_session_is_no_refusal(monkeypatch):
    """A restart of a peer ends sessions, of which no coordinator can know."""

    async def asking(self, session, run, args):
        session.closed = True
        raise RequestError(503, "ended", "the checker has ended")

    async def main() -> None:
        request = SimpleNamespace(parties=[SimpleNamespace(name="clinic")], rank=0)
        session = FrontSession(("analyst", "s"), request)
        session.gate_runs.asked["s-0"] = {"program": "digest", "name": "program"}
        assert await gate.begin(session, {"run": "s-0", "whole": True})

    monkeypatch.setattr(FrontGate, "_asking", asking)
    gate, slow = FrontGate.__new__(FrontGate), SlowGate()
    gate._gate = slow
    asyncio.run(main())
    assert slow.log == ["attempt: s-0 it has not begun here: its session was ended meanwhile"]


def test_a_session_that_loads_and_stores_for_long_rests_on_its_last_run_that_stored(monkeypatch):
    """That run rests on all before, so what each run has on record does not grow."""
    loaded = []

    async def asking(self, session, run, args):
        asked = ASKED._replace(storage=(("load", "x", (0,)), ("store", "x", (0,))))
        loaded.append(tuple(session.loaded))
        return SimpleNamespace(loaded=loaded[-1], asked=asked)

    async def main() -> None:
        request = SimpleNamespace(parties=[SimpleNamespace(name="clinic")], rank=0)
        session = FrontSession(("analyst", "s"), request)
        for number in range(5):
            await gate.begin(session, {"run": f"s-{number}"})
            assert await gate.load(session, f"other-{number}")

    monkeypatch.setattr(FrontGate, "_asking", asking)
    gate, slow = FrontGate.__new__(FrontGate), SlowGate()
    gate._gate = slow
    slow.goes_on.set()
    slow.lineage = SimpleNamespace(withdrawn=lambda *_: set(), rest_on=lambda *_: None)
    asyncio.run(main())
    assert [*map(set, loaded[1:])] == [{f"s-{n}", f"other-{n}"} for n in range(4)]


@pytest.mark.parametrize("when", ["before it begins", "after it"])
def test_a_run_asks_nothing_about_data_sets_once_it_has_ended(monkeypatch, when):
    """Its engine says that it has ended, so that nothing bounds its time, and goes on asking."""

    async def asking(self, session, run, args):
        return SimpleNamespace(loaded=(), asked=ASKED._replace(questions=("digest",)))

    async def main() -> None:
        request = SimpleNamespace(parties=[SimpleNamespace(name="clinic")], rank=0)
        session = FrontSession(("analyst", "s"), request)
        status = session.jobs.begin("s-0").status | {"state": "done", "ended": 1.0}
        budget = SimpleNamespace(end=lambda run, failed: False)
        events = EngineEvents(None, None, gate, budget, None)
        ended = {"event": "ended", "run": "s-0", "status": status} | OVER
        begins = asyncio.create_task(gate.begin(session, {"run": "s-0"}))
        assert await asyncio.to_thread(slow.writes.wait, DEADLINE)
        if when == "before it begins":
            events.handle(session, ended, None)
        slow.goes_on.set()
        await begins
        if when != "before it begins":
            assert gate.may_ask(session, QUESTION)
            events.handle(session, ended, None)
        assert not gate.may_ask(session, QUESTION)
        assert QUESTION.digest in session.permitted.before

    monkeypatch.setattr(FrontGate, "_asking", asking)
    gate, slow = FrontGate.__new__(FrontGate), SlowGate()
    gate._gate = slow
    asyncio.run(main())


@pytest.mark.parametrize("gated", [True, False])
@pytest.mark.parametrize("end", ["closed", "over"])
def test_a_question_that_has_waited_is_not_answered_to_a_session_that_has_ended(gated, end):
    gate = FrontGate.__new__(FrontGate)
    gate._gate = SlowGate() if gated else None
    session = SimpleNamespace(
        closed=False, over=False, permitted=Permitted(questions=frozenset(["digest"]))
    )
    assert gate.may_ask(session, QUESTION)
    setattr(session, end, True)
    assert not gate.may_ask(session, QUESTION)


@pytest.mark.parametrize("size", [1 << 34, [[1 << 34]]])
def test_a_number_is_no_opening_for_which_memory_is_taken(size):
    session = SimpleNamespace(checker=object())
    with pytest.raises(TypeError):
        asyncio.run(FrontGate.__new__(FrontGate)._asking(session, "s-0", {"openings": [[0, size]]}))
    events = EngineEvents(None, None, None, None, None)
    with pytest.raises(TypeError):
        events.handle(session, {"event": "head", "run": "s-0", "peer": "b", "head": size}, None)


def test_what_cannot_be_stopped_whole_does_not_end_the_watch_over_revocations(monkeypatch, caplog):
    monkeypatch.setattr(stopping, "INTERVAL", 0.0)
    about = {"rests": {"a"}, "loaded": set(), "stopping": None}
    begun = SimpleNamespace(begun={"s-0"}, jobs=SimpleNamespace(unfinished=[]), **about)
    tried = []

    async def end_now(session, why):
        tried.append(why)
        if len(tried) > 1:
            raise asyncio.CancelledError  # ends the test
        raise OSError("a sink")

    stops = SimpleNamespace(revoked=lambda: ["a"])
    engines = SimpleNamespace(
        sessions=[begun], end_now=end_now, begin=lambda work: None,
        gate=SimpleNamespace(provider=SimpleNamespace(stops=stops)),
        notices=SimpleNamespace(send=lambda session, why: None),
    )  # fmt: skip

    async def main() -> None:
        watching = asyncio.create_task(stopping.watch_revocations(engines, "bank"))
        async with asyncio.timeout(DEADLINE):
            while len(tried) < 2:
                await asyncio.sleep(0)
        watching.cancel()
        await asyncio.wait([watching])

    asyncio.run(main())
    assert "a session was not stopped as it should be" in caplog.text


def test_an_engine_fills_no_memory_with_heads():
    runs = GateRuns()
    for number in range(100):
        assert runs.hear(f"s-{number}", "shop", b"head") is False
    assert runs.end("s-99", {"shop"}) == {"shop": b"head"}
    assert runs.end(f"s-{99 - MAX_HEARD}", {"shop"}) == {}


def test_what_a_stopped_run_has_stored_is_withdrawn_while_its_session_ends():
    async def main() -> None:
        gone = asyncio.Event()

        async def end_now(session, why):
            async with asyncio.timeout(DEADLINE):
                await gone.wait()

        def withdraw(coordinator, runs, about):
            assert runs == {"s-0"}
            loop.call_soon_threadsafe(gone.set)

        loop, jobs = asyncio.get_running_loop(), SimpleNamespace(unfinished=["s-0"])
        about = {"key": ("analyst", "s"), "link": "link", "stopping": None}
        session = SimpleNamespace(**about, begun=set(), jobs=jobs)
        gate = SimpleNamespace(provider=SimpleNamespace(stops=SimpleNamespace(stop=withdraw)))
        engines = SimpleNamespace(end_now=end_now, gate=gate)
        await stopping.stop(engines, session, "why", "owner", elsewhere=True)

    asyncio.run(main())
