"""Interpreter context: ops run at once."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any

from mplang_core.edsl.build import make_op
from mplang_core.edsl.context import MPContext, MPObject, Placement
from mplang_core.errors import TraceError
from mplang_core.ir import Graph, Program, Value
from mplang_core.ir.source_line import at
from mplang_core.mask import Mask
from mplang_core.types import Form, MPType


class InterpVar(MPObject):
    """Reference to a value at the parties; its data stays there until it is fetched."""

    __slots__ = ("_mptype", "value")

    def __init__(
        self,
        ctx: InterpContext,
        type: MPType,
        value: Any,
        device: Placement | None = None,
        uniform: bool = False,
    ) -> None:
        super().__init__(ctx, device, uniform)
        self._mptype = type
        self.value = value

    @property
    def type(self) -> MPType:
        """The multi-party type."""
        return self._mptype

    def __repr__(self) -> str:
        how = {Form.PLAIN: "mp.fetch", Form.SHARE: "mp.reveal"}.get(self.base_type.form)
        return f"<{self}; {how} it to see>" if how else f"<{self}>"


class InterpContext(MPContext):
    """Context that runs each op at once; the base class of hosts."""

    @abstractmethod
    def evaluate(self, program: Program, inputs: Sequence[Any]) -> list[Any]:
        """Run a program.

        Args:
            program: the program.
            inputs: one run-time value of this interpreter per input.

        Returns:
            One run-time value per output.
        """

    def evaluate_step(self, program: Program, inputs: Sequence[Any]) -> list[Any]:
        """Run the program of an eager call, which is one op; as :meth:`evaluate` by default."""
        return self.evaluate(program, inputs)

    @abstractmethod
    def lift(self, literal: Any, parties: Mask | None = None) -> Any:
        """Return a run-time value for a literal.

        Args:
            literal: a number, an array, or what :meth:`read_literal` returns.
            parties: the parties that get it; all by default.
        """

    def emit(
        self,
        opcode: str,
        inputs: Sequence[MPObject],
        attrs: Mapping[str, Any] | None = None,
        regions: Mapping[str, Graph] | None = None,
    ) -> list[MPObject]:
        """Run an op and return its results."""
        given = [self.adopt(obj) for obj in inputs]
        operands = [Value(obj.type) for obj in given]
        op = make_op(opcode, operands, attrs, regions, self)
        graph = Graph(operands, [op], list(op.outputs))
        program = Program(opcode, self.mask, graph)
        results = self.evaluate_step(program, [data_of(obj) for obj in given])
        return [
            InterpVar(self, _mp(value), result)
            for value, result in zip(op.outputs, results, strict=True)
        ]

    def adopt(self, obj: MPObject) -> MPObject:
        """Return the value; raise ``TraceError`` if it belongs to another context."""
        if obj.ctx is not self:
            raise TraceError(
                f"{at()}{obj!s} belongs to another context; a value is used where it was "
                "made: fetch it there, and give the data to the other",
                code="T004",
            )
        return obj

    def place(
        self, obj: MPObject, device: Placement | None, uniform: bool | None = None
    ) -> MPObject:
        """Return the same value with another device and uniformity."""
        same = obj.uniform if uniform is None else uniform
        return InterpVar(self, obj.mptype, data_of(obj), device, same)


def data_of(obj: MPObject) -> Any:
    """Return the run-time value of a value of an interpreter."""
    assert isinstance(obj, InterpVar)
    return obj.value


def _mp(value: Value) -> MPType:
    assert isinstance(value.type, MPType)
    return value.type
