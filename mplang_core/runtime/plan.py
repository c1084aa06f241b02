"""A graph made ready to run: slots instead of names, kernels bound, lifetimes known."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from mplang_core.errors import KernelError
from mplang_core.ir import Graph, Operation, Program, Value
from mplang_core.ir.origin import origin_of
from mplang_core.mask import Mask
from mplang_core.runtime.kernels import Kernel, KernelTable
from mplang_core.suggest import install_hint
from mplang_core.types import BaseType


@dataclass(slots=True, eq=False)
class Step:
    """One op with its kernel, and where its values are.

    Attributes:
        op: the op.
        kernel: what runs it.
        attrs: its attributes, as keywords.
        index: its position in the graph; of a projected op, in the graph it came from.
        ins: slots of the operands.
        outs: slots of the results.
        dead: slots that nothing reads after this step.
        checks: per result the base type to hold it against, inside of a ``pcall``.
        kernels: the table that its regions are bound to, when they are first run.
        cache: what the kernel keeps with the op between runs.
    """

    op: Operation
    kernel: Kernel
    attrs: dict[str, Any]
    index: int
    ins: tuple[int, ...]
    outs: tuple[int, ...]
    dead: tuple[int, ...]
    checks: tuple[BaseType, ...]
    kernels: KernelTable
    cache: Any = field(default=None, repr=False)
    _regions: dict[str, Plan] = field(default_factory=dict, repr=False)

    def region(self, name: str) -> Plan:
        """Return the plan of a region, made at the first use: a host runs few of them."""
        plan = self._regions.get(name)
        if plan is None:
            plan = self._regions[name] = make_plan(self.op.regions[name], self.kernels)
        return plan

    def program(self, mask: Mask) -> Program:
        """Return a program of this op alone, to send elsewhere."""
        op = self.op
        inputs = {value: Value(value.type) for value in op.inputs}
        outputs = tuple(Value(value.type) for value in op.outputs)
        operands = tuple(inputs[value] for value in op.inputs)
        moved = Operation(op.opcode, operands, outputs, op.attrs, op.regions, op.location)
        return Program(op.opcode, mask, Graph(list(inputs.values()), [moved], list(outputs)))

    @property
    def distinct_ins(self) -> tuple[int, ...]:
        """Positions of the operands in :meth:`program`, each value once."""
        first: dict[Value, int] = {}
        for i, value in enumerate(self.op.inputs):
            first.setdefault(value, i)
        return tuple(first.values())


@dataclass(slots=True, eq=False)
class Plan:
    """A graph made ready to run.

    Attributes:
        graph: what it runs.
        steps: in order.
        size: how many slots it needs.
        ins: slots of the inputs.
        outs: slots of the outputs.
    """

    graph: Graph
    steps: list[Step]
    size: int
    ins: tuple[int, ...]
    outs: tuple[int, ...]


def make_plan(graph: Graph, kernels: KernelTable) -> Plan:
    """Make a plan of a graph.

    Raises:
        KernelError: an op has no kernel for this role; says what to install.
    """
    slots: dict[Value, int] = {}
    for value in graph.inputs:
        slots[value] = len(slots)
    last_use = {value: i for i, op in enumerate(graph.ops) for value in op.inputs}
    kept = set(graph.outputs)
    steps = []
    for i, op in enumerate(graph.ops):
        origin = origin_of(op)
        for value in op.outputs:
            slots[value] = len(slots)
        used_here = {v for v in op.inputs if last_use[v] == i} - kept
        unused = {v for v in op.outputs if v not in last_use} - kept
        steps.append(
            Step(
                op=op,
                kernel=_kernel(op, kernels),
                attrs={k: v for k, v in op.attrs.items() if origin is None or k != "place"},
                index=i if origin is None else origin,
                ins=tuple(slots[v] for v in op.inputs),
                outs=tuple(slots[v] for v in op.outputs),
                dead=tuple(slots[v] for v in used_here | unused),
                checks=tuple(v.type for v in op.outputs if isinstance(v.type, BaseType)),
                kernels=kernels,
            )
        )
    return Plan(
        graph,
        steps,
        len(slots),
        tuple(slots[v] for v in graph.inputs),
        tuple(slots[v] for v in graph.outputs),
    )


def _kernel(op: Operation, kernels: KernelTable) -> Kernel:
    found = kernels.get(op.opcode)
    if found is None:
        raise KernelError(
            f"{op.opcode} at {op.location}: no {kernels.what} for it; for an op of your own, write "
            f"one with @mp.kernel({op.opcode!r}); else {install_hint(op.dialect)}"
        )
    return found
