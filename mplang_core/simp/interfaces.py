"""Op interfaces: what passes, projection and analyses may ask of an op among parties.

An op implements those that apply; ``OpDef.interfaces`` holds what answers for it. Of an op
without any, the careful answer is given: every party learns of all its operands, its costs are
unknown, and passes leave it where it is.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal, Protocol, TypeAlias, runtime_checkable

import numpy as np

from mplang_core.ir import Operation, interface_of
from mplang_core.mask import Mask
from mplang_core.types import BaseType, MPType

# -- regions


@dataclass(frozen=True, slots=True)
class Call:
    """Runs a region among the parties once, on all operands; its results are the op's."""

    region: str


@dataclass(frozen=True, slots=True)
class PartyCall:
    """Runs a local region at certain parties, on all operands; its results are the op's.

    Attributes:
        region: the region.
        parties: who runs it; ``None`` for those who hold all operands when it runs.
    """

    region: str
    parties: Mask | None


@dataclass(frozen=True, slots=True)
class Branch:
    """Runs one of several regions among the parties, whose results are the op's.

    The first operand is the predicate, the others are the operands of the regions.

    Attributes:
        taken: per region the number that the predicate is then.
        compared: whether the parties exchange their predicates.
    """

    taken: Sequence[tuple[str, int]]
    compared: bool


@dataclass(frozen=True, slots=True)
class Loop:
    """Runs two regions among the parties in turns: a condition, and a body that gives the state.

    The operands are the state, which is as long as the results, then what both regions capture.

    Attributes:
        condition: the region that gives the predicate.
        body: the region that gives the next state.
        compared: whether the parties exchange their predicates.
    """

    condition: str
    body: str
    compared: bool


Control: TypeAlias = Call | PartyCall | Branch | Loop
"""The ways in which an op may run its regions."""


@runtime_checkable
class ControlFlow(Protocol):
    """How an op runs its regions. It does nothing beyond that."""

    def control(self, op: Operation) -> Control:
        """Return the way, and the regions by name."""


# -- messages


@dataclass(frozen=True, slots=True)
class Message:
    """A message from one party to another.

    Attributes:
        sender: a rank.
        receiver: another one.
        operand: the position of the operand whose copy at the sender it carries, or follows
            from; ``None`` if it follows from all that the sender has by then.
        type: what it carries; ``None`` for the operand itself.
        what: ``move`` for data, ``index`` for a question to another party.
        when: as ``"if asked for"``; empty if it is always sent.
        stage: the messages of a stage wait at their senders for those of lower stages, and may
            hand on what came by them.

    Raises:
        ValueError: it has neither an operand nor a type.
    """

    sender: int
    receiver: int
    operand: int | None
    type: BaseType | None = None
    what: Literal["move", "index"] = "move"
    when: str = ""
    stage: int = 0

    def __post_init__(self) -> None:
        if self.operand is None and self.type is None:
            raise ValueError("a message has neither an operand nor a type: what does it carry?")


@runtime_checkable
class Communicates(Protocol):
    """Which messages an op sends, from whom to whom."""

    def messages(self, op: Operation, world: Mask) -> Sequence[Message]:
        """Return all messages that may be sent, those of lower stages first at each party.

        Args:
            op: the op, verified.
            world: the parties of the program.
        """


@runtime_checkable
class Forwards(Protocol):
    """Which operands an output is a copy of.

    A receiver of a message that is always sent and carries such an operand has the sender's
    copy of it. Other parties have their own. The rest of the operands decide on the choice.
    """

    def sources(self, op: Operation, output: int) -> Sequence[int]:
        """Return the positions of the operands, of which each holder has one."""


# -- the rest


@runtime_checkable
class PublicLiteral(Protocol):
    """An op whose result is written in the program, and so known to all who read it."""

    def literal(self, op: Operation) -> np.ndarray[Any, Any]:
        """Return the tensor."""


@runtime_checkable
class DeclaredRange(Protocol):
    """An op that fails unless all numbers of its results are in a range."""

    def declared(self, op: Operation) -> tuple[float, float]:
        """Return the smallest number allowed, and the largest."""


@runtime_checkable
class Labels(Protocol):
    """How drawings call an op; the opcode by default."""

    def label(self, op: Operation) -> str:
        """Return a few words."""


def control_of(op: Operation) -> Control | None:
    """Return how an op runs its regions, or ``None`` if it does not tell."""
    found = interface_of(op, ControlFlow)
    return None if found is None else found.control(op)


def messages_of(op: Operation, world: Mask) -> Sequence[Message] | None:
    """Return the messages of an op itself, those of its regions left out.

    Args:
        op: an op among parties.
        world: the parties of the program.

    Returns:
        ``None`` if the op does not tell.
    """
    found = interface_of(op, Communicates)
    if found is not None:
        return found.messages(op, world)
    passive = interface_of(op, ControlFlow) or interface_of(op, PublicLiteral)
    return None if passive is None else ()


def holders_of(kind: object, world: Mask) -> Mask:
    """Return the parties that may hold a value of a type."""
    pmask = kind.pmask if isinstance(kind, MPType) else None
    return world if pmask is None else pmask
