"""Monitor of a run's jobs: states, traffic and clock offsets of the workers."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from mplang_core.ext import PartyState, Traffic

MAX_TURN = 60  # characters of what a worker tells of its loops


class JobMonitor:
    """Last known state of each worker's job.

    Args:
        parties: number of parties.

    Attributes:
        states: state of each party, by rank.
    """

    def __init__(self, parties: int) -> None:
        self.states = [PartyState() for _ in range(parties)]
        # per party, the traffic of all runs that have ended
        self._ended_traffic: list[dict[int, Traffic]] = [{} for _ in range(parties)]

    def begin(self) -> None:
        """Forget where the last run was."""
        self.states = [PartyState(links=state.links) for state in self.states]

    def update(self, rank: int, status: Mapping[str, Any]) -> None:
        """Update the state of a party.

        Args:
            rank: rank of the party.
            status: status of its job, as the worker sends it.
        """
        links = dict(self._ended_traffic[rank])
        for peer, response_sent in (status.get("links") or {}).items():
            names = ("sent", "sent_messages", "received", "received_messages")
            used = Traffic(*(int(response_sent[name]) for name in names))
            links[int(peer)] = links.get(int(peer), Traffic()) + used
        at = status.get("at") or {}
        watched = status.get("observable") is not False
        op, line, turn = at.get("op"), at.get("location"), str(at.get("turn") or "")[:MAX_TURN]
        state = PartyState(status["state"], op, line, links, watched, turn)
        self.states[rank] = state
        if status.get("ended") is not None:
            self._ended_traffic[rank] = links


def clock_offset(
    request_sent: float, request_received: float, response_sent: float, response_received: float
) -> float:
    """Return the offset to add to times of a worker's clock to get times of the host's.

    The offset is bounded by causality: the worker receives a request after the host sends it, and
    the host receives the response after the worker sends it. Return 0 if that is within the bounds,
    else their midpoint.

    Args:
        request_sent: time of the host's clock, in seconds.
        request_received: time of the worker's clock, in seconds.
        response_sent: time of the worker's clock, in seconds.
        response_received: time of the host's clock, in seconds.

    Example:
        >>> clock_offset(100.0, 100.2, 103.0, 103.1)
        0.0
        >>> clock_offset(100.0, 160.25, 163.0, 103.25)
        -60.0
    """
    least, most = response_sent - response_received, request_received - request_sent
    return 0.0 if least <= 0 <= most else -(least + most) / 2
