"""Lease renewal: background heartbeats that keep a session alive, and close it on exit."""

from __future__ import annotations

import concurrent.futures
import contextlib
import threading
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor

from mplang_http.coordinator.remote_worker import RemoteWorker

RENEW_INTERVAL = 1.0  # seconds between two renewals


class LeaseRenewer:
    """Background thread that renews the leases of a session and releases dropped values.

    It has no reference to its driver, so that the driver can be garbage-collected.

    Args:
        workers: the workers of the session.

    Attributes:
        pool: thread pool for requests to the workers.
    """

    def __init__(self, workers: Sequence[RemoteWorker]) -> None:
        self.pool = ThreadPoolExecutor(3 * len(workers) + 2, thread_name_prefix="mplang-http")
        self._workers = workers
        self._stopped = threading.Event()
        self._thread = threading.Thread(target=self._run, name="mplang-lease", daemon=True)
        self._thread.start()

    def _run(self) -> None:
        """Renew the leases periodically."""
        while not self._stopped.wait(RENEW_INTERVAL):
            for worker in self._workers:
                with contextlib.suppress(RuntimeError):  # the pool takes no new work
                    self.pool.submit(worker.renew)

    def stop(self) -> None:
        """Close the session at all workers that respond. Idempotent."""
        if self._stopped.is_set():
            return
        self._stopped.set()
        try:
            ends = [self.pool.submit(worker.end_session) for worker in self._workers]
            concurrent.futures.wait(ends, timeout=5.0)
        except RuntimeError:  # the interpreter ends, and takes no new work in its pools
            for worker in self._workers:
                worker.end_session()
        self.pool.shutdown(wait=False)
        for worker in self._workers:
            worker.close()
