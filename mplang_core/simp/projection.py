"""Projection: the part of a program that one party runs, as a program for that party alone.

What others hold and run is not in it: no constant and no code of theirs. A value of the party
is ``…@{rank}``, or ``…@?`` as before. How an op projects is the op's to say, by
:class:`Projects`; a shuffle becomes what the party sends and what it receives.

What parties do together (messages, branches, loops, a ``pcall`` of several) has the attribute
``place``: the op's position in its graph in the whole program. Keys of messages are made of
positions, loop turns included, so all ends agree on them, and a party that runs its projection
may even work with one that runs the whole.
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
    """How an op projects to one party."""

    def project(self, op: Operation, index: int, part: PartyGraph) -> None:
        """Append to a party's graph what it does of an op.

        Args:
            op: the op, in the whole program.
            index: its position there, for :meth:`PartyGraph.send` and its like.
            part: the graph that is made. Results that the party holds are bound there.
        """


def project(program: Program, rank: int) -> Program:
    """Return the part of a program that one party runs.

    Its inputs and outputs are those of the program that the party may hold; :func:`held` says
    which ones. A projection is its own projection.

    Args:
        program: verified; optimize it before, for all parties alike.
        rank: the party.

    Raises:
        ValueError: the party does not take part.
        VerifyError: an op cannot be run by the party alone, and does not say how it projects.

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
    """Return the part of a graph among the parties of a world that one of them runs."""
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
    """One party's part of a graph, under construction.

    Attributes:
        rank: the party.
        world: all parties of the program.
        graph: its part.
        env: per value of the whole that the party may have, its value here.
        missing: likewise for what only its type says that the party may have.
    """

    rank: int
    world: Mask
    graph: Graph = field(default_factory=Graph)
    env: dict[Value, Value] = field(default_factory=dict)
    missing: dict[Value, Value] = field(default_factory=dict)

    def has(self, value: Value) -> bool:
        """Return whether a value of the whole may be here."""
        return value in self.env

    def held(self, values: Sequence[Value]) -> list[Value]:
        """Return the values whose types say that the party may hold them."""
        return [values[i] for i in held(values, self.rank)]

    def type_of(self, value: Value) -> MPType:
        """Return the type of a value of the whole as it is at this party."""
        assert isinstance(value.type, MPType)
        return MPType(value.type.base, None if value.type.pmask is None else Mask.of(self.rank))

    def need(self, values: Iterable[Value]) -> list[Value]:
        """Return what stands here for values of the whole; the absent one where it has none."""
        return [self.env.get(value) or self._absent(value) for value in values]

    def forward(self, value: Value, result: Value) -> None:
        """Let a result of the whole be another value, which the party has."""
        self.env[result] = self.env[value]

    def region(self, graph: Graph) -> Graph:
        """Return the party's part of a region among the parties."""
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
        """Append an op that stands for the party's part of another one.

        Args:
            op: the op of the whole, whose line it has.
            opcode: what is appended.
            operands: its operands, as values of the whole.
            results: the values of the whole that its results are.
            regions: its regions, projected.
            **attrs: its attributes; ``place`` is the op's index, where parties act together.
        """
        inputs = tuple(self.need(operands))
        outs = self._append(Operation(opcode, inputs, (), attrs, regions or {}, op.location))
        self.env.update(zip(results, outs, strict=False))

    def send(self, op: Operation, index: int, value: Value, to: Mask) -> None:
        """Append the sending of a value to other parties."""
        self.emit(op, SEND, [value], [], to=to, place=index)

    def receive(self, op: Operation, index: int, source: int, kind: BaseType, out: Value) -> None:
        """Append the receiving of a value from another party, which is checked against its type."""
        self.emit(op, RECV, [], [out], source=source, kind=kind, place=index)

    def whole(self, op: Operation, index: int) -> None:
        """Append the op as it is, regions projected: all parties run it together.

        Raises:
            TypeError, ValueError: the op cannot stand in a program of one party.
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
