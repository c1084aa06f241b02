"""Side channels: ops whose duration, or whose messages, depend on the values of operands."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NamedTuple, Protocol, runtime_checkable

from mplang_core.ext import Operation, VerifyError, interface_of


class SideChannels(NamedTuple):
    """Side channels of an op: what it discloses beside results and messages.

    Attributes:
        duration: positions of the operands upon whose values its work depends without a bound by
            their types: turns of a loop, branches, rows of a cross join. Every op takes longer
            for more rows; that is none.
        sizes: positions of the operands upon whose values the number or the size of messages
            depends that its kernel sends, beside those that it declares.
        multiplies: whether its results may have several times as many rows or bytes as its
            operands. Its work is bounded by them all the same, but that of many such ops, each on
            what the one before gives, is not.
    """

    duration: Sequence[int] = ()
    sizes: Sequence[int] = ()
    multiplies: bool = False


@runtime_checkable
class HasSideChannels(Protocol):
    """Interface of an op whose duration or messages may depend on the values of operands."""

    def side_channels(self, op: Operation) -> SideChannels:
        """Return upon which operands they depend."""


@dataclass(frozen=True, slots=True)
class SideChannelRule:
    """A function as the interface :class:`HasSideChannels`, for ``OpDef(interfaces=[…])``.

    Attributes:
        rule: ``rule(op)``.
    """

    rule: Callable[[Operation], SideChannels]

    def side_channels(self, op: Operation) -> SideChannels:
        """Return what the function does."""
        return self.rule(op)


NONE = SideChannels()


def side_channels_of(op: Operation) -> SideChannels:
    """Return the side channels of an op; none if it declares none.

    Raises:
        VerifyError: it names an operand that it does not have.
    """
    declared = interface_of(op, HasSideChannels)
    if declared is None:
        return NONE
    found = declared.side_channels(op)
    for i in (*found.duration, *found.sizes):
        if not 0 <= i < len(op.inputs):
            where = f" at {op.location}" if op.location else ""
            raise VerifyError(
                f"{op.opcode}{where}: its interface HasSideChannels names operand {i} of "
                f"{len(op.inputs)}; correct the op's definition"
            )
    return found
