"""Counted costs of a program of SPU, as they come from the process that counts."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated

from mplang_analysis import Network
from pydantic import Field

from mplang_core.ext import StrictModel

Amount = Annotated[float, Field(ge=0, le=1e18)]


class CountRequest(StrictModel):
    """Program whose costs are asked for.

    Attributes:
        code: compressed StableHLO, in hexadecimal.
        shares: per operand whether it is a share.
        config: of the device.
        members: how many run it.
        network: between the members.
    """

    code: str
    shares: tuple[bool, ...]
    config: Mapping[str, object]
    members: int = Field(ge=2, le=64)
    network: Network


class Step(StrictModel):
    """Op, at a line, and what it takes, all members together.

    Attributes:
        name: of the op, or of what is set up.
        line: of the StableHLO; 0 if unknown.
        times: how often it stands there, with the turns of loops around it.
        turns_known: whether ``times`` has them; otherwise it is for one turn of each loop.
        known: whether it was counted; otherwise all amounts are 0.
        messages: how many.
        size: bytes of them.
        rounds: messages of which each waits for the one before.
        in_turn: bytes that go one after the other.
        seconds: of the CPU of a member, on this machine.
        spread: messages and bytes by which it may differ from run to run, as a share.
        exact: whether it was counted, or follows from what was.
    """

    name: str = Field(max_length=100, pattern="^[a-z][a-z0-9_ ]*$")
    line: int = Field(ge=0)
    times: Amount
    turns_known: bool = True
    known: bool = True
    messages: Amount = 0
    size: Amount = 0
    rounds: Amount = 0
    in_turn: Amount = 0
    seconds: Amount = 0
    spread: float = Field(default=0, ge=0, le=1e6)
    exact: bool = True


class Counted(StrictModel):
    """Costs of a program.

    Attributes:
        steps: its ops that take something, those of a line and name together.
        set_up: what it sets up, once in a session.
        way: how it makes oblivious transfers; empty if it makes none.
    """

    steps: tuple[Step, ...]
    set_up: tuple[Step, ...]
    way: str = ""
