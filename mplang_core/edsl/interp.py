"""The context that runs ops at once."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from mplang_core.edsl.build import make_op
from mplang_core.edsl.context import MPContext, MPObject, Placement
from mplang_core.errors import TraceError
from mplang_core.ir import Graph, Program, Value
from mplang_core.ir.source_line import at
from mplang_core.mask import Mask
from mplang_core.types import MPType


class InterpVar(MPObject):
    """A value at the parties. Its data stays there until it is fetched."""

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
        """Its multi-party type."""
        return self._mptype


class InterpContext(MPContext):
    """Runs what it is given. A backend's host is one."""

    @abstractmethod
    def evaluate(self, program: Program, inputs: Sequence[Any]) -> list[Any]:
        """Run a program on run-time values, and return its results as such."""

    @abstractmethod
    def lift(self, literal: Any, parties: Mask | None = None) -> Any:
        """Make a run-time value of a literal, which these parties get, or all may know."""

    def emit(
        self,
        opcode: str,
        inputs: Sequence[MPObject],
        attrs: Mapping[str, Any] | None = None,
        regions: Mapping[str, Graph] | None = None,
    ) -> list[MPObject]:
        """Run one op at once."""
        given = [self.adopt(obj) for obj in inputs]
        operands = [Value(obj.type) for obj in given]
        op = make_op(opcode, operands, attrs, regions, self)
        graph = Graph(operands, [op], list(op.outputs))
        results = self.evaluate(Program(opcode, self.mask, graph), [_data(obj) for obj in given])
        return [
            InterpVar(self, _mp(value), result)
            for value, result in zip(op.outputs, results, strict=True)
        ]

    def literal(self, value: np.ndarray[Any, Any], parties: Mask) -> MPObject:
        """Give a literal to parties without a program around it."""
        op = make_op("simp.constant", [], {"value": value, "parties": parties}, None, self)
        return InterpVar(self, _mp(op.outputs[0]), self.lift(value, parties))

    def adopt(self, obj: MPObject) -> MPObject:
        """Return the object, which must be this context's own."""
        if obj.ctx is not self:
            raise TraceError(
                f"{at()}{obj!r} belongs to another context; a value is used where it was "
                "made: fetch it there, and give the data to the other"
            )
        return obj

    def place(
        self, obj: MPObject, device: Placement | None, uniform: bool | None = None
    ) -> MPObject:
        """Return the same value, marked as being on a device, and as uniform or not."""
        same = obj.uniform if uniform is None else uniform
        return InterpVar(self, obj.mptype, _data(obj), device, same)


def _data(obj: MPObject) -> Any:
    assert isinstance(obj, InterpVar)
    return obj.value


def _mp(value: Value) -> MPType:
    assert isinstance(value.type, MPType)
    return value.type
