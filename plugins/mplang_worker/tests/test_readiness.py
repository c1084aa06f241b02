"""Readiness of a worker follows the sections that count now."""

from __future__ import annotations

import asyncio
import contextlib
from types import SimpleNamespace

from mplang_testing.waiting import wait_until_async
from mplang_worker.front.readiness import Readiness


class Gone:
    """Section whose source is not there."""

    def missing(self):
        return {"data set x": "gone"}


def test_data_sets_that_a_reload_adds_or_removes_are_probed_or_not():
    async def main() -> None:
        data, none = SimpleNamespace(provider=None), SimpleNamespace(provider=None)
        readiness = Readiness.of(data, none, none)
        watching = asyncio.create_task(readiness.watch())
        for provider, missing in ((None, []), (Gone(), ["data"]), (None, [])):
            data.provider = provider
            readiness.probe_soon()
            await wait_until_async(lambda missing=missing: readiness.missing == missing)
        watching.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await watching

    asyncio.run(main())
