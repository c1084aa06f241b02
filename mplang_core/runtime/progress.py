"""Progress of parties: state, current op and traffic."""

from __future__ import annotations

import operator
from dataclasses import astuple, dataclass, field


@dataclass(slots=True)
class Traffic:
    """Traffic between one party and another.

    Attributes:
        sent: bytes sent.
        sent_messages: the number of messages sent.
        received: bytes received.
        received_messages: the number of messages received.
    """

    sent: int = 0
    sent_messages: int = 0
    received: int = 0
    received_messages: int = 0

    def __add__(self, other: Traffic) -> Traffic:
        return Traffic(*map(operator.add, astuple(self), astuple(other)))

    def __sub__(self, other: Traffic) -> Traffic:
        return Traffic(*map(operator.sub, astuple(self), astuple(other)))


@dataclass(frozen=True, slots=True)
class PartyState:
    """State of a party.

    Attributes:
        state: ``idle``, ``queued``, ``running``, or how its last run ended: ``done``,
            ``failed``, ``cancelled``.
        op: the current innermost op; ``None`` for none.
        location: its source line, ``"file:line"``.
        links: the traffic with each other party by rank since the host started.
        observable: whether the party tells of its run; else there is no op, and no traffic.
        turn: how far the loops around the op are, in words; empty if its backend does not tell.
    """

    state: str = "idle"
    op: str | None = None
    location: str | None = None
    links: dict[int, Traffic] = field(default_factory=dict)
    observable: bool = True
    turn: str = ""
