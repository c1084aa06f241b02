"""Helpers of ops among parties: checks of type inference and of kernels."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import Any

from mplang_core.edsl import MPContext, MPObject, find_ctx
from mplang_core.errors import CommError, RunError, TraceError
from mplang_core.ir import AnyType, Attr, Effects, Level, OpDef, Operation, op_defs
from mplang_core.ir.opdef import Infer
from mplang_core.ir.source_line import at
from mplang_core.mask import Mask
from mplang_core.runtime import KernelContext
from mplang_core.simp.interfaces import Communicates, Forwards, Labels, Message
from mplang_core.types import BaseType, MPType


def declare(
    name: str,
    interface: object,
    attrs: Mapping[str, Attr] = MappingProxyType({}),
    regions: Mapping[str, Level] = MappingProxyType({}),
    *,
    level: Level = Level.PARTY,
    reads: tuple[str, ...] | None = None,
    total: bool = False,
) -> Callable[[Infer], Infer]:
    """Decorator: declare an op of the core by its type inference, whose docstring is the op's.

    By default the op is among parties; it has no effects. The arguments are those of
    :class:`OpDef`.
    """

    def add(infer: Infer) -> Infer:
        doc = " ".join((infer.__doc__ or "").split())
        effects, interfaces = Effects.NONE, [interface]
        op_def = OpDef(name, infer, level, attrs, regions, doc, effects, interfaces, reads, total)
        op_defs.add(name, op_def, provider="mplang-core")
        return infer

    return add


# -- tracing


def context_of(*args: Any) -> MPContext:
    """Return the current context, else that of the first value.

    Args:
        *args: multi-party values.

    Raises:
        TraceError: an argument is not a multi-party value, or there is no context.
    """
    for arg in args:
        if not isinstance(arg, MPObject):
            raise TraceError(f"{at()}expected a multi-party value, got a {type(arg).__name__}")
    return find_ctx(args)


class NamedWithoutDialect(Labels):
    """Op interface: a label that is the opcode without its dialect."""

    def label(self, op: Operation) -> str:
        """Return the part after the dot."""
        return op.opcode.partition(".")[2]


class StaysInPlace(Communicates, Forwards, NamedWithoutDialect):
    """Op interfaces of an op that gives one of its operands and sends nothing."""

    def messages(self, op: Operation, world: Mask) -> Sequence[Message]:
        """Return none."""
        return ()

    def sources(self, op: Operation, output: int) -> Sequence[int]:
        """Return the positions of all operands."""
        return range(len(op.inputs))


# -- type inference


def operand_types(op: Operation) -> list[MPType]:
    """Return the types of the operands of an op among parties.

    Raises:
        TypeError: an operand has no mask.
    """
    types = [value.type for value in op.inputs]
    for i, found in enumerate(types):
        if not isinstance(found, MPType):
            raise TypeError(f"operand {i} has no mask: {found}")
    return types  # type: ignore[return-value]


def check_parties(parties: Mask, world: Mask) -> None:
    """Check that a mask of parties is not empty and is part of the program's.

    Args:
        parties: the mask.
        world: the parties of the program.

    Raises:
        ValueError: it is empty, or has other parties.
    """
    if not parties:
        raise ValueError("no party is named")
    if not parties <= world:
        raise ValueError(f"the parties {parties - world} are not among {world}")


def check_sendable(src: AnyType) -> None:
    """Check that a value may leave its party.

    Raises:
        TypeError: it is a key, or has no mask.
    """
    if not isinstance(src, MPType):
        raise TypeError(f"the operand has no mask: {src}")
    if src.base.form.value == "key":
        raise TypeError(f"a key stays with its party: {src}")


def list_types(types: Sequence[object]) -> str:
    """Return types as a list for messages."""
    return ", ".join(map(str, types))


# -- kernels


def single(ctx: KernelContext, outs: Sequence[Any]) -> Any:
    """Return the results of a kernel as the interpreter expects them."""
    return outs[0] if len(ctx.step.outs) == 1 else outs


def received(value: Any, source: int, kind: BaseType) -> Any:
    """Return a received value; raise if it is missing, or not of its type.

    An honest party sends the type that the program says, so another one is a ``CommError``.
    """
    if wrong := kind.mismatch(present(value, source)):
        raise CommError(f"party {source} sent something else: {wrong}", code="L005")
    return value


def present(value: Any, source: int) -> Any:
    """Return a value that a party sends; raise ``RunError`` if the party does not hold it."""
    if value is None:
        raise RunError(f"party {source} is to send a value that it does not hold", code="R005")
    return value
