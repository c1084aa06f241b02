"""Native services of a session, as its engine calls them: each has an MPC process of its own."""

from __future__ import annotations

import socket
from collections.abc import Callable, Collection, Mapping
from types import MappingProxyType

from mplang_trace import SpanRecorder

from mplang_core.ext import Failure, NativeCalls, Traffic
from mplang_worker.mpc.calls import MpcCalls


class MpcServices:
    """The native services of a session; there are more of them once a program needs another one.

    Args:
        make: returns what calls a service, by its name.

    Attributes:
        by_name: what kernels call, by the name that they declare.
    """

    def __init__(self, make: Callable[[str], MpcCalls]) -> None:
        self._make = make
        self._calls: dict[str, MpcCalls] = {}
        self.by_name: Mapping[str, NativeCalls] = MappingProxyType(self._calls)

    def attach(self, service: str, sock: socket.socket) -> None:
        """Call another MPC process of a service from now on.

        Args:
            service: name of the service.
            sock: socket to it.
        """
        calls = self._calls.get(service) or self._make(service)
        calls.attach(sock)
        self._calls[service] = calls

    def traffic(self) -> dict[int, Traffic]:
        """Return what went between the MPC processes of this party and of each other one so far."""
        total: dict[int, Traffic] = {}
        for calls in list(self._calls.values()):
            for rank, link in calls.traffic().items():
                total[rank] = total.get(rank, Traffic()) + link
        return total

    def begin(
        self,
        run: str,
        parties: Collection[int],
        recorder: SpanRecorder | None,
        services: Collection[str],
    ) -> None:
        """Open a run at the services that it needs; see :meth:`MpcCalls.begin`.

        Args:
            run: key of the run.
            parties: the ranks of those that are in it.
            recorder: takes the spans of its messages; ``None`` if they are not recorded.
            services: their names; one that the session has not is refused by the kernel.

        Raises:
            CommError: an MPC process has ended.
        """
        for name, calls in list(self._calls.items()):
            if name in services:
                calls.begin(run, parties, recorder)

    def settle(self, run: str) -> None:
        """Take from them what is needed after a run; see :meth:`MpcCalls.settle`.

        Raises:
            CommError: an MPC process has ended.
            RunError: it gives something else.
        """
        for calls in list(self._calls.values()):
            calls.settle(run)

    def end(self, run: str, *, failed: bool) -> None:
        """End a run at those that have begun it."""
        for calls in list(self._calls.values()):
            calls.end(run, failed=failed)

    def ended_in(self, run: str) -> bool:
        """Return whether an MPC process has ended in a run; see :meth:`MpcCalls.ended_in`."""
        return any(calls.ended_in(run) for calls in list(self._calls.values()))

    def abort(self, run: str, failure: Failure) -> None:
        """End all waiting in a run there, as it has failed here; from any thread."""
        for calls in list(self._calls.values()):
            calls.abort(run, failure)
