"""Calls in threads end, however the code of another package ends."""

from __future__ import annotations

import asyncio

import pytest
from mplang_testing.waiting import DEADLINE
from mplang_worker.front.threads import in_thread


@pytest.mark.parametrize("error", [StopIteration, SystemExit, KeyboardInterrupt, ValueError])
def test_whatever_is_raised_is_an_exception_of_the_call(error):
    def fail():
        raise error("why")

    async def call():
        await asyncio.wait_for(in_thread(fail), DEADLINE)

    with pytest.raises((RuntimeError, ValueError), match="why|in a thread"):
        asyncio.run(call())
