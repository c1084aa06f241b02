"""Events: what others learn of in a program."""

from __future__ import annotations

from typing import Literal, NamedTuple, TypeAlias

from mplang_analysis.labels import Label
from mplang_analysis.words import What
from mplang_core import BaseType
from mplang_core.ext import Location

SIDE_CHANNELS = (What.SIZE, What.DURATION, What.FAILURE)
"""What is told beside values: the receiver has it in plain, whatever the type of the event."""

Receiver: TypeAlias = int | Literal["host", "everyone"]


class Event(NamedTuple):
    """Something of a program that another party learns of.

    Attributes:
        what: a ``move`` of a value; a ``reveal``, by which something protected becomes plain
            at a party; a ``predicate`` that parties compare; the ``index`` by which a party
            asks for a value; a ``match``, which of the keys of a party others have, too; a
            ``result`` that the host may fetch; the ``size`` of what a party
            gets and cannot read; the ``duration`` of a run, and a ``failure``, of which
            everyone is told; a ``change`` of a result, which its receiver does not notice.
        sender: the party that sends, takes long, fails, or can change it; nobody in a reveal, nor
            where all parties do it together, or everyone can.
        receiver: who learns of it, or gets what can be changed.
        type: the type of what crosses; of a size, of what has it.
        label: what flowed into it.
        location: the user's line, the first one of several.
        when: how often, unless it is once.
        sent: whether a message carries it.
        lines: the lines of all ops that it stands for.
        protocol: the protocol that does not notice a change.
    """

    what: What
    sender: int | None
    receiver: Receiver
    type: BaseType
    label: Label
    location: Location | None
    when: tuple[str, ...] = ()
    sent: bool = False
    lines: tuple[Location, ...] = ()
    protocol: str = ""
