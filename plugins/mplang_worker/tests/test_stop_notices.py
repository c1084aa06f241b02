"""Notices of stops go to all parties that are peers now."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace

from mplang_policy.lineage import Notice
from mplang_testing.waiting import wait_until_async
from mplang_worker.front import stop_notices, withdrawals
from mplang_worker.front.stop_notices import StopNotices
from mplang_worker.front.stopping import stop


def test_a_peer_that_a_reload_has_removed_keeps_no_other_one_from_being_told(monkeypatch, caplog):
    told = []
    monkeypatch.setattr(StopNotices, "_send", lambda self, *args: told.append(args[:2]))
    config = SimpleNamespace(name="bank", tls=object(), peers={"shop": "https://shop:9000"})
    session = SimpleNamespace(key=("analyst", "s"), parties=["bank", "shop", "evil"])
    asyncio.run(StopNotices(config, None).send(session, "why"))
    assert told == [("shop", "https://shop:9000")]
    assert "evil was not notified" in caplog.text


def notices_to_shop(monkeypatch, answers):
    """Return a sender of notices that shop answers by these in turn, and what it was sent."""
    sent = []

    def send(self, peer, address, path):
        sent.append(peer)
        error = answers.pop(0)
        if error is not None:
            raise error

    monkeypatch.setattr(StopNotices, "_send", send)
    config = SimpleNamespace(name="bank", tls=object(), peers={"shop": "https://shop:9000"})
    return StopNotices(config, None), sent


def test_a_notice_that_is_lost_is_repeated_until_the_peer_answers(monkeypatch, caplog):
    monkeypatch.setattr(stop_notices, "PAUSES", (0.0,) * 4)
    lost = [ConnectionRefusedError("down"), TimeoutError("slow"), ConnectionError("it answers 503")]
    notices, sent = notices_to_shop(monkeypatch, [*lost, None])
    session = SimpleNamespace(key=("analyst", "s"), parties=["bank", "shop"])
    asyncio.run(notices.send(session, "why"))
    assert sent == ["shop"] * 4
    assert caplog.text.count("shop was not notified") == 1


def test_a_notice_is_repeated_for_a_time_only(monkeypatch):
    monkeypatch.setattr(stop_notices, "PAUSES", (0.0,) * 3)
    notices, sent = notices_to_shop(monkeypatch, [ConnectionRefusedError("down")] * 3)
    assert not asyncio.run(notices.deliver("shop", "/v1/joined/s", lambda peer: "https://shop:1"))
    assert len(sent) == 3


def test_a_peer_that_is_heard_of_is_told_at_once(monkeypatch):
    monkeypatch.setattr(stop_notices, "PAUSES", (3600.0,) * 2)
    notices, sent = notices_to_shop(monkeypatch, [ConnectionRefusedError("down"), None])

    async def main():
        where = lambda peer: "https://shop:1"  # noqa: E731
        sending = asyncio.ensure_future(notices.deliver("shop", "/v1/joined/s", where))
        await wait_until_async(lambda: notices._contacts)
        notices.contact(["clinic", "shop"])
        assert await sending

    asyncio.run(main())
    assert sent == ["shop"] * 2


def test_a_session_that_several_parties_stop_at_once_is_stopped_once():
    stopped, ended = [], []

    async def end_now(session, why):
        ended.append(why)
        await asyncio.sleep(0)

    stops = SimpleNamespace(stop=lambda *about: stopped.append(about))
    gate = SimpleNamespace(provider=SimpleNamespace(stops=stops))
    engines = SimpleNamespace(end_now=end_now, gate=gate)
    about = {"key": ("analyst", "s"), "link": "link", "stopping": None}
    session = SimpleNamespace(**about, begun=set(), jobs=SimpleNamespace(unfinished=["s-0"]))

    async def main():
        names = ("shop", "clinic", "shop")
        await asyncio.gather(*(stop(engines, session, n, n, elsewhere=True) for n in names))
        await stop(engines, session, "later", "shop", elsewhere=True)

    asyncio.run(main())
    assert (len(stopped), ended) == (1, ["shop"])


def test_a_withdrawal_is_repeated_until_the_peer_has_it_and_goes_to_peers_alone(monkeypatch):
    monkeypatch.setattr(withdrawals, "INTERVAL", 0.0)
    pending = [Notice("ann", "s-0", "shop"), Notice("ann", "s-0", "gone")]
    answers, sent = [False, True], []
    lineage = SimpleNamespace(notices=lambda: tuple(pending), notified=pending.remove)

    async def deliver(peer, path, address):
        sent.append((peer, path, address(peer)))
        return answers.pop(0)

    async def main():
        config = SimpleNamespace(peers={"shop": "https://shop:9000"})
        tasks = []
        engines = SimpleNamespace(
            gate=SimpleNamespace(provider=SimpleNamespace(lineage=lineage)),
            notices=SimpleNamespace(deliver=deliver),
            begin=lambda work: tasks.append(asyncio.ensure_future(work)),
        )
        watching = asyncio.ensure_future(withdrawals.Withdrawals(config, engines).watch())
        await wait_until_async(lambda: len(pending) == 1)
        watching.cancel()
        await asyncio.wait([watching, *tasks])

    asyncio.run(main())
    assert sent == [("shop", "/v1/stored/s-0?coordinator=ann", "https://shop:9000")] * 2
    assert [each.party for each in pending] == ["gone"]
