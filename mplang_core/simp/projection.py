"""Endpoint projection: the part of a program that one party runs, as a program of its own.

A projection contains no constants and no code of other parties. Its values are ``…@{rank}``, or
``…@?`` as in the whole program. Each op defines its projection by :class:`Projects`; a shuffle
becomes a send and a receive.

Ops that parties run together (messages, branches, loops, a ``pcall`` of several) have the
attribute ``place``: the position of the op in its graph of the whole program. Message keys
contain these positions and loop turns, so both ends compute the same key, even if one party runs
its projection and another the whole program.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol, runtime_checkable

from mplang_core.errors import VerifyError
from mplang_core.ir import AnyType, Graph, Level, Operation, Program, Value, interface_of, op_defs
from mplang_core.ir.origin import is_projected
from mplang_core.ir.verifier import infer_outputs
from mplang_core.mask import Mask
from mplang_core.types import BaseType, MPType


@runtime_checkable
class Projects(Protocol):
    """Op interface: the projection of an op to one party."""

    def project(self, op: Operation, index: int, part: PartyGraph) -> None:
        """Append a party's part of an op to its graph.

        Args:
            op: the op, in the whole program.
            index: its position there, for :meth:`PartyGraph.send` and similar methods.
            part: the graph under construction; results that the party holds are bound there.

        Raises:
            TypeError: the op has no projection to the party.
            ValueError: the same.
        """


def project(program: Program, rank: int) -> Program:
    """Return the projection of a program to one party.

    Its inputs and outputs are those of the program that the party may hold, see :func:`held`.
    A projection is its own projection.

    Args:
        program: a verified program; passes must run before, on the whole program.
        rank: the party.

    Raises:
        ValueError: the party does not take part.
        VerifyError: an op does not implement :class:`Projects`, and the party cannot run it alone.

    Example:
        >>> import mplang_core as mp
        >>> def swap(x):
        ...     return mp.pshfl_s(x, [0, 1], [1, 0])
        >>> context = mp.TraceContext(mp.ClusterSpec.simple(3))
        >>> print(project(mp.trace(context, swap, 7).program, 0))
        program "swap" on {0} (%0: i64[]@{0}) {
          simp.send(%0) {place = 0, to = {1}} at ...
          %1 = simp.recv() {kind = i64[], place = 0, source = 1} : i64[]@{0} at ...
          return %1
        }
        <BLANKLINE>
    """
    if rank not in program.mask:
        raise ValueError(f"party {rank} does not take part; the program is for {program.mask}")
    if any(map(is_projected, program.graph.walk())):
        return program
    graph = project_graph(program.graph, rank, program.mask)
    return Program(program.name, Mask.of(rank), graph)


def held(values: Sequence[Value], rank: int) -> list[int]:
    """Return the positions of the values that a party may hold.

    Example:
        >>> from mplang_core.types import TensorType
        >>> masks = [Mask.of(0), Mask.of(1), None]
        >>> held([Value(MPType(TensorType("f32"), mask)) for mask in masks], 1)
        [1, 2]
    """
    return [i for i, value in enumerate(values) if _may_hold(value.type, rank)]


def _may_hold(kind: AnyType, rank: int) -> bool:
    return isinstance(kind, MPType) and (kind.pmask is None or rank in kind.pmask)


def project_graph(graph: Graph, rank: int, world: Mask) -> Graph:
    """Return the projection of a graph among parties to one party."""
    part = PartyGraph(rank, world)
    for value in part.held(graph.inputs):
        part.env[value] = Value(part.type_of(value))
        part.graph.inputs.append(part.env[value])
    for index, op in enumerate(graph.ops):
        rule = interface_of(op, Projects)
        try:
            if rule is not None:
                rule.project(op, index, part)
            else:
                part.whole(op, index)
        except VerifyError:  # of a region
            raise
        except (TypeError, ValueError) as error:
            raise VerifyError(
                f"{op.opcode} at {op.location} does not tell the part of party {rank} in it, and "
                f"cannot be run there as it is: {error}; its OpDef needs the interface Projects"
            ) from error
    part.graph.outputs = part.need(part.held(graph.outputs))
    return part.graph


@dataclass(slots=True)
class PartyGraph:
    """Projection of a graph under construction.

    Attributes:
        rank: the party.
        world: all parties of the program.
        graph: the projected graph.
        env: values of the whole program that the party may hold, each with its value here.
        missing: values that the party may hold by their type only, each with an absent value.
    """

    rank: int
    world: Mask
    graph: Graph = field(default_factory=Graph)
    env: dict[Value, Value] = field(default_factory=dict)
    missing: dict[Value, Value] = field(default_factory=dict)

    def has(self, value: Value) -> bool:
        """Return whether the party may hold a value of the whole program."""
        return value in self.env

    def held(self, values: Sequence[Value]) -> list[Value]:
        """Return the values that the party may hold by their types."""
        return [values[i] for i in held(values, self.rank)]

    def type_of(self, value: Value) -> MPType:
        """Return the type of a value of the whole program at this party."""
        assert isinstance(value.type, MPType)
        return MPType(value.type.base, None if value.type.pmask is None else Mask.of(self.rank))

    def need(self, values: Iterable[Value]) -> list[Value]:
        """Return the values here for values of the whole program, absent ones if none."""
        return [self.env.get(value) or self._absent(value) for value in values]

    def forward(self, value: Value, result: Value) -> None:
        """Bind a result of the whole program to another value, which the party has."""
        self.env[result] = self.env[value]

    def region(self, graph: Graph) -> Graph:
        """Return the projection of a region among the parties."""
        return project_graph(graph, self.rank, self.world)

    def emit(
        self,
        op: Operation,
        opcode: str,
        operands: Iterable[Value],
        results: Sequence[Value],
        regions: Mapping[str, Graph] | None = None,
        **attrs: Any,
    ) -> None:
        """Append an op for the party's part of another one.

        Args:
            op: the op of the whole program; its source line is kept.
            opcode: the opcode of the new op.
            operands: its operands, as values of the whole program.
            results: the values of the whole program to bind its results to.
            regions: its regions, projected.
            **attrs: its attributes; ``place`` is ``index`` if several parties run it together.
        """
        inputs = tuple(self.need(operands))
        outs = self._append(Operation(opcode, inputs, (), attrs, regions or {}, op.location))
        self.env.update(zip(results, outs, strict=False))

    def send(self, op: Operation, index: int, value: Value, to: Mask) -> None:
        """Append a send of a value to other parties."""
        self.emit(op, SEND, [value], [], to=to, place=index)

    def receive(self, op: Operation, index: int, source: int, kind: BaseType, out: Value) -> None:
        """Append a receive of a value from another party, with a check of its type."""
        self.emit(op, RECV, [], [out], source=source, kind=kind, place=index)

    def whole(self, op: Operation, index: int) -> None:
        """Append an op that all parties run together, with its regions projected.

        Raises:
            TypeError: the op is not allowed in a program of one party.
            ValueError: the same.
        """
        op_def = op_defs.get(op.opcode)
        levels = op_def.regions if op_def is not None else {}
        regions = {
            name: self.region(region) if levels.get(name) is Level.PARTY else region
            for name, region in op.regions.items()
        }
        self.emit(op, op.opcode, op.inputs, op.outputs, regions, **{**op.attrs, "place": index})

    def _absent(self, value: Value) -> Value:
        if value not in self.missing:
            kind = self.type_of(value).base
            (self.missing[value],) = self._append(Operation(ABSENT, (), (), {"kind": kind}))
        return self.missing[value]

    def _append(self, op: Operation) -> tuple[Value, ...]:
        op.outputs = tuple(map(Value, infer_outputs(op, Mask.of(self.rank))))
        self.graph.ops.append(op)
        return op.outputs


SEND, RECV, ABSENT = "simp.send", "simp.recv", "simp.nothing"
