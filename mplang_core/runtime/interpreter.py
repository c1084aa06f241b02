"""Interpreter of programs by a table of kernels, for hosts and workers."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Sequence
from typing import Any

from mplang_core.errors import AdmissionError, KernelError, MPLangError, PartyError, RunError
from mplang_core.feop import ContextBound
from mplang_core.ir import Graph, Operation, Program, verify
from mplang_core.mask import Mask
from mplang_core.runtime.kernels import KernelTable
from mplang_core.runtime.listener import Listener
from mplang_core.runtime.plan import Plan, Step, make_plan

PLANS = 256  # cached plans per interpreter
MAX_KEPT = 1 << 20  # bytes of constants and code of a program whose plan is cached


class KernelContext(ContextBound):
    """Execution context of a kernel.

    Attributes:
        interpreter: a :class:`~mplang_core.ext.WorkerInterpreter` at a party, a
            :class:`~mplang_core.ext.SimpHost` at a host.
        run: the name of the run, the same at all parties.
        step: the current step of the plan.
        index: the position of the current op in its graph.
        graph: that graph.
        listener: notified of ops in regions; ``None`` for none.
        inner: the context of the region that runs now; ``None`` for none.
    """

    __slots__ = (
        "_parent", "_tag", "graph", "index", "inner", "interpreter", "listener", "run", "step",
    )  # fmt: skip

    step: Step
    graph: Graph
    inner: KernelContext | None

    def __init__(
        self,
        interpreter: Any,
        run: str,
        parent: KernelContext | None = None,
        tag: str = "",
        listener: Listener | None = None,
    ) -> None:
        self.interpreter = interpreter
        self.run = run
        self.listener = listener
        self.index = 0
        self._parent = parent
        self._tag = tag

    @property
    def op(self) -> Operation:
        """The current op."""
        return self.step.op

    @property
    def parties(self) -> Mask:
        """The parties that run the enclosing ``pcall``.

        Raises:
            RunError: the op is not in a ``pcall_static``, so the parties are unknown.
        """
        ctx: KernelContext | None = self._parent
        parties = ctx.step.attrs.get("parties") if ctx is not None else None
        if not isinstance(parties, Mask):
            raise RunError(
                f"{self.op.opcode} is run by several parties together, so it stands in a "
                "pcall_static that names them",
                code="R002",
            )
        return parties

    @property
    def key(self) -> str:
        """The message key of this op: the run, the positions of it and its enclosing ops, turns."""
        parts: list[str] = []
        ctx: KernelContext | None = self
        while ctx is not None:
            parts.append(f"{ctx._tag}{ctx.index}")
            ctx = ctx._parent
        return f"{self.run}/{'/'.join(reversed(parts))}"

    def run_region(self, name: str, inputs: Sequence[Any], turn: int = 0) -> list[Any]:
        """Run a region of this op.

        Args:
            name: the region.
            inputs: one value per input of the region.
            turn: the turn of a loop, from 0; part of the message keys.

        Returns:
            One value per output of the region.

        Raises:
            MPLangError: an op of the region failed.
        """
        plan = self.step.region(name)
        inner = KernelContext(self.interpreter, self.run, self, f"{name}{turn}:", self.listener)
        self.inner = inner
        try:
            return execute(plan, inputs, inner, self.listener)
        finally:
            self.inner = None  # breaks the reference cycle between the two contexts


class Interpreter:
    """Interpreter of programs with a cache of execution plans.

    Args:
        kernels: the kernels by opcode.
        owner: the ``interpreter`` of the kernels' contexts; this one by default.

    Attributes:
        running: the outermost context of each active run, by the name of the run.
    """

    def __init__(self, kernels: KernelTable, owner: Any = None) -> None:
        self.kernels = kernels
        self._owner = self if owner is None else owner
        self._plans: OrderedDict[tuple[str, int], Plan] = OrderedDict()
        self._plans_lock = threading.Lock()
        self.running: dict[str, KernelContext] = {}

    def plan(self, program: Program) -> Plan:
        """Return the plan of a program, which is verified; cached by digest and source lines.

        Plans of programs with large constants are not cached, to release the constants.

        Raises:
            VerifyError: the program breaks a rule.
            KernelError: an op has no kernel.
        """
        key = program.digest, program.line_hash
        with self._plans_lock:
            if (plan := self._plans.get(key)) is not None:
                self._plans.move_to_end(key)
                return plan
        plan = self.make_plan(program)
        if program.size() <= MAX_KEPT:
            with self._plans_lock:
                self._plans[key] = plan
                if len(self._plans) > PLANS:
                    self._plans.popitem(last=False)
        return plan

    def make_plan(self, program: Program) -> Plan:
        """Return a new plan of a program, which is verified.

        Raises:
            VerifyError: the program breaks a rule.
            KernelError: an op has no kernel.
        """
        verify(program)
        return make_plan(program.graph, self.kernels)

    def run(
        self,
        program: Program,
        inputs: Sequence[Any],
        *,
        run: str,
        listener: Listener | None = None,
        inside: bool = False,
    ) -> list[Any]:
        """Run a program on values of this interpreter.

        Args:
            program: the program.
            inputs: one value per input.
            run: the name of the run.
            listener: notified of each op.
            inside: whether to notify it of ops in regions only. A host wraps each program in
                a call op, which is not one of the user's.

        Returns:
            One value per output.

        Raises:
            VerifyError: the program breaks a rule.
            MPLangError: an op failed; ``error.op`` and ``error.location`` name it.
        """
        plan = self.plan(program)
        ctx = self.running[run] = KernelContext(self._owner, run, listener=listener)
        try:
            return execute(plan, inputs, ctx, None if inside else listener)
        finally:
            self.running.pop(run, None)


def execute(
    plan: Plan, inputs: Sequence[Any], ctx: KernelContext, listener: Listener | None = None
) -> list[Any]:
    """Run the steps of a plan and return its outputs; values are released after their last use."""
    ctx.graph = plan.graph
    slots: list[Any] = [None] * plan.size
    for slot, value in zip(plan.ins, inputs, strict=True):
        slots[slot] = value
    for i, step in enumerate(plan.steps):
        ctx.index, ctx.step = step.index, step
        if listener is not None:
            listener.op_started(step.op, i, len(plan.steps))
        _run_step(step, slots, ctx)
        if listener is not None:
            listener.op_finished(step.op, i, len(plan.steps))
    return [slots[slot] for slot in plan.outs]


def _run_step(step: Step, slots: list[Any], ctx: KernelContext) -> None:
    try:
        result = step.kernel(ctx, *[slots[i] for i in step.ins], **step.attrs)
        if len(step.outs) == 1:
            result = (result,)
        elif len(result) != len(step.outs):
            raise KernelError(f"expected {len(step.outs)} results, got {len(result)}")
        for check, value in zip(step.checks, result, strict=False):
            if wrong := check.mismatch(value):
                raise KernelError(f"the kernel broke its promise: {wrong}")
    except (MPLangError, KeyboardInterrupt, SystemExit) as error:
        _locate(error, step.op)
        raise
    except BaseException as error:  # panics of libraries in Rust are not an Exception
        failure = KernelError(f"{type(error).__name__} in the kernel of {step.op.opcode}")
        _locate(failure, step.op)
        raise failure from error
    for slot in step.dead:
        slots[slot] = None
    for slot, value in zip(step.outs, result, strict=True):
        if slot not in step.dead:
            slots[slot] = value


def _locate(error: BaseException, op: Operation) -> None:
    """Set the op and the location of an error, unless an inner op did.

    The call of a whole program is not an op of the user: who admits none has the line that it
    refuses.
    """
    if isinstance(error, AdmissionError | PartyError) and op.opcode == "func.call":
        return
    if getattr(error, "op", None) is None:
        error.op = op.opcode  # type: ignore[attr-defined]
        error.location = str(op.location) if op.location else None  # type: ignore[attr-defined]
