"""Op interfaces of ops among parties, for workers, passes and analyses.

``OpDef.interfaces`` has the implementations of an op. For an op without them the worst case is
assumed: every party learns all its operands, its costs are unknown, and passes do not move it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import reduce
from operator import and_, or_
from typing import Any, Literal, Protocol, TypeAlias, runtime_checkable

import numpy as np

from mplang_core.ir import AnyType, Effects, Operation, interface_of, op_defs
from mplang_core.ir.verifier import interface_checks
from mplang_core.mask import Mask
from mplang_core.types import BaseType, MPType, TensorType

# -- regions


@dataclass(frozen=True, slots=True)
class Call:
    """Control flow of an op that runs a region among the parties once.

    The region takes all operands; its results are those of the op.

    Attributes:
        region: the region.
    """

    region: str


@dataclass(frozen=True, slots=True)
class PartyCall:
    """Control flow of an op that runs a local region at some parties.

    The region takes all operands; its results are those of the op.

    Attributes:
        region: the region.
        parties: the parties that run it; ``None`` for the holders of all operands at run time.
    """

    region: str
    parties: Mask | None


@dataclass(frozen=True, slots=True)
class Branch:
    """Control flow of an op that runs one of several regions among the parties.

    The first operand is the predicate, the others are the operands of the regions. The results
    of the region are those of the op.

    Attributes:
        taken: per region its name and the value of the predicate that selects it.
        compared: whether the parties exchange their predicates.
    """

    taken: Sequence[tuple[str, int]]
    compared: bool


@dataclass(frozen=True, slots=True)
class Loop:
    """Control flow of a loop: a condition and a body, regions among the parties.

    The operands are the state, one per result, then the captures of both regions.

    Attributes:
        condition: the region that returns the predicate.
        body: the region that returns the next state.
        compared: whether the parties exchange their predicates.
    """

    condition: str
    body: str
    compared: bool


Control: TypeAlias = Call | PartyCall | Branch | Loop
"""The kinds of control flow of an op."""


@runtime_checkable
class ControlFlow(Protocol):
    """Op interface: control flow. The op does nothing but run its regions."""

    def control(self, op: Operation) -> Control:
        """Return the control flow of an op."""


# -- messages


@dataclass(frozen=True, slots=True)
class Message:
    """Message from one party to another.

    Attributes:
        sender: the rank of the sender.
        receiver: the rank of the receiver.
        operand: the position of the operand that it carries or depends on, as the sender holds
            it; ``None`` if it may depend on all data of the sender.
        type: the type of its content; ``None`` for the operand itself.
        what: ``move`` for data, ``index`` for a request, ``match`` for which keys are in common.
        when: a condition such as ``"if asked for"``; empty if it is always sent.
        many: whether it stands for as many messages as a protocol needs to carry it.
        stage: senders send messages of a stage after they received those of lower stages, and
            may forward their content.

    Raises:
        ValueError: it has neither an operand nor a type.
    """

    sender: int
    receiver: int
    operand: int | None
    type: BaseType | None = None
    what: Literal["move", "index", "match"] = "move"
    when: str = ""
    stage: int = 0
    many: bool = False

    def __post_init__(self) -> None:
        if self.operand is None and self.type is None:
            raise ValueError("a message has neither an operand nor a type: what does it carry?")


@runtime_checkable
class Communicates(Protocol):
    """Op interface: the messages that an op sends."""

    def messages(self, op: Operation, world: Mask) -> Sequence[Message]:
        """Return all messages that may be sent, per party in the order of stages.

        Args:
            op: the op, verified.
            world: the parties of the program.
        """


@runtime_checkable
class Forwards(Protocol):
    """Op interface: the operands that an output is a copy of.

    The receiver of an unconditional message with such an operand gets the sender's copy; other
    parties have their own. The other operands select among them.
    """

    def sources(self, op: Operation, output: int) -> Sequence[int]:
        """Return the positions of the operands; each holder of the output has one of them."""


# -- the rest


@runtime_checkable
class PublicLiteral(Protocol):
    """Op interface: a literal in the program, known to all its readers."""

    def literal(self, op: Operation) -> np.ndarray[Any, Any]:
        """Return the literal."""


@runtime_checkable
class DeclaredRange(Protocol):
    """Op interface: a range; the op fails unless all elements of its results are in it."""

    def declared(self, op: Operation) -> tuple[float, float]:
        """Return the bounds, both inclusive."""


@runtime_checkable
class Labels(Protocol):
    """Op interface: the label of an op in drawings; the opcode by default."""

    def label(self, op: Operation) -> str:
        """Return the label, a few words."""


def control_of(op: Operation) -> Control | None:
    """Return the control flow of an op; ``None`` if it does not implement :class:`ControlFlow`."""
    found = interface_of(op, ControlFlow)
    return None if found is None else found.control(op)


def messages_of(op: Operation, world: Mask) -> Sequence[Message] | None:
    """Return the messages of an op, without those of its regions.

    Args:
        op: an op among parties.
        world: the parties of the program.

    Returns:
        The messages; ``None`` if they are unknown.
    """
    if (found := interface_of(op, Communicates)) is not None:
        return found.messages(op, world)
    passive = interface_of(op, ControlFlow) or interface_of(op, PublicLiteral)
    return None if passive is None else ()


def participants_of(op: Operation, world: Mask) -> Mask:
    """Return the parties that take part in an op; it is nothing to the others, which skip it.

    Args:
        op: an op.
        world: the parties of the program.

    Returns:
        Those who run its local region, send, receive or hold a result; all if that is unknown.

    Example:
        >>> from mplang_core import parse
        >>> program = parse('''program "p" on {0, 1, 2} (%0: i64[]@{0}) {
        ...   %1 = simp.shuffle_static(%0) {routing = [[2, 0]]} : i64[]@{2}
        ...   return %1
        ... }''')
        >>> print(participants_of(program.graph.ops[0], program.mask))
        {0, 2}
    """
    control = control_of(op)
    if isinstance(control, PartyCall):
        holders = (holders_of(value.type, world) for value in op.inputs)
        return reduce(and_, holders, world) if control.parties is None else control.parties
    messages = None if control is not None else messages_of(op, world)
    op_def = op_defs.get(op.opcode)
    if messages is None or op_def is None or op_def.effects is Effects.ANY:
        return world
    ends = (rank for each in messages for rank in (each.sender, each.receiver))
    holders = (holders_of(value.type, world) for value in op.outputs)
    return reduce(or_, holders, Mask.from_ranks(ends))


def holders_of(kind: object, world: Mask) -> Mask:
    """Return the parties that may hold a value of a type.

    Args:
        kind: a type.
        world: the parties of the program.

    Returns:
        The mask of a multi-party type; ``world`` if the mask is known only at run time.
    """
    pmask = kind.pmask if isinstance(kind, MPType) else None
    return world if pmask is None else pmask


@dataclass(frozen=True, slots=True)
class QueriesSources:
    """Interface of an op that queries tables, and has their source do so if all are at one."""


# -- what interfaces say of an op, against its types; the verifier asks


def _check_types(op: Operation) -> None:
    """Refuse an op of which an output is said to be a copy, or a literal, of another type."""
    forwards, public = interface_of(op, Forwards), interface_of(op, PublicLiteral)
    for i, value in enumerate(op.outputs if forwards or public else ()):
        for source in () if forwards is None else forwards.sources(op, i):
            here = 0 <= source < len(op.inputs)
            kind = _base_of(op.inputs[source].type) if here else "which is not there"
            if kind != _base_of(value.type):
                raise TypeError(
                    f"its interface Forwards says that output {i}, {value.type}, is a copy of "
                    f"operand {source}, {kind}; sources() names operands of the output's type"
                )
        if public is not None and TensorType.of(public.literal(op)) != _base_of(value.type):
            raise TypeError(f"its interface PublicLiteral has a literal not of type {value.type}")


def _base_of(kind: AnyType) -> BaseType:
    return kind.base if isinstance(kind, MPType) else kind


interface_checks.append(_check_types)
