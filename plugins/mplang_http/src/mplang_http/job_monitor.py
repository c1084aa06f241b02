"""What workers tell a host while a run goes on, and after it: states, links, clocks."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from mplang_core.simp import PartyState, Traffic

__all__ = ["JobMonitor", "clock_offset"]


class JobMonitor:
    """What each worker said last.

    Args:
        parties: how many there are.
    """

    def __init__(self, parties: int) -> None:
        self.states = [PartyState() for _ in range(parties)]
        # per party, the traffic of all runs that have ended
        self._ended_traffic: list[dict[int, Traffic]] = [{} for _ in range(parties)]

    def update(self, rank: int, status: Mapping[str, Any]) -> None:
        """Take in the status of a job."""
        links = dict(self._ended_traffic[rank])
        for peer, response_sent in (status.get("links") or {}).items():
            names = ("sent", "sent_messages", "received", "received_messages")
            used = Traffic(*(int(response_sent[name]) for name in names))
            links[int(peer)] = links.get(int(peer), Traffic()) + used
        at = status.get("at") or {}
        state = PartyState(status["state"], at.get("op"), at.get("location"), links)
        self.states[rank] = state
        if status.get("ended") is not None:
            self._ended_traffic[rank] = links


def clock_offset(
    request_sent: float, request_received: float, response_sent: float, response_received: float
) -> float:
    """Return what makes a time of a worker's clock one of the host's.

    Between the two clocks there is as much as fits the order of what happened: the request,
    its arrival, the answer, its arrival. Where that may be nothing, it is nothing.

    Args:
        sent: when the host asked, by its clock.
        begun: when the worker took it up, by its own.
        told: when the worker answered, by its own.
        heard: when the answer came, by the host's.

    Example:
        >>> shift_between(100.0, 100.2, 103.0, 103.1)
        0.0
        >>> shift_between(100.0, 160.25, 163.0, 103.25)
        -60.0
    """
    least, most = response_sent - response_received, request_received - request_sent
    return 0.0 if least <= 0 <= most else -(least + most) / 2
