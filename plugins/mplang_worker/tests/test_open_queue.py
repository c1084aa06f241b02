"""Sessions are opened a few at a time, each coordinator in its turn, and hosts wait."""

from __future__ import annotations

import asyncio

import pytest
from mplang_worker.base.errors import RequestError
from mplang_worker.front import open_queue
from mplang_worker.front.open_queue import OpenQueue


@pytest.fixture(autouse=True)
def hasty(monkeypatch):
    monkeypatch.setattr(open_queue, "WAIT", 0.0)


def enter(queue, *key, may_open=lambda: True):
    """Return whether a session may start now, else its place and how many wait."""
    try:
        asyncio.run(queue.enter(key, may_open))
    except RequestError as error:
        refused = error
    else:
        return True
    assert (refused.status, refused.code) == (503, "queued")
    words = refused.text.split()
    return int(words[4]), int(words[6])


def test_a_session_keeps_its_place_and_starts_when_another_has():
    queue = OpenQueue(at_once=1)
    assert enter(queue, "ann", "1") is True
    assert enter(queue, "ann", "1") is True  # asked again, as the answer was lost
    assert enter(queue, "bob", "1") == (1, 1)
    assert enter(queue, "bea", "1") == (2, 2)
    queue.leave(("ann", "1"))
    assert enter(queue, "bea", "1") == (2, 2)
    assert enter(queue, "bob", "1") is True
    queue.leave(("bob", "1"))
    assert enter(queue, "bea", "1") is True
    assert len(queue) == 0


def test_coordinators_take_turns_whatever_each_opens():
    queue = OpenQueue(at_once=1)
    assert enter(queue, "ann", "1") is True
    for number in range(2, 9):
        enter(queue, "ann", str(number))
    assert queue.waiting("ann") == 7
    assert enter(queue, "bob", "1") == (1, 8)  # before all others of ann, one of which is started


def test_one_that_may_not_be_opened_yet_stops_nobody_else():
    queue = OpenQueue(at_once=1)
    assert enter(queue, "ann", "1", may_open=lambda: False) == (1, 1)
    assert enter(queue, "bob", "1") is True


def test_one_whose_coordinator_asks_no_more_is_dropped():
    queue = OpenQueue(at_once=1)
    assert enter(queue, "ann", "1") is True
    assert enter(queue, "bob", "1") == (1, 1)
    queue._waiting["bob", "1"].seen -= open_queue.EXPIRY
    queue.leave(("ann", "1"))
    assert enter(queue, "bea", "1") is True
    assert queue.waiting("bob") == 0


def test_a_session_that_is_asked_for_twice_at_once_is_next_twice(monkeypatch):
    monkeypatch.setattr(open_queue, "WAIT", 10.0)

    async def main() -> None:
        queue = OpenQueue(at_once=1)

        async def one() -> None:
            await queue.enter(("bob", "1"), lambda: True)
            queue.leave(("bob", "1"))

        await queue.enter(("ann", "1"), lambda: True)
        two = [asyncio.create_task(one()) for _ in range(2)]
        await asyncio.sleep(0)
        queue.leave(("ann", "1"))
        await asyncio.gather(*two)
        assert len(queue) == 0

    asyncio.run(main())
