"""Communicator between the MPC processes of a session."""

from __future__ import annotations

import functools
from collections.abc import Collection, Sequence

from mplang_http.ext import Packed

from mplang_core.ext import Failure, RunError
from mplang_worker.link.linked_communicator import LinkedCommunicator
from mplang_worker.link.links import Links


class MpcCommunicator(LinkedCommunicator):
    """Communicator of one run at a time, which the engine of this party opens and closes.

    Peers may send as soon as it is open: their engines wait until that of this party has told
    them, and it tells them after that.

    Args:
        rank: rank of this party.
        names: names of the parties, by rank.
        links: links of this process.
        timeout: timeout of one ``recv``, in seconds.
    """

    far = "the MPC process of party"

    def __init__(self, rank: int, names: Sequence[str], links: Links, timeout: float) -> None:
        super().__init__(rank, names, links, timeout)
        self._parties: Collection[int] = ()

    def begin(self, run: str, parties: Collection[int], seconds: float) -> None:
        """Open a run.

        Args:
            run: key of the run.
            parties: the ranks of those that are in it; messages of others are dropped.
            seconds: until it has to end.
        """
        self._parties, self.longest = parties, seconds
        self.open(run)
        self.set_evaluated(run, True)  # by the engine, while it calls nothing here

    def fail(self, run: str, failure: Failure) -> None:
        """End all waiting in a run, as it has failed at the engine.

        Args:
            run: key of the run.
            failure: how.
        """
        with self._lock:
            found = self._runs.get(run)
            error = failure.error()
            if found is not None and isinstance(error, RunError):
                found.fail(functools.partial(type(error), str(error)))

    def receive_value(self, peer: str, key: str, packed: Packed) -> None:
        """Deliver a value; drop it if it is late, or of no party of the run."""
        if self.peers.get(peer) in self._parties:
            super().receive_value(peer, key, packed)
