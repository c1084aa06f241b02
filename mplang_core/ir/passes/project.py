"""Cuts out of a program the part that one party runs.

The *projection* of a program is a program for that party alone. What others hold and run is
not in it: no constant and no code of theirs. A value of the party is ``…@{rank}``, or ``…@?``
as before. A shuffle becomes what the party sends and what it receives.

What parties do together (messages, branches, loops, a ``pcall`` of several) has the attribute
``place``: where the op stands in its graph in the whole program. Keys of messages are made of
places, loop turns included, so all ends agree on them, and a party that runs its projection
may even work with one that runs the whole.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from mplang_core.errors import VerifyError
from mplang_core.ir.graph import AnyType, Graph, Operation, Program, Value
from mplang_core.ir.verifier import infer_outputs
from mplang_core.mask import Mask
from mplang_core.types import MPType

__all__ = ["held", "project"]


def project(program: Program, rank: int) -> Program:
    """Return the part of a program that one party runs.

    Its inputs and outputs are those of the program that the party may hold; :func:`held` says
    which ones. The program of one party is its own projection.

    Args:
        program: verified; optimize it before, for all parties alike.
        rank: the party.

    Raises:
        ValueError: the party does not take part.
        VerifyError: an op among parties is not one of the core's.

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
    if program.mask == Mask.of(rank):
        return program
    return Program(program.name, Mask.of(rank), _graph(program.graph, rank))


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


def _graph(graph: Graph, rank: int) -> Graph:
    end = _End(rank)
    for value in end.held(graph.inputs):
        end.env[value] = Value(_mine(value, rank))
        end.graph.inputs.append(end.env[value])
    for place, op in enumerate(graph.ops):
        rule = _RULES.get(op.opcode)
        if rule is None:
            raise VerifyError(f"{op.opcode} at {op.location}: nobody knows a party's part in it")
        rule(end, op, place)
    end.graph.outputs = end.need(end.held(graph.outputs))
    return end.graph


def _mine(value: Value, rank: int) -> MPType:
    assert isinstance(value.type, MPType)
    return MPType(value.type.base, None if value.type.pmask is None else Mask.of(rank))


@dataclass(slots=True)
class _End:
    """One party's part of a graph, in the making.

    Attributes:
        rank: the party.
        graph: its part.
        env: per value of the whole that the party may have, its value here.
        missing: likewise for what only its type says that the party may have.
    """

    rank: int
    graph: Graph = field(default_factory=Graph)
    env: dict[Value, Value] = field(default_factory=dict)
    missing: dict[Value, Value] = field(default_factory=dict)

    def held(self, values: Sequence[Value]) -> list[Value]:
        return [values[i] for i in held(values, self.rank)]

    def need(self, values: Iterable[Value]) -> list[Value]:
        return [self.env.get(value) or self.nothing(value) for value in values]

    def nothing(self, value: Value) -> Value:
        """Return what stands for a value that this party never has."""
        if value not in self.missing:
            kind = _mine(value, self.rank).base
            (self.missing[value],) = self.append(Operation("simp.nothing", (), (), {"kind": kind}))
        return self.missing[value]

    def append(self, op: Operation) -> tuple[Value, ...]:
        op.outputs = tuple(map(Value, infer_outputs(op, Mask.of(self.rank))))
        self.graph.ops.append(op)
        return op.outputs

    def emit(
        self,
        op: Operation,
        opcode: str,
        operands: Iterable[Value],
        results: Sequence[Value],
        regions: Mapping[str, Graph] | None = None,
        **attrs: Any,
    ) -> None:
        """Append the party's part of an op, which gives these of the op's results."""
        inputs = tuple(self.need(operands))
        outs = self.append(Operation(opcode, inputs, (), attrs, regions or {}, op.location))
        self.env.update(zip(results, outs, strict=False))

    # -- rules

    def constant(self, op: Operation, place: int) -> None:
        if self.rank in op.attrs["parties"]:
            attrs = {**op.attrs, "parties": Mask.of(self.rank)}
            self.emit(op, op.opcode, [], op.outputs, **attrs)

    def pcall_static(self, op: Operation, place: int) -> None:
        """A body that others run as well may talk to them, so it keeps its place."""
        alone = op.attrs["parties"] == Mask.of(self.rank)
        attrs = op.attrs if alone else {**op.attrs, "place": place}
        if self.rank in op.attrs["parties"]:
            self.emit(op, op.opcode, op.inputs, op.outputs, op.regions, **attrs)

    def pcall_dynamic(self, op: Operation, place: int) -> None:
        if all(value in self.env for value in op.inputs):
            self.emit(op, op.opcode, op.inputs, op.outputs, op.regions, place=place)

    def shuffle_static(self, op: Operation, place: int) -> None:
        (src,), (out,) = op.inputs, op.outputs
        routing: Mapping[int, int] = dict(op.attrs["routing"])
        to = Mask.from_ranks(each for each, source in routing.items() if source == self.rank)
        source = routing.get(self.rank)
        if source == self.rank and _mine(src, self.rank).pmask is not None:
            self.env[out] = self.env[src]
            to, source = to - Mask.of(self.rank), None
        if to:
            self.emit(op, "simp.send", [src], [], to=to, place=place)
        if source is not None:
            kind = _mine(src, self.rank).base
            self.emit(op, "simp.recv", [], [out], source=source, kind=kind, place=place)

    def shuffle_dynamic(self, op: Operation, place: int) -> None:
        """Those who may hold the index ask all others, whatever they have."""
        index = op.inputs[1].type
        assert isinstance(index, MPType)
        attrs: dict[str, Any] = {} if index.pmask is None else {"askers": index.pmask}
        self.emit(op, op.opcode, op.inputs, self.held(op.outputs), place=place, **attrs)

    def converge(self, op: Operation, place: int) -> None:
        mine = self.held(op.inputs)
        if len(mine) == 1 and mine[0] in self.env:
            self.env[op.outputs[0]] = self.env[mine[0]]
        elif any(value in self.env for value in mine):
            self.emit(op, op.opcode, mine, op.outputs)

    def together(self, op: Operation, place: int) -> None:
        """All parties take part in a branch or a loop, and in calls in which they do something."""
        regions = {name: _graph(region, self.rank) for name, region in op.regions.items()}
        operands, results = self.held(op.inputs), self.held(op.outputs)
        if not op.opcode.startswith("func.") or results or regions["body"].ops:
            self.emit(op, op.opcode, operands, results, regions, **{**op.attrs, "place": place})


_RULES: Mapping[str, Callable[[_End, Operation, int], None]] = {
    "func.call": _End.together,
    "func.launch": _End.together,
    "simp.constant": _End.constant,
    "simp.converge": _End.converge,
    "simp.pcall_dynamic": _End.pcall_dynamic,
    "simp.pcall_static": _End.pcall_static,
    "simp.shuffle_dynamic": _End.shuffle_dynamic,
    "simp.shuffle_static": _End.shuffle_static,
    "simp.uniform_cond": _End.together,
    "simp.while_loop": _End.together,
}
