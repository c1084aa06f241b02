"""A busy machine is slow: what starts on it is waited for, with a warning."""

from __future__ import annotations

import asyncio
import logging

import pytest
from mplang_worker.front import slow_start
from mplang_worker.front.slow_start import wait_for_start, wait_until_warm


def test_a_worker_whose_imports_are_slow_is_waited_for(monkeypatch, caplog):
    """Four workers that start together were ended by a fixed time, with an empty traceback."""
    waited, told = [], []
    monkeypatch.setattr(slow_start, "notify", told.append)

    async def ready(seconds):
        waited.append(seconds)
        if len(waited) < 3:
            raise TimeoutError

    with caplog.at_level(logging.WARNING):
        asyncio.run(wait_until_warm(ready, 60.0))
    assert [record.args for record in caplog.records] == [(60.0,), (120.0,)]
    assert told == ["EXTEND_TIMEOUT_USEC=180000000"] * 2


def test_a_process_that_starts_slowly_is_waited_for_unless_it_ends(monkeypatch, caplog):
    monkeypatch.setattr(slow_start, "START_TIMEOUT", 0.0)

    async def wait(settle):
        ready = asyncio.get_running_loop().create_future()
        waiting = asyncio.ensure_future(wait_for_start(ready, "an engine"))
        while not caplog.records:
            await asyncio.sleep(0)
        settle(ready)
        return await waiting

    assert asyncio.run(wait(lambda ready: ready.set_result("key"))) == "key"
    assert "an engine is not ready" in caplog.text
    caplog.clear()
    with pytest.raises(ConnectionError, match="SIGKILL"):
        asyncio.run(wait(lambda ready: ready.set_exception(ConnectionError("SIGKILL"))))
    with pytest.raises(TimeoutError):
        asyncio.run(wait(lambda ready: None))
