"""Lease renewal: background heartbeats that keep a session alive, and close it on exit."""

from __future__ import annotations

import concurrent.futures
import contextlib
import json
import threading
from collections import deque
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor

from mplang_core.ext import RunError
from mplang_http.client import LostWorkerError, RefusedError, WorkerClient

RENEW_INTERVAL = 1.0  # seconds between two renewals


class LeaseRenewer:
    """Background thread that renews the leases of a session and releases dropped values.

    It has no reference to its driver, so that the driver can be garbage-collected.

    Args:
        session: name of the session.
        clients: clients of the workers, by rank.
        dropped: per worker, the names of values to release.

    Attributes:
        pool: thread pool for requests to the workers.
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
        """Renew the leases periodically."""
        while not self._stopped.wait(RENEW_INTERVAL):
            for client, dropped in zip(self._clients, self._dropped, strict=True):
                with contextlib.suppress(RunError, RuntimeError):
                    self.pool.submit(self._renew, client, dropped)

    def _renew(self, client: WorkerClient, dropped: deque[str]) -> None:
        names = drain(dropped)
        path = ("v1", "sessions", self._session, "release")
        try:
            client.request("POST", *path, body=[json.dumps(names).encode()])
        except RefusedError as error:
            if error.status == 429:  # its engine is busy
                dropped.extend(names)
        except LostWorkerError:
            dropped.extend(names)  # it may be slow only, so release them next time
        except RunError:
            pass  # the session has ended at the worker

    def stop(self) -> None:
        """Close the session at all workers that respond. Idempotent."""
        if self._stopped.is_set():
            return
        self._stopped.set()
        try:
            ends = [self.pool.submit(self._close_session, client) for client in self._clients]
            concurrent.futures.wait(ends, timeout=5.0)
        except RuntimeError:  # the interpreter ends, and takes no new work in its pools
            for client in self._clients:
                self._close_session(client)
        self.pool.shutdown(wait=False)
        for client in self._clients:
            client.close()

    def _close_session(self, client: WorkerClient) -> None:
        with contextlib.suppress(RunError):
            client.request("DELETE", "v1", "sessions", self._session)


def drain(names: deque[str], limit: int = 1000) -> list[str]:
    """Remove and return names from a queue that other threads append to.

    Args:
        names: the queue.
        limit: maximum number of names.
    """
    found: list[str] = []
    with contextlib.suppress(IndexError):
        while len(found) < limit:
            found.append(names.popleft())
    return found
