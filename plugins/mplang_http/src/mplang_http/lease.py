"""What keeps a session open while its host lives, and ends it then."""

from __future__ import annotations

import concurrent.futures
import contextlib
import json
import threading
from collections import deque
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor

from mplang_core.errors import RunError
from mplang_http.client import LostWorkerError, WorkerClient

__all__ = ["LeaseRenewer", "drain"]

RENEW_INTERVAL = 1.0  # seconds between two renewals


class LeaseRenewer:
    """What a driver leaves behind when it is dropped, and what ends with it: it knows no driver.

    Args:
        session: the session.
        clients: the workers.
        dropped: per worker the names of values that nobody has any more.

    Attributes:
        pool: threads that ask workers.
    """

    def __init__(
        self, session: str, clients: Sequence[WorkerClient], dropped: Sequence[deque[str]]
    ) -> None:
        self.pool = ThreadPoolExecutor(2 * len(clients) + 2, thread_name_prefix="mplang-http")
        self._session = session
        self._clients = clients
        self._dropped = dropped
        self._stopped = threading.Event()
        self._thread = threading.Thread(target=self._run, name="mplang-lease", daemon=True)
        self._thread.start()

    def _run(self) -> None:
        """Renew the leases, and have values freed."""
        while not self._stopped.wait(RENEW_INTERVAL):
            for client, dropped in zip(self._clients, self._dropped, strict=True):
                with contextlib.suppress(RunError, RuntimeError):
                    self.pool.submit(self._renew, client, dropped)

    def _renew(self, client: WorkerClient, dropped: deque[str]) -> None:
        names = drain(dropped)
        path = ("v1", "sessions", self._session, "release")
        try:
            client.request("POST", *path, body=[json.dumps(names).encode()])
        except LostWorkerError:
            dropped.extend(names)  # it may be slow only, so release them next time
        except RunError:
            pass  # the session has ended at the worker

    def stop(self) -> None:
        """End the session at the workers, as far as they answer."""
        if self._stopped.is_set():
            return
        self._stopped.set()
        ends = [self.pool.submit(self._close_session, client) for client in self._clients]
        concurrent.futures.wait(ends, timeout=5.0)
        self.pool.shutdown(wait=False)
        for client in self._clients:
            client.close()

    def _close_session(self, client: WorkerClient) -> None:
        with contextlib.suppress(RunError):
            client.request("DELETE", "v1", "sessions", self._session)


def drain(names: deque[str], limit: int = 1000) -> list[str]:
    """Take names out of a queue that others fill, so many at most."""
    found: list[str] = []
    with contextlib.suppress(IndexError):
        while len(found) < limit:
            found.append(names.popleft())
    return found
