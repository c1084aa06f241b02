"""What each party does at the moment."""

from __future__ import annotations

import operator
from dataclasses import astuple, dataclass, field


@dataclass(slots=True)
class Traffic:
    """What went between one party and another: bytes, and in how many messages."""

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
    """One party, as its host sees it.

    Attributes:
        state: ``idle``, ``queued``, ``running``, or how its last run ended: ``done``,
            ``failed``, ``cancelled``.
        op: the op that runs, the innermost one.
        location: its line in the source.
        links: what went between it and each other party, since the host began.
    """

    state: str = "idle"
    op: str | None = None
    location: str | None = None
    links: dict[int, Traffic] = field(default_factory=dict)
