"""Notices of stops go to all parties that are peers now."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace

from mplang_worker.front.stop_notices import StopNotices


def test_a_peer_that_a_reload_has_removed_keeps_no_other_one_from_being_told(monkeypatch, caplog):
    told = []
    monkeypatch.setattr(StopNotices, "_send", lambda self, *args: told.append(args[:2]))
    config = SimpleNamespace(name="bank", tls=object(), peers={"shop": "https://shop:9000"})
    session = SimpleNamespace(key=("analyst", "s"), parties=["bank", "shop", "evil"])
    asyncio.run(StopNotices(config, None).send(session, "why"))
    assert told == [("shop", "https://shop:9000")]
    assert "evil was not told" in caplog.text
