"""Execution plans: slots for values, bound kernels, last uses."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from mplang_core.errors import KernelError
from mplang_core.ir import AnyType, Graph, Operation, Value
from mplang_core.runtime.kernels import Kernel, KernelTable
from mplang_core.suggest import install_hint
from mplang_core.types import BaseType

Runs: TypeAlias = Callable[[Operation], bool]


@dataclass(slots=True, eq=False)
class Step:
    """Step of a plan: an op with its kernel and the slots of its values.

    Attributes:
        op: the op.
        kernel: its kernel.
        attrs: its attributes, as keywords.
        index: its position in the graph.
        ins: slots of the operands.
        outs: slots of the results.
        dead: slots that no later step reads.
        checks: per result the declared type to check; of ops among parties, plugins' own.
        kernels: the kernel table of its regions.
        runs: returns whether an op of its regions is run; ``None`` for all.
        cache: data that the kernel keeps with the op between runs.
    """

    op: Operation
    kernel: Kernel
    attrs: dict[str, Any]
    index: int
    ins: tuple[int, ...]
    outs: tuple[int, ...]
    dead: tuple[int, ...]
    checks: tuple[AnyType, ...]
    kernels: KernelTable
    runs: Runs | None = None
    cache: Any = field(default=None, repr=False)
    _regions: dict[str, Plan] = field(default_factory=dict, repr=False)

    def region(self, name: str) -> Plan:
        """Return the plan of a region, made at its first use, since hosts run few regions."""
        if (plan := self._regions.get(name)) is None:
            plan = self._regions[name] = make_plan(self.op.regions[name], self.kernels, self.runs)
        return plan


@dataclass(slots=True, eq=False)
class Plan:
    """Execution plan of a graph.

    Attributes:
        graph: the graph.
        steps: the steps in order.
        size: the number of slots.
        ins: slots of the inputs.
        outs: slots of the outputs.
    """

    graph: Graph
    steps: list[Step]
    size: int
    ins: tuple[int, ...]
    outs: tuple[int, ...]


def make_plan(graph: Graph, kernels: KernelTable, runs: Runs | None = None) -> Plan:
    """Return the plan of a graph.

    Args:
        graph: the graph.
        kernels: the kernels by opcode.
        runs: returns whether an op is run here; the results of others are ``None``. By default
            all are run.

    Raises:
        KernelError: an op has no kernel for this role; the message says what to install.
    """
    slots: dict[Value, int] = {}
    for value in graph.inputs:
        slots[value] = len(slots)
    for op in graph.ops:
        for value in op.outputs:
            slots[value] = len(slots)
    run = [(i, op) for i, op in enumerate(graph.ops) if runs is None or runs(op)]
    last_use = {value: i for i, op in run for value in op.inputs}
    kept = set(graph.outputs)
    steps = []
    for i, op in run:
        used_here = {v for v in op.inputs if last_use[v] == i} - kept
        unused = {v for v in op.outputs if v not in last_use} - kept
        others = runs and op.dialect not in ("simp", "func")  # these give what was checked
        steps.append(
            Step(
                op=op,
                kernel=_kernel(op, kernels),
                attrs=dict(op.attrs),
                index=i,
                ins=tuple(slots[v] for v in op.inputs),
                outs=tuple(slots[v] for v in op.outputs),
                dead=tuple(slots[v] for v in used_here | unused),
                checks=tuple(v.type for v in op.outputs if others or isinstance(v.type, BaseType)),
                kernels=kernels,
                runs=runs,
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
    if (found := kernels.get(op.opcode)) is None:
        raise KernelError(
            f"{op.opcode} at {op.location}: no {kernels.what} for it; for an op of your own, write "
            f"one with @mp.kernel({op.opcode!r}); else {install_hint(op.dialect)}"
        )
    return found
